//! A lease with its money, played step by step in any rhythm.

use billing::account::{Account, AccountCode, AccountId, PLATFORM};
use billing::charge::{Charge, ChargeAccounts};
use billing::hold::{Burn, Hold, HoldState, Renewal, renew, size};
use billing::ledger::Ledger;
use billing::meter::{Meter, Resource};
use billing::rating::{Due, Shares, affordable_ms};
use billing::transfer::{Transfer, TransferKind, TransferRefusal};
use domain::id::{ChargeId, HoldId, LeaseId, TransferId};
use domain::money::{Currency, Micros};
use proptest::prelude::*;

use crate::naive::*;

const WALLET: AccountId = AccountId(2);
const TO: ChargeAccounts = ChargeAccounts {
    wallet: WALLET,
    earned: AccountId(3),
    fee: AccountId(4),
    tax: AccountId(5),
};

fn book(funds: i64) -> Ledger {
    let owners = [
        (1, AccountCode::SandboxClearing, PLATFORM),
        (2, AccountCode::RenterWallet, id(11)),
        (3, AccountCode::ProviderEarned, id(12)),
        (4, AccountCode::FeeRevenue, PLATFORM),
        (5, AccountCode::TaxPayable, PLATFORM),
    ];
    let accounts =
        owners.map(|(n, code, owner)| Account::new(AccountId(n), code, Currency::Usd, owner));
    let mut book = Ledger::new(accounts, []);
    let top_up = Transfer {
        id: TransferId::from_uuid(id(1)),
        kind: TransferKind::SandboxTopUp,
        debit: AccountId(1),
        credit: WALLET,
        amount: Micros::new(funds),
        cause: id(1),
        at: us(0),
    };
    book.transfer(&top_up).unwrap();
    book
}

/// A lease with its money, played step by step.
struct Life {
    book: Ledger,
    hold: HoldId,
    burn: Burn,
    meters: [Meter; 2],
    charges: Vec<Charge>,
    stopped: bool,
    clock_us: i64,
}

impl Life {
    fn start(burn: Burn, shares: Shares, funds: i64) -> Option<Self> {
        let mut book = book(funds);
        let planned = size(burn, Micros::new(funds)).unwrap().ok()?;
        let hold = Hold {
            id: HoldId::from_uuid(id(1)),
            account: WALLET,
            lease: LeaseId::from_uuid(id(7)),
            amount: planned.amount,
            posted: Micros::ZERO,
            state: HoldState::Open,
            opened_at: us(0),
            expires_at: None,
        };
        let hold_id = hold.id;
        book.open_hold(hold).unwrap();
        let meters = [
            meter(Resource::Compute, burn.compute, shares),
            meter(Resource::Storage, burn.storage, shares),
        ];
        Some(Self {
            book,
            hold: hold_id,
            burn,
            meters,
            charges: Vec::new(),
            stopped: false,
            clock_us: 0,
        })
    }

    fn remaining(&self) -> Micros {
        self.book.hold(self.hold).unwrap().remaining()
    }

    /// What a meter may bill in all: the rest of the hold, without what others need of it.
    fn limit(&self, which: usize) -> Option<i64> {
        let this = &self.meters[which];
        let other = self.meters[1 - which]
            .unsettled()
            .unwrap()
            .renter()
            .unwrap();
        let kept = if which == 0 {
            self.burn.retention().unwrap()
        } else {
            Micros::ZERO
        };
        let budget = wide(this.charged.renter().unwrap()) + wide(self.remaining())
            - wide(other)
            - wide(kept);
        let budget = Micros::from_wide(budget).unwrap();
        affordable_ms(this.rate, this.shares.tax_bps, budget)
    }

    fn report(&mut self) {
        let seen = proof(self.clock_us / 1_000 + 1, self.clock_us);
        let from = usize::from(self.stopped);
        for which in from..2 {
            let limit = self.limit(which);
            if let Some(next) = self.meters[which].prove(seen.clone(), limit) {
                self.meters[which] = next;
            }
        }
    }

    fn settle(&mut self) -> Result<(), TransferRefusal> {
        for which in 0..2 {
            let Some((settlement, after)) = self.meters[which].settle().unwrap() else {
                continue;
            };
            let charge = Charge {
                id: ChargeId::from_uuid(id(1)),
                settlement,
                hold: self.hold,
                accounts: TO,
                at: us(self.clock_us),
            };
            self.book.charge(&charge)?;
            self.charges.push(charge);
            self.meters[which] = after;
        }
        Ok(())
    }

    fn renew(&mut self) {
        let available = self.book.account(WALLET).unwrap().available().unwrap();
        match renew(self.burn, self.remaining(), available).unwrap() {
            Renewal::Enough => {}
            Renewal::Raise(more) => self.book.raise_hold(self.hold, more).unwrap(),
            Renewal::Stop => {
                self.stopped = true;
                self.meters[0] = self.meters[0].cut(us(self.clock_us));
            }
        }
    }
}

