//! The money of one lease inside a transaction: its meters, its hold, its settlement.
//!
//! The caller holds the lease's row lock; accounts are locked after it, in the order of numbers.

use billing::account::{AccountCode, PLATFORM};
use billing::charge::{Charge, ChargeAccounts};
use billing::hold::{Burn, Hold};
use billing::ledger::Ledger;
use billing::meter::{Meter, Resource};
use domain::clock::{Span, Timestamp};
use domain::id::ChargeId;
use domain::lease::RETENTION;
use domain::money::Micros;
use store::db::{Ro, Tx};
use store::lease::LeaseRecord;

use crate::context::Cx;
use crate::error::Error;
use crate::wallet::refuse;

/// Meters and hold of one lease.
#[derive(Clone, Debug)]
pub(crate) struct LeaseMoney {
    pub(crate) compute: Meter,
    pub(crate) storage: Meter,
    pub(crate) hold: Option<Hold>,
    pub(crate) max_spend: Option<Micros>,
}

/// The rates that a lease burns at.
pub(crate) fn burn(lease: &LeaseRecord) -> Result<Burn, Error> {
    Ok(Burn {
        compute: lease.terms.compute_rate()?,
        storage: lease.terms.storage_rate()?,
        tax_bps: lease.terms.tax_bps,
    })
}

/// Sorts meters into compute and storage.
pub(crate) fn pair(meters: Vec<Meter>) -> Result<(Meter, Meter), Error> {
    let (mut compute, mut storage) = (None, None);
    for meter in meters {
        match meter.resource {
            Resource::Compute => compute = Some(meter),
            Resource::Storage => storage = Some(meter),
        }
    }
    compute
        .zip(storage)
        .ok_or(Error::Fault("a lease without its meters"))
}

impl LeaseMoney {
    pub(crate) async fn load(ro: &mut Ro, lease: &LeaseRecord) -> Result<Self, Error> {
        let (compute, storage) = pair(store::meter::of_lease(ro, lease.id).await?)?;
        let hold = store::ledger::open_holds(ro, &[lease.id]).await?.pop();
        Ok(Self {
            compute,
            storage,
            hold,
            max_spend: lease.max_spend,
        })
    }

    /// What the hold can still pay.
    pub(crate) fn remaining(&self) -> Micros {
        self.hold.as_ref().map_or(Micros::ZERO, Hold::remaining)
    }

    /// What the lease burns at its present prices.
    pub(crate) fn burn(&self, lease: &LeaseRecord) -> Result<Burn, Error> {
        Ok(Burn {
            compute: self.compute.last_rate(),
            storage: self.storage.last_rate(),
            ..burn(lease)?
        })
    }

    /// What the disk is promised beyond the present, out of the hold.
    pub(crate) fn retention(&self) -> Result<Micros, Error> {
        let burn = Burn {
            compute: self.storage.last_rate(),
            storage: self.storage.last_rate(),
            tax_bps: self.storage.shares.tax_bps,
        };
        Ok(burn.retention()?)
    }

    /// The most that can still be charged once nothing runs after `now`: with the disk's promised
    /// time, if the disk stays.
    fn needed_without_running(&self, disk: bool, now: Timestamp) -> Result<Micros, Error> {
        let ever = Span::from_micros(i64::MAX);
        let open = |meter: &Meter| -> Result<Micros, Error> {
            let most = meter.estimate(now, ever, None)?.minus(meter.charged)?;
            // A micro-unit for the rounding of each of gross and tax.
            Ok(most.renter()?.plus(Micros::new(2))?)
        };
        let used = open(&self.compute)?.plus(open(&self.storage)?)?;
        let kept = if disk {
            self.retention()?
        } else {
            Micros::ZERO
        };
        Ok(used.plus(kept)?)
    }

