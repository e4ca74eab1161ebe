//! What the server keeps: accounts, holds, leases with their meters. Everything here is lost in a
//! crash unless it was committed. Each change is checked against sums that are kept apart.

use std::collections::BTreeMap;

use billing::account::{Account, AccountCode, AccountId, PLATFORM};
use billing::charge::{Charge, ChargeAccounts};
use billing::hold::{Hold, HoldState, Renewal, grown, renew, size};
use billing::ledger::Ledger;
use billing::meter::{Meter, NewMeter, Proof, Resource};
use billing::rating::Shares;
use billing::segment::Segment;
use billing::transfer::{Transfer, TransferKind};
use domain::clock::Timestamp;
use domain::id::{ChargeId, LeaseId, MeterId, TransferId};
use domain::money::{Currency, Micros};

use super::lease::{FEE_BPS, Lease, Stage, TAX_BPS};
use crate::naive::{hourly, id, monthly, wide};

pub(super) const RENTERS: usize = 3;
const CLEARING: AccountId = AccountId(1);

pub(super) fn wallet(renter: usize) -> AccountId {
    AccountId(10 + i64::try_from(renter).unwrap())
}

#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) ledger: Ledger,
    pub(super) leases: BTreeMap<u128, Lease>,
    pub(super) topped_up: i128,
    paid: i128,
    next: u128,
}

impl Book {
    pub(super) fn new() -> Self {
        let platform = [
            (1, AccountCode::SandboxClearing),
            (2, AccountCode::ProviderEarned),
            (3, AccountCode::FeeRevenue),
            (4, AccountCode::TaxPayable),
        ];
        let account = |n, code, owner| Account::new(AccountId(n), code, Currency::Usd, owner);
        let own = platform.map(|(n, code)| account(n, code, PLATFORM));
        let wallets = (0..RENTERS).map(|r| account(wallet(r).0, AccountCode::RenterWallet, id(7)));
        Self {
            ledger: Ledger::new(own.into_iter().chain(wallets), []),
            leases: BTreeMap::new(),
            topped_up: 0,
            paid: 0,
            next: 1,
        }
    }

    pub(super) fn available(&self, renter: usize) -> Micros {
        let account = self.ledger.account(wallet(renter)).unwrap();
        account.available().unwrap()
    }

    pub(super) fn top_up(&mut self, renter: usize, amount: i64, now: Timestamp) {
        let transfer = Transfer {
            id: TransferId::from_uuid(id(1)),
            kind: TransferKind::SandboxTopUp,
            debit: CLEARING,
            credit: wallet(renter),
            amount: Micros::new(amount),
            cause: id(1),
            at: now,
        };
        self.ledger.transfer(&transfer).unwrap();
        self.topped_up += i128::from(amount);
    }

    /// Books, if the wallet allows it. The container is taken to run at once.
    pub(super) fn book(
        &mut self,
        (renter, machine): (usize, usize),
        (gpu, gib): (i64, i64),
        now: Timestamp,
    ) {
        let no = self.next;
        let shares = Shares {
            fee_bps: FEE_BPS,
            tax_bps: TAX_BPS,
        };
        let open = |n: u128, resource, rate| {
            let new = NewMeter {
                id: MeterId::from_uuid(id(no * 4 + n)),
                lease: LeaseId::from_uuid(id(no)),
                resource,
                rate,
                shares,
            };
            Meter::open(new, now)
        };
        let meters = [
            open(1, Resource::Compute, hourly(gpu)),
            open(2, Resource::Storage, monthly(7_777 * gib)),
        ];
        let first = |m: &Meter| {
            vec![Segment {
                no: 1,
                from: m.opened_at,
                rate: m.rate,
                unsettled_ms: 0,
            }]
        };
        let prices = [first(&meters[0]), first(&meters[1])];
        let lease = Lease {
            no,
            renter,
            machine,
            stage: Stage::Running,
            run: 1,
            meters,
            gpu_hour: gpu,
            gib_month: 7_777,
            gib,
            prices,
            sums: Default::default(),
        };
        let Ok(planned) = size(lease.burn(), self.available(renter)).unwrap() else {
            return;
        };
        let hold = Hold {
            id: lease.hold(),
            account: wallet(renter),
            lease: LeaseId::from_uuid(id(no)),
            amount: planned.amount,
            posted: Micros::ZERO,
            state: HoldState::Open,
            opened_at: now,
            expires_at: None,
        };
        self.ledger.open_hold(hold).unwrap();
        self.next += 1;
        self.leases.insert(no, lease);
    }

