//! What renters' credit and leases, and providers' earnings do in the model.

use domain::id::{ChargeId, LeaseId, MeterId};

use super::*;
use crate::charge::{Charge, ChargeAccounts, Settlement};
use crate::hold::{Hold, HoldState};

impl World {
    pub(super) fn take_credit(&mut self, op: &CreditOp) {
        match *op {
            CreditOp::Grant(a, ends) => {
                let kind = match ends {
                    Some(_) => credit::CreditKind::Promo,
                    None => credit::CreditKind::Goodwill,
                };
                let legs = credit::grant(kind, RENTER, Micros::new(a));
                assert!(self.book(&legs));
                self.credits.push(super::super::spending::left(
                    self.n,
                    a,
                    ends.map(|e| self.now + e),
                ));
            }
            CreditOp::Expire(later) => {
                self.now += later;
                let now = self.at();
                for place in 0..self.credits.len() {
                    let one = self.credits[place];
                    if one.is_over(now) && one.left > Micros::ZERO {
                        let legs = credit::expire(Books(&self.ledger), RENTER, one.left);
                        assert!(self.book(&legs));
                        self.credits[place].left = Micros::ZERO;
                    }
                }
            }
        }
    }

    fn change_credit(&mut self, part: credit::Part, back: bool) {
        let one = self
            .credits
            .iter_mut()
            .find(|c| c.id == part.credit)
            .unwrap();
        one.left = if back {
            one.left.plus(part.amount).unwrap()
        } else {
            one.left.minus(part.amount).unwrap()
        };
        let books = Books(&self.ledger);
        let legs = if back {
            credit::returned(books, RENTER, part.amount)
        } else {
            credit::release(books, RENTER, part.amount)
        };
        assert!(self.book(&legs));
    }

    pub(super) fn take_lease(&mut self, op: &LeaseOp) {
        match *op {
            LeaseOp::Hold(a) => {
                if self.hold.is_some() {
                    return;
                }
                let wanted = Micros::new(a);
                let parts = credit::spend(&self.credits, wanted, self.at());
                let from_credit: i64 = parts.iter().map(|p| p.amount.get()).sum();
                let cash = Books(&self.ledger)
                    .available(key(AccountCode::RenterWallet))
                    .unwrap();
                if from_credit + cash.get() < a {
                    return;
                }
                for part in &parts {
                    self.change_credit(*part, false);
                }
                self.taken = parts;
                self.n += 1;
                let id = HoldId::from_uuid(Uuid::from_u128(self.n));
                self.hold = Some(id);
                let hold = Hold {
                    id,
                    account: number(&self.ledger, AccountCode::RenterWallet),
                    lease: LeaseId::from_uuid(Uuid::from_u128(self.n)),
                    amount: wanted,
                    posted: Micros::ZERO,
                    state: HoldState::Open,
                    opened_at: self.at(),
                    expires_at: None,
                };
                self.ledger.open_hold(hold).unwrap();
            }
            LeaseOp::Charge(gross, fee, tax) => self.charge(Due {
                gross: Micros::new(gross),
                fee: Micros::new(fee),
                tax: Micros::new(tax),
            }),
            LeaseOp::Close => {
                let Some(id) = self.hold.take() else { return };
                let cash = |w: &Self| {
                    Books(&w.ledger)
                        .available(key(AccountCode::RenterWallet))
                        .unwrap()
                        .get()
                };
                let before = cash(self);
                let hold = self.ledger.hold(id).unwrap().clone();
                self.ledger.close_hold(id).unwrap();
                let taken = self.taken.iter().map(|p| p.amount.get()).sum();
                let unused = credit::unused(Micros::new(taken), hold.posted);
                for part in credit::give_back(&self.taken, unused) {
                    self.change_credit(part, true);
                }
                self.taken.clear();
                // What comes back as money is what the hold took as money and did not use.
                let paid_by_money = hold.posted.get().max(taken) - taken;
                let as_money = hold.amount.get() - taken;
                assert_eq!(cash(self), before + as_money - paid_by_money);
            }
            LeaseOp::Reverse => {
                let Some(due) = self.charges.pop() else {
                    return;
                };
                let legs = earning::charge_reversed(Books(&self.ledger), PROVIDER, RENTER, due);
                self.book(&legs);
            }
        }
    }

    fn charge(&mut self, due: Due) {
        let Some(id) = self.hold else { return };
        let hold = self.ledger.hold(id).unwrap();
        let charge = Charge {
            id: ChargeId::from_uuid(Uuid::from_u128(self.n)),
            settlement: Settlement {
                segment: 1,
                meter: MeterId::from_uuid(Uuid::nil()),
                lease: hold.lease,
                seq: 1,
                from: self.at(),
                to: self.at(),
                billable_ms: 0,
                due,
            },
            hold: id,
            accounts: ChargeAccounts {
                wallet: hold.account,
                earned: number(&self.ledger, AccountCode::ProviderEarned),
                fee: number(&self.ledger, AccountCode::FeeRevenue),
                tax: number(&self.ledger, AccountCode::TaxPayable),
            },
            at: self.at(),
        };
        if self.ledger.charge(&charge).is_ok() {
            self.charges.push(due);
        }
    }

    pub(super) fn take_earning(&mut self, op: &EarningOp) {
        let books = Books(&self.ledger);
        match *op {
            EarningOp::Mature(recent, bps) => {
                let legs = earning::mature(books, PROVIDER, Micros::new(recent), bps);
                if self.book(&legs) {
                    let kept = |l: &&Leg| l.kind == TransferKind::ReserveWithheld;
                    let legs = legs.unwrap();
                    self.withheld
                        .extend(legs.iter().filter(kept).map(|l| l.amount));
                }
            }
            EarningOp::Release => {
                let Some(amount) = self.withheld.pop() else {
                    return;
                };
                let legs = earning::release_reserve(books, PROVIDER, amount);
                self.book(&legs);
            }
            EarningOp::Payout(wanted) => {
                let least = Micros::new(earning::CENT);
                let wanted = wanted.map(Micros::new);
                let legs = earning::payout_requested(books, PROVIDER, wanted, least);
                if self.book(&legs) {
                    self.payouts.push(legs.unwrap().last().unwrap().amount);
                }
            }
            EarningOp::Returned => {
                let Some(amount) = self.paid.pop() else {
                    return;
                };
                let legs = earning::payout_returned(Rail::Sandbox, PROVIDER, amount);
                assert!(self.book(&legs));
            }
            EarningOp::Sent => {
                let Some(amount) = self.payouts.pop() else {
                    return;
                };
                self.paid.push(amount);
                let legs = earning::payout_sent(books, Rail::Sandbox, PROVIDER, amount);
                assert!(self.book(&legs));
            }
            EarningOp::Failed => {
                let Some(amount) = self.payouts.pop() else {
                    return;
                };
                let legs = earning::payout_failed(books, PROVIDER, amount);
                assert!(self.book(&legs));
            }
        }
    }
}
