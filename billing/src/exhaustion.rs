//! When a wallet runs dry: exact to the millisecond.

use domain::clock::{Span, Timestamp};
use domain::id::LeaseId;
use domain::money::{Micros, Rate};

use crate::rating::due;
use crate::rating::{Shares, affordable_ms};

/// One thing that burns money: a rate and its tax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flame {
    /// Price per period.
    pub rate: Rate,
    /// Tax on top, in 1/10,000.
    pub tax_bps: u32,
}

/// Warnings are given so long before the money ends.
pub const WARNINGS: [Span; 3] = [
    Span::from_hours(24),
    Span::from_hours(1),
    Span::from_mins(10),
];

/// What follows from a look at something that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// A warning is due now: less than this is left.
    pub warn: Option<Span>,
    /// How many warnings have been given then: more time takes them back.
    pub warned: u8,
    /// When to look again; `None` if nothing more comes.
    pub next: Option<Timestamp>,
}

/// Looks at something that ends at `end` (`None`: never), of which `warned` warnings were given.
/// Where several are due at once, only the last is given.
pub fn look(end: Option<Timestamp>, warned: u8, now: Timestamp) -> Look {
    let Some(end) = end else {
        return Look {
            warn: None,
            warned: 0,
            next: None,
        };
    };
    let reached = WARNINGS.iter().filter(|w| now.plus(**w) >= end);
    let level = u8::try_from(reached.count()).unwrap_or(3);
    let at = |level: u8| WARNINGS.get(usize::from(level)).copied();
    let newly = level > warned;
    Look {
        warn: level.checked_sub(1).and_then(at).filter(|_| newly),
        warned: level,
        next: at(level).map(|before| end.minus(before)),
    }
}

/// Something that can be stopped to make the money of others last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drainable {
    /// The lease.
    pub lease: LeaseId,
    /// Its GPUs are only kept: no work runs on them.
    pub idle: bool,
    /// When it was booked.
    pub booked_at: Timestamp,
}

/// Which lease gives its GPUs back first when a wallet cannot pay for all: one that only keeps them,
/// then the youngest, so that the longest work is interrupted last.
pub fn first_to_drain(running: &[Drainable]) -> Option<LeaseId> {
    let youngest = running
        .iter()
        .max_by_key(|d| (d.idle, d.booked_at, d.lease));
    youngest.map(|d| d.lease)
}

fn burnt(flames: &[Flame], ms: i64) -> i128 {
    flames
        .iter()
        .map(|f| {
            let shares = Shares {
                fee_bps: 0,
                tax_bps: f.tax_bps,
            };
            let pays = due(f.rate, shares, ms).and_then(crate::rating::Due::renter);
            pays.map_or(i128::from(i64::MAX), |m| i128::from(m.get()))
        })
        .fold(0i128, i128::saturating_add)
}

/// The last instant at which `budget` still covers what all `flames` burn from `anchor` on;
/// `None` if nothing burns.
pub fn dry_at(budget: Micros, flames: &[Flame], anchor: Timestamp) -> Option<Timestamp> {
    // Each flame alone is an upper bound; bisect below the smallest of them.
    let bound = flames
        .iter()
        .filter_map(|f| affordable_ms(f.rate, f.tax_bps, budget))
        .min()?;
    let budget = i128::from(budget.get());
    let (mut fits, mut over) = (0i64, bound.saturating_add(1));
    while over.saturating_sub(fits) > 1 {
        let middle = fits.saturating_add(over.saturating_sub(fits).div_euclid(2));
        if burnt(flames, middle) <= budget {
            fits = middle;
        } else {
            over = middle;
        }
    }
    let dry = anchor.plus(Span::from_millis(fits));
    Some(dry.min(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use domain::money::Period;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_walk(
            prices in prop::collection::vec(1_000_000i64..9_000_000_000, 1..5),
            tax_bps in 0u32..3_000,
            budget in 0i64..400_000,
        ) {
            let flames: Vec<Flame> = prices
                .iter()
                .map(|p| Flame { rate: Rate { price: Micros::new(*p), per: Period::Hour }, tax_bps })
                .collect();
            let dry = dry_at(Micros::new(budget), &flames, Timestamp::from_micros(0)).unwrap();
            let mut ms = 0;
            while burnt(&flames, ms + 1) <= i128::from(budget) {
                ms += 1;
            }
            prop_assert_eq!(dry.millis(), ms);
        }
    }

    #[test]
    fn each_warning_is_given_once_and_again_after_there_was_more_time() {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let end = Some(at(100_000));
        let first = look(end, 0, at(10_000));
        assert_eq!(
            (first.warn, first.warned, first.next),
            (None, 0, Some(at(13_600)))
        );
        let day = look(end, 0, at(13_600));
        assert_eq!(day.warn, Some(Span::from_hours(24)));
        assert_eq!((day.warned, day.next), (1, Some(at(96_400))));
        assert_eq!(look(end, 1, at(13_601)).warn, None);
        // Two thresholds at once: only the nearer is told.
        let late = look(end, 1, at(99_500));
        assert_eq!(late.warn, Some(Span::from_mins(10)));
        assert_eq!((late.warned, late.next), (3, None));
        // A top-up takes them back.
        let rich = look(Some(at(1_000_000)), 3, at(99_500));
        assert_eq!(
            (rich.warn, rich.warned, rich.next),
            (None, 0, Some(at(913_600)))
        );
        assert_eq!(
            look(None, 3, at(0)),
            Look {
                warn: None,
                warned: 0,
                next: None
            }
        );
    }

    #[test]
    fn the_youngest_is_drained_first() {
        let lease = |n| LeaseId::from_uuid(uuid::Uuid::from_u128(n));
        let at = |n, secs| Drainable {
            lease: lease(n),
            idle: false,
            booked_at: Timestamp::from_micros(secs),
        };
        let order = [at(1, 5), at(2, 9), at(3, 9), at(4, 1)];
        assert_eq!(first_to_drain(&order), Some(lease(3)));
        assert_eq!(first_to_drain(&order[..1]), Some(lease(1)));
        let mut kept = order;
        kept[3].idle = true;
        assert_eq!(first_to_drain(&kept), Some(lease(4)));
        assert_eq!(first_to_drain(&[]), None);
    }

    #[test]
    fn nothing_burns_nothing_dries() {
        assert_eq!(dry_at(Micros::new(5), &[], Timestamp::from_micros(0)), None);
    }
}
