//! A yardstick: the same rows through `COPY … BINARY`, a thousand in each durable transaction, with
//! nothing read, decided, updated or sealed.

use std::io::Cursor;
use std::time::Duration;

use domain::money::Currency;
use futures_util::SinkExt;
use store::writer::Wanted;
use tokio_postgres::{Client, CopyInSink};

use crate::transfers::{BATCH, Dice, Pace};

const COPY: &str =
    "COPY transfer (id, kind, ledger, debit, credit, amount, cause, at, batch) FROM STDIN BINARY";
/// Microseconds from 1970 to 2000, where PostgreSQL's clock begins.
const EPOCH: i64 = 946_684_800_000_000;

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
}

fn row(out: &mut Vec<u8>, wanted: &Wanted, (debit, credit): (i64, i64)) {
    out.extend(9_i16.to_be_bytes());
    field(out, wanted.id.uuid().as_bytes());
    field(out, &wanted.kind.code().to_be_bytes());
    field(out, &Currency::Usd.ledger().to_be_bytes());
    field(out, &debit.to_be_bytes());
    field(out, &credit.to_be_bytes());
    field(out, &wanted.amount.get().to_be_bytes());
    field(out, wanted.cause.as_bytes());
    field(out, &(wanted.at.micros() - EPOCH).to_be_bytes());
    field(out, &1_i64.to_be_bytes());
}

fn rows(dice: &mut Dice) -> Vec<u8> {
    let mut out = b"PGCOPY\n\xff\r\n\0".to_vec();
    out.extend([0; 8]);
    for _ in 0..BATCH {
        let wanted = dice.wanted();
        // Row numbers as `row_locks::fund` gives them.
        let number =
            |owner: uuid::Uuid, from: u64| i64::try_from(from + owner.as_u64_pair().1).unwrap();
        let pair = (
            number(wanted.debit.1, 1),
            number(wanted.credit.1, 1 + crate::transfers::RENTERS),
        );
        row(&mut out, &wanted, pair);
    }
    out.extend((-1_i16).to_be_bytes());
    out
}

/// Rows per second.
pub async fn run(sql: &Client, dice: &mut Dice, time: Duration) -> (u64, f64) {
    let mut pace = Pace::start(time);
    while pace.goes_on() {
        let sink: CopyInSink<Cursor<Vec<u8>>> = sql.copy_in(COPY).await.unwrap();
        let mut sink = Box::pin(sink);
        sink.send(Cursor::new(rows(dice))).await.unwrap();
        pace.count += sink.as_mut().finish().await.unwrap();
    }
    pace.rate()
}
