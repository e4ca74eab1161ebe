//! Each rule of the schema refuses what it is there for, and is told by its name.

use billing::charge::{Charge, ChargeAccounts, Settlement};
use billing::rating::Due;
use domain::id::{ChargeId, GpuId, HoldId};
use domain::money::{Currency, Micros};
use store::db::Tx;
use store::error::{Constraint, Error};
use store::lease::LeaseRecord;

use crate::database::Database;
use crate::world::{T0, World, after, gpu, hold, id, machine, offer};

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, rule: Constraint) {
    match result {
        Err(Error::Conflict(told)) => assert_eq!(told, rule),
        other => panic!("expected {rule:?}, not {other:?}"),
    }
}

/// A world with a funded wallet and a lease of one GPU.
async fn booked() -> (Database, World, LeaseRecord, HoldId) {
    let (base, world) = World::fresh().await;
    let lease = world.lease(world.quote(1));
    let hold = base
        .db
        .write(async |tx: &mut Tx| {
            world.top_up(tx, 50_000_000).await?;
            world.book(tx, &lease, &world.gpus[..1], 9_000_000).await
        })
        .await
        .unwrap();
    (base, world, lease, hold.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_is_in_one_live_lease_and_free_after_its_release() {
    let (base, world, lease, _hold) = booked().await;
    let second = world.lease(world.quote(2));
    let book = async |tx: &mut Tx| world.book(tx, &second, &world.gpus[..2], 1_000).await;
    refused(base.db.write(&book).await, Constraint::LeaseGpuOnce);
    let release = base
        .db
        .write(async |tx: &mut Tx| store::lease::release_gpus(tx, lease.id, after(9)).await);
    release.await.unwrap();
    base.db.write(&book).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_is_used_once() {
    let (base, world, lease, _hold) = booked().await;
    let again = world.lease(lease.terms.clone());
    let insert = base
        .db
        .write(async |tx: &mut Tx| store::lease::insert(tx, std::slice::from_ref(&again)).await);
    refused(insert.await, Constraint::QuoteUsed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_without_its_meters_cannot_be_committed() {
    let (base, world) = World::fresh().await;
    let lease = world.lease(world.quote(1));
    let result = base
        .db
        .write(async |tx: &mut Tx| {
            store::quote::insert(tx, &lease.terms).await?;
            store::lease::insert(tx, std::slice::from_ref(&lease)).await
        })
        .await;
    assert!(
        matches!(result, Err(Error::Conflict(Constraint::Other(name))) if name.contains("meter"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_has_one_live_offer_one_key_and_a_gpu_one_machine() {
    let (base, world) = World::fresh().await;
    let second = offer(&world.machine);
    let insert = base
        .db
        .write(async |tx: &mut Tx| store::offer::insert(tx, &second).await);
    refused(insert.await, Constraint::OfferLiveOnce);

    let mut twin = machine(world.provider);
    twin.public_key = world.machine.public_key;
    let insert = base
        .db
        .write(async |tx: &mut Tx| store::machine::insert(tx, &twin).await);
    refused(insert.await, Constraint::MachineKey);

    let other = machine(world.renter);
    let stolen = gpu(0, &format!("GPU-{}-0", world.machine.id));
    let claim = base.db.write(async |tx: &mut Tx| {
        store::machine::insert(tx, &other).await?;
        store::machine::replace_gpus(tx, other.id, std::slice::from_ref(&stolen), T0).await
    });
    refused(claim.await, Constraint::GpuUuidOnce);
}

fn charge(lease: &LeaseRecord, seq: i64, (from, to): (i64, i64)) -> Charge {
    Charge {
        id: ChargeId::from_uuid(id()),
        settlement: Settlement {
            meter: lease.compute_meter,
            lease: lease.id,
            seq,
            segment: 1,
            from: after(from),
            to: after(to),
            billable_ms: 1_000,
            due: Due {
                gross: Micros::new(583),
                fee: Micros::new(29),
                tax: Micros::new(110),
            },
        },
        hold: HoldId::from_uuid(id()),
        accounts: ChargeAccounts {
            wallet: billing::account::AccountId(0),
            earned: billing::account::AccountId(0),
            fee: billing::account::AccountId(0),
            tax: billing::account::AccountId(0),
        },
        at: after(to),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_second_is_charged_twice_and_no_number_given_twice() {
    let (base, world, lease, hold) = booked().await;
    let insert = async |new: Charge| {
        base.db
            .write(async |tx: &mut Tx| {
                let a = world.accounts(tx).await?;
                let accounts = ChargeAccounts {
                    wallet: a[1].id,
                    earned: a[2].id,
                    fee: a[3].id,
                    tax: a[4].id,
                };
                let new = Charge {
                    hold,
                    accounts,
                    ..new
                };
                store::charge::insert(tx, &new, Currency::Usd);
                Ok(())
            })
            .await
    };
    insert(charge(&lease, 1, (0, 10))).await.unwrap();
    insert(charge(&lease, 2, (10, 20))).await.unwrap();
    refused(
        insert(charge(&lease, 2, (20, 30))).await,
        Constraint::ChargeSeqOnce,
    );
    refused(
        insert(charge(&lease, 3, (19, 30))).await,
        Constraint::ChargeRangesApart,
    );
    let empty = insert(charge(&lease, 4, (40, 40))).await;
    assert!(matches!(empty, Err(Error::Conflict(Constraint::Other(_)))));
    let seen = base
        .db
        .read(async |ro: &mut store::db::Ro| store::charge::of_lease(ro, lease.id).await);
    assert_eq!(seen.await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_has_one_open_hold_that_pays_no_more_than_it_holds() {
    let (base, world, lease, _hold) = booked().await;
    let second = base.db.write(async |tx: &mut Tx| {
        let accounts = world.accounts(tx).await?;
        let before = billing::ledger::Ledger::new(accounts.clone(), []);
        let mut book = before.clone();
        book.open_hold(hold(lease.id, &accounts[1], 5)).unwrap();
        store::ledger::save(tx, &before, &book).await
    });
    refused(second.await, Constraint::HoldOpenOnce);
    let overdrawn = base.db.write(async |tx: &mut Tx| {
        let mut holds = store::ledger::open_holds(tx, &[lease.id]).await?;
        let before = billing::ledger::Ledger::new([], holds.clone());
        holds[0].posted = holds[0].amount.plus(Micros::new(1)).unwrap();
        let after = billing::ledger::Ledger::new([], holds);
        store::ledger::save(tx, &before, &after).await
    });
    refused(overdrawn.await, Constraint::HoldNotExceeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_itself_refuses_an_overdraft_and_a_second_effect() {
    let (base, world, _lease, _hold) = booked().await;
    let overdraft = base.db.write(async |tx: &mut Tx| {
        let accounts = world.accounts(tx).await?;
        let before = billing::ledger::Ledger::new(accounts.clone(), []);
        let mut wallet = accounts[1].clone();
        // What the pure rule would refuse, written anyway.
        wallet.debits = wallet.credits.plus(Micros::new(1)).unwrap();
        let after = billing::ledger::Ledger::new([wallet], []);
        store::ledger::save(tx, &before, &after).await
    });
    refused(overdraft.await, Constraint::NoOverdraft);
    let twice = base.db.write(async |tx: &mut Tx| {
        let first = world.top_up(tx, 1).await?;
        let second = billing::transfer::Transfer {
            id: domain::id::TransferId::from_uuid(id()),
            ..first
        };
        store::ledger::insert_transfer(tx, &second, Currency::Usd);
        Ok(())
    });
    refused(twice.await, Constraint::TransferEffectOnce);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_stays_written() {
    let (base, _world, _lease, _hold) = booked().await;
    for table in [
        "transfer",
        "charge",
        "audit_event",
        "lease_event",
        "account",
    ] {
        for change in [
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table} CASCADE"),
            format!("UPDATE {table} SET id = id"),
        ] {
            if table == "account" && change.starts_with("UPDATE") {
                continue;
            }
            let told = base.fault(&change).await;
            assert!(told.contains("append-only"), "{change}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_of_an_unknown_model_is_a_named_conflict() {
    let (base, world) = World::fresh().await;
    let mut strange = gpu(8, "GPU-strange");
    strange.model = "no-such-model".to_owned();
    strange.id = GpuId::from_uuid(id());
    let claim = base.db.write(async |tx: &mut Tx| {
        store::machine::replace_gpus(tx, world.machine.id, std::slice::from_ref(&strange), T0).await
    });
    refused(claim.await, Constraint::Other("gpu_model_fkey".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_proposes_does_not_approve_and_nothing_is_without_a_reason() {
    use billing::posting::adjustment::Direction;
    use store::adjustment::{AdjustmentRecord, AdjustmentState, DecisionRecord, save};
    let (base, world) = World::fresh().await;
    let proposed = AdjustmentRecord {
        needs_approval: true,
        ..crate::moved::adjustment(&world, Direction::Credit)
    };
    for by in [None, Some(world.renter_user)] {
        let own = AdjustmentRecord {
            state: AdjustmentState::Applied,
            decision: Some(DecisionRecord {
                by,
                at: T0,
                reason: None,
            }),
            ..proposed.clone()
        };
        let own = base.db.write(async |tx: &mut Tx| save(tx, &own).await);
        refused(own.await, Constraint::AdjustmentFourEyes);
    }
    let mute = AdjustmentRecord {
        reason: "  ".to_owned(),
        ..proposed.clone()
    };
    let mute = base.db.write(async |tx: &mut Tx| save(tx, &mute).await);
    refused(mute.await, Constraint::AdjustmentReason);
    let good = base.db.write(async |tx: &mut Tx| save(tx, &proposed).await);
    good.await.unwrap();
}