proptest! {
    /// Reports, settlements and renewals in any rhythm: no charge is ever refused, the wallet
    /// never goes below zero, and the books are what the proven time is worth.
    #[test]
    fn a_lease_never_outspends_its_hold(
        (burn, shares) in burns(),
        funds in 1i64..30_000_000,
        steps in prop::collection::vec((0i64..900_000_000, 0u8..4), 0..60),
    ) {
        let Some(mut life) = Life::start(burn, shares, funds) else { return Ok(()) };
        for (step_us, what) in steps {
            life.clock_us += step_us;
            match what {
                0 | 1 => life.report(),
                2 => prop_assert_eq!(life.settle(), Ok(())),
                _ => {
                    prop_assert_eq!(life.settle(), Ok(()));
                    life.renew();
                }
            }
            prop_assert!(life.book.account(WALLET).unwrap().available().unwrap() >= Micros::ZERO);
        }
        prop_assert_eq!(life.settle(), Ok(()));
        // A stop keeps the disk's promise untouched by compute.
        let used = wide(life.meters[1].charged.renter().unwrap());
        prop_assert!(wide(life.remaining()) + used >= wide(burn.retention().unwrap()));
        let [compute, storage] = &life.meters;
        let (c, s) = (
            naive(burn.compute.price.get(), HOUR_MS, (shares.fee_bps, shares.tax_bps), i128::from(compute.billable_ms)),
            naive(burn.storage.price.get(), MONTH_MS, (shares.fee_bps, shares.tax_bps), i128::from(storage.billable_ms)),
        );
        let worth = |n| wide(life.book.account(AccountId(n)).unwrap().posted().unwrap());
        prop_assert_eq!(worth(2), i128::from(funds) - c.0 - c.2 - s.0 - s.2);
        prop_assert_eq!(worth(3), c.0 - c.1 + s.0 - s.1);
        prop_assert_eq!(worth(4), c.1 + s.1);
        prop_assert_eq!(worth(5), c.2 + s.2);
        prop_assert_eq!((1..=5).map(worth).sum::<i128>(), 0);
        for resource in [compute, storage] {
            let mut end = i64::MIN;
            for (n, c) in (1i64..).zip(life.charges.iter().map(|c| c.settlement).filter(|s| s.meter == resource.id)) {
                prop_assert_eq!(c.seq, n);
                prop_assert!(c.from.micros() >= end && c.from < c.to);
                prop_assert!(i128::from(c.billable_ms) * 1_000 <= i128::from(c.to.micros() - c.from.micros()));
                end = c.to.micros();
            }
        }
    }


    /// Which of one run's reports arrive, how often and in which order: only first and last count.
    #[test]
    fn one_run_s_reports_in_any_order_end_in_one_bill(
        start_us in 0i64..1_000_000_000,
        steps in prop::collection::vec(1i64..20_000_000, 1..25),
        arrivals in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        settle_after in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut at = start_us;
        let mut sent = vec![proof(start_us / 1_000, start_us)];
        for step in steps {
            at += step;
            sent.push(proof(at / 1_000, at));
        }
        let rate = hourly(2_490_000);
        let shares = Shares { fee_bps: 500, tax_bps: 1_900 };
        let fresh = meter(Resource::Compute, rate, shares).prove(sent[0].clone(), None).unwrap();
        let (mut m, mut charged) = (fresh, Due::default());
        for (place, settle) in arrivals.iter().zip(settle_after) {
            m = m.prove(place.get(&sent).clone(), None).unwrap_or(m);
            if let (true, Some((s, after))) = (settle, m.settle().unwrap()) {
                charged = charged.plus(s.due).unwrap();
                m = after;
            }
        }
        m = m.prove(sent[sent.len() - 1].clone(), None).unwrap_or(m);
        if let Some((s, _)) = m.settle().unwrap() {
            charged = charged.plus(s.due).unwrap();
        }
        let ms = i128::from(at / 1_000 - start_us / 1_000);
        prop_assert_eq!(i128::from(m.billable_ms), ms);
        let (gross, fee, tax) = naive(2_490_000, HOUR_MS, (500, 1_900), ms);
        prop_assert_eq!((wide(charged.gross), wide(charged.fee), wide(charged.tax)), (gross, fee, tax));
    }
}

#[test]
fn an_empty_wallet_stops_the_gpus_in_time_and_leaves_the_disk_its_day() {
    // 1 micro-unit for each ms of compute; the disk costs 1,000 for each hour.
    let burn = Burn {
        compute: hourly(3_600_000),
        storage: monthly(730_000),
        tax_bps: 0,
    };
    let shares = Shares {
        fee_bps: 500,
        tax_bps: 0,
    };
    let funds = 2_000_000;
    let mut life = Life::start(burn, shares, funds).unwrap();
    while !life.stopped {
        life.clock_us += 10_000_000;
        life.report();
        life.settle().unwrap();
        life.renew();
        assert!(life.clock_us < 3_600_000_000);
    }
    // 2,000,000 less the disk's day of 24,000 lasts 1,976 s less the disk meanwhile; the stop is
    // sent within its latency and one report before that.
    let ran_s = life.clock_us / 1_000_000;
    assert!((1_930..=1_970).contains(&ran_s), "{ran_s}");
    let ran_ms = i128::from(life.meters[0].billable_ms);
    assert_eq!(ran_ms, i128::from(life.clock_us / 1_000 - 10_000));
    // The disk alone lives on until its money ends, and not a millisecond longer.
    while life.clock_us < 400 * 3_600_000_000 {
        life.clock_us += 3_600_000_000;
        life.report();
        life.settle().unwrap();
    }
    assert_eq!(life.remaining(), Micros::ZERO);
    let disk_h = life.meters[1].billable_ms / 3_600_000;
    assert!((24..60).contains(&disk_h), "{disk_h}");
    let wallet = life.book.account(WALLET).unwrap();
    assert_eq!(wallet.available(), Ok(Micros::ZERO));
}
