//! The signed ends of days.

use billing::chain::{day_message, day_root};
use billing::month::{date_text, day_of};
use domain::clock::{Span, Timestamp};
use store::day::DayRecord;
use store::db::{Ro, Tx};

use crate::context::Cx;
use crate::error::Error;

/// Transactions that were sealed before midnight are committed long before this.
const SETTLED: Span = Span::from_mins(5);
/// Days shown, and made up for after a long stop.
const YEAR: i64 = 366;

/// The signed days, newest first.
pub async fn list(cx: &Cx) -> Result<Vec<DayRecord>, Error> {
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::day::list(ro, YEAR).await?))
        .await
}

/// Signs every UTC day that is over and not signed yet.
pub async fn sign_days(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let (first, last) = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let last = store::day::list(ro, 1).await?.pop();
            Ok((store::day::first_batch(ro).await?, last))
        })
        .await?;
    let Some(first) = first else { return Ok(0) };
    let mut begin = day_of(first).from;
    if let Some(signed) = last.and_then(|d| billing::month::day_start(&d.day)) {
        begin = begin.max(signed.plus(Span::from_hours(24)));
    }
    let mut signed = 0;
    while day_of(begin).to.plus(SETTLED) <= now && signed < 366 {
        signed += sign(cx, begin, now).await?;
        begin = day_of(begin).to;
    }
    Ok(signed)
}

async fn sign(cx: &Cx, day: Timestamp, now: Timestamp) -> Result<usize, Error> {
    let (text, end) = (date_text(day), day_of(day).to);
    let text = &text;
    let heads = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::day::heads(ro, end).await?))
        .await?;
    let root = day_root(text, &heads);
    let record = DayRecord {
        day: text.clone(),
        heads,
        root,
        public_key: cx.signer.public_key(),
        signature: cx.signer.sign(&day_message(&root)),
        signed_at: now,
    };
    let record = &record;
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            Ok(usize::from(store::day::insert(tx, record).await?))
        })
        .await
}
