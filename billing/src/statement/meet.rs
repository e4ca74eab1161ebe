//! Do the two sides' statements meet? Charge by charge, to the micro-unit.

use thiserror::Error;

use super::earnings::{EarningsBody, EarningsMeter};
use super::lease::{FORMAT, MeterLines, StatementBody};
use super::lines::{ChargeLine, Totals};
use super::{StatementFault, Verified};

/// Charges this young may be missing in a statement: they were being booked while it was made.
const BEING_BOOKED_US: i64 = 60_000_000;

/// Where two statements agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Met {
    /// Charges that are in both, equal in every field.
    pub charges: usize,
    /// Charges that only the earnings statement has, since it is younger.
    pub newer: usize,
    /// Sums of those in both.
    pub total: Totals,
}

/// Where they do not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MeetFault {
    /// They are of different markets, parties, currencies or leases.
    #[error("they do not cover the same lease: {0}")]
    Unrelated(&'static str),
    /// Prices, period or shares differ.
    #[error("{resource}: the terms differ")]
    Terms {
        /// Which meter.
        resource: String,
    },
    /// One charge is told in two ways.
    #[error("{resource} charge {seq}: the two statements differ")]
    Charge {
        /// Which meter.
        resource: String,
        /// Which charge.
        seq: i64,
    },
    /// One of them leaves a charge out.
    #[error("{resource} charge {seq} is missing in the {side}")]
    Missing {
        /// Which meter.
        resource: String,
        /// Which charge.
        seq: i64,
        /// `lease statement` or `earnings statement`.
        side: &'static str,
    },
    /// The sums do not fit.
    #[error(transparent)]
    Sum(#[from] StatementFault),
}

/// Compares a verified statement of a lease with its provider's verified earnings. Every charge
/// that both should have must be in both, and be the same.
pub fn meet(
    lease: &Verified<StatementBody>,
    earnings: &Verified<EarningsBody>,
) -> Result<Met, MeetFault> {
    let (bill, earned) = (&lease.statement.body, &earnings.statement.body);
    related(lease, earnings)?;
    let theirs = earned.leases.iter().find(|l| l.lease == bill.lease);
    let mut both: Vec<&ChargeLine> = Vec::new();
    let mut met = Met::default();
    for mine in &bill.meters {
        let other = theirs.and_then(|l| l.meters.iter().find(|m| m.meter == mine.meter));
        let Some(other) = other else {
            let missing = mine.charges.iter().find(|c| due_in(c, earned));
            missing.map_or(Ok(()), |c| Err(missing_in_earnings(mine, c)))?;
            continue;
        };
        same_terms(mine, other)?;
        let before = mine.charges.iter().filter(|c| c.seq <= other.opening.seq);
        let opened = Totals::of(before)?;
        let gross = opened
            .provider_gets_micros
            .saturating_add(opened.fee_micros);
        let known = mine
            .charges
            .last()
            .is_some_and(|c| c.seq >= other.opening.seq);
        if known && gross != other.opening.gross_micros {
            let resource = mine.resource.clone();
            return Err(MeetFault::Terms { resource });
        }
        both.extend(compare((mine, bill), (other, earned), &mut met)?);
    }
    let mut named = theirs.into_iter().flat_map(|l| &l.meters);
    let foreign = named.find(|o| bill.meters.iter().all(|m| m.meter != o.meter));
    if let Some(other) = foreign {
        let resource = other.resource.clone();
        return Err(MeetFault::Terms { resource });
    }
    met.charges = both.len();
    met.total = Totals::of(both.into_iter())?;
    Ok(met)
}

fn related(
    lease: &Verified<StatementBody>,
    earnings: &Verified<EarningsBody>,
) -> Result<(), MeetFault> {
    let (bill, earned) = (&lease.statement.body, &earnings.statement.body);
    let rules = [
        (
            bill.format == FORMAT,
            "the lease statement has an older form; fetch it again",
        ),
        (
            lease.statement.signed_by == earnings.statement.signed_by,
            "other markets signed them",
        ),
        (bill.provider == earned.provider, "the providers differ"),
        (bill.currency == earned.currency, "the currencies differ"),
        (
            earned.only_lease.as_ref().is_none_or(|l| *l == bill.lease),
            "the earnings are of another lease only",
        ),
        (
            earned
                .leases
                .iter()
                .filter(|l| l.lease == bill.lease)
                .all(|l| {
                    (&l.renter, &l.machine, &l.gpu_model)
                        == (&bill.renter, &bill.machine, &bill.gpu_model)
                        && (l.gpu_count, l.simulated) == (bill.gpu_count, bill.simulated)
                }),
            "renter, machine or GPUs differ",
        ),
    ];
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map_or(Ok(()), |(_, why)| Err(MeetFault::Unrelated(why)))
}

fn same_terms(mine: &MeterLines, other: &EarningsMeter) -> Result<(), MeetFault> {
    let shared = mine.segments.len().min(other.segments.len());
    // The younger statement may know a later price.
    let prices = mine.segments.iter().zip(&other.segments).take(shared);
    let same = prices.clone().all(|(a, b)| a == b)
        && (&mine.resource, mine.period_ms) == (&other.resource, other.period_ms)
        && (mine.fee_bps, mine.tax_bps) == (other.fee_bps, other.tax_bps);
    if same {
        Ok(())
    } else {
        let resource = mine.resource.clone();
        Err(MeetFault::Terms { resource })
    }
}

/// Should the earnings statement have this charge?
fn due_in(line: &ChargeLine, earned: &EarningsBody) -> bool {
    let known = earned.issued_at_us.saturating_sub(BEING_BOOKED_US);
    let end = earned.to_us.min(known);
    line.booked_at_us
        .is_some_and(|at| (earned.from_us..end).contains(&at))
}

/// Should the lease statement have this charge?
fn due_in_bill(line: &ChargeLine, bill: &StatementBody) -> bool {
    let over = matches!(bill.state.as_str(), "ended" | "failed");
    let known = bill.issued_at_us.saturating_sub(BEING_BOOKED_US);
    over || line.booked_at_us.is_some_and(|at| at < known)
}

fn missing_in_earnings(meter: &MeterLines, line: &ChargeLine) -> MeetFault {
    MeetFault::Missing {
        resource: meter.resource.clone(),
        seq: line.seq,
        side: "earnings statement",
    }
}

/// The charges that both have.
fn compare<'a>(
    (mine, bill): (&'a MeterLines, &StatementBody),
    (other, earned): (&EarningsMeter, &EarningsBody),
    met: &mut Met,
) -> Result<Vec<&'a ChargeLine>, MeetFault> {
    let mut both = Vec::new();
    for line in &mine.charges {
        match other.charges.iter().find(|o| o.seq == line.seq) {
            // The chains begin elsewhere; everything else is the same.
            Some(theirs) if same(line, theirs) => both.push(line),
            Some(_) => {
                let resource = mine.resource.clone();
                let seq = line.seq;
                return Err(MeetFault::Charge { resource, seq });
            }
            None if due_in(line, earned) => return Err(missing_in_earnings(mine, line)),
            None => {}
        }
    }
    for theirs in &other.charges {
        if mine.charges.iter().any(|l| l.seq == theirs.seq) {
            continue;
        }
        if due_in_bill(theirs, bill) {
            return Err(MeetFault::Missing {
                resource: other.resource.clone(),
                seq: theirs.seq,
                side: "lease statement",
            });
        }
        met.newer = met.newer.saturating_add(1);
    }
    Ok(both)
}

fn same(mine: &ChargeLine, theirs: &ChargeLine) -> bool {
    let unchained = ChargeLine {
        hash: mine.hash.clone(),
        ..theirs.clone()
    };
    *mine == unchained
}
