//! Operations, one by one, at their edges; in `model`, in any order; in `examples`, as documented.

use domain::money::Currency;

use super::*;
use crate::account::{AccountId, Side};
use crate::rating::Due;

mod examples;
mod model;
mod spending;

const RENTER: Uuid = Uuid::from_u128(1);
const PROVIDER: Uuid = Uuid::from_u128(2);

/// Every account of the chart, party ones for `RENTER` or `PROVIDER`, without movements.
fn chart() -> Ledger {
    let accounts = (1..)
        .zip(AccountCode::ALL)
        .map(|(n, code)| Account::new(AccountId(n), code, Currency::Usd, owner(code)));
    Ledger::new(accounts, [])
}

fn owner(code: AccountCode) -> Uuid {
    const OF_PROVIDERS: [AccountCode; 5] = [
        AccountCode::ProviderReceivable,
        AccountCode::ProviderEarned,
        AccountCode::ProviderPayable,
        AccountCode::PayoutInFlight,
        AccountCode::ProviderReserve,
    ];
    if code.is_platform() {
        PLATFORM
    } else if OF_PROVIDERS.contains(&code) {
        PROVIDER
    } else {
        RENTER
    }
}

fn key(code: AccountCode) -> Key {
    (code, owner(code))
}

/// A chart in which some accounts have money on their normal side.
fn with(opening: &[(AccountCode, i64)]) -> Ledger {
    let mut accounts: Vec<Account> = chart().accounts().cloned().collect();
    for (code, amount) in opening {
        let account = accounts.iter_mut().find(|a| a.code == *code).unwrap();
        match code.side() {
            Side::Debit => account.debits = Micros::new(*amount),
            Side::Credit | Side::Both => account.credits = Micros::new(*amount),
        }
    }
    Ledger::new(accounts, [])
}

fn play(ledger: &mut Ledger, n: u128, legs: &[Leg]) -> Vec<Transfer> {
    let mut next = 0;
    let id = || {
        next += 1;
        TransferId::from_uuid(Uuid::from_u128(n * 100 + next))
    };
    let operation = Operation {
        cause: Uuid::from_u128(n),
        at: Timestamp::from_micros(0),
    };
    book(ledger, legs, operation, id).unwrap()
}

fn worth(ledger: &Ledger, code: AccountCode) -> i64 {
    Books(ledger).worth(key(code)).unwrap().get()
}

fn amounts(legs: &[Leg]) -> Vec<(&'static str, i64)> {
    legs.iter()
        .map(|l| (l.kind.as_str(), l.amount.get()))
        .collect()
}

const USD: i64 = 1_000_000;

#[test]
fn all_legs_or_none_are_booked() {
    let mut ledger = with(&[(AccountCode::RenterWallet, 5)]);
    let before = ledger.clone();
    let wallet = key(AccountCode::RenterWallet);
    let suspense = key(AccountCode::Suspense);
    let out = |kind, amount| leg(kind, wallet, suspense, Micros::new(amount)).unwrap();
    let legs = [
        out(TransferKind::AdjustmentDebit, 3),
        out(TransferKind::InterbranchOut, 3),
    ];
    let operation = Operation {
        cause: Uuid::nil(),
        at: Timestamp::from_micros(0),
    };
    let id = || TransferId::from_uuid(Uuid::nil());
    assert_eq!(
        book(&mut ledger, &legs, operation, id),
        Err(TransferRefusal::ExceedsCredits)
    );
    assert_eq!(ledger, before);
    let stranger = Leg {
        credit: (AccountCode::RenterWallet, PROVIDER),
        ..out(TransferKind::Correction, 1)
    };
    assert_eq!(
        book(&mut ledger, &[stranger], operation, id),
        Err(TransferRefusal::AccountMissing)
    );
}

#[test]
fn a_dispute_takes_what_is_there_and_the_rest_is_owed() {
    for (money, taken, owed) in [(10, 10, 0), (4, 4, 6), (0, 0, 10), (99, 10, 0)] {
        let mut ledger = with(&[(AccountCode::RenterWallet, money)]);
        let legs = dispute::opened(Books(&ledger), RENTER, Micros::new(10)).unwrap();
        let record = dispute::Disputed::of(&legs).unwrap();
        assert_eq!((record.taken.get(), record.owed.get()), (taken, owed));
        play(&mut ledger, 1, &legs);
        assert_eq!(worth(&ledger, AccountCode::DisputeReserve), 10);
        assert_eq!(worth(&ledger, AccountCode::DisputeReceivable), owed);
        let won = dispute::won(Books(&ledger), RENTER, record).unwrap();
        let mut happy = ledger.clone();
        play(&mut happy, 2, &won);
        assert_eq!(worth(&happy, AccountCode::RenterWallet), money);
        assert_eq!(worth(&happy, AccountCode::DisputeReceivable), 0);
        play(
            &mut ledger,
            2,
            &dispute::lost(Rail::Stripe, record).unwrap(),
        );
        assert_eq!(worth(&ledger, AccountCode::DisputeReserve), 0);
        assert_eq!(worth(&ledger, AccountCode::DisputeReceivable), owed);
    }
}