    fn remaining(&self, lease: &Lease) -> Micros {
        self.ledger.hold(lease.hold()).unwrap().remaining()
    }

    fn limit(&self, lease: &Lease, which: usize) -> Option<i64> {
        let other = lease.meters[1 - which]
            .unsettled()
            .unwrap()
            .renter()
            .unwrap();
        let kept = if which == 0 {
            wide(lease.burn().retention().unwrap())
        } else {
            0
        };
        let charged = lease.meters[which].charged.renter().unwrap();
        let budget = wide(charged) + wide(self.remaining(lease)) - wide(other) - kept;
        let budget = Micros::from_wide(budget).unwrap();
        lease.meters[which].affordable_ms(budget).unwrap()
    }

    /// Lets a report prove time; gives the ms of GPU time that the hold did not cover.
    pub(super) fn prove(&mut self, no: u128, which: usize, proof: &Proof) -> i64 {
        let lease = self.leases[&no].clone();
        if !lease.meters[which].continues(proof) {
            self.settle(no, proof.at);
        }
        let lease = self.leases[&no].clone();
        let meter = &lease.meters[which];
        let Some(next) = meter.prove(proof.clone(), self.limit(&lease, which)) else {
            return 0;
        };
        let free = meter.prove(proof.clone(), None).unwrap();
        let unpaid = free.billable_ms - next.billable_ms;
        assert!(next.through >= meter.through, "a meter's time went back");
        assert!(next.billable_ms <= next.through.since(next.opened_at).millis());
        let crosses = next.crosses();
        self.leases.get_mut(&no).unwrap().meters[which] = next;
        if crosses {
            self.settle(no, proof.at);
        }
        unpaid
    }

    /// Charges what is proven. A refusal would be a hole in the hold.
    pub(super) fn settle(&mut self, no: u128, now: Timestamp) {
        for which in 0..2 {
            while let Some((settlement, after)) = self.leases[&no].meters[which].settle().unwrap() {
                let hold = self.leases[&no].hold();
                let renter = self.leases[&no].renter;
                let charge = Charge {
                    id: ChargeId::from_uuid(id(1)),
                    settlement,
                    hold,
                    accounts: ChargeAccounts {
                        wallet: wallet(renter),
                        earned: AccountId(2),
                        fee: AccountId(3),
                        tax: AccountId(4),
                    },
                    at: now.max(settlement.to),
                };
                self.ledger.charge(&charge).unwrap();
                self.paid += wide(settlement.due.renter().unwrap());
                let lease = self.leases.get_mut(&no).unwrap();
                lease.meters[which] = after;
                lease.count(which, &settlement);
            }
        }
    }

    /// What the server does for every live lease every two seconds.
    pub(super) fn renew(&mut self, no: u128, now: Timestamp) {
        let lease = self.leases[&no].clone();
        match lease.stage {
            Stage::Running => {
                self.settle(no, now);
                let lease = self.leases[&no].clone();
                let (left, free) = (self.remaining(&lease), self.available(lease.renter));
                match renew(lease.burn(), left, free).unwrap() {
                    Renewal::Enough => {}
                    Renewal::Raise(more) => self.ledger.raise_hold(lease.hold(), more).unwrap(),
                    Renewal::Stop => self.stop(no, now),
                }
            }
            Stage::Stopped => {
                self.settle(no, now);
                let lease = self.leases[&no].clone();
                let limit = self.limit(&lease, 1);
                if limit.is_some_and(|most| lease.meters[1].billable_ms >= most) {
                    self.end(no, now);
                }
            }
            Stage::Stopping | Stage::Ending | Stage::Ended => {}
        }
    }

    pub(super) fn stop(&mut self, no: u128, now: Timestamp) {
        let lease = self.leases.get_mut(&no).unwrap();
        if lease.stage == Stage::Running {
            lease.stage = Stage::Stopping;
            lease.meters[0] = lease.meters[0].cut(now);
        }
    }

