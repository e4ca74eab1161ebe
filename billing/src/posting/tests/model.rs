//! Operations in any order keep the books: zero sum, nobody below zero, no debt paid twice, waiting
//! accounts equal what waits, and each operation can be undone by its record.

use proptest::prelude::*;

use domain::id::HoldId;

use super::*;
use crate::account::Guard;

mod parties;

#[derive(Clone, Debug)]
enum Op {
    TopUp(i64),
    Refund(i64),
    RefundEnd(bool),
    Dispute(DisputeOp),
    Adjust(bool, i64),
    Branch(bool, i64),
    Credit(CreditOp),
    Lease(LeaseOp),
    Earning(EarningOp),
}

#[derive(Clone, Debug)]
enum DisputeOp {
    Open(i64),
    End(bool),
    Repay,
    WriteOff,
}

#[derive(Clone, Debug)]
enum CreditOp {
    Grant(i64, Option<i64>),
    Expire(i64),
}

#[derive(Clone, Debug)]
enum LeaseOp {
    Hold(i64),
    Charge(i64, i64, i64),
    Close,
    Reverse,
}

#[derive(Clone, Debug)]
enum EarningOp {
    Mature(i64, u32),
    Release,
    Payout(Option<i64>),
    Sent,
    Failed,
    Returned,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (-5i64..500_000).prop_map(Op::TopUp),
        (-5i64..300_000).prop_map(Op::Refund),
        any::<bool>().prop_map(Op::RefundEnd),
        (1i64..100_000, prop::option::of(0i64..100))
            .prop_map(|(a, e)| Op::Credit(CreditOp::Grant(a, e))),
        (0i64..100).prop_map(|t| Op::Credit(CreditOp::Expire(t))),
        (1i64..300_000).prop_map(|a| Op::Lease(LeaseOp::Hold(a))),
        (0i64..90_000, 0i64..5_000, 0i64..5_000).prop_map(|(g, f, t)| Op::Lease(LeaseOp::Charge(
            g + f,
            f,
            t
        ))),
        Just(Op::Lease(LeaseOp::Close)),
        Just(Op::Lease(LeaseOp::Reverse)),
        (0i64..50_000, 0u32..10_001).prop_map(|(r, b)| Op::Earning(EarningOp::Mature(r, b))),
        Just(Op::Earning(EarningOp::Release)),
        prop::option::of(1i64..10)
            .prop_map(|w| Op::Earning(EarningOp::Payout(w.map(|cents| cents * earning::CENT)))),
        Just(Op::Earning(EarningOp::Sent)),
        Just(Op::Earning(EarningOp::Failed)),
        Just(Op::Earning(EarningOp::Returned)),
        (1i64..400_000).prop_map(|a| Op::Dispute(DisputeOp::Open(a))),
        any::<bool>().prop_map(|won| Op::Dispute(DisputeOp::End(won))),
        Just(Op::Dispute(DisputeOp::Repay)),
        Just(Op::Dispute(DisputeOp::WriteOff)),
        (any::<bool>(), 1i64..50_000).prop_map(|(c, a)| Op::Adjust(c, a)),
        (any::<bool>(), 1i64..50_000).prop_map(|(o, a)| Op::Branch(o, a)),
    ]
}

/// The ledger with what `store` would keep beside it.
struct World {
    ledger: Ledger,
    n: u128,
    now: i64,
    credits: Vec<credit::Credit>,
    taken: Vec<credit::Part>,
    hold: Option<HoldId>,
    charges: Vec<Due>,
    refunds: Vec<Micros>,
    payouts: Vec<Micros>,
    paid: Vec<Micros>,
    withheld: Vec<Micros>,
    disputes: Vec<dispute::Disputed>,
}

impl World {
    fn new() -> Self {
        Self {
            ledger: chart(),
            n: 0,
            now: 0,
            credits: Vec::new(),
            taken: Vec::new(),
            hold: None,
            charges: Vec::new(),
            refunds: Vec::new(),
            payouts: Vec::new(),
            paid: Vec::new(),
            withheld: Vec::new(),
            disputes: Vec::new(),
        }
    }