#[test]
fn a_dispute_that_is_won_after_the_debt_was_paid_gives_the_payment_back() {
    let mut ledger = with(&[(AccountCode::RenterWallet, 4)]);
    let legs = dispute::opened(Books(&ledger), RENTER, Micros::new(10)).unwrap();
    let record = dispute::Disputed::of(&legs).unwrap();
    play(&mut ledger, 1, &legs);
    let up = payment::top_up(Books(&ledger), Rail::Stripe, RENTER, Micros::new(5)).unwrap();
    assert_eq!(amounts(&up), [("deposit", 5), ("receivable_repaid", 5)]);
    play(&mut ledger, 2, &up);
    let won = dispute::won(Books(&ledger), RENTER, record).unwrap();
    assert_eq!(amounts(&won), [("dispute_won", 9), ("dispute_owed_won", 1)]);
    play(&mut ledger, 3, &won);
    assert_eq!(worth(&ledger, AccountCode::RenterWallet), 9);
    assert_eq!(worth(&ledger, AccountCode::DisputeReceivable), 0);
}

#[test]
fn one_dispute_won_pays_for_another_that_is_owed() {
    let mut ledger = with(&[(AccountCode::RenterWallet, 10)]);
    let first = dispute::opened(Books(&ledger), RENTER, Micros::new(10)).unwrap();
    play(&mut ledger, 1, &first);
    let second = dispute::opened(Books(&ledger), RENTER, Micros::new(7)).unwrap();
    play(&mut ledger, 2, &second);
    let record = dispute::Disputed::of(&first).unwrap();
    let won = dispute::won(Books(&ledger), RENTER, record).unwrap();
    assert_eq!(
        amounts(&won),
        [("dispute_won", 10), ("receivable_settled", 7)]
    );
    play(&mut ledger, 3, &won);
    assert_eq!(worth(&ledger, AccountCode::RenterWallet), 3);
    assert_eq!(
        dispute::repay(Books(&ledger), RENTER),
        Err(PostingRefusal::NothingDue)
    );
}

#[test]
fn only_what_is_older_than_the_period_matures() {
    let ledger = with(&[(AccountCode::ProviderEarned, 1_000)]);
    let mature = |recent| {
        let legs = earning::mature(Books(&ledger), PROVIDER, Micros::new(recent), 500);
        legs.map(|l| amounts(&l))
    };
    assert_eq!(mature(1_000), Err(PostingRefusal::NothingDue));
    assert_eq!(mature(1_001), Err(PostingRefusal::NothingDue));
    assert_eq!(
        mature(400),
        Ok(vec![("matured", 600), ("reserve_withheld", 30)])
    );
    // A share of less than a micro-unit is not kept back.
    assert_eq!(mature(999), Ok(vec![("matured", 1)]));
}

#[test]
fn a_debt_is_paid_before_anything_is_kept_back_or_paid_out() {
    let mut ledger = with(&[
        (AccountCode::ProviderEarned, 10 * USD),
        (AccountCode::ProviderReceivable, 4 * USD),
    ]);
    let legs = earning::mature(Books(&ledger), PROVIDER, Micros::ZERO, 1_000).unwrap();
    assert_eq!(
        amounts(&legs),
        [
            ("matured", 10 * USD),
            ("clawback_repaid", 4 * USD),
            ("reserve_withheld", 600_000)
        ]
    );
    play(&mut ledger, 1, &legs);
    let legs = earning::payout_requested(Books(&ledger), PROVIDER, None, Micros::new(USD)).unwrap();
    assert_eq!(amounts(&legs), [("payout_requested", 5_400_000)]);
    let owing = with(&[
        (AccountCode::ProviderPayable, 10 * USD),
        (AccountCode::ProviderReceivable, 4 * USD),
    ]);
    let ask = |wanted: i64| {
        let wanted = Some(Micros::new(wanted));
        earning::payout_requested(Books(&owing), PROVIDER, wanted, Micros::new(USD))
    };
    assert_eq!(ask(6 * USD + 10_000), Err(PostingRefusal::NotCovered));
    assert_eq!(
        amounts(&ask(6 * USD).unwrap()),
        [("clawback_settled", 4 * USD), ("payout_requested", 6 * USD)]
    );
}

