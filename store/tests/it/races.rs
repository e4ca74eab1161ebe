//! What many do at once: money, GPUs, retries, and transactions that are given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use billing::account::{AccountCode, PLATFORM};
use billing::ledger::Ledger;
use domain::money::{Currency, Micros};
use serde_json::json;
use store::db::{Ro, Tx};
use store::error::{Constraint, Error, Retryable};

use crate::database::Database;
use crate::world::{T0, World, after, hold};

async fn messages(base: &Database) -> usize {
    let waiting = base
        .db
        .read(async |ro: &mut Ro| store::outbox::undelivered(ro, 100).await);
    waiting.await.unwrap().len()
}

async fn proven(base: &Database) {
    let rows = base
        .db
        .read(async |ro: &mut Ro| store::prove::invariants(ro).await);
    let broken: Vec<_> = rows
        .await
        .unwrap()
        .into_iter()
        .filter(|r| r.violations > 0)
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_takes_everything_back() {
    let base = Database::fresh().await;
    let refused = base
        .db
        .write(async |tx: &mut Tx| {
            store::outbox::put(tx, ("a", "b"), &json!({}), T0).await?;
            Err::<(), _>(Error::Corrupt("on purpose"))
        })
        .await;
    assert!(refused.is_err());
    assert_eq!(messages(&base).await, 0);
}

/// Two transactions lock two machines in opposite order: PostgreSQL refuses one, and it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_tried_again_and_both_succeed() {
    let (base, world) = World::fresh().await;
    let other = crate::world::machine(world.provider);
    let insert = base
        .db
        .write(async |tx: &mut Tx| store::machine::insert(tx, &other).await);
    insert.await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let base = Arc::new(base);
    let pairs = [[world.machine.id, other.id], [other.id, world.machine.id]];
    let tasks = pairs.map(|pair| {
        let (base, runs) = (Arc::clone(&base), Arc::clone(&runs));
        tokio::spawn(async move {
            base.db
                .write(async |tx: &mut Tx| {
                    let run = runs.fetch_add(1, Ordering::SeqCst);
                    store::machine::get_for_update(tx, pair[0]).await?;
                    if run < 2 {
                        tokio::time::sleep(Duration::from_millis(300)).await;
                    }
                    store::machine::get_for_update(tx, pair[1]).await?;
                    store::outbox::put(tx, ("a", "b"), &json!({}), T0).await
                })
                .await
        })
    });
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert!(runs.load(Ordering::SeqCst) >= 3, "there was no deadlock");
    assert_eq!(messages(&base).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn contention_without_end_is_told_after_a_bounded_number_of_tries() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    let refused = base
        .db
        .write(async |_tx: &mut Tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(Error::Contended)
        })
        .await;
    assert!(refused.is_err_and(|e| e.retryable()));
    assert_eq!(runs.load(Ordering::SeqCst), 5);
}

