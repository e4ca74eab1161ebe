//! The earnings statement: what a provider's machines earned in a period, charge by charge.
//!
//! A charge is of the period in which it was booked, so a period that is over never changes. A meter
//! that was charged before begins with its opening: from it every amount can be recomputed.

use std::collections::BTreeSet;

use domain::money::{Currency, Micros};
use serde::{Deserialize, Serialize};

use super::lines::{ChargeLine, SegmentLine, Terms, Totals, chain};
use super::{Stated, StatementFault, form};
use crate::meter::Resource;
use crate::rating::Shares;
use crate::segment::Exact;

/// Version of the document's form.
pub const EARNINGS_FORMAT: &str = "gpumarket-earnings-statement/1";

/// What is stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarningsBody {
    /// [`EARNINGS_FORMAT`].
    pub format: String,
    /// `pty_…`
    pub provider: String,
    /// Only this lease (`lse_…`) was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_lease: Option<String>,
    /// ISO 4217; all amounts are micro-units (10⁻⁶) of it.
    pub currency: String,
    /// Start of the period, microseconds since 1970 (UTC).
    pub from_us: i64,
    /// End of the period, not contained.
    pub to_us: i64,
    /// When the statement was made. The statement is final if the period was over.
    pub issued_at_us: i64,
    /// Every lease with a charge that was booked in the period.
    pub leases: Vec<EarningsLease>,
    /// Sums over all leases. `provider_gets_micros` is what was earned.
    pub total: Totals,
}

/// One lease on a machine of the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarningsLease {
    /// `lse_…`
    pub lease: String,
    /// `pty_…` of the renter.
    pub renter: String,
    /// `mch_…`
    pub machine: String,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// One for each resource that was charged in the period.
    pub meters: Vec<EarningsMeter>,
    /// Sums over its meters.
    pub total: Totals,
}

/// What a meter had charged before the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Charges.
    pub seq: i64,
    /// Their gross.
    pub gross_micros: i64,
    /// What they left of a micro-unit, times the period's length in ms.
    pub remainder: i64,
}

/// One meter, its prices and its charges of the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarningsMeter {
    /// `mtr_…`
    pub meter: String,
    /// `compute` or `storage`.
    pub resource: String,
    /// The prices, in order.
    pub segments: Vec<SegmentLine>,
    /// Length of the period of all prices.
    pub period_ms: i64,
    /// The platform's share of the price, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, in 1/10,000: the renter's, not the provider's.
    pub tax_bps: u32,
    /// What was charged before.
    pub opening: Opening,
    /// The charges of the period, in order.
    pub charges: Vec<ChargeLine>,
    /// Proven time in them.
    pub billable_ms: i64,
}

impl EarningsMeter {
    /// What the first line's hash follows.
    fn first(&self) -> String {
        let o = &self.opening;
        format!(
            "{}\n{}\n{}\n{}",
            self.meter, o.seq, o.gross_micros, o.remainder
        )
    }

    fn check(&self, period: (i64, i64)) -> Result<(), StatementFault> {
        let booked = |c: &ChargeLine| {
            let at = c.booked_at_us.filter(|_| c.segment.is_some());
            at.is_some_and(|at| (period.0..period.1).contains(&at))
        };
        if self.charges.is_empty() || !self.charges.iter().all(booked) {
            return Err(form("a charge that was not booked in the period"));
        }
        let o = &self.opening;
        let remainder = (0..self.period_ms.max(1)).contains(&o.remainder);
        let nothing = o.seq == 0 && *o != Opening::default();
        if o.seq < 0 || o.gross_micros < 0 || !remainder || nothing {
            return Err(form("an opening out of range"));
        }
        let worth = Exact {
            whole: Micros::new(o.gross_micros),
            rem_num: o.remainder,
        };
        let terms = Terms {
            resource: &self.resource,
            period_ms: self.period_ms,
            shares: Shares {
                fee_bps: self.fee_bps,
                tax_bps: self.tax_bps,
            },
            segments: &self.segments,
            first: self.first(),
            before: (o.seq, worth),
        };
        if terms.check(&self.charges)? == self.billable_ms {
            Ok(())
        } else {
            Err(StatementFault::Total)
        }
    }
}

impl EarningsLease {
    fn lines(&self) -> impl Iterator<Item = &ChargeLine> {
        self.meters.iter().flat_map(|m| &m.charges)
    }

    fn check(&self, period: (i64, i64)) -> Result<(), StatementFault> {
        let mut seen = BTreeSet::new();
        for meter in &self.meters {
            let known = Resource::parse(&meter.resource);
            if !known.is_some_and(|resource| seen.insert(resource)) {
                return Err(form("a resource is unknown or metered twice"));
            }
            meter.check(period)?;
        }
        if Totals::of(self.lines())? == self.total {
            Ok(())
        } else {
            Err(StatementFault::Total)
        }
    }
}

impl EarningsBody {
    fn lines(&self) -> impl Iterator<Item = &ChargeLine> {
        self.leases.iter().flat_map(EarningsLease::lines)
    }

    fn names_each_once(&self) -> bool {
        let mut leases = BTreeSet::new();
        let mut meters = BTreeSet::new();
        let only = |lease: &str| self.only_lease.as_deref().is_none_or(|l| l == lease);
        self.leases.iter().all(|l| {
            only(&l.lease)
                && leases.insert(&l.lease)
                && l.meters.iter().all(|m| meters.insert(&m.meter))
        })
    }
}

impl Stated for EarningsBody {
    fn format(&self) -> &str {
        &self.format
    }

    fn complete(&mut self) -> Result<(), StatementFault> {
        for lease in &mut self.leases {
            for meter in &mut lease.meters {
                let first = meter.first();
                chain(&first, &mut meter.charges);
            }
            lease.total = Totals::of(lease.lines())?;
        }
        self.total = Totals::of(self.lines())?;
        Ok(())
    }

    fn check(&self) -> Result<usize, StatementFault> {
        if self.format != EARNINGS_FORMAT {
            return Err(form(&format!("unknown format `{}`", self.format)));
        }
        if self.currency.parse::<Currency>().is_err() {
            return Err(form("unknown currency"));
        }
        if self.from_us >= self.to_us || !self.names_each_once() {
            return Err(form("a lease or meter twice, or no period"));
        }
        for lease in &self.leases {
            lease.check((self.from_us, self.to_us))?;
        }
        if Totals::of(self.lines())? == self.total {
            Ok(self.lines().count())
        } else {
            Err(StatementFault::Total)
        }
    }
}
