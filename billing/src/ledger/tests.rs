//! The ledger: what it refuses, in which order, and (in `model`) that it agrees with plain sums.

use domain::id::{ChargeId, LeaseId, MeterId, TransferId};
use domain::money::Currency;
use uuid::Uuid;

use super::*;
use crate::account::AccountCode;
use crate::charge::{ChargeAccounts, Settlement};
use crate::rating::Due;
use crate::transfer::TransferKind;

mod model;

const CLEARING: AccountId = AccountId(1);
const WALLET: AccountId = AccountId(2);
const EARNED: AccountId = AccountId(3);
const FEE: AccountId = AccountId(4);
const TAX: AccountId = AccountId(5);

fn ledger() -> Ledger {
    let codes = [
        AccountCode::SandboxClearing,
        AccountCode::RenterWallet,
        AccountCode::ProviderEarned,
        AccountCode::FeeRevenue,
        AccountCode::TaxPayable,
    ];
    let accounts = (1..)
        .zip(codes)
        .map(|(n, code)| Account::new(AccountId(n), code, Currency::Usd, Uuid::from_u128(9)));
    Ledger::new(accounts, [])
}

fn now() -> Timestamp {
    Timestamp::from_micros(0)
}

fn top_up(amount: i64) -> Transfer {
    Transfer {
        id: TransferId::from_uuid(Uuid::from_u128(1)),
        kind: TransferKind::SandboxTopUp,
        debit: CLEARING,
        credit: WALLET,
        amount: Micros::new(amount),
        cause: Uuid::from_u128(1),
        at: now(),
    }
}

fn hold(n: u128, amount: i64) -> Hold {
    Hold {
        id: HoldId::from_uuid(Uuid::from_u128(n)),
        account: WALLET,
        lease: LeaseId::from_uuid(Uuid::from_u128(n)),
        amount: Micros::new(amount),
        posted: Micros::ZERO,
        state: HoldState::Open,
        opened_at: now(),
        expires_at: Some(Timestamp::from_micros(1_000)),
    }
}

fn charge(n: u128, gross: i64, fee: i64, tax: i64) -> Charge {
    Charge {
        id: ChargeId::from_uuid(Uuid::from_u128(1)),
        settlement: Settlement {
            meter: MeterId::from_uuid(Uuid::from_u128(1)),
            lease: LeaseId::from_uuid(Uuid::from_u128(n)),
            seq: 1,
            segment: 1,
            from: now(),
            to: Timestamp::from_micros(1),
            billable_ms: 1,
            due: Due {
                gross: Micros::new(gross),
                fee: Micros::new(fee),
                tax: Micros::new(tax),
            },
        },
        hold: HoldId::from_uuid(Uuid::from_u128(n)),
        accounts: ChargeAccounts {
            wallet: WALLET,
            earned: EARNED,
            fee: FEE,
            tax: TAX,
        },
        at: now(),
    }
}

#[test]
fn a_lease_s_money_from_top_up_to_release() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    book.open_hold(hold(1, 60)).unwrap();
    assert_eq!(
        book.open_hold(hold(2, 41)),
        Err(TransferRefusal::ExceedsCredits)
    );
    book.charge(&charge(1, 40, 2, 4)).unwrap();
    assert_eq!(
        book.charge(&charge(1, 17, 0, 0)),
        Err(TransferRefusal::ExceedsHold)
    );
    book.close_hold(HoldId::from_uuid(Uuid::from_u128(1)))
        .unwrap();
    let worth = |id| book.account(id).unwrap().posted().unwrap().get();
    assert_eq!(
        [worth(WALLET), worth(EARNED), worth(FEE), worth(TAX)],
        [56, 38, 2, 4]
    );
    assert_eq!(book.account(WALLET).unwrap().held(), Micros::ZERO);
    assert_eq!(
        book.clone().charge(&charge(1, 1, 0, 0)),
        Err(TransferRefusal::HoldNotOpen)
    );
}

#[test]
fn refusals_come_in_the_documented_order() {
    let book = ledger();
    let with = |change: fn(&mut Transfer)| {
        let mut t = top_up(5);
        change(&mut t);
        book.clone().transfer(&t)
    };
    assert_eq!(
        with(|t| {
            t.amount = Micros::ZERO;
            t.credit = t.debit;
        }),
        Err(TransferRefusal::AmountNotPositive)
    );
    assert_eq!(
        with(|t| {
            t.debit = AccountId(99);
            t.credit = AccountId(99);
        }),
        Err(TransferRefusal::SameAccount)
    );
    assert_eq!(
        with(|t| t.debit = AccountId(99)),
        Err(TransferRefusal::AccountMissing)
    );
    assert_eq!(
        with(|t| {
            t.debit = WALLET;
            t.credit = EARNED;
        }),
        Err(TransferRefusal::ExceedsCredits)
    );
    let mut full = ledger();
    full.transfer(&top_up(i64::MAX)).unwrap();
    assert_eq!(full.transfer(&top_up(1)), Err(TransferRefusal::Overflow));
}

#[test]
fn the_last_micro_can_be_spent_and_no_more() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    let mut out = Transfer {
        debit: WALLET,
        credit: EARNED,
        ..top_up(101)
    };
    assert_eq!(book.transfer(&out), Err(TransferRefusal::ExceedsCredits));
    out.amount = Micros::new(100);
    book.clone().transfer(&out).unwrap();
    assert_eq!(
        book.open_hold(hold(1, 101)),
        Err(TransferRefusal::ExceedsCredits)
    );
    book.open_hold(hold(1, 100)).unwrap();
    assert_eq!(book.transfer(&out), Err(TransferRefusal::ExceedsCredits));
}