/// A caller that goes away in the middle must not hand its transaction to the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_transaction_leaves_no_trace_and_no_lock() {
    let (base, world) = World::fresh().await;
    for _round in 0..20 {
        let write = base.db.write(async |tx: &mut Tx| {
            store::machine::get_for_update(tx, world.machine.id).await?;
            store::outbox::put(tx, ("a", "b"), &json!({}), T0).await?;
            tokio::time::sleep(Duration::from_mins(1)).await;
            Ok::<_, Error>(())
        });
        assert!(
            tokio::time::timeout(Duration::from_millis(60), write)
                .await
                .is_err()
        );
    }
    let lock = base
        .db
        .write(async |tx: &mut Tx| store::machine::get_for_update(tx, world.machine.id).await);
    let in_time = tokio::time::timeout(Duration::from_secs(4), lock).await;
    assert!(in_time.unwrap().unwrap().is_some());
    assert_eq!(messages(&base).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_one_snapshot_and_cannot_write() {
    let (base, world) = World::fresh().await;
    let (before, now) = base
        .db
        .read(async |ro: &mut Ro| {
            let before = store::party::party_name(ro, world.renter).await?;
            let rename = format!(
                "UPDATE party SET name = 'new' WHERE id = '{}'",
                world.renter.uuid()
            );
            base.run(&[&rename]).await;
            Ok::<_, Error>((before, store::party::party_name(ro, world.renter).await?))
        })
        .await
        .unwrap();
    assert_eq!(before, now);
}

/// Thirty holds race for money that is enough for ten.
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_never_overdrawn_by_racing_holds() {
    let (base, world) = World::fresh().await;
    let (base, world) = (Arc::new(base), Arc::new(world));
    let fund = base
        .db
        .write(async |tx: &mut Tx| world.top_up(tx, 10_000_000).await);
    fund.await.unwrap();
    let tasks: Vec<_> = (0..30)
        .map(|_n| {
            let (base, world) = (Arc::clone(&base), Arc::clone(&world));
            tokio::spawn(async move {
                let (base, world) = (&base, &world);
                let lease = &world.lease(world.quote(1));
                base.db
                    .write(async |tx: &mut Tx| {
                        let accounts = world.accounts(tx).await?;
                        let before = Ledger::new(accounts.clone(), []);
                        let mut book = before.clone();
                        let hold = hold(lease.id, &accounts[1], 1_000_000);
                        if book.open_hold(hold).is_err() {
                            return Ok(false);
                        }
                        store::quote::insert(tx, &lease.terms).await?;
                        store::lease::insert(tx, std::slice::from_ref(lease)).await?;
                        store::meter::insert(tx, &crate::world::meters(lease)).await?;
                        store::ledger::save(tx, &before, &book).await?;
                        Ok::<_, Error>(true)
                    })
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut held = 0;
    for task in tasks {
        held += u32::from(task.await.unwrap());
    }
    assert_eq!(held, 10);
    let account = base.db.read(async |ro: &mut Ro| {
        let wallet = (AccountCode::RenterWallet, world.renter.uuid());
        store::ledger::account_of(ro, Currency::Usd, wallet).await
    });
    let account = account.await.unwrap().unwrap();
    assert_eq!(account.available().unwrap(), Micros::ZERO);
    assert_eq!(account.held(), Micros::new(10_000_000));
}

/// Sixteen bookings, each of four of the eight GPUs, in shuffled order: two get them.
#[tokio::test(flavor = "multi_thread")]
async fn no_gpu_is_let_twice_by_racing_bookings() {
    let (base, world) = World::fresh().await;
    let (base, world) = (Arc::new(base), Arc::new(world));
    let fund = base
        .db
        .write(async |tx: &mut Tx| world.top_up(tx, 1_000_000_000).await);
    fund.await.unwrap();
    let tasks: Vec<_> = (0..16_usize)
        .map(|n| {
            let (base, world) = (Arc::clone(&base), Arc::clone(&world));
            tokio::spawn(async move {
                let (base, world) = (&base, &world);
                let lease = &world.lease(world.quote(4));
                let mut gpus: Vec<_> = (0..4)
                    .map(|i| world.gpus[(i * (n % 3 + 1) + n) % 8])
                    .collect();
                gpus.sort_unstable();
                gpus.dedup();
                if gpus.len() < 4 {
                    gpus = world.gpus[4..].to_vec();
                }
                if n % 2 == 0 {
                    gpus.reverse();
                }
                let gpus = &gpus;
                base.db
                    .write(async |tx: &mut Tx| world.book(tx, lease, gpus, 1_000).await)
                    .await
            })
        })
        .collect();
    let mut booked = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_hold) => booked += 1,
            Err(Error::Conflict(Constraint::LeaseGpuOnce)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!((1..=2).contains(&booked), "{booked}");
    proven(&base).await;
}

/// The first money of many parties at once: every task makes accounts, the platform's are common.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_made_once_by_whoever_comes_first() {
    let base = Arc::new(Database::fresh().await);
    let tasks: Vec<_> = (0..24_u128)
        .map(|n| {
            let base = Arc::clone(&base);
            tokio::spawn(async move {
                let party = uuid::Uuid::from_u128(n % 4 + 1);
                let mut wanted = vec![
                    (AccountCode::SandboxClearing, PLATFORM),
                    (AccountCode::RenterWallet, party),
                    (AccountCode::FeeRevenue, PLATFORM),
                ];
                if n % 2 == 0 {
                    wanted.reverse();
                }
                let wanted = &wanted;
                let locked = base.db.write(async |tx: &mut Tx| {
                    store::ledger::lock_accounts(tx, Currency::Usd, wanted).await
                });
                let locked = locked.await.unwrap();
                let got: Vec<_> = locked.iter().map(|a| (a.code, a.owner)).collect();
                assert_eq!(&got, wanted);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_times_move_on_saving() {
    let (base, world) = World::fresh().await;
    let saved = base
        .db
        .write(async |tx: &mut Tx| {
            let offer = store::offer::save(tx, &world.offer).await?;
            let machine = store::machine::save(tx, &world.machine).await?;
            store::machine::heartbeat(tx, machine.id, after(5)).await?;
            Ok::<_, Error>((offer.version, machine.version))
        })
        .await
        .unwrap();
    assert_eq!(saved, (2, 2));
    let machine = base
        .db
        .read(async |ro: &mut Ro| store::machine::get(ro, world.machine.id).await);
    let machine = machine.await.unwrap().unwrap();
    assert_eq!((machine.version, machine.last_seen_at), (2, Some(after(5))));
}