    /// Books the legs, if there are any, and checks that their record undoes them.
    fn book(&mut self, legs: &Legs) -> bool {
        let Ok(legs) = legs else { return false };
        let before = self.ledger.clone();
        self.n += 1;
        play(&mut self.ledger, self.n, legs);
        let mut undone = self.ledger.clone();
        for (place, leg) in legs.iter().rev().enumerate() {
            let reverse = adjustment::correct(*leg, false).unwrap();
            let n = 1_000_000 + self.n * 10 + u128::try_from(place).unwrap();
            play(&mut undone, n, &[reverse]);
        }
        for account in before.accounts() {
            let after = undone.account(account.id).unwrap();
            assert_eq!(after.worth(), account.worth(), "{:?}", account.code);
        }
        let kinds: std::collections::BTreeSet<_> = legs.iter().map(|l| l.kind).collect();
        assert_eq!(kinds.len(), legs.len(), "two legs of one kind");
        true
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    fn take(&mut self, op: &Op) {
        let legs = |f: &dyn Fn(Books<'_>) -> Legs| f(Books(&self.ledger));
        match *op {
            Op::TopUp(a) => {
                let legs = legs(&|b| payment::top_up(b, Rail::Sandbox, RENTER, Micros::new(a)));
                self.book(&legs);
            }
            Op::Refund(a) => {
                let legs = legs(&|b| payment::refund_requested(b, RENTER, Micros::new(a)));
                if self.book(&legs) {
                    self.refunds.push(Micros::new(a));
                }
            }
            Op::RefundEnd(good) => {
                let Some(amount) = self.refunds.pop() else {
                    return;
                };
                let legs = legs(&|b| {
                    if good {
                        payment::refund_settled(b, Rail::Sandbox, RENTER, amount)
                    } else {
                        payment::refund_failed(b, RENTER, amount)
                    }
                });
                assert!(self.book(&legs));
            }
            Op::Dispute(ref op) => self.take_dispute(op),
            Op::Credit(ref op) => self.take_credit(op),
            Op::Lease(ref op) => self.take_lease(op),
            Op::Earning(ref op) => self.take_earning(op),
            Op::Adjust(credit, a) => {
                let direction = if credit {
                    adjustment::Direction::Credit
                } else {
                    adjustment::Direction::Debit
                };
                let paths = (key(AccountCode::ProviderPayable), AccountCode::Suspense);
                let legs = legs(&|b| adjustment::adjust(b, direction, paths, Micros::new(a)));
                self.book(&legs);
            }
            Op::Branch(out, a) => {
                let wallet = key(AccountCode::RenterWallet);
                let legs = legs(&|b| {
                    if out {
                        adjustment::interbranch_out(b, wallet, Micros::new(a))
                    } else {
                        adjustment::interbranch_in(wallet, Micros::new(a))
                    }
                });
                self.book(&legs);
            }
        }
    }

    fn take_dispute(&mut self, op: &DisputeOp) {
        let legs = |f: &dyn Fn(Books<'_>) -> Legs| f(Books(&self.ledger));
        match *op {
            DisputeOp::Open(a) => {
                let legs = legs(&|b| dispute::opened(b, RENTER, Micros::new(a)));
                assert!(self.book(&legs));
                let record = dispute::Disputed::of(&legs.unwrap()).unwrap();
                self.disputes.push(record);
            }
            DisputeOp::End(good) => {
                let Some(record) = self.disputes.pop() else {
                    return;
                };
                let legs = legs(&|b| {
                    if good {
                        dispute::won(b, RENTER, record)
                    } else {
                        dispute::lost(Rail::Sandbox, record)
                    }
                });
                assert!(self.book(&legs));
            }
            DisputeOp::Repay => {
                let legs = legs(&|b| dispute::repay(b, RENTER));
                self.book(&legs);
            }
            DisputeOp::WriteOff => {
                let legs = legs(&|b| dispute::write_off(b, RENTER));
                self.book(&legs);
            }
        }
    }

    fn check(&self) {
        let mut total = 0;
        for account in self.ledger.accounts() {
            total += i128::from(account.debits.get()) - i128::from(account.credits.get());
            match account.code.guard() {
                Guard::Covered => assert!(account.available().unwrap() >= Micros::ZERO),
                Guard::Owed => assert!(account.worth().unwrap() >= Micros::ZERO),
                Guard::Free => {}
            }
        }
        assert_eq!(total, 0);
        let sum = |parts: &[Micros]| parts.iter().map(|m| m.get()).sum::<i64>();
        let at = |code| worth(&self.ledger, code);
        let left: Vec<Micros> = self.credits.iter().map(|c| c.left).collect();
        assert_eq!(at(AccountCode::RenterPromo), sum(&left));
        assert_eq!(at(AccountCode::RefundPending), sum(&self.refunds));
        assert_eq!(at(AccountCode::PayoutInFlight), sum(&self.payouts));
        let open: Vec<Micros> = self.disputes.iter().map(|d| d.amount().unwrap()).collect();
        assert_eq!(at(AccountCode::DisputeReserve), sum(&open));
        assert!(at(AccountCode::ProviderReserve) <= sum(&self.withheld));
    }
}

fn number(ledger: &Ledger, code: AccountCode) -> AccountId {
    find(ledger, key(code)).unwrap().id
}

proptest! {
    #[test]
    fn any_order_of_operations_keeps_the_books(ops in prop::collection::vec(op(), 0..120)) {
        let mut world = World::new();
        for op in &ops {
            world.take(op);
            world.check();
        }
    }
}
