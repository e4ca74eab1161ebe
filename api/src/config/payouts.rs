//! What the operator rules about money that leaves the market, and about people who move it.

use std::ops::RangeInclusive;

use app::context::PayoutPolicy;
use domain::clock::Span;
use domain::money::{MICROS_PER_UNIT, Micros};

use super::{Faults, Raw};

/// The rules for earnings on their way out.
pub(super) fn rules(faults: &mut Faults<'_>, raw: &Raw) -> PayoutPolicy {
    let hours = |n: u32| Span::from_hours(i64::from(n));
    let maturing = (168, 0..=8_760);
    let kept = (720, 0..=8_760);
    let least = (1, 1..=10_000);
    PayoutPolicy {
        maturing: hours(faults.number("MATURING_HOURS", raw.maturing_hours, maturing)),
        reserve_bps: faults.number("RESERVE_BPS", raw.reserve_bps, (0, 0..=10_000)),
        reserve_kept: hours(faults.number("RESERVE_HOURS", raw.reserve_hours, kept)),
        least: usd(faults, ("PAYOUT_LEAST_USD", raw.payout_least_usd), least),
    }
}

/// Adjustments and credits above it need a second person.
pub(super) fn approval_above(faults: &mut Faults<'_>, raw: &Raw) -> Micros {
    let range = (100, 0..=1_000_000);
    usd(
        faults,
        ("APPROVAL_ABOVE_USD", raw.approval_above_usd),
        range,
    )
}

fn usd(
    faults: &mut Faults<'_>,
    (name, in_file): (&str, Option<u32>),
    range: (u32, RangeInclusive<u32>),
) -> Micros {
    let units = i64::from(faults.number(name, in_file, range));
    Micros::new(units.saturating_mul(MICROS_PER_UNIT))
}