    pub(super) fn end(&mut self, no: u128, now: Timestamp) {
        let lease = self.leases.get_mut(&no).unwrap();
        if matches!(
            lease.stage,
            Stage::Running | Stage::Stopping | Stage::Stopped
        ) {
            lease.stage = Stage::Ending;
            lease.meters = [lease.meters[0].cut(now), lease.meters[1].cut(now)];
        }
    }

    /// The machine has shown that it did what was asked.
    pub(super) fn done(&mut self, no: u128, now: Timestamp) {
        self.settle(no, now);
        let lease = self.leases.get_mut(&no).unwrap();
        match lease.stage {
            Stage::Stopping => lease.stage = Stage::Stopped,
            Stage::Ending => {
                lease.stage = Stage::Ended;
                lease.meters = [lease.meters[0].finished(), lease.meters[1].finished()];
                let hold = lease.hold();
                self.ledger.close_hold(hold).unwrap();
            }
            Stage::Running | Stage::Stopped | Stage::Ended => {}
        }
    }

    pub(super) fn resume(&mut self, no: u128) {
        let lease = self.leases[&no].clone();
        if lease.stage != Stage::Stopped {
            return;
        }
        let left = self.remaining(&lease);
        let free = self.available(lease.renter).plus(left).unwrap();
        let Ok(planned) = size(lease.burn(), free).unwrap() else {
            return;
        };
        if planned.amount > left {
            let more = planned.amount.minus(left).unwrap();
            self.ledger.raise_hold(lease.hold(), more).unwrap();
        }
        let lease = self.leases.get_mut(&no).unwrap();
        lease.stage = Stage::Running;
        lease.run += 1;
        lease.meters[0] = lease.meters[0].reopened();
    }

    pub(super) fn resize(&mut self, no: u128, gib: i64, now: Timestamp) {
        let old = self.leases[&no].clone();
        if matches!(old.stage, Stage::Ending | Stage::Ended) || gib <= old.gib {
            return;
        }
        let lease = Lease { gib, ..old.clone() };
        let more = grown(old.burn(), lease.burn()).unwrap();
        if more > self.available(old.renter) {
            return;
        }
        if more > Micros::ZERO {
            self.ledger.raise_hold(old.hold(), more).unwrap();
        }
        let (segment, storage) = old.meters[1].reprice(now, lease.burn().storage).unwrap();
        let lease = self
            .leases
            .entry(no)
            .and_modify(|l| *l = lease)
            .or_insert(old);
        lease.meters[1] = storage;
        lease.prices[1].push(segment);
    }

    /// Every invariant of the ledger, over all of it.
    pub(super) fn check(&mut self) {
        let sum =
            |of: fn(&Account) -> Micros| self.ledger.accounts().map(|a| wide(of(a))).sum::<i128>();
        assert_eq!(sum(|a| a.debits), sum(|a| a.credits), "I1");
        for renter in 0..RENTERS {
            let account = self.ledger.account(wallet(renter)).unwrap();
            assert!(account.available().unwrap() >= Micros::ZERO, "I3");
            let open = self.ledger.holds().filter(|h| h.account == account.id);
            let open: i128 = open.map(|h| wide(h.remaining())).sum();
            assert_eq!(wide(account.held()), open, "I4");
        }
        let worth = |n| wide(self.ledger.account(AccountId(n)).unwrap().posted().unwrap());
        assert_eq!(-worth(1), self.topped_up, "each top-up once");
        assert_eq!(
            worth(2) + worth(3) + worth(4),
            self.paid,
            "provider + fee + tax = renter"
        );
        for lease in self.leases.values().filter(|l| l.lives()) {
            lease.check();
        }
    }

    /// Closed holds and ended leases need no more checks.
    pub(super) fn tidy(&mut self) {
        let accounts: Vec<Account> = self.ledger.accounts().cloned().collect();
        let open = self.ledger.holds().filter(|h| h.state == HoldState::Open);
        let open: Vec<Hold> = open.cloned().collect();
        self.ledger = Ledger::new(accounts, open);
        self.leases.retain(|_, l| l.lives());
    }
}
