//! The ledger against an independent model: plain signed sums in `i128`.

use domain::id::{ChargeId, LeaseId, MeterId, TransferId};
use domain::money::Currency;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::account::AccountCode;
use crate::charge::{ChargeAccounts, Settlement};
use crate::rating::Due;
use crate::transfer::TransferKind;

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

#[derive(Clone, Debug)]
enum Op {
    TopUp(i64),
    Open(u128, i64),
    Raise(u128, i64),
    Charge(u128, i64, i64, i64),
    Close(u128),
    Expire(u128, i64),
}

fn op() -> impl Strategy<Value = Op> {
    let id = 1u128..5;
    prop_oneof![
        (-5i64..1_000).prop_map(Op::TopUp),
        (id.clone(), -5i64..600).prop_map(|(n, a)| Op::Open(n, a)),
        (id.clone(), -5i64..300).prop_map(|(n, a)| Op::Raise(n, a)),
        (id.clone(), 0i64..200, 0i64..50, 0i64..50).prop_map(|(n, g, f, t)| Op::Charge(n, g, f, t)),
        id.clone().prop_map(Op::Close),
        (id, 0i64..2_000).prop_map(|(n, at)| Op::Expire(n, at)),
    ]
}

/// The model: money as plain numbers, holds as (left, open).
#[derive(Default)]
struct Model {
    wallet: i128,
    earned: i128,
    fee: i128,
    tax: i128,
    clearing: i128,
    holds: BTreeMap<u128, (i128, bool)>,
}

impl Model {
    fn held(&self) -> i128 {
        self.holds.values().filter(|h| h.1).map(|h| h.0).sum()
    }

    fn take(&mut self, op: &Op) -> bool {
        let free = self.wallet - self.held();
        match *op {
            Op::TopUp(a) if a > 0 => {
                self.wallet += i128::from(a);
                self.clearing -= i128::from(a);
                true
            }
            Op::Open(n, a) if a > 0 && i128::from(a) <= free && !self.holds.contains_key(&n) => {
                self.holds.insert(n, (i128::from(a), true));
                true
            }
            Op::Raise(n, a) if a > 0 && i128::from(a) <= free => match self.holds.get_mut(&n) {
                Some(h) if h.1 => {
                    h.0 += i128::from(a);
                    true
                }
                _ => false,
            },
            Op::Charge(n, g, f, t) if f <= g => match self.holds.get_mut(&n) {
                Some(hold) if hold.1 && i128::from(g + t) <= hold.0 => {
                    hold.0 -= i128::from(g + t);
                    self.wallet -= i128::from(g + t);
                    self.earned += i128::from(g - f);
                    self.fee += i128::from(f);
                    self.tax += i128::from(t);
                    true
                }
                _ => false,
            },
            Op::Close(n) | Op::Expire(n, 1_000..) => match self.holds.get_mut(&n) {
                Some(h) if h.1 => {
                    h.1 = false;
                    true
                }
                _ => false,
            },
            Op::TopUp(_) | Op::Open(..) | Op::Raise(..) | Op::Charge(..) | Op::Expire(..) => false,
        }
    }
}

fn play(book: &mut Ledger, op: &Op) -> Option<bool> {
    let id = |n| HoldId::from_uuid(Uuid::from_u128(n));
    let result = match *op {
        Op::TopUp(a) => book.transfer(&top_up(a)),
        // The database's primary key refuses a second hold with one id.
        Op::Open(n, _) if book.hold(id(n)).is_some() => return None,
        Op::Open(n, a) => book.open_hold(hold(n, a)),
        Op::Raise(n, a) => book.raise_hold(id(n), Micros::new(a)),
        Op::Charge(n, g, f, t) => book.charge(&charge(n, g, f, t)),
        Op::Close(n) => book.close_hold(id(n)),
        Op::Expire(n, at) => book.expire_hold(id(n), Timestamp::from_micros(at)),
    };
    Some(result.is_ok())
}

proptest! {
    #[test]
    fn agrees_with_the_model_and_keeps_its_invariants(ops in prop::collection::vec(op(), 0..80)) {
        let (mut book, mut model) = (ledger(), Model::default());
        for op in &ops {
            let before = book.clone();
            let Some(done) = play(&mut book, op) else { continue };
            prop_assert_eq!(done, model.take(op), "{:?}", op);
            prop_assert!(done || book == before, "a refusal changed something: {:?}", op);
            let worth = |id| i128::from(book.account(id).unwrap().posted().unwrap().get());
            prop_assert_eq!(worth(WALLET), model.wallet);
            prop_assert_eq!(worth(EARNED), model.earned);
            prop_assert_eq!(worth(FEE), model.fee);
            prop_assert_eq!(worth(TAX), model.tax);
            prop_assert_eq!(worth(CLEARING), model.clearing);
            let wallet = book.account(WALLET).unwrap();
            prop_assert_eq!(i128::from(wallet.held().get()), model.held());
            prop_assert!(wallet.available().unwrap() >= Micros::ZERO);
            let total: i128 = book.accounts().map(|a| i128::from(a.debits.get()) - i128::from(a.credits.get())).sum();
            prop_assert_eq!(total, 0);
        }
    }
}
