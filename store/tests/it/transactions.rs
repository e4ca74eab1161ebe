//! The list of everything that moved on a party's accounts.

use billing::account::AccountCode;
use domain::id::PartyId;
use domain::money::{Currency, Micros};
use store::db::{Ro, Tx};
use store::error::Error;
use store::page::Page;
use store::transaction::TransactionRecord;

use crate::billed::{paying, settle};
use crate::database::Database;
use crate::world::World;

async fn all(base: &Database, party: PartyId, limit: u32) -> Vec<TransactionRecord> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = Page { limit, after };
        let read = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
            store::transaction::list(ro, party, page).await
        });
        let read = read.await.unwrap();
        rows.extend(read.rows);
        after = read.next;
        if after.is_none() {
            return rows;
        }
    }
}

fn sum(rows: &[TransactionRecord], account: AccountCode) -> i64 {
    let own = rows.iter().filter(|t| t.account == account);
    own.map(|t| t.amount.get()).sum()
}

async fn posted(base: &Database, party: PartyId, code: AccountCode) -> i64 {
    let read = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::ledger::account_of(ro, Currency::Usd, (code, party.uuid())).await
    });
    read.await.unwrap().unwrap().posted().unwrap().get()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_movements_add_up_to_the_balances() {
    let (base, world, lease) = paying().await;
    let rented = all(&base, world.renter, 2).await;
    assert_eq!(rented.len(), 5, "a top-up and four charges");
    assert!(rented.is_sorted_by(|a, b| a.id > b.id));
    let wallet = AccountCode::RenterWallet;
    assert_eq!(
        sum(&rented, wallet),
        posted(&base, world.renter, wallet).await
    );
    assert!(rented[0].kind.is_none() && rented[0].cause == lease.id.uuid());
    let earned = AccountCode::ProviderEarned;
    let provided = all(&base, world.provider, 200).await;
    assert_eq!(
        sum(&provided, earned),
        posted(&base, world.provider, earned).await
    );
    let read = base.db.read::<_, Error, _>(async |ro: &mut Ro| {
        store::charge::sums_of_provider(ro, world.provider).await
    });
    let sums = read.await.unwrap();
    assert_eq!(
        sums.provider().unwrap(),
        Micros::new(sum(&provided, earned))
    );
    let spent = 50_000_000 - sum(&rented, wallet);
    assert_eq!(sums.renter().unwrap(), Micros::new(spent));
}

/// Who rents from himself has both sides of a charge in the list: no page may lose one.
#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_one_charge_are_on_one_page() {
    let (base, mut world) = World::fresh().await;
    world.renter = world.provider;
    let lease = world.lease(world.quote(1));
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            world.top_up(tx, 50_000_000).await?;
            world.book(tx, &lease, &world.gpus[..1], 9_000_000).await
        })
        .await
        .unwrap();
    for to in [100, 200, 300] {
        base.db
            .write::<_, Error, _>(async |tx: &mut Tx| settle(tx, &world, &lease, to).await)
            .await
            .unwrap();
    }
    let whole = all(&base, world.renter, 200).await;
    assert_eq!(whole.len(), 13);
    for limit in 1..=13 {
        assert_eq!(
            all(&base, world.renter, limit).await,
            whole,
            "limit {limit}"
        );
    }
}
