//! The writers: batches, groups, stale balances, lost shards.

use std::sync::Arc;

use billing::account::{AccountCode, PLATFORM};
use billing::transfer::{TransferKind, TransferRefusal};
use diesel::sql_types::{BigInt, SmallInt};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Currency, Micros};
use store::Db;
use store::db::{Ro, Tx};
use store::error::Error;
use store::writer::{Wanted, Writer, post};
use uuid::Uuid;

use crate::billed::broken;
use crate::database::Database;
use crate::world::id;

fn top_up(owner: Uuid, amount: i64) -> Wanted {
    Wanted {
        id: TransferId::from_uuid(id()),
        kind: TransferKind::SandboxTopUp,
        debit: (AccountCode::SandboxClearing, PLATFORM),
        credit: (AccountCode::RenterWallet, owner),
        amount: Micros::new(amount),
        cause: id(),
        at: Timestamp::from_micros(1_000_000),
    }
}

/// The other way: a wallet cannot go below zero.
fn back(owner: Uuid, amount: i64) -> Wanted {
    let there = top_up(owner, amount);
    Wanted {
        debit: there.credit,
        credit: there.debit,
        ..there
    }
}

async fn posted(db: &Db, code: AccountCode, owner: Uuid) -> i64 {
    let account = db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::ledger::account_of(ro, Currency::Usd, (code, owner)).await
    });
    let account = account.await.unwrap();
    account.map_or(0, |a| a.posted().unwrap().get())
}

fn first(claims: &[store::shard::Claim]) -> Option<i16> {
    claims.iter().map(|c| c.shard).min()
}