#[test]
fn a_payout_is_in_whole_cents_and_not_below_the_minimum() {
    let ledger = with(&[(AccountCode::ProviderPayable, 1_999_999)]);
    let ask = |wanted: Option<i64>| {
        let wanted = wanted.map(Micros::new);
        earning::payout_requested(Books(&ledger), PROVIDER, wanted, Micros::new(USD))
            .map(|l| amounts(&l))
    };
    assert_eq!(ask(None), Ok(vec![("payout_requested", 1_990_000)]));
    assert_eq!(
        ask(Some(1_000_000)),
        Ok(vec![("payout_requested", 1_000_000)])
    );
    assert_eq!(ask(Some(1_000_001)), Err(PostingRefusal::NotWholeCents));
    assert_eq!(ask(Some(2_000_000)), Err(PostingRefusal::NotCovered));
    assert_eq!(ask(Some(990_000)), Err(PostingRefusal::BelowMinimum));
    assert_eq!(ask(Some(0)), Err(PostingRefusal::AmountNotPositive));
}

#[test]
fn earnings_mature_once_a_day_or_at_once() {
    let day = 86_400_000_000;
    let at = Timestamp::from_micros;
    let week = domain::clock::Span::from_hours(168);
    assert_eq!(earning::matures_before(at(9 * day + 5), week), at(2 * day));
    assert_eq!(earning::matures_before(at(9 * day), week), at(2 * day));
    let hour = domain::clock::Span::from_hours(1);
    assert_eq!(
        earning::matures_before(at(day), hour),
        at(day - 3_600_000_000)
    );
}

#[test]
fn a_reversed_charge_is_paid_by_what_the_provider_still_has() {
    let due = Due {
        gross: Micros::new(100),
        fee: Micros::new(5),
        tax: Micros::new(19),
    };
    let mut ledger = with(&[
        (AccountCode::ProviderEarned, 20),
        (AccountCode::ProviderReserve, 10),
        (AccountCode::ProviderPayable, 30),
        (AccountCode::FeeRevenue, 5),
        (AccountCode::TaxPayable, 19),
    ]);
    let legs = earning::charge_reversed(Books(&ledger), PROVIDER, RENTER, due).unwrap();
    assert_eq!(
        amounts(&legs),
        [
            ("charge_net_reversed", 20),
            ("clawback_reserve", 10),
            ("clawback_payable", 30),
            ("clawback_owed", 35),
            ("charge_fee_reversed", 5),
            ("charge_tax_reversed", 19)
        ]
    );
    play(&mut ledger, 1, &legs);
    assert_eq!(worth(&ledger, AccountCode::RenterWallet), 119);
    assert_eq!(worth(&ledger, AccountCode::ProviderReceivable), 35);
}

#[test]
fn credit_cannot_be_refunded_to_a_card() {
    let ledger = with(&[
        (AccountCode::RenterPromo, 50),
        (AccountCode::RenterWallet, 10),
    ]);
    let refund = |amount| payment::refund_requested(Books(&ledger), RENTER, Micros::new(amount));
    assert_eq!(refund(11), Err(PostingRefusal::NotCovered));
    assert!(refund(10).is_ok());
}

#[test]
fn a_correction_is_the_reverse_and_is_refused_twice() {
    let recorded = Leg {
        kind: TransferKind::Deposit,
        debit: key(AccountCode::StripeClearing),
        credit: key(AccountCode::RenterWallet),
        amount: Micros::new(9),
    };
    let reverse = adjustment::correct(recorded, false).unwrap();
    assert_eq!(
        (reverse.debit, reverse.credit),
        (recorded.credit, recorded.debit)
    );
    assert_eq!(
        adjustment::correct(recorded, true),
        Err(PostingRefusal::AlreadyDone)
    );
}

#[test]
fn a_debt_cannot_be_paid_twice() {
    let mut ledger = with(&[
        (AccountCode::RenterWallet, 20),
        (AccountCode::DisputeReceivable, 5),
    ]);
    let wallet = key(AccountCode::RenterWallet);
    let debt = key(AccountCode::DisputeReceivable);
    let paid = |amount| {
        leg(
            TransferKind::ReceivableRepaid,
            wallet,
            debt,
            Micros::new(amount),
        )
    };
    let operation = Operation {
        cause: Uuid::nil(),
        at: Timestamp::from_micros(0),
    };
    let id = || TransferId::from_uuid(Uuid::nil());
    assert_eq!(
        book(&mut ledger, &[paid(6).unwrap()], operation, id),
        Err(TransferRefusal::ExceedsDebits)
    );
    book(&mut ledger, &[paid(5).unwrap()], operation, id).unwrap();
    assert_eq!(worth(&ledger, AccountCode::DisputeReceivable), 0);
}
