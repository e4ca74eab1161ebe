//! The ledger against a model of wide integers: every balance, every hold and every refusal.
//!
//! The model knows the rules as a set: it collects every rule that an operation breaks, and the one
//! that comes first in the documented order is the refusal. Sums are `i128`, checked for 64 bits.

use std::collections::{BTreeMap, BTreeSet};

use billing::account::{Account, AccountCode, AccountId};
use billing::charge::{Charge, ChargeAccounts, Settlement};
use billing::hold::{Hold, HoldState};
use billing::ledger::Ledger;
use billing::rating::Due;
use billing::transfer::TransferRefusal as Refusal;
use billing::transfer::{Transfer, TransferKind};
use domain::id::{ChargeId, HoldId, LeaseId, MeterId, TransferId};
use domain::money::{Currency, Micros};
use proptest::prelude::*;

use crate::naive::{id, us};

/// Accounts 1 and 6 are clearing, 2 and 7 wallets, 3 earnings, 4 fees, 5 tax; 8 is not there.
const CODES: [(i64, AccountCode); 7] = [
    (1, AccountCode::SandboxClearing),
    (2, AccountCode::RenterWallet),
    (3, AccountCode::ProviderEarned),
    (4, AccountCode::FeeRevenue),
    (5, AccountCode::TaxPayable),
    (6, AccountCode::SandboxClearing),
    (7, AccountCode::RenterWallet),
];
const WALLETS: [i64; 2] = [2, 7];
/// None of these goes below zero: wallets, and what a provider has earned.
const GUARDED: [i64; 3] = [2, 7, 3];
const MOST: i128 = 0x7fff_ffff_ffff_ffff;

#[derive(Clone, Debug)]
enum Op {
    Move(i64, i64, i64),
    Open {
        no: u128,
        lease: u128,
        wallet: i64,
        amount: i64,
        expires: Option<i64>,
    },
    Raise(u128, i64),
    Keep(u128),
    Charge {
        no: u128,
        lease: u128,
        wallet: i64,
        due: (i64, i64, i64),
        at: i64,
    },
    Close(u128),
    Expire(u128, i64),
}

/// Mostly small, sometimes as large as it gets.
fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![6 => -3i64..900, 1 => Just(i64::MAX), 1 => Just(i64::MAX / 2)]
}

fn op() -> impl Strategy<Value = Op> {
    let (hold, lease) = (1u128..6, 1u128..5);
    let wallet = prop::sample::select(vec![2i64, 2, 2, 7, 7, 3, 8]);
    let due = (-1i64..120, -1i64..40, -1i64..40);
    prop_oneof![
        3 => (1i64..9, 1i64..9, amount()).prop_map(|(d, c, a)| Op::Move(d, c, a)),
        2 => (1i64..900, 0usize..2).prop_map(|(a, w)| Op::Move(1, WALLETS[w], a)),
        3 => (hold.clone(), lease.clone(), wallet.clone(), amount(), prop::option::of(0i64..100))
            .prop_map(|(no, lease, wallet, amount, expires)| Op::Open { no, lease, wallet, amount, expires }),
        2 => (hold.clone(), amount()).prop_map(|(n, a)| Op::Raise(n, a)),
        1 => hold.clone().prop_map(Op::Keep),
        5 => (hold.clone(), lease, wallet, due, 0i64..100)
            .prop_map(|(no, lease, wallet, due, at)| Op::Charge { no, lease, wallet, due, at }),
        1 => hold.clone().prop_map(Op::Close),
        1 => (hold, 0i64..120).prop_map(|(n, at)| Op::Expire(n, at)),
    ]
}

/// Debits and credits of an account, without holds.
type Sums = (i128, i128);

#[derive(Clone, Debug)]
struct Kept {
    lease: u128,
    wallet: i64,
    left: i128,
    open: bool,
    expires: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct Model {
    sums: BTreeMap<i64, Sums>,
    holds: BTreeMap<u128, Kept>,
}

impl Model {
    fn held(&self, wallet: i64) -> i128 {
        let own = self.holds.values().filter(|h| h.open && h.wallet == wallet);
        own.map(|h| h.left).sum()
    }

    fn free(&self, account: i64) -> i128 {
        let (debits, credits) = self.sums[&account];
        credits - debits - self.held(account)
    }

    fn is_short(&self, account: i64, amount: i64) -> bool {
        GUARDED.contains(&account) && i128::from(amount) > self.free(account)
    }

