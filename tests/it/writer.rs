//! The ledger's writer under violence: killed, paused, cut off, its database stopped; nothing that was
//! acknowledged is lost, nothing is booked twice, and the ledger holds.

mod crash;
mod kill;
mod pause;

use std::sync::Arc;

use domain::money::Currency;
use store::Db;
use store::db::Tx;
use store::error::Error;
use store::writer::{Writer, post};
use tests::database::TestDatabase;
use tests::ledger_stream::{balances, between, prove};
use uuid::Uuid;

/// A number from the environment: the long forms of these tests.
fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// 64 writers on one wallet, each a pool of its own, grouped and single, with and without locks.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_writers_on_one_wallet() {
    const EACH: i64 = 8;
    let database = TestDatabase::create().await;
    let sql = database.client().await;
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let owner = Uuid::from_u64_pair(9, 9);
    let tasks = (0..64_u64).map(|n| {
        let db = Db::connect(&database.url, 1).unwrap();
        let writer = Arc::new(Writer::default());
        tokio::spawn(async move {
            for turn in 0..EACH {
                let id = Uuid::from_u64_pair(n + 1, u64::try_from(turn).unwrap());
                let wanted = between(id, (owner, turn + 1), false);
                let posted = if n % 2 == 0 {
                    writer.post(&db, Currency::Usd, wanted).await.unwrap()
                } else {
                    let one = &[wanted];
                    let work = async |tx: &mut Tx| post(tx, Currency::Usd, one).await;
                    db.write::<_, Error, _>(work).await.unwrap().remove(0)
                };
                posted.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let (sums, count) = balances(&sql).await;
    let total = 64 * EACH * (EACH + 1) / 2;
    assert_eq!(sums[&(200, owner.to_string())], (0, total));
    assert_eq!(count, 64 * EACH);
    // The counter is told to the statistics when a session ends or is idle.
    sql.batch_execute("SELECT pg_stat_clear_snapshot()")
        .await
        .unwrap();
    let seen: i64 = sql.query_one(deadlocks, &[]).await.unwrap().get(0);
    assert_eq!(seen, 0, "writers waited in a circle");
    prove(&Db::connect(&database.url, 2).unwrap()).await;
}