#[derive(diesel::QueryableByName)]
struct BatchRow {
    #[diesel(sql_type = SmallInt)]
    shard: i16,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

async fn batches(base: &Database) -> Vec<(i16, i64, i64)> {
    use diesel_async::{AsyncConnection, AsyncPgConnection};
    let mut sql = AsyncPgConnection::establish(&base.url).await.unwrap();
    let rows: Vec<BatchRow> =
        diesel::sql_query("SELECT shard, epoch, rows::bigint AS rows FROM batch ORDER BY id")
            .load(&mut sql)
            .await
            .unwrap();
    rows.iter().map(|b| (b.shard, b.epoch, b.rows)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_decided_in_order_and_a_refusal_moves_nothing() {
    let base = Database::fresh().await;
    let (ann, bob) = (id(), id());
    let wanted = [
        top_up(ann, 100),
        back(ann, 101),
        back(ann, 60),
        back(ann, 60),
        top_up(bob, 7),
    ];
    let wanted = &wanted;
    let done = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, wanted).await)
        .await
        .unwrap();
    let refused = Err(TransferRefusal::ExceedsCredits);
    let outcome: Vec<_> = done.iter().map(|r| r.map(|_t| ())).collect();
    assert_eq!(outcome, [Ok(()), refused, Ok(()), refused, Ok(())]);
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, ann).await, 40);
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, bob).await, 7);
    assert_eq!(batches(&base).await, [(0, 0, 3)]);
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_on_one_wallet_lose_nothing() {
    let base = Database::fresh().await;
    let owner = id();
    // Two processes with two groups each, and single transactions between.
    let other = Db::connect(&base.url, 8).unwrap();
    for db in [&base.db, &other] {
        assert_eq!(db.claim_shards("test", 2).await.unwrap(), 2);
    }
    assert_ne!(base.db.claimed(), other.claimed());
    let writers = [Arc::new(Writer::default()), Arc::new(Writer::default())];
    let tasks: Vec<_> = (0..64_i64)
        .map(|n| {
            let db = if n % 2 == 0 {
                base.db.clone()
            } else {
                other.clone()
            };
            let writer = Arc::clone(&writers[usize::try_from(n % 2).unwrap()]);
            tokio::spawn(async move {
                let wanted = top_up(owner, n + 1);
                if n % 8 == 0 {
                    let one = &[wanted];
                    db.write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, one).await)
                        .await
                        .unwrap()
                        .pop()
                        .unwrap()
                } else {
                    writer.post(&db, Currency::Usd, wanted).await.unwrap()
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let total = (1..=64).sum::<i64>();
    assert_eq!(
        posted(&base.db, AccountCode::RenterWallet, owner).await,
        total
    );
    let clearing = posted(&base.db, AccountCode::SandboxClearing, PLATFORM).await;
    assert_eq!(clearing, -total);
    let sealed = batches(&base).await;
    assert_eq!(sealed.iter().map(|b| b.2).sum::<i64>(), 64);
    assert!(sealed.len() < 64, "nothing was committed together");
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_dollar_is_spent_once() {
    let base = Database::fresh().await;
    let owner = id();
    let writer = Arc::new(Writer::default());
    writer
        .post(&base.db, Currency::Usd, top_up(owner, 10))
        .await
        .unwrap()
        .unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (db, writer) = (base.db.clone(), Arc::clone(&writer));
            tokio::spawn(async move { writer.post(&db, Currency::Usd, back(owner, 3)).await })
        })
        .collect();
    let mut paid = 0;
    for task in tasks {
        match task.await.unwrap().unwrap() {
            Ok(_) => paid += 1,
            Err(refusal) => assert_eq!(refusal, TransferRefusal::ExceedsCredits),
        }
    }
    assert_eq!(paid, 3);
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, owner).await, 1);
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_that_went_stale_is_decided_again() {
    let base = Database::fresh().await;
    let owner = id();
    let first = &[top_up(owner, 10)];
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, first).await)
        .await
        .unwrap();
    let tries = std::sync::atomic::AtomicU32::new(0);
    let (db, tries) = (&base.db, &tries);
    let wanted = &[top_up(owner, 5)];
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            tx.read_optimistically();
            let done = post(tx, Currency::Usd, wanted).await?;
            if tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
                // Somebody else is faster.
                let other = &[top_up(owner, 1)];
                db.write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, other).await)
                    .await?;
            }
            Ok(done)
        })
        .await
        .unwrap();
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, owner).await, 16);
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_a_shard_seals_nothing_in_it() {
    let base = Database::fresh().await;
    let owner = id();
    let (old, new) = (&base.db, Db::connect(&base.url, 2).unwrap());
    assert_eq!(old.claim_shards("old", 1).await.unwrap(), 1);
    let mine = old.claimed();
    let seen = std::sync::Mutex::new(Vec::new());
    let (seen, wanted) = (&seen, &[top_up(owner, 5)]);
    let (new, url) = (&new, &base);
    old.write::<_, Error, _>(async |tx: &mut Tx| {
        let done = post(tx, Currency::Usd, wanted).await?;
        let first = {
            let mut tries = seen.lock().unwrap();
            tries.push(());
            tries.len() == 1
        };
        if first {
            // Paused for longer than its claim: another process takes the shard.
            url.run(&[
                "UPDATE writer SET lease_until = now() - interval '1 second' WHERE shard = 1",
            ])
            .await;
            new.claim_shards("new", 1).await?;
        }
        Ok(done)
    })
    .await
    .unwrap();
    assert_eq!(first(&new.claimed()), first(&mine));
    assert_ne!(new.claimed(), mine);
    assert!(old.claimed().is_empty(), "the lost shard is forgotten");
    // The work was done all the same, behind the shared shard's lock.
    assert_eq!(batches(&base).await, [(0, 0, 1)]);
    assert_eq!(posted(old, AccountCode::RenterWallet, owner).await, 5);
    // A renewal of the lost claim gives another shard.
    assert_eq!(old.claim_shards("old", 1).await.unwrap(), 1);
    assert_ne!(first(&old.claimed()), first(&mine));
    old.release_shards().await.unwrap();
    new.release_shards().await.unwrap();
    assert_eq!(old.claim_shards("old", 1).await.unwrap(), 1);
    assert_eq!(first(&old.claimed()), Some(1));
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_ledger_moves_nothing_and_says_why() {
    let base = Database::fresh().await;
    let owner = id();
    let go = async || {
        let wanted = &[top_up(owner, 5)];
        base.db
            .write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, wanted).await)
            .await
    };
    base.run(&["UPDATE writer SET stopped = 'I2: a balance is not its replay'"])
        .await;
    let refused = go().await;
    assert!(matches!(refused, Err(Error::LedgerStopped(why)) if why.starts_with("I2")));
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, owner).await, 0);
    base.run(&["UPDATE writer SET stopped = NULL"]).await;
    assert!(go().await.is_ok());
    assert_eq!(posted(&base.db, AccountCode::RenterWallet, owner).await, 5);
}
