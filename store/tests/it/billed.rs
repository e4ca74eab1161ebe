//! A lease that runs and pays: what `app` does with the pure rules, in short.

use billing::account::Account;
use billing::charge::{Charge, ChargeAccounts};
use billing::ledger::Ledger;
use billing::meter::Proof;
use domain::audit::ActorRef;
use domain::id::{ChargeId, EventId};
use domain::lease::{LeaseReason, LeaseState};
use domain::money::Currency;
use store::db::{Ro, Tx};
use store::error::Error;
use store::lease::{ContainerRef, LeaseRecord};
use store::lease_event::LeaseEventRecord;
use store::prove::InvariantRow;

use crate::database::Database;
use crate::world::{World, after, id};

/// A world with a funded wallet and a running lease of two GPUs that has paid twice.
pub(crate) async fn paying() -> (Database, World, LeaseRecord) {
    let (base, world) = World::fresh().await;
    let lease = world.lease(world.quote(2));
    let lease = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            world.top_up(tx, 50_000_000).await?;
            world.book(tx, &lease, &world.gpus[..2], 9_000_000).await?;
            run(tx, &world, &lease).await
        })
        .await
        .unwrap();
    for to in [600, 1_234] {
        let settle = base
            .db
            .write(async |tx: &mut Tx| settle(tx, &world, &lease, to).await);
        settle.await.unwrap();
    }
    (base, world, lease)
}

/// `placing` → `running`.
async fn run(tx: &mut Tx, world: &World, lease: &LeaseRecord) -> Result<LeaseRecord, Error> {
    let running = LeaseRecord {
        state: LeaseState::Running,
        reason: LeaseReason::Machine,
        started_at: Some(after(5)),
        container: Some(ContainerRef {
            id: "c0ffee".to_owned(),
            started_at: "2026-05-28T20:26:45Z".to_owned(),
        }),
        ..lease.clone()
    };
    let event = LeaseEventRecord {
        id: EventId::from_uuid(id()),
        lease: lease.id,
        at: after(5),
        from: Some(lease.state),
        to: running.state,
        reason: running.reason,
        detail: "the container runs".to_owned(),
        actor_kind: "machine".to_owned(),
    };
    let machine = ActorRef::Machine(world.machine.id);
    store::lease_event::insert(tx, &[(event, machine)]).await?;
    store::lease::save(tx, &running).await
}

fn proof(secs: i64) -> Proof {
    Proof {
        boot: "boot".to_owned(),
        run: "c0ffee".to_owned(),
        mono_ms: 1_000 * secs,
        at: after(secs),
    }
}

/// Proves both meters up to `to` seconds and charges what is new.
pub(crate) async fn settle(
    tx: &mut Tx,
    world: &World,
    lease: &LeaseRecord,
    to: i64,
) -> Result<(), Error> {
    store::lease::get_for_update(tx, lease.id).await?;
    let meters = store::meter::of_lease(tx, lease.id).await?;
    let accounts = world.accounts(tx).await?;
    let holds = store::ledger::open_holds(tx, &[lease.id]).await?;
    let before = Ledger::new(accounts.clone(), holds.clone());
    let mut book = before.clone();
    for meter in meters {
        let mut meter = meter;
        for secs in [10, to] {
            if let Some(next) = meter.prove(proof(secs), None) {
                meter = next;
            }
        }
        while let Some((settlement, after_it)) = meter.settle().unwrap() {
            let charge = Charge {
                id: ChargeId::from_uuid(id()),
                settlement,
                hold: holds[0].id,
                accounts: touched(&accounts),
                at: after(to),
            };
            book.charge(&charge).unwrap();
            store::charge::insert(tx, &charge, Currency::Usd);
            meter = after_it;
        }
        store::meter::save(tx, &meter).await?;
    }
    store::ledger::save(tx, &before, &book).await
}

fn touched(accounts: &[Account]) -> ChargeAccounts {
    ChargeAccounts {
        wallet: accounts[1].id,
        earned: accounts[2].id,
        fee: accounts[3].id,
        tax: accounts[4].id,
    }
}

/// The invariants that do not hold.
pub(crate) async fn broken(base: &Database) -> Vec<InvariantRow> {
    let rows = base
        .db
        .read(async |ro: &mut Ro| store::prove::invariants(ro).await);
    let rows: Vec<InvariantRow> = rows.await.unwrap();
    rows.into_iter().filter(|r| r.violations > 0).collect()
}