    fn broken_by_hold(&self, no: u128) -> Vec<Refusal> {
        match self.holds.get(&no) {
            None => vec![Refusal::HoldMissing],
            Some(h) if !h.open => vec![Refusal::HoldNotOpen],
            Some(_) => Vec::new(),
        }
    }

    fn broken_by_charge(&self, op: &Op) -> Vec<Refusal> {
        let Op::Charge {
            no,
            lease,
            wallet,
            due: (gross, fee, tax),
            at,
        } = op
        else {
            return Vec::new();
        };
        let mut all = self.broken_by_hold(*no);
        let mut rule = |broken: bool, refusal| all.extend(broken.then_some(refusal));

        let odd = *gross < 0 || *fee < 0 || *tax < 0 || fee > gross;
        rule(odd, Refusal::AmountNotPositive);
        rule(*wallet == 3, Refusal::SameAccount);
        rule(!self.sums.contains_key(wallet), Refusal::AccountMissing);
        if let Some(h) = self.holds.get(no) {
            let over = h.expires.is_some_and(|end| end <= *at);
            rule(over, Refusal::HoldNotOpen);
            let other = h.wallet != *wallet || h.lease != *lease;
            rule(other, Refusal::HoldOfOther);
            rule(i128::from(gross + tax) > h.left, Refusal::ExceedsHold);
        }
        for (account, amount) in [(3, gross - fee), (4, *fee), (5, *tax)] {
            let over = self.sums[&account].1 + i128::from(amount) > MOST;
            rule(over, Refusal::Overflow);
        }
        all
    }

    /// Every rule that the operation breaks.
    fn broken(&self, op: &Op) -> BTreeSet<Refusal> {
        let mut all = Vec::new();
        let mut rule = |broken: bool, refusal| all.extend(broken.then_some(refusal));
        let there = |account: i64| self.sums.contains_key(&account);
        match op {
            Op::Move(debit, credit, amount) => {
                rule(*amount <= 0, Refusal::AmountNotPositive);
                rule(debit == credit, Refusal::SameAccount);
                if there(*debit) && there(*credit) {
                    rule(self.is_short(*debit, *amount), Refusal::ExceedsCredits);
                    let (a, b) = (self.sums[debit].0, self.sums[credit].1);
                    let over = a.max(b) + i128::from(*amount) > MOST;
                    rule(over, Refusal::Overflow);
                } else {
                    rule(true, Refusal::AccountMissing);
                }
            }
            Op::Open {
                no,
                lease,
                wallet,
                amount,
                ..
            } => {
                rule(*amount <= 0, Refusal::AmountNotPositive);
                let rival = |h: &Kept| h.open && h.lease == *lease;
                let taken = self.holds.contains_key(no) || self.holds.values().any(rival);
                rule(taken, Refusal::HoldOfOther);
                if there(*wallet) {
                    rule(self.is_short(*wallet, *amount), Refusal::ExceedsCredits);
                    let over = self.held(*wallet) + i128::from(*amount) > MOST;
                    rule(over, Refusal::Overflow);
                } else {
                    rule(true, Refusal::AccountMissing);
                }
            }
            Op::Raise(no, amount) => {
                rule(*amount <= 0, Refusal::AmountNotPositive);
                if let Some(h) = self.holds.get(no) {
                    rule(self.is_short(h.wallet, *amount), Refusal::ExceedsCredits);
                    let over = self.held(h.wallet) + i128::from(*amount) > MOST;
                    rule(over, Refusal::Overflow);
                }
                all.extend(self.broken_by_hold(*no));
            }
            Op::Charge { .. } => all.extend(self.broken_by_charge(op)),
            Op::Keep(no) | Op::Close(no) => all.extend(self.broken_by_hold(*no)),
            Op::Expire(no, at) => {
                let end = self.holds.get(no).and_then(|h| h.expires);
                rule(end.is_none_or(|end| end > *at), Refusal::HoldNotOpen);
                all.extend(self.broken_by_hold(*no));
            }
        }
        all.into_iter().collect()
    }

    fn debit(&mut self, account: i64, amount: i64) {
        self.sums.get_mut(&account).unwrap().0 += i128::from(amount);
    }

    fn credit(&mut self, account: i64, amount: i64) {
        self.sums.get_mut(&account).unwrap().1 += i128::from(amount);
    }