    /// Releases what a lease that runs no more cannot need, so that it serves the wallet's others.
    pub(crate) async fn release_excess(
        &mut self,
        cx: &Cx,
        tx: &mut Tx,
        (lease, disk): (&LeaseRecord, bool),
        now: Timestamp,
    ) -> Result<(), Error> {
        let needed = self.needed_without_running(disk, now)?.max(Micros::new(1));
        let excess = self.remaining().minus(needed)?;
        if excess <= Micros::ZERO {
            return Ok(());
        }
        self.change_hold(tx, lease, |book, hold| {
            book.lower_hold(hold.id, excess).map_err(refuse)
        })
        .await?;
        self.give_credit_back(cx, tx, (lease, now)).await
    }

    /// The longest total GPU time that hold and guard can pay; `None` if it is free.
    pub(crate) fn compute_limit(&self) -> Result<Option<i64>, Error> {
        let charged = self.compute.charged.renter()?;
        let others = self
            .storage
            .unsettled()?
            .renter()?
            .plus(self.retention()?)?;
        let by_hold = charged.plus(self.remaining())?.minus(others)?;
        let budget = match self.max_spend {
            Some(most) => by_hold.min(most.minus(self.storage.accrued()?.renter()?)?),
            None => by_hold,
        };
        Ok(self.compute.affordable_ms(budget)?)
    }

    /// The longest total disk time that hold and guard can pay; `None` if it is free.
    pub(crate) fn storage_limit(&self) -> Result<Option<i64>, Error> {
        let charged = self.storage.charged.renter()?;
        let others = self.compute.unsettled()?.renter()?;
        let by_hold = charged.plus(self.remaining())?.minus(others)?;
        let budget = match self.max_spend {
            Some(most) => by_hold.min(most.minus(self.compute.accrued()?.renter()?)?),
            None => by_hold,
        };
        Ok(self.storage.affordable_ms(budget)?)
    }

    /// Has GPU time reached what hold and guard can pay?
    pub(crate) fn compute_is_spent(&self) -> Result<bool, Error> {
        Ok(self
            .compute_limit()?
            .is_some_and(|most| self.compute.billable_ms >= most))
    }

    /// Has disk time reached what hold and guard can pay?
    pub(crate) fn storage_is_spent(&self) -> Result<bool, Error> {
        Ok(self
            .storage_limit()?
            .is_some_and(|most| self.storage.billable_ms >= most))
    }

    /// When a stopped lease's disk is deleted: when its money ends, or after the retention if it is
    /// free.
    pub(crate) fn delete_at(&self, stopped_at: Timestamp) -> Result<Timestamp, Error> {
        Ok(match self.storage_limit()? {
            None => stopped_at.plus(RETENTION),
            Some(most) => {
                let left = most.saturating_sub(self.storage.billable_ms).max(0);
                let dry = self.storage.through.plus(Span::from_millis(left));
                dry.min(Timestamp::MAX)
            }
        })
    }

    pub(crate) async fn save_meters(&self, tx: &mut Tx) -> Result<(), Error> {
        store::meter::save(tx, &self.compute).await?;
        store::meter::save(tx, &self.storage).await?;
        Ok(())
    }

    /// Charges everything that is proven and not yet charged, out of the hold, and saves the meters.
    pub(crate) async fn settle(
        &mut self,
        cx: &Cx,
        tx: &mut Tx,
        lease: &LeaseRecord,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let Some(hold) = self.hold.clone() else {
            // Without a hold nothing could be proven; there is nothing to charge.
            self.save_meters(tx).await?;
            return Ok(false);
        };
        let mut settlements = Vec::new();
        for meter in [&mut self.compute, &mut self.storage] {
            while let Some((settlement, after)) = meter.settle()? {
                settlements.push(settlement);
                *meter = after;
            }
        }
        if settlements.is_empty() {
            self.save_meters(tx).await?;
            return Ok(false);
        }
        let (before, to) = self.lock(tx, lease, &hold).await?;
        let mut after = before.clone();
        for settlement in settlements {
            let id = ChargeId::from_uuid(cx.id());
            let charge = Charge {
                id,
                settlement,
                hold: hold.id,
                accounts: to,
                // Never before the end of its range, also when the clock was set back.
                at: now.max(settlement.to),
            };
            after.charge(&charge).map_err(refuse)?;
            store::charge::insert(tx, &charge, lease.terms.currency);
        }
        store::ledger::save(tx, &before, &after).await?;
        self.hold = after.hold(hold.id).cloned();
        self.save_meters(tx).await?;
        Ok(true)
    }

