//! The signed earnings of a period: the provider's side of every lease's statement.

use std::collections::BTreeMap;

use billing::charge::Charge;
use billing::meter::Meter;
use billing::statement::{
    EARNINGS_FORMAT, EarningsBody, EarningsLease, EarningsMeter, Opening, Totals,
};
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MeterId};
use domain::money::Currency;
use store::charge::Earned;
use store::db::Ro;
use store::lease::LeaseRecord;
use store::segment::Segments;

use crate::context::{Caller, Cx};
use crate::error::Error;
use crate::lease::statement::{line, price};

/// Most charges in one document.
const CHARGES_MAX: i64 = 20_000;

/// Which earnings.
#[derive(Clone, Copy, Debug)]
pub struct EarningsPeriod {
    /// Charges booked from here on.
    pub from: Timestamp,
    /// And before this; `None` is now.
    pub to: Option<Timestamp>,
    /// Only this lease.
    pub lease: Option<LeaseId>,
}

/// What the document is made of, from one snapshot.
struct Found {
    charges: Vec<Charge>,
    leases: Vec<LeaseRecord>,
    meters: Vec<Meter>,
    segments: Segments,
    openings: BTreeMap<MeterId, Opening>,
}

/// The signed document, as bytes: store them as they are.
pub async fn statement(cx: &Cx, caller: &Caller, asked: EarningsPeriod) -> Result<Vec<u8>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let now = cx.now();
    let to = asked.to.unwrap_or(now);
    if to > now {
        let detail = "Must not be in the future.";
        return Err(Error::field("query/to", "in_the_future", detail));
    }
    if asked.from >= to {
        let detail = "The period must begin before it ends.";
        return Err(Error::field("query/from", "out_of_range", detail));
    }
    let which = Earned {
        provider: caller.actor.party,
        from: asked.from,
        to,
        lease: asked.lease,
        currency: Currency::Usd,
    };
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| find(ro, which).await)
        .await?;
    let body = body(&which, &found, now);
    cx.signer
        .sign_earnings(body)
        .map_err(|_fault| Error::Fault("earnings do not add up and were not signed"))
}

async fn find(ro: &mut Ro, which: Earned) -> Result<Found, Error> {
    let most = CHARGES_MAX.saturating_add(1);
    let charges = store::charge::earned(ro, which, most).await?;
    if i64::try_from(charges.len()).unwrap_or(i64::MAX) > CHARGES_MAX {
        let detail = format!("The period has more than {CHARGES_MAX} charges: ask for less of it.");
        return Err(Error::field("query/from", "too_much", detail));
    }
    let mut ids: Vec<LeaseId> = charges.iter().map(|c| c.settlement.lease).collect();
    ids.dedup();
    let meters = store::meter::of_leases(ro, &ids).await?;
    let named: Vec<MeterId> = meters.iter().map(|m| m.id).collect();
    let openings = store::charge::openings(ro, &named, which.from).await?;
    let opening = |o: store::charge::OpeningRecord| {
        let opening = Opening {
            seq: o.seq,
            gross_micros: o.gross.get(),
            remainder: o.rem_num,
        };
        (o.meter, opening)
    };
    Ok(Found {
        charges,
        leases: store::lease::of_ids(ro, &ids).await?,
        meters,
        segments: store::segment::of_leases(ro, &ids).await?,
        openings: openings.into_iter().map(opening).collect(),
    })
}

impl Found {
    fn meter(&self, meter: &Meter, charges: &[&Charge]) -> EarningsMeter {
        let prices = self.segments.get(&meter.id).into_iter().flatten();
        let billable = charges.iter().map(|c| c.settlement.billable_ms);
        EarningsMeter {
            meter: meter.id.to_string(),
            resource: meter.resource.as_str().to_owned(),
            segments: prices.map(price).collect(),
            period_ms: meter.rate.per.millis(),
            fee_bps: meter.shares.fee_bps,
            tax_bps: meter.shares.tax_bps,
            opening: self.openings.get(&meter.id).copied().unwrap_or_default(),
            charges: charges.iter().map(|c| line(c)).collect(),
            billable_ms: billable.fold(0, i64::saturating_add),
        }
    }

    fn lease(
        &self,
        lease: &LeaseRecord,
        charges: &BTreeMap<MeterId, Vec<&Charge>>,
    ) -> EarningsLease {
        let own = self.meters.iter().filter(|m| m.lease == lease.id);
        let charged = own.filter_map(|m| Some(self.meter(m, charges.get(&m.id)?)));
        EarningsLease {
            lease: lease.id.to_string(),
            renter: lease.party.to_string(),
            machine: lease.machine.to_string(),
            gpu_model: lease.terms.gpu_model.clone(),
            gpu_count: lease.terms.gpu_count,
            simulated: lease.terms.simulated,
            meters: charged.collect(),
            total: Totals::default(),
        }
    }
}

fn body(which: &Earned, found: &Found, now: Timestamp) -> EarningsBody {
    let mut charges: BTreeMap<MeterId, Vec<&Charge>> = BTreeMap::new();
    for charge in &found.charges {
        let meter = charge.settlement.meter;
        charges.entry(meter).or_default().push(charge);
    }
    EarningsBody {
        format: EARNINGS_FORMAT.to_owned(),
        provider: which.provider.to_string(),
        only_lease: which.lease.map(|l| l.to_string()),
        currency: which.currency.code().to_owned(),
        from_us: which.from.micros(),
        to_us: which.to.micros(),
        issued_at_us: now.micros(),
        leases: found
            .leases
            .iter()
            .map(|l| found.lease(l, &charges))
            .collect(),
        total: Totals::default(),
    }
}
