//! A yardstick: one transfer per transaction with row locks, as one would write it first. It has no
//! chain, no hot row, and prepared statements; the best that this way can do.

use std::time::Duration;

use futures_util::future::join_all;
use tests::database::connect;
use tokio_postgres::{Client, Statement};

use crate::transfers::{CALLERS, Dice, PROVIDERS, Pace, RENTERS};

/// The same accounts; row numbers count from 1, renters first.
const ACCOUNTS: &str = "
INSERT INTO account (ledger, code, owner, constrained, credits)
SELECT 840, code, (lpad(to_hex(kind), 16, '0') || lpad(to_hex(n), 16, '0'))::uuid, code = 200, 100000000
  FROM (VALUES (1, 200::smallint, $1::bigint), (2, 230::smallint, $2::bigint)) k (kind, code, many),
       generate_series(0, many - 1) n
 ORDER BY kind, n";

/// Makes the accounts.
pub async fn fund(sql: &Client) {
    let many = [RENTERS, PROVIDERS].map(|n| i64::try_from(n).unwrap());
    sql.execute(ACCOUNTS, &[&many[0], &many[1]]).await.unwrap();
}

struct Caller {
    sql: Client,
    lock: Statement,
    update: Statement,
    insert: Statement,
}

const LOCK: &str = "
SELECT id, code, debits + debits_pending <= credits - $3::bigint AS covered FROM account
 WHERE ledger = 840 AND stripe = 0 AND (code, owner) IN ((200, $1::text::uuid), (230, $2::text::uuid))
 ORDER BY id FOR UPDATE";
const UPDATE: &str = "
UPDATE account SET debits = debits + CASE id WHEN $1::bigint THEN $3::bigint ELSE 0 END,
                   credits = credits + CASE id WHEN $2::bigint THEN $3::bigint ELSE 0 END
 WHERE id IN ($1, $2)";
const INSERT: &str = "
INSERT INTO transfer (id, kind, ledger, debit, credit, amount, cause, at, batch)
VALUES ($1::text::uuid, 1, 840, $2, $3, $4, $5::text::uuid, now(), 1)";

impl Caller {
    async fn connect(url: &str) -> Self {
        let sql = connect(url).await;
        let (lock, update, insert) = (
            sql.prepare(LOCK).await,
            sql.prepare(UPDATE).await,
            sql.prepare(INSERT).await,
        );
        Self {
            lock: lock.unwrap(),
            update: update.unwrap(),
            insert: insert.unwrap(),
            sql,
        }
    }

    async fn transfer(&self, dice: &mut Dice) {
        let wanted = dice.wanted();
        let (from, to) = (wanted.debit.1.to_string(), wanted.credit.1.to_string());
        let amount = wanted.amount.get();
        self.sql.batch_execute("BEGIN").await.unwrap();
        let rows = self
            .sql
            .query(&self.lock, &[&from, &to, &amount])
            .await
            .unwrap();
        let number = |code: i16| rows.iter().find(|r| r.get::<_, i16>(1) == code).unwrap();
        assert!(
            number(200).get::<_, bool>(2),
            "the wallet does not cover it"
        );
        let (debit, credit): (i64, i64) = (number(200).get(0), number(230).get(0));
        self.sql
            .execute(&self.update, &[&debit, &credit, &amount])
            .await
            .unwrap();
        let (id, cause) = (wanted.id.uuid().to_string(), wanted.cause.to_string());
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&id, &debit, &credit, &amount, &cause];
        self.sql.execute(&self.insert, &values).await.unwrap();
        self.sql.batch_execute("COMMIT").await.unwrap();
    }
}

/// Transfers per second of many callers, each on a connection of its own.
pub async fn run(url: &str, (round, time): (usize, Duration)) -> (u64, f64) {
    let callers = join_all((0..CALLERS).map(|_| Caller::connect(url))).await;
    let mut all = Pace::start(time);
    let tasks = callers.into_iter().enumerate().map(|(n, caller)| {
        let mut dice = Dice(u64::try_from((round + 1) * 1_000_000 + n * 1_000).unwrap());
        tokio::spawn(async move {
            let mut pace = Pace::start(time);
            while pace.goes_on() {
                caller.transfer(&mut dice).await;
                pace.count += 1;
            }
            pace.count
        })
    });
    all.count = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    all.rate()
}
