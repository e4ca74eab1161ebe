//! The signed statement of a lease: the same document for renter and provider.

use billing::charge::Charge;
use billing::meter::Meter;
use billing::segment::Segment;
use billing::statement::{ChargeLine, FORMAT, MeterLines, SegmentLine, StatementBody, Totals};
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::LeaseId;
use store::db::Ro;
use store::lease::LeaseRecord;
use store::segment::Segments;

use crate::context::{Caller, Cx};
use crate::error::Error;

/// The signed document, as bytes: store them as they are.
pub async fn statement(cx: &Cx, caller: &Caller, id: LeaseId) -> Result<Vec<u8>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let now = cx.now();
    let (party, cx_ref) = (caller.actor.party, cx);
    let body = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let lease = store::lease::get(ro, id)
                .await?
                .filter(|l| l.party == party || l.provider == party)
                .ok_or_else(|| Error::not_found("lease"))?;
            let meters = store::meter::of_lease(ro, id).await?;
            let charges = store::charge::of_lease(ro, id).await?;
            let segments = store::segment::of_leases(ro, &[id]).await?;
            Ok(body(&lease, (&meters, &segments), &charges, now))
        })
        .await?;
    cx_ref
        .signer
        .sign_statement(body)
        .map_err(|_fault| Error::Fault("a statement does not add up and was not signed"))
}

/// A price as it is stated.
pub(crate) fn price(segment: &Segment) -> SegmentLine {
    SegmentLine {
        no: segment.no,
        from_us: segment.from.micros(),
        price_micros: segment.rate.price.get(),
    }
}

/// A charge as it is stated.
pub(crate) fn line(charge: &Charge) -> ChargeLine {
    let s = &charge.settlement;
    ChargeLine {
        seq: s.seq,
        segment: Some(s.segment),
        from_us: s.from.micros(),
        to_us: s.to.micros(),
        billable_ms: s.billable_ms,
        gross_micros: s.due.gross.get(),
        fee_micros: s.due.fee.get(),
        tax_micros: s.due.tax.get(),
        booked_at_us: Some(charge.at.micros()),
        hash: String::new(),
    }
}

fn lines(meter: &Meter, segments: &Segments, charges: &[Charge]) -> MeterLines {
    MeterLines {
        meter: meter.id.to_string(),
        resource: meter.resource.as_str().to_owned(),
        price_micros: None,
        segments: segments
            .get(&meter.id)
            .into_iter()
            .flatten()
            .map(price)
            .collect(),
        period_ms: meter.rate.per.millis(),
        fee_bps: meter.shares.fee_bps,
        tax_bps: meter.shares.tax_bps,
        charges: charges
            .iter()
            .filter(|c| c.settlement.meter == meter.id)
            .map(line)
            .collect(),
        billable_ms: meter.settled_ms,
    }
}

fn body(
    lease: &LeaseRecord,
    (meters, segments): (&[Meter], &Segments),
    charges: &[Charge],
    now: Timestamp,
) -> StatementBody {
    StatementBody {
        format: FORMAT.to_owned(),
        lease: lease.id.to_string(),
        renter: lease.party.to_string(),
        provider: lease.provider.to_string(),
        machine: lease.machine.to_string(),
        gpu_model: lease.terms.gpu_model.clone(),
        gpu_count: lease.terms.gpu_count,
        disk_gib: lease.terms.disk_gib,
        simulated: lease.terms.simulated,
        currency: lease.terms.currency.code().to_owned(),
        state: lease.state.as_str().to_owned(),
        issued_at_us: now.micros(),
        meters: meters.iter().map(|m| lines(m, segments, charges)).collect(),
        total: Totals::default(),
    }
}
