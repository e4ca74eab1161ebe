//! Prices that change: written once, read back while they are to come, charged apart.

use billing::meter::{Meter, Proof};
use billing::segment::Segment;
use domain::money::{Micros, Rate};
use store::db::{Ro, Tx};
use store::error::Error;
use store::lease::LeaseRecord;

use crate::billed::{broken, paying, settle};
use crate::database::Database;
use crate::world::after;

/// From `secs` on the disk costs `price`.
async fn reprice(base: &Database, lease: &LeaseRecord, (secs, price): (i64, i64)) -> Segment {
    let work = base.db.write::<_, Error, _>(async |tx: &mut Tx| {
        store::lease::get_for_update(tx, lease.id).await?;
        let storage = store::meter::of_lease(tx, lease.id).await?.remove(1);
        let rate = Rate {
            price: Micros::new(price),
            ..storage.last_rate()
        };
        let (segment, storage) = storage.reprice(after(secs), rate).unwrap();
        store::segment::insert(tx, &[(storage.id, segment.clone())]).await?;
        store::meter::save(tx, &storage).await?;
        Ok(segment)
    });
    work.await.unwrap()
}

async fn storage(base: &Database, lease: &LeaseRecord) -> Meter {
    let read = base
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| store::meter::of_lease(ro, lease.id).await);
    read.await.unwrap().remove(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_to_come_are_read_back_and_charged_apart() {
    let (base, world, lease) = paying().await;
    let before = storage(&base, &lease).await;
    let second = reprice(&base, &lease, (1_300, 33_333_333)).await;
    let third = reprice(&base, &lease, (1_333, 77_777_777)).await;
    let read = storage(&base, &lease).await;
    assert_eq!(read.ahead, [second.clone(), third.clone()]);
    assert_eq!((read.segment, read.rate), (1, before.rate));
    assert_eq!(broken(&base).await, Vec::new());
    let charged = base
        .db
        .write(async |tx: &mut Tx| settle(tx, &world, &lease, 1_500).await);
    charged.await.unwrap();
    let read = storage(&base, &lease).await;
    assert_eq!(
        (read.segment, read.rate, read.ahead),
        (3, third.rate, Vec::new())
    );
    assert_eq!(broken(&base).await, Vec::new());
    let told = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        let charges = store::charge::of_lease(ro, lease.id).await?;
        let segments = store::segment::of_leases(ro, &[lease.id]).await?;
        Ok((charges, segments))
    });
    let (charges, segments) = told.await.unwrap();
    let of_disk = charges.iter().filter(|c| c.settlement.meter == before.id);
    let of_disk: Vec<i64> = of_disk.map(|c| c.settlement.segment).collect();
    assert_eq!(of_disk, [1, 1, 1, 2, 3]);
    assert_eq!(segments[&before.id][1..], [second, third]);
    assert_eq!(segments.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_meter_that_crosses_a_price_is_not_stored_unsettled() {
    let (base, _world, lease) = paying().await;
    reprice(&base, &lease, (1_300, 33_333_333)).await;
    let stored = base.db.write::<_, Error, _>(async |tx: &mut Tx| {
        let storage = store::meter::of_lease(tx, lease.id).await?.remove(1);
        let seen = Proof {
            mono_ms: 1_400_000,
            at: after(1_400),
            ..storage.proof.clone().unwrap()
        };
        store::meter::save(tx, &storage.prove(seen, None).unwrap()).await
    });
    let refused = stored.await;
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_stays_as_it_was_written() {
    let (base, _world, _lease) = paying().await;
    for change in [
        "UPDATE meter_segment SET price = 0",
        "DELETE FROM meter_segment",
        "TRUNCATE meter_segment CASCADE",
    ] {
        let fault = base.fault(change).await;
        assert!(fault.contains("append-only"), "{change}: {fault}");
    }
}