    fn take(&mut self, op: &Op) -> Result<(), Refusal> {
        if let Some(first) = self.broken(op).into_iter().next() {
            return Err(first);
        }
        match *op {
            Op::Move(debit, credit, amount) => {
                self.debit(debit, amount);
                self.credit(credit, amount);
            }
            Op::Open {
                no,
                lease,
                wallet,
                amount,
                expires,
            } => {
                let left = i128::from(amount);
                self.holds.insert(
                    no,
                    Kept {
                        lease,
                        wallet,
                        left,
                        open: true,
                        expires,
                    },
                );
            }
            Op::Raise(no, amount) => self.holds.get_mut(&no).unwrap().left += i128::from(amount),
            Op::Keep(no) => self.holds.get_mut(&no).unwrap().expires = None,
            Op::Charge {
                no,
                wallet,
                due: (gross, fee, tax),
                ..
            } => {
                self.holds.get_mut(&no).unwrap().left -= i128::from(gross + tax);
                self.debit(wallet, gross + tax);
                self.credit(3, gross - fee);
                self.credit(4, fee);
                self.credit(5, tax);
            }
            Op::Close(no) | Op::Expire(no, _) => self.holds.get_mut(&no).unwrap().open = false,
        }
        Ok(())
    }
}

fn charge(
    no: u128,
    lease: u128,
    wallet: i64,
    (gross, fee, tax): (i64, i64, i64),
    at: i64,
) -> Charge {
    Charge {
        id: ChargeId::from_uuid(id(1)),
        settlement: Settlement {
            meter: MeterId::from_uuid(id(1)),
            lease: LeaseId::from_uuid(id(lease)),
            seq: 1,
            segment: 1,
            from: us(0),
            to: us(1),
            billable_ms: 1,
            due: Due {
                gross: Micros::new(gross),
                fee: Micros::new(fee),
                tax: Micros::new(tax),
            },
        },
        hold: HoldId::from_uuid(id(no)),
        accounts: ChargeAccounts {
            wallet: AccountId(wallet),
            earned: AccountId(3),
            fee: AccountId(4),
            tax: AccountId(5),
        },
        at: us(at),
    }
}

fn play(book: &mut Ledger, op: &Op) -> Result<(), Refusal> {
    let hold = |n: u128| HoldId::from_uuid(id(n));
    match *op {
        Op::Move(debit, credit, amount) => book.transfer(&Transfer {
            id: TransferId::from_uuid(id(1)),
            kind: TransferKind::SandboxTopUp,
            debit: AccountId(debit),
            credit: AccountId(credit),
            amount: Micros::new(amount),
            cause: id(1),
            at: us(0),
        }),
        Op::Open {
            no,
            lease,
            wallet,
            amount,
            expires,
        } => book.open_hold(Hold {
            id: hold(no),
            account: AccountId(wallet),
            lease: LeaseId::from_uuid(id(lease)),
            amount: Micros::new(amount),
            posted: Micros::ZERO,
            state: HoldState::Open,
            opened_at: us(0),
            expires_at: expires.map(us),
        }),
        Op::Raise(no, amount) => book.raise_hold(hold(no), Micros::new(amount)),
        Op::Keep(no) => book.keep_hold(hold(no)),
        Op::Charge {
            no,
            lease,
            wallet,
            due,
            at,
        } => book.charge(&charge(no, lease, wallet, due, at)),
        Op::Close(no) => book.close_hold(hold(no)),
        Op::Expire(no, at) => book.expire_hold(hold(no), us(at)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_balance_and_every_refusal_is_the_model_s(ops in prop::collection::vec(op(), 0..200)) {
        let accounts = CODES.map(|(n, code)| Account::new(AccountId(n), code, Currency::Usd, id(9)));
        let mut book = Ledger::new(accounts, []);
        let sums = CODES.iter().map(|(n, _)| (*n, (0, 0))).collect();
        let mut model = Model { sums, ..Model::default() };
        for op in &ops {
            let before = book.clone();
            let (told, expected) = (play(&mut book, op), model.take(op));
            prop_assert_eq!(told, expected, "{:?}", op);
            prop_assert!(told.is_ok() || book == before, "a refusal changed something: {:?}", op);
            for account in book.accounts() {
                let sums = (i128::from(account.debits.get()), i128::from(account.credits.get()));
                prop_assert_eq!(sums, model.sums[&account.id.0]);
                prop_assert_eq!(i128::from(account.held().get()), model.held(account.id.0));
            }
            for hold in book.holds() {
                let kept = &model.holds[&hold.id.uuid().as_u128()];
                let left = if kept.open { kept.left } else { 0 };
                prop_assert_eq!(i128::from(hold.remaining().get()), left);
                prop_assert_eq!(hold.state == HoldState::Open, kept.open);
            }
            prop_assert!(GUARDED.iter().all(|w| model.free(*w) >= 0));
        }
    }
}
