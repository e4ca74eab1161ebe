//! Every kind of money beside a lease that pays: credit, adjustments, maturing, a payout, a dispute.

use billing::account::AccountCode as Code;
use billing::ledger::Ledger;
use billing::pending::{Pending, PendingState};
use billing::posting::adjustment::{Direction, adjust};
use billing::posting::credit::{CreditKind, Part, grant, release};
use billing::posting::dispute::{Disputed, opened};
use billing::posting::earning::{mature, payout_requested};
use billing::posting::{Books, Key, Leg, Legs, Operation, Rail, book, platform};
use domain::id::{AdjustmentId, CreditId, DisputeId, MaturingId, PartyId, PayoutId, TransferId};
use domain::money::{Currency, Micros};
use store::adjustment::{AdjustmentRecord, AdjustmentState, DecisionRecord};
use store::credit::{CreditRecord, CreditUse, UseKind};
use store::db::Tx;
use store::dispute::{DisputeRecord, DisputeState};
use store::error::Error;
use store::lease::LeaseRecord;
use store::maturing::MaturingRecord;
use store::payout::{PayoutRecord, PayoutState};
use uuid::Uuid;

use crate::database::Database;
use crate::world::{T0, World, after, id};

const USD: i64 = 1_000_000;

async fn post(
    tx: &mut Tx,
    cause: Uuid,
    wanted: &[Key],
    decide: impl Fn(Books<'_>) -> Legs + Send + Sync,
) -> Result<Vec<Leg>, Error> {
    let accounts = store::ledger::lock_accounts(tx, Currency::Usd, wanted).await?;
    let before = Ledger::new(accounts, []);
    let mut after = before.clone();
    let legs = decide(Books(&before)).unwrap();
    let operation = Operation { cause, at: T0 };
    let booked = book(&mut after, &legs, operation, || TransferId::from_uuid(id())).unwrap();
    store::ledger::save(tx, &before, &after).await?;
    for transfer in &booked {
        store::ledger::insert_transfer(tx, transfer, Currency::Usd);
    }
    Ok(legs)
}

/// Moves every kind of money in a world whose lease pays.
pub(crate) async fn move_all(base: &Database, world: &World, lease: &LeaseRecord) {
    let work = async |tx: &mut Tx| {
        give_credit(tx, world, lease).await?;
        adjust_wallet(tx, world).await?;
        pay_out(tx, world.provider).await?;
        dispute(tx, world.renter).await
    };
    base.db.write::<_, Error, _>(work).await.unwrap();
}

async fn give_credit(tx: &mut Tx, world: &World, lease: &LeaseRecord) -> Result<(), Error> {
    let renter = world.renter.uuid();
    let (promo, wallet) = ((Code::RenterPromo, renter), (Code::RenterWallet, renter));
    let credit = CreditRecord {
        id: CreditId::from_uuid(id()),
        party: world.renter,
        kind: CreditKind::Promo,
        currency: Currency::Usd,
        amount: Micros::new(5 * USD),
        remaining: Micros::new(5 * USD),
        reason: "welcome".to_owned(),
        lease: None,
        expires_at: Some(after(9_000)),
        granted_by: world.renter_user,
        created_at: T0,
    };
    let bearer = platform(Code::DeferredPromo);
    post(tx, credit.id.uuid(), &[bearer, promo], |_books| {
        grant(credit.kind, renter, credit.amount)
    })
    .await?;
    store::credit::insert(tx, &credit).await?;
    let used = CreditUse {
        id: id(),
        part: Part {
            credit: credit.id.uuid(),
            amount: Micros::new(4 * USD),
        },
        kind: UseKind::Released,
        hold: Some(store::ledger::open_holds(tx, &[lease.id]).await?[0].id),
        at: T0,
    };
    post(tx, used.id, &[promo, wallet], |books| {
        release(books, renter, used.part.amount)
    })
    .await?;
    store::credit::record_use(tx, &used).await
}

/// An adjustment of the renter's wallet by a user who is not the renter.
pub(crate) fn adjustment(world: &World, direction: Direction) -> AdjustmentRecord {
    AdjustmentRecord {
        id: AdjustmentId::from_uuid(id()),
        party: world.renter,
        currency: Currency::Usd,
        direction,
        account: Code::RenterWallet,
        bearer: Code::Suspense,
        amount: Micros::new(USD),
        reason: "counted wrong".to_owned(),
        needs_approval: false,
        state: AdjustmentState::Proposed,
        proposed_by: world.renter_user,
        proposed_at: T0,
        expires_at: after(9_000),
        decision: None,
    }
}

async fn adjust_wallet(tx: &mut Tx, world: &World) -> Result<(), Error> {
    let keys = [
        (Code::RenterWallet, world.renter.uuid()),
        platform(Code::Suspense),
    ];
    let applied = AdjustmentRecord {
        state: AdjustmentState::Applied,
        decision: Some(DecisionRecord {
            by: None,
            at: T0,
            reason: None,
        }),
        ..adjustment(world, Direction::Credit)
    };
    post(tx, applied.id.uuid(), &keys, |books| {
        adjust(
            books,
            applied.direction,
            (keys[0], applied.bearer),
            applied.amount,
        )
    })
    .await?;
    store::adjustment::save(tx, &applied).await?;
    let proposed = adjustment(world, Direction::Debit);
    let accounts = store::ledger::lock_accounts(tx, Currency::Usd, &keys).await?;
    let pending = Pending {
        id: TransferId::from_uuid(id()),
        debit: accounts[0].id,
        credit: accounts[1].id,
        amount: proposed.amount,
        state: PendingState::Pending,
        expires_at: None,
    };
    let before = Ledger::new(accounts, []);
    let mut after = before.clone();
    pending.open(&mut after).unwrap();
    store::ledger::save(tx, &before, &after).await?;
    store::adjustment::save(tx, &proposed).await
}

async fn pay_out(tx: &mut Tx, party: PartyId) -> Result<(), Error> {
    let key = |code| (code, party.uuid());
    let keys = [
        key(Code::ProviderEarned),
        key(Code::ProviderPayable),
        key(Code::ProviderReserve),
        key(Code::PayoutInFlight),
    ];
    let matured = MaturingId::from_uuid(id());
    let legs = post(tx, matured.uuid(), &keys, |books| {
        mature(books, party.uuid(), Micros::ZERO, 1_000)
    })
    .await?;
    let record = MaturingRecord {
        id: matured,
        party,
        currency: Currency::Usd,
        through: T0,
        amount: legs[0].amount,
        reserve: legs[1].amount,
        reserve_due_at: after(9_000),
        reserve_released_at: None,
        at: T0,
    };
    store::maturing::insert(tx, &record).await?;
    let payout = PayoutRecord {
        id: PayoutId::from_uuid(id()),
        party,
        currency: Currency::Usd,
        amount: Micros::new(USD),
        sandbox: true,
        state: PayoutState::Requested,
        state_reason: "waits".to_owned(),
        requested_at: T0,
        state_at: T0,
    };
    post(tx, payout.id.uuid(), &keys, |books| {
        payout_requested(books, party.uuid(), Some(payout.amount), payout.amount)
    })
    .await?;
    store::payout::insert(tx, &payout).await
}

async fn dispute(tx: &mut Tx, party: PartyId) -> Result<(), Error> {
    let keys = [
        (Code::RenterWallet, party.uuid()),
        (Code::DisputeReceivable, party.uuid()),
        platform(Code::DisputeReserve),
    ];
    let dispute = DisputeId::from_uuid(id());
    let legs = post(tx, dispute.uuid(), &keys, |books| {
        opened(books, party.uuid(), Micros::new(100 * USD))
    })
    .await?;
    let record = DisputeRecord {
        id: dispute,
        party,
        currency: Currency::Usd,
        rail: Rail::Sandbox,
        disputed: Disputed::of(&legs).unwrap(),
        reason: "not known".to_owned(),
        state: DisputeState::Open,
        opened_at: T0,
        decided_at: None,
    };
    store::dispute::save(tx, &record).await
}

#[tokio::test(flavor = "multi_thread")]
async fn records_come_back_as_they_were_written() {
    let (base, world, lease) = crate::billed::paying().await;
    move_all(&base, &world, &lease).await;
    let page = store::page::Page {
        limit: 10,
        after: None,
    };
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let credits = store::credit::list(tx, Some(world.renter), page)
                .await?
                .rows;
            assert_eq!(credits.len(), 1);
            assert_eq!(credits[0].remaining, Micros::new(USD));
            assert_eq!(
                store::credit::usable(tx, world.renter, T0).await?,
                Micros::new(USD)
            );
            let over = after(9_000);
            assert_eq!(
                store::credit::usable(tx, world.renter, over).await?,
                Micros::ZERO
            );
            let expired = store::credit::parties_with_expired(tx, over).await?;
            assert_eq!(expired, [world.renter]);
            let adjustments = store::adjustment::list(tx, page).await?.rows;
            assert_eq!(adjustments.len(), 2);
            for one in &adjustments {
                let same = store::adjustment::get_for_update(tx, one.id).await?;
                assert_eq!(same.as_ref(), Some(one));
            }
            assert_eq!(store::adjustment::over(tx, over).await?.len(), 1);
            let payouts = store::payout::list(tx, world.provider, page).await?.rows;
            assert_eq!(
                store::payout::get(tx, payouts[0].id).await?,
                Some(payouts[0].clone())
            );
            assert_eq!(store::payout::open(tx).await?, [payouts[0].id]);
            assert_eq!(store::payout::paid(tx, world.provider).await?, Micros::ZERO);
            assert_eq!(store::maturing::reserves_due(tx, over).await?.len(), 1);
            let frozen = store::dispute::frozen(tx, &[world.renter, world.provider]).await?;
            assert_eq!(frozen.into_iter().collect::<Vec<_>>(), [world.renter]);
            Ok(())
        })
        .await
        .unwrap();
}

/// Credit is as good as money to a hold that waits for some.
#[tokio::test(flavor = "multi_thread")]
async fn credit_wakes_holds_that_wait_for_money() {
    use store::hold::HoldWatch;
    let (base, world, lease) = crate::billed::paying().await;
    let waits = HoldWatch {
        due_at: Some(after(9_000)),
        short: true,
        warned: 0,
    };
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let hold = store::ledger::open_holds(tx, &[lease.id]).await?[0].id;
            store::hold::set_watch(tx, hold, waits).await?;
            store::wallet::grew(tx, world.renter, Currency::Usd).await?;
            let woken = store::hold::watch(tx, hold).await?;
            assert_eq!(woken.due_at, Some(domain::clock::Timestamp::from_micros(0)));
            Ok(())
        })
        .await
        .unwrap();
}