#[test]
fn a_hold_expires_by_time_only() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    book.open_hold(hold(1, 60)).unwrap();
    let id = HoldId::from_uuid(Uuid::from_u128(1));
    assert!(book.expire_hold(id, Timestamp::from_micros(999)).is_err());
    let mut kept = book.clone();
    kept.keep_hold(id).unwrap();
    assert!(kept.expire_hold(id, Timestamp::from_micros(5_000)).is_err());
    book.expire_hold(id, Timestamp::from_micros(1_000)).unwrap();
    assert_eq!(
        book.account(WALLET).unwrap().available().unwrap(),
        Micros::new(100)
    );
}

#[test]
fn a_hold_is_opened_new_and_once_for_each_lease() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    let with = |book: &Ledger, change: fn(&mut Hold)| {
        let mut new = hold(1, 10);
        change(&mut new);
        book.clone().open_hold(new)
    };
    assert_eq!(
        with(&book, |h| {
            h.account = AccountId(99);
            h.state = HoldState::Closed;
        }),
        Err(TransferRefusal::AccountMissing)
    );
    for nothing in [
        |h: &mut Hold| h.amount = Micros::ZERO,
        |h: &mut Hold| h.amount = Micros::new(-1),
    ] {
        assert_eq!(
            with(&book, nothing),
            Err(TransferRefusal::AmountNotPositive)
        );
    }
    assert_eq!(
        with(&book, |h| h.state = HoldState::Closed),
        Err(TransferRefusal::HoldNotOpen)
    );
    assert_eq!(
        with(&book, |h| h.posted = Micros::new(1)),
        Err(TransferRefusal::HoldNotOpen)
    );
    book.open_hold(hold(1, 10)).unwrap();
    let same_id = |h: &mut Hold| h.lease = LeaseId::from_uuid(Uuid::from_u128(2));
    let same_lease = |h: &mut Hold| h.id = HoldId::from_uuid(Uuid::from_u128(2));
    assert_eq!(with(&book, same_id), Err(TransferRefusal::HoldOfOther));
    assert_eq!(with(&book, same_lease), Err(TransferRefusal::HoldOfOther));
    book.close_hold(HoldId::from_uuid(Uuid::from_u128(1)))
        .unwrap();
    assert_eq!(with(&book, same_id), Err(TransferRefusal::HoldOfOther));
    assert_eq!(with(&book, same_lease), Ok(()));
}

#[test]
fn a_charge_comes_out_of_its_own_lease_s_open_hold() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    book.open_hold(hold(1, 60)).unwrap();
    let with = |change: fn(&mut Charge)| {
        let mut new = charge(1, 40, 2, 4);
        change(&mut new);
        book.clone().charge(&new)
    };
    assert_eq!(
        with(|c| c.settlement.lease = LeaseId::from_uuid(Uuid::from_u128(2))),
        Err(TransferRefusal::HoldOfOther)
    );
    assert_eq!(
        with(|c| c.accounts.wallet = CLEARING),
        Err(TransferRefusal::HoldOfOther)
    );
    assert_eq!(
        with(|c| c.hold = HoldId::from_uuid(Uuid::from_u128(2))),
        Err(TransferRefusal::HoldMissing)
    );
    let at = Timestamp::from_micros;
    let charged_at = |us| {
        book.clone().charge(&Charge {
            at: at(us),
            ..charge(1, 40, 2, 4)
        })
    };
    assert_eq!(charged_at(999), Ok(()));
    assert_eq!(charged_at(1_000), Err(TransferRefusal::HoldNotOpen));
    for own in [
        |c: &mut Charge| c.accounts.earned = WALLET,
        |c: &mut Charge| c.accounts.fee = WALLET,
        |c: &mut Charge| c.accounts.tax = WALLET,
    ] {
        assert_eq!(with(own), Err(TransferRefusal::SameAccount));
    }
    assert_eq!(
        with(|c| c.accounts.tax = AccountId(99)),
        Err(TransferRefusal::AccountMissing)
    );
    let all = with(|c| {
        c.settlement.due.gross = Micros::new(56);
        c.settlement.due.fee = Micros::new(56);
    });
    assert_eq!(all, Ok(()));
    let free = with(|c| c.settlement.due = Due::default());
    assert_eq!(free, Ok(()));
}

#[test]
fn amounts_of_a_charge_are_sane_before_anything_else() {
    let book = ledger();
    for (gross, fee, tax) in [(-1, -1, 0), (1, -1, 0), (1, 0, -1), (1, 2, 0)] {
        let refused = book.clone().charge(&charge(1, gross, fee, tax));
        assert_eq!(refused, Err(TransferRefusal::AmountNotPositive));
    }
}

#[test]
fn beyond_the_money_is_told_before_beyond_the_range() {
    let mut book = ledger();
    book.transfer(&top_up(100)).unwrap();
    book.open_hold(hold(1, 60)).unwrap();
    let id = HoldId::from_uuid(Uuid::from_u128(1));
    assert_eq!(
        book.raise_hold(id, Micros::new(i64::MAX)),
        Err(TransferRefusal::ExceedsCredits)
    );
    assert_eq!(
        book.charge(&charge(1, i64::MAX, 0, 1)),
        Err(TransferRefusal::ExceedsHold)
    );
    assert_eq!(
        book.raise_hold(id, Micros::ZERO),
        Err(TransferRefusal::AmountNotPositive)
    );
    book.raise_hold(id, Micros::new(40)).unwrap();
    assert_eq!(book.hold(id).unwrap().remaining(), Micros::new(100));
    assert_eq!(
        book.open_hold(hold(2, 1)),
        Err(TransferRefusal::ExceedsCredits)
    );
}
