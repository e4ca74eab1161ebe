//! Pages: whole, in order, without repeats, while rows come in; and one party never sees another's.

use domain::id::PartyId;
use domain::lease::LeaseState;
use store::db::{Ro, Tx};
use store::error::Error;
use store::offer::OfferRecord;
use store::page::{Page, Paged};
use uuid::Uuid;

use crate::billed::paying;
use crate::database::Database;
use crate::world::{World, machine, offer};

/// A world with seven machines of the provider, each with an offer.
async fn seven() -> (Database, World) {
    let (base, world) = World::fresh().await;
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            for _n in 0..6 {
                let machine = machine(world.provider);
                store::machine::insert(tx, &machine).await?;
                store::offer::insert(tx, &offer(&machine)).await?;
            }
            Ok(())
        })
        .await
        .unwrap();
    (base, world)
}

async fn offers(base: &Database, party: PartyId, page: Page) -> Paged<OfferRecord> {
    base.db
        .read::<_, Error, _>(async |ro: &mut Ro| store::offer::list(ro, party, page).await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_size_tile_the_list() {
    let (base, world) = seven().await;
    for limit in 1..=9 {
        let (mut seen, mut after): (Vec<Uuid>, _) = (Vec::new(), None);
        loop {
            let page = offers(&base, world.provider, Page { limit, after }).await;
            assert!(page.rows.len() <= usize::try_from(limit).unwrap());
            seen.extend(page.rows.iter().map(|o| o.id.uuid()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 7, "limit {limit}");
        assert!(seen.is_sorted_by(|a, b| a > b), "newest first");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_comes_in_moves_no_later_page() {
    let (base, world) = seven().await;
    let first = offers(
        &base,
        world.provider,
        Page {
            limit: 3,
            after: None,
        },
    )
    .await;
    let rest = Page {
        limit: 9,
        after: first.next,
    };
    let before = offers(&base, world.provider, rest).await.rows;
    let machine = machine(world.provider);
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            store::machine::insert(tx, &machine).await?;
            store::offer::insert(tx, &offer(&machine)).await
        })
        .await
        .unwrap();
    assert_eq!(offers(&base, world.provider, rest).await.rows, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_parties_see_nothing() {
    let (base, world, lease) = paying().await;
    let all = Page {
        limit: 50,
        after: None,
    };
    let stranger = PartyId::from_uuid(Uuid::from_u128(77));
    base.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            assert_eq!(
                store::lease::list(ro, world.renter, all, &[])
                    .await?
                    .rows
                    .len(),
                1
            );
            for other in [stranger, world.provider] {
                assert!(
                    store::lease::list(ro, other, all, &[])
                        .await?
                        .rows
                        .is_empty()
                );
                assert!(
                    store::quote::get(ro, other, lease.terms.id)
                        .await?
                        .is_none()
                );
                assert!(store::api_key::list(ro, other, all).await?.rows.is_empty());
            }
            assert!(
                store::machine::list(ro, world.renter, all)
                    .await?
                    .rows
                    .is_empty()
            );
            assert!(
                store::offer::list(ro, world.renter, all)
                    .await?
                    .rows
                    .is_empty()
            );
            assert!(
                store::transaction::list(ro, stranger, all)
                    .await?
                    .rows
                    .is_empty()
            );
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_filtered_by_state() {
    let (base, world, _lease) = paying().await;
    let all = Page {
        limit: 50,
        after: None,
    };
    base.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let live = [LeaseState::Running, LeaseState::Stopped];
            assert_eq!(
                store::lease::list(ro, world.renter, all, &live)
                    .await?
                    .rows
                    .len(),
                1
            );
            let over = [LeaseState::Ended];
            assert!(
                store::lease::list(ro, world.renter, all, &over)
                    .await?
                    .rows
                    .is_empty()
            );
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_oldest_first() {
    let (base, _world, lease) = paying().await;
    base.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let first = store::lease_event::list(
                ro,
                lease.id,
                Page {
                    limit: 1,
                    after: None,
                },
            )
            .await?;
            assert_eq!(first.rows[0].to, LeaseState::Placing);
            let page = Page {
                limit: 1,
                after: first.next,
            };
            let second = store::lease_event::list(ro, lease.id, page).await?;
            assert_eq!(
                (second.rows[0].from, second.next),
                (Some(LeaseState::Placing), None)
            );
            Ok(())
        })
        .await
        .unwrap();
}
