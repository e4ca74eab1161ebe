//! The statement of a lease: the same document for renter and provider.

use std::collections::BTreeSet;

use domain::money::Currency;
use serde::{Deserialize, Serialize};

use super::lines::{ChargeLine, SegmentLine, Terms, Totals, chain};
use super::{Stated, StatementFault, form};
use crate::meter::Resource;
use crate::rating::Shares;
use crate::segment::Exact;

/// Version of the document's form.
pub const FORMAT: &str = "gpumarket-lease-statement/2";
/// The form before: one price for each meter. Documents of it still verify.
pub const FORMAT_1: &str = "gpumarket-lease-statement/1";

/// What is stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementBody {
    /// [`FORMAT`].
    pub format: String,
    /// `lse_…`
    pub lease: String,
    /// `pty_…` of the renter.
    pub renter: String,
    /// `pty_…` of the provider.
    pub provider: String,
    /// `mch_…`
    pub machine: String,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk, as it is now.
    pub disk_gib: u32,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// ISO 4217; all amounts are micro-units (10⁻⁶) of it.
    pub currency: String,
    /// State of the lease; the statement is final when it is `ended` or `failed`.
    pub state: String,
    /// When the statement was made, microseconds since 1970 (UTC).
    pub issued_at_us: i64,
    /// One for each resource.
    pub meters: Vec<MeterLines>,
    /// Sums over all meters.
    pub total: Totals,
}

/// One meter, its prices and its charges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterLines {
    /// `mtr_…`
    pub meter: String,
    /// `compute` or `storage`.
    pub resource: String,
    /// The only price, in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_micros: Option<i64>,
    /// The prices, in order. Since format 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentLine>,
    /// Length of the period of all prices.
    pub period_ms: i64,
    /// The platform's share of the price, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, in 1/10,000.
    pub tax_bps: u32,
    /// The charges, in order.
    pub charges: Vec<ChargeLine>,
    /// Proven time in all charges.
    pub billable_ms: i64,
}

impl MeterLines {
    /// The prices, whichever the form.
    pub fn prices(&self) -> Vec<SegmentLine> {
        let only = self.price_micros.map(|price_micros| SegmentLine {
            no: 1,
            from_us: i64::MIN,
            price_micros,
        });
        only.into_iter()
            .chain(self.segments.iter().cloned())
            .collect()
    }

    /// Is everything there that the form has, and nothing else?
    fn is_of(&self, format: &str) -> bool {
        let first = format == FORMAT_1;
        let prices = self.price_micros.is_some() == first && self.segments.is_empty() == first;
        let line =
            |c: &ChargeLine| c.segment.is_none() == first && c.booked_at_us.is_none() == first;
        prices && self.charges.iter().all(line)
    }

    fn check(&self) -> Result<(), StatementFault> {
        let terms = Terms {
            resource: &self.resource,
            period_ms: self.period_ms,
            shares: Shares {
                fee_bps: self.fee_bps,
                tax_bps: self.tax_bps,
            },
            segments: &self.prices(),
            first: self.meter.clone(),
            before: (0, Exact::default()),
        };
        if terms.check(&self.charges)? == self.billable_ms {
            Ok(())
        } else {
            Err(StatementFault::Total)
        }
    }
}

impl StatementBody {
    fn totals(&self) -> Result<Totals, StatementFault> {
        Totals::of(self.meters.iter().flat_map(|m| &m.charges))
    }
}

impl Stated for StatementBody {
    fn format(&self) -> &str {
        &self.format
    }

    fn complete(&mut self) -> Result<(), StatementFault> {
        for meter in &mut self.meters {
            chain(&meter.meter, &mut meter.charges);
        }
        self.total = self.totals()?;
        Ok(())
    }

    fn check(&self) -> Result<usize, StatementFault> {
        if ![FORMAT, FORMAT_1].contains(&self.format.as_str()) {
            return Err(form(&format!("unknown format `{}`", self.format)));
        }
        if self.currency.parse::<Currency>().is_err() {
            return Err(form("unknown currency"));
        }
        // Two meters of one resource would bill one second twice.
        let mut seen = BTreeSet::new();
        for meter in &self.meters {
            let known = Resource::parse(&meter.resource);
            if !known.is_some_and(|resource| seen.insert(resource)) {
                return Err(form("a resource is unknown or metered twice"));
            }
            if !meter.is_of(&self.format) {
                return Err(form("prices are not in the document's form"));
            }
            meter.check()?;
        }
        if self.totals()? == self.total {
            Ok(self.meters.iter().map(|m| m.charges.len()).sum())
        } else {
            Err(StatementFault::Total)
        }
    }
}
