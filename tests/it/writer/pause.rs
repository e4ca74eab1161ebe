//! A writer that is paused for longer than its claim holds: another has its shard when it wakes, and
//! what it had begun is not sealed there any more.

use domain::money::Currency;
use rustix::process::{Pid, Signal, kill_process};
use store::Db;
use store::db::Tx;
use store::error::Error;
use store::writer::post;
use tests::database::TestDatabase;
use tests::ledger_stream::{balances, between, prove};
use tests::proxy::{Proxy, Stop};
use tokio_postgres::Client;
use uuid::Uuid;

use super::kill::Stream;

/// Batches of a shard, in order: number and epoch.
async fn batches(sql: &Client, shard: i16) -> Vec<(i64, i64)> {
    let query = "SELECT no, epoch FROM batch WHERE shard = $1 ORDER BY no";
    let rows = sql.query(query, &[&shard]).await.unwrap();
    rows.iter().map(|r| (r.get(0), r.get(1))).collect()
}

async fn add(db: &Db, number: u64) {
    let id = Uuid::from_u64_pair(0xffff, number);
    let wanted = &[between(id, (Uuid::from_u64_pair(8, 8), 5), false)];
    let work = async |tx: &mut Tx| {
        tx.read_optimistically();
        post(tx, Currency::Usd, wanted).await
    };
    let posted = db.write::<_, Error, _>(work).await.unwrap();
    assert!(posted[0].is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_slept_too_long_seals_nothing_in_its_old_shard() {
    let database = TestDatabase::create().await;
    let sql = database.client().await;
    let lapse = "UPDATE writer SET lease_until = now() - interval '1 second' WHERE shard = 1";
    // An earlier run has made the accounts: nobody has to wait for a row that is being made.
    let mut before = Stream::start(&database.url, &database.url, (0, 2));
    before.rest().await;
    assert_eq!(sql.execute(lapse, &[]).await.unwrap(), 1);
    // Its batch is decided, and nothing of it written yet.
    let proxy = Proxy::start(&database.url, Stop::Before("UPDATE account")).await;
    let mut old = Stream::start(&proxy.url, &database.url, (2, 6));
    assert_eq!(old.line().await.as_deref(), Some("claimed 1"));
    proxy.reached().await;
    let pid = Pid::from_raw(i32::try_from(old.child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // A minute later, by the database's clock.
    assert_eq!(sql.execute(lapse, &[]).await.unwrap(), 1);
    let new = Db::connect(&database.url, 2).unwrap();
    assert_eq!(new.claim_shards("new", 1).await.unwrap(), 1);
    assert_eq!(new.claimed()[0].shard, 1);
    add(&new, 1).await;
    proxy.open();
    kill_process(pid, Signal::CONT).unwrap();
    let said = old.rest().await;
    assert!(old.child.wait().await.unwrap().success());
    add(&new, 2).await;

    assert_eq!(said.last().map(String::as_str), Some("holds 0"), "{said:?}");
    // Two batches of the new one and none of the old, which went on in the shared shard.
    let epochs: Vec<i64> = batches(&sql, 1).await.iter().map(|b| b.1).collect();
    assert!(
        epochs.ends_with(&[3, 3]) && !epochs.contains(&2),
        "{epochs:?}"
    );
    assert!(batches(&sql, 0).await.len() >= 4);
    let alone = TestDatabase::create().await;
    let mut stream = Stream::start(&alone.url, &alone.url, (0, 6));
    stream.rest().await;
    let (mut sums, count) = balances(&sql).await;
    let extra = sums.remove(&(200, Uuid::from_u64_pair(8, 8).to_string()));
    assert_eq!(extra, Some((0, 10)));
    let (wanted, wanted_count) = balances(&alone.client().await).await;
    assert_eq!(count, wanted_count + 2);
    for (account, sum) in wanted.iter().filter(|(a, _)| a.0 == 200) {
        assert_eq!(sums[account], *sum);
    }
    prove(&new).await;
}
