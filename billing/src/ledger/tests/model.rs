//! The ledger against an independent model: plain signed sums in `i128`.

use proptest::prelude::*;

use super::*;

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

fn play(book: &mut Ledger, op: &Op) -> bool {
    let id = |n| HoldId::from_uuid(Uuid::from_u128(n));
    let result = match *op {
        Op::TopUp(a) => book.transfer(&top_up(a)),
        Op::Open(n, a) => book.open_hold(hold(n, a)),
        Op::Raise(n, a) => book.raise_hold(id(n), Micros::new(a)),
        Op::Charge(n, g, f, t) => book.charge(&charge(n, g, f, t)),
        Op::Close(n) => book.close_hold(id(n)),
        Op::Expire(n, at) => book.expire_hold(id(n), Timestamp::from_micros(at)),
    };
    result.is_ok()
}

proptest! {
    #[test]
    fn agrees_with_the_model_and_keeps_its_invariants(ops in prop::collection::vec(op(), 0..80)) {
        let (mut book, mut model) = (ledger(), Model::default());
        for op in &ops {
            let before = book.clone();
            let done = play(&mut book, op);
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
            let left: i128 = book.holds().map(|h| i128::from(h.remaining().get())).sum();
            prop_assert_eq!(left, model.held());
            let total: i128 = book.accounts().map(|a| i128::from(a.debits.get()) - i128::from(a.credits.get())).sum();
            prop_assert_eq!(total, 0);
        }
    }
}