    async fn lock(
        &self,
        tx: &mut Tx,
        lease: &LeaseRecord,
        hold: &Hold,
    ) -> Result<(Ledger, ChargeAccounts), Error> {
        let wanted = [
            (AccountCode::RenterWallet, lease.party.uuid()),
            (AccountCode::ProviderEarned, lease.provider.uuid()),
            (AccountCode::FeeRevenue, PLATFORM),
            (AccountCode::TaxPayable, PLATFORM),
        ];
        let accounts = store::ledger::lock_accounts(tx, lease.terms.currency, &wanted).await?;
        let [wallet, earned, fee, tax] = accounts.as_slice() else {
            return Err(Error::Fault("four accounts were locked, others came"));
        };
        let to = ChargeAccounts {
            wallet: wallet.id,
            earned: earned.id,
            fee: fee.id,
            tax: tax.id,
        };
        Ok((Ledger::new(accounts, [hold.clone()]), to))
    }

    /// Changes the hold by `work`, with the wallet locked.
    pub(crate) async fn change_hold(
        &mut self,
        tx: &mut Tx,
        lease: &LeaseRecord,
        work: impl Fn(&mut Ledger, &Hold) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(hold) = self.hold.clone() else {
            return Ok(());
        };
        let wanted = [(AccountCode::RenterWallet, lease.party.uuid())];
        let accounts = store::ledger::lock_accounts(tx, lease.terms.currency, &wanted).await?;
        let before = Ledger::new(accounts, [hold.clone()]);
        let mut after = before.clone();
        work(&mut after, &hold)?;
        store::ledger::save(tx, &before, &after).await?;
        self.hold = after.hold(hold.id).cloned();
        Ok(())
    }

    /// Sets more aside: what `wanted` says of money and credit that are there, credit first.
    pub(crate) async fn raise_hold(
        &mut self,
        cx: &Cx,
        tx: &mut Tx,
        (lease, now): (&LeaseRecord, Timestamp),
        wanted: impl Fn(Micros) -> Result<Micros, Error> + Send + Sync,
    ) -> Result<(), Error> {
        let Some(hold) = self.hold.as_ref().map(|h| h.id) else {
            return Ok(());
        };
        let whose = (lease.party, lease.terms.currency);
        let more = crate::credit::raise_by(cx, tx, whose, (hold, now), wanted).await?;
        if more <= Micros::ZERO {
            return Ok(());
        }
        self.change_hold(tx, lease, |book, hold| {
            book.raise_hold(hold.id, more).map_err(refuse)
        })
        .await
    }

    /// Releases what is left of the hold: credit that no charge has used goes back to credit.
    pub(crate) async fn close_hold(
        &mut self,
        cx: &Cx,
        tx: &mut Tx,
        (lease, now): (&LeaseRecord, Timestamp),
    ) -> Result<(), Error> {
        self.change_hold(tx, lease, |book, hold| {
            book.close_hold(hold.id).map_err(refuse)
        })
        .await?;
        self.give_credit_back(cx, tx, (lease, now)).await?;
        self.hold = None;
        Ok(())
    }

    async fn give_credit_back(
        &self,
        cx: &Cx,
        tx: &mut Tx,
        (lease, now): (&LeaseRecord, Timestamp),
    ) -> Result<(), Error> {
        match &self.hold {
            Some(hold) => {
                let whose = (lease.party, lease.terms.currency);
                crate::credit::give_back(cx, tx, whose, (hold, now)).await
            }
            None => Ok(()),
        }
    }
}
