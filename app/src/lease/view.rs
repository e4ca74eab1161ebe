//! A lease as it is shown: with its GPUs, its cost by formula, and what a stop goes on to cost.

use std::collections::BTreeMap;

use billing::hold::Hold;
use billing::meter::Meter;
use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::{GpuTime, LeaseState};
use domain::money::Micros;
use store::db::Ro;
use store::lease::LeaseRecord;
use store::machine::GpuRecord;

use super::money::{LeaseMoney, pair};
use super::{AfterStop, CostView, FRESH, LeaseView};
use crate::error::Error;
use crate::wallet::hour_of;

/// One lease.
pub(super) async fn one(
    ro: &mut Ro,
    lease: LeaseRecord,
    now: Timestamp,
) -> Result<LeaseView, Error> {
    let mut views = many(ro, vec![lease], now).await?;
    views.pop().ok_or(Error::Fault("a lease without a view"))
}

/// Several leases with three queries.
pub(super) async fn many(
    ro: &mut Ro,
    leases: Vec<LeaseRecord>,
    now: Timestamp,
) -> Result<Vec<LeaseView>, Error> {
    let ids: Vec<LeaseId> = leases.iter().map(|l| l.id).collect();
    let mut gpus: BTreeMap<LeaseId, Vec<GpuRecord>> = BTreeMap::new();
    for (lease, gpu) in store::lease::gpus_of(ro, &ids).await? {
        gpus.entry(lease).or_default().push(gpu);
    }
    let mut meters: BTreeMap<LeaseId, Vec<Meter>> = BTreeMap::new();
    for meter in store::meter::of_leases(ro, &ids).await? {
        meters.entry(meter.lease).or_default().push(meter);
    }
    let mut holds: BTreeMap<LeaseId, Hold> = BTreeMap::new();
    for hold in store::ledger::open_holds(ro, &ids).await? {
        holds.insert(hold.lease, hold);
    }
    leases
        .into_iter()
        .map(|lease| {
            let (compute, storage) = pair(meters.remove(&lease.id).unwrap_or_default())?;
            let hold = holds.remove(&lease.id);
            let money = LeaseMoney {
                compute,
                storage,
                hold,
                max_spend: lease.max_spend,
            };
            Ok(LeaseView {
                cost: cost(&lease, &money, now)?,
                after_stop: after_stop(&lease, &money)?,
                gpus: gpus.remove(&lease.id).unwrap_or_default(),
                lease,
            })
        })
        .collect()
}

fn cost(lease: &LeaseRecord, money: &LeaseMoney, now: Timestamp) -> Result<CostView, Error> {
    let (compute, storage) = (&money.compute, &money.storage);
    let both = |c: Micros, s: Micros| c.plus(s);
    let billed = lease.state.billed(lease.keeps_gpus);
    let rate = |on: bool, meter: &Meter| -> Result<Micros, Error> {
        if on {
            hour_of(meter.last_rate(), meter.shares.tax_bps)
        } else {
            Ok(Micros::ZERO)
        }
    };
    let shown = |meter: &Meter, most: Option<i64>| -> Result<Micros, Error> {
        Ok(meter.estimate(now, FRESH, most)?.renter()?)
    };
    Ok(CostView {
        settled: both(compute.charged.renter()?, storage.charged.renter()?)?,
        accrued: both(compute.accrued()?.renter()?, storage.accrued()?.renter()?)?,
        so_far: both(
            shown(compute, money.compute_limit()?)?,
            shown(storage, money.storage_limit()?)?,
        )?,
        held: money.hold.as_ref().map_or(Micros::ZERO, Hold::remaining),
        billable_ms: compute.billable_ms,
        proven_through: compute.proof.as_ref().map(|_seen| compute.through),
        rate_per_hour: both(
            rate(billed.compute != GpuTime::Free, compute)?,
            rate(billed.storage, storage)?,
        )?,
    })
}

fn after_stop(lease: &LeaseRecord, money: &LeaseMoney) -> Result<Option<AfterStop>, Error> {
    let stopped = matches!(
        lease.state,
        LeaseState::Stopping | LeaseState::Stopped | LeaseState::Interrupted
    );
    if !stopped {
        return Ok(None);
    }
    let mut hour = hour_of(money.storage.last_rate(), money.storage.shares.tax_bps)?;
    if lease.keeps_gpus {
        let gpus = hour_of(money.compute.last_rate(), money.compute.shares.tax_bps)?;
        hour = hour.plus(gpus)?;
    }
    Ok(Some(AfterStop {
        per_day: hour.times(24)?,
        delete_at: money.delete_at(lease.state_at)?,
    }))
}
