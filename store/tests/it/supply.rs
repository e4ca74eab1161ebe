//! What search sees of machines, and which machines and leases need something.

use domain::clock::Timestamp;
use domain::lease::{LeaseReason, LeaseState};
use domain::machine::{MachineState, OFFLINE_AFTER};
use domain::money::Micros;
use matching::book::Supply;
use store::db::{Ro, Tx};
use store::error::Error;
use store::lease::LeaseRecord;
use store::machine::{GpuRecord, MachineRecord, NewGpu};

use crate::billed::paying;
use crate::database::Database;
use crate::world::{T0, World, after, gpu};

async fn supplies(base: &Database, now: Timestamp) -> Vec<Supply> {
    let read = base
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| store::offer::supplies(ro, now).await);
    read.await.unwrap()
}

async fn gpus(base: &Database, world: &World) -> Vec<GpuRecord> {
    let read = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::machine::gpus(ro, &[world.machine.id]).await
    });
    read.await.unwrap()
}

async fn probe(base: &Database, world: &World, probed: &[NewGpu]) {
    let write = base.db.write::<_, Error, _>(async |tx: &mut Tx| {
        store::machine::replace_gpus(tx, world.machine.id, probed, after(9)).await
    });
    write.await.unwrap();
}

fn name(world: &World, n: u16) -> String {
    format!("GPU-{}-{n}", world.machine.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supply_shows_what_is_free() {
    let (base, world, _lease) = paying().await;
    let all = supplies(&base, T0).await;
    assert_eq!(all.len(), 1);
    let supply = &all[0];
    assert_eq!(
        (supply.free(), supply.slots.len(), supply.bookable),
        (6, 8, true)
    );
    assert_eq!(supply.disk_free_gib, 900);
    assert!(supply.slots.iter().map(|s| s.index).eq(0..8));
    let one = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::offer::supply_of(ro, world.offer.id, T0).await
    });
    assert_eq!(one.await.unwrap().as_ref(), Some(supply));
    assert!(
        !supplies(&base, after(31)).await[0].bookable,
        "silent for too long"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_offer_and_an_unlisted_machine_are_not_supply() {
    let (base, world) = World::fresh().await;
    let unlisted = MachineRecord {
        state: MachineState::Draining,
        ..world.machine.clone()
    };
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| store::machine::save(tx, &unlisted).await)
        .await
        .unwrap();
    assert!(!supplies(&base, T0).await[0].bookable);
    let withdrawn = store::offer::OfferRecord {
        live: false,
        ..world.offer
    };
    let found = base.db.write::<_, Error, _>(async |tx: &mut Tx| {
        store::offer::save(tx, &withdrawn).await?;
        assert!(
            store::offer::live_of_machine(tx, world.machine.id)
                .await?
                .is_none()
        );
        store::offer::supply_of(tx, world.offer.id, T0).await
    });
    assert_eq!(found.await.unwrap(), None);
    assert_eq!(supplies(&base, T0).await, []);
}

/// A leased GPU that disappears and returns, or changes its slot, is still the leased one.
#[tokio::test(flavor = "multi_thread")]
async fn a_leased_gpu_stays_leased_wherever_it_is_plugged() {
    let (base, world, _lease) = paying().await;
    let order = |slots: &[u16]| -> Vec<NewGpu> {
        let plugged = slots.iter().zip(0..);
        plugged
            .map(|(n, slot)| gpu(slot, &name(&world, *n)))
            .collect()
    };
    for slots in [
        &[0, 1, 2, 3, 4, 5, 6, 7][..],
        &[7, 6, 5, 4, 3, 2, 1, 0],
        &[2, 3, 4],
        &[1, 0, 7, 5],
        &[],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ] {
        probe(&base, &world, &order(slots)).await;
        let seen = gpus(&base, &world).await;
        let uuids: Vec<String> = slots.iter().map(|n| name(&world, *n)).collect();
        assert!(seen.iter().map(|g| &g.uuid).eq(&uuids), "{slots:?}");
        for (g, n) in seen.iter().zip(slots) {
            assert_eq!(g.id, world.gpus[usize::from(*n)], "a GPU keeps its id");
            assert_eq!(g.leased, *n < 2, "slot {} of {slots:?}", g.slot);
        }
    }
    assert_eq!(supplies(&base, T0).await[0].free(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_gpu_and_one_of_another_model_are_not_free() {
    let (base, world) = World::fresh().await;
    let mut probed: Vec<NewGpu> = (0..4).map(|n| gpu(n, &name(&world, n))).collect();
    probed[1].busy_elsewhere = true;
    probed[2].model = "l4".to_owned();
    probed[3].memory_mib = 40_000;
    probe(&base, &world, &probed).await;
    let supply = supplies(&base, T0).await.remove(0);
    let free: Vec<bool> = supply.slots.iter().map(|s| s.free).collect();
    assert_eq!(free, [true, false, false, true]);
    assert_eq!(supply.gpu_memory_mib, 40_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_machines_are_those_on_the_market() {
    let (base, world) = World::fresh().await;
    let silent = async |now: Timestamp| {
        base.db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                store::machine::silent(ro, now.minus(OFFLINE_AFTER)).await
            })
            .await
            .unwrap()
    };
    assert_eq!(silent(after(120)).await, []);
    assert_eq!(silent(after(121)).await, [world.machine.id]);
    base.run(&["UPDATE machine SET state = 'quarantined'"])
        .await;
    assert_eq!(silent(after(121)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_leases_are_told_by_their_states_limits() {
    let (base, _world, lease) = paying().await;
    let overdue = async |now: Timestamp| {
        base.db
            .read::<_, Error, _>(async |ro: &mut Ro| store::lease::overdue(ro, now).await)
            .await
            .unwrap()
    };
    for state in LeaseState::ALL {
        let moved = LeaseRecord {
            state,
            end_requested_at: Some(T0),
            ..lease.clone()
        };
        let save = base
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| store::lease::save(tx, &moved).await);
        save.await.unwrap();
        let late = state.limit().map(|limit| T0.plus(limit));
        let just = late.unwrap_or(after(10_000_000));
        assert_eq!(overdue(just).await, [], "{state}");
        let expected: Vec<_> = late.map(|_| lease.id).into_iter().collect();
        assert_eq!(overdue(after(10_000_000)).await, expected, "{state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_and_lives() {
    let (base, world, lease) = paying().await;
    let save = async |next: LeaseRecord| {
        base.db
            .write::<_, Error, _>(async |tx: &mut Tx| store::lease::save(tx, &next).await)
            .await
            .unwrap()
    };
    let guarded = async |now: Timestamp| {
        base.db
            .read::<_, Error, _>(async |ro: &mut Ro| store::lease::guarded(ro, now).await)
            .await
            .unwrap()
    };
    assert_eq!(guarded(Timestamp::MAX).await, []);
    let timed = LeaseRecord {
        end_at: Some(after(50)),
        ..lease.clone()
    };
    save(timed).await;
    assert_eq!(guarded(after(49)).await, []);
    assert_eq!(guarded(after(50)).await, [lease.id]);
    save(LeaseRecord {
        max_spend: Some(Micros::new(1)),
        ..lease.clone()
    })
    .await;
    assert_eq!(guarded(T0).await, [lease.id]);
    save(LeaseRecord {
        state: LeaseState::Ended,
        reason: LeaseReason::Renter,
        max_spend: Some(Micros::new(1)),
        end_requested_at: Some(T0),
        ..lease.clone()
    })
    .await;
    assert_eq!(guarded(Timestamp::MAX).await, []);
    let live = base
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let on_machine = store::lease::live_of_machine(ro, world.machine.id).await?;
            let of_renter = store::lease::renter_live(ro, world.renter).await?;
            let of_provider = store::lease::provider_live(ro, world.provider).await?;
            assert_eq!(
                (of_renter.len(), of_provider.len(), on_machine.len()),
                (0, 0, 0)
            );
            Ok(())
        })
        .await;
    live.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_proven_and_not_charged_is_found() {
    let (base, _world, lease) = paying().await;
    let unsettled = async |before: Timestamp| {
        base.db
            .read::<_, Error, _>(async |ro: &mut Ro| store::meter::unsettled(ro, before, 10).await)
            .await
            .unwrap()
    };
    assert_eq!(unsettled(Timestamp::MAX).await, []);
    base.run(&[
        "UPDATE meter SET through = through + interval '9 s', billable_ms = billable_ms + 9000",
    ])
    .await;
    assert_eq!(unsettled(after(1_235)).await, [lease.id]);
    assert_eq!(unsettled(after(1_233)).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_told_of_live_leases_and_of_containers_not_seen_gone() {
    let (base, world, lease) = paying().await;
    let wanted = async |next: LeaseRecord| {
        base.db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                store::lease::save_quietly(tx, &next).await?;
                let told = store::lease::wanted_of_machine(tx, world.machine.id).await?;
                assert!(told.iter().all(|l| *l == next), "the version stays");
                Ok(told.len())
            })
            .await
            .unwrap()
    };
    let over = LeaseRecord {
        state: LeaseState::Ended,
        end_requested_at: Some(T0),
        ..lease.clone()
    };
    let gone = LeaseRecord {
        container: None,
        ..over.clone()
    };
    assert_eq!(wanted(lease.clone()).await, 1);
    assert_eq!(wanted(over).await, 1);
    assert_eq!(wanted(gone).await, 0);
    let of_quote = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::lease::quotes_used(ro, &[lease.terms.id]).await
    });
    assert!(of_quote.await.unwrap().contains(&lease.terms.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_owner_of_a_gpu_is_told() {
    let (base, world) = World::fresh().await;
    let other = crate::world::machine(world.renter);
    let uuids = [name(&world, 3), "GPU-unknown".to_owned()];
    let owners = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            store::machine::insert(tx, &other).await?;
            let own = store::machine::other_owners(tx, world.machine.id, &uuids).await?;
            assert_eq!(own, []);
            store::machine::other_owners(tx, other.id, &uuids).await
        })
        .await;
    assert_eq!(owners.unwrap(), [world.machine.id]);
}
