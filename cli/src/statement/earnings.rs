//! The picture of a period's earnings.

use billing::statement::{EarningsBody, EarningsMeter, Verified};
use comfy_table::Table;

use super::{Trust, exact_seconds, per_period, verdict};
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, gpus, micros};

/// Shows what was recomputed.
pub(super) fn picture(
    output: &mut Output<'_>,
    verified: &Verified<EarningsBody>,
    trust: &Trust,
    view: &View,
) -> Result<(), Fault> {
    let body = &verified.statement.body;
    let over = body.issued_at_us > body.to_us;
    let state = if over { "final" } else { "so far" };
    output.table(&facts([
        ("earnings of", Some(body.provider.clone())),
        ("from", Some(view.micros(body.from_us))),
        ("to", Some(format!("{} ({state})", view.micros(body.to_us)))),
        ("only lease", body.only_lease.clone()),
        ("stated", Some(view.micros(body.issued_at_us))),
    ]))?;
    output.say("\nRecomputed from time and rate, charge by charge:")?;
    output.table(&meters(body))?;
    let amount = |of: i64| Some(micros(of, &body.currency));
    output.say("")?;
    output.table(&facts([
        ("renters pay", amount(body.total.renter_pays_micros)),
        ("  tax in it", amount(body.total.tax_micros)),
        ("platform's fee", amount(body.total.fee_micros)),
        ("you get", amount(body.total.provider_gets_micros)),
    ]))?;
    output.say("")?;
    let simulated = body.leases.iter().any(|l| l.simulated);
    output.table(&verdict(verified, trust, simulated))
}

fn meters(body: &EarningsBody) -> Table {
    let currency = &body.currency;
    let prices = |m: &EarningsMeter| -> Vec<i64> {
        let used = |no| m.charges.iter().any(|c| c.segment == Some(no));
        let of_period = m.segments.iter().filter(|s| used(s.no));
        of_period.map(|s| s.price_micros).collect()
    };
    let rows = body.leases.iter().flat_map(|lease| {
        lease.meters.iter().map(move |meter| {
            let sum = |of: fn(&billing::statement::ChargeLine) -> i64| {
                let total = meter.charges.iter().map(of);
                micros(total.fold(0i64, i64::saturating_add), currency)
            };
            vec![
                lease.lease.clone(),
                gpus(lease.gpu_count, &lease.gpu_model, lease.simulated),
                meter.resource.clone(),
                meter.charges.len().to_string(),
                exact_seconds(meter.billable_ms),
                per_period(&prices(meter), meter.period_ms, currency),
                sum(|c| c.gross_micros),
                sum(|c| c.fee_micros),
            ]
        })
    });
    let heading = [
        "LEASE",
        "GPUS",
        "METER",
        ">CHARGES",
        ">SECONDS",
        ">RATE",
        ">GROSS",
        ">FEE IN IT",
    ];
    grid(&heading, rows.collect())
}
