//! When a wallet runs dry: exact to the millisecond.

use domain::clock::Timestamp;
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
    let dry = anchor.plus(domain::clock::Span::from_millis(fits));
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
    fn nothing_burns_nothing_dries() {
        assert_eq!(dry_at(Micros::new(5), &[], Timestamp::from_micros(0)), None);
    }
}
