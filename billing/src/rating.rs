//! Cumulative rating: what a span of proven time is worth.
//!
//! `gross(t) = ⌊price · t / period⌋`, and each charge is the difference to what was charged before,
//! so any cadence of settlement gives the same total, and small rates do not vanish. Fee and tax are
//! cumulative shares of the gross in the same way. Intermediates are `i128`.

use domain::money::{Micros, MoneyError, Rate};

/// Denominator of shares: 1/10,000.
const BPS: i128 = 10_000;

/// What is owed in total after some proven time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Due {
    /// Before tax; fee included.
    pub gross: Micros,
    /// The platform's share of `gross`.
    pub fee: Micros,
    /// On top of `gross`.
    pub tax: Micros,
}

impl Due {
    /// What the renter pays: gross + tax.
    pub fn renter(self) -> Result<Micros, MoneyError> {
        self.gross.plus(self.tax)
    }

    /// What the provider gets: gross − fee.
    pub fn provider(self) -> Result<Micros, MoneyError> {
        self.gross.minus(self.fee)
    }

    /// The difference to an earlier state.
    pub fn minus(self, earlier: Self) -> Result<Self, MoneyError> {
        Ok(Self {
            gross: self.gross.minus(earlier.gross)?,
            fee: self.fee.minus(earlier.fee)?,
            tax: self.tax.minus(earlier.tax)?,
        })
    }

    /// The sum of two.
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        Ok(Self {
            gross: self.gross.plus(other.gross)?,
            fee: self.fee.plus(other.fee)?,
            tax: self.tax.plus(other.tax)?,
        })
    }
}

/// The shares that are taken from, or put on top of, a gross amount, in 1/10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Shares {
    /// The platform's, contained in the price. At most 10,000.
    pub fee_bps: u32,
    /// Tax, on top.
    pub tax_bps: u32,
}

/// `⌊amount · bps / 10,000⌋`.
pub fn share(amount: Micros, bps: u32) -> Result<Micros, MoneyError> {
    let product = i128::from(amount.get())
        .checked_mul(i128::from(bps))
        .ok_or(MoneyError::OutOfRange)?;
    Micros::from_wide(product.div_euclid(BPS))
}

/// What is owed in total for `billable_ms` at `rate`.
pub fn due(rate: Rate, shares: Shares, billable_ms: i64) -> Result<Due, MoneyError> {
    let gross = rate.cost_floor(billable_ms)?;
    Ok(Due {
        gross,
        fee: share(gross, shares.fee_bps)?,
        tax: share(gross, shares.tax_bps)?,
    })
}

/// The largest gross amount that stays within `budget` with its tax on top.
pub(crate) fn gross_within(budget: Micros, tax_bps: u32) -> i128 {
    // gross + ⌊gross · tax / B⌋ ≤ budget  ⇐  gross ≤ ⌊budget · B / (B + tax)⌋, and one more may fit.
    let with_tax = BPS.saturating_add(i128::from(tax_bps));
    let budget = i128::from(budget.get().max(0));
    let mut gross = budget.saturating_mul(BPS).div_euclid(with_tax);
    let total = |g: i128| g.saturating_add(g.saturating_mul(i128::from(tax_bps)).div_euclid(BPS));
    while total(gross.saturating_add(1)) <= budget {
        gross = gross.saturating_add(1);
    }
    gross
}

/// The longest time in ms whose renter's amount (gross + tax) stays within `budget`.
///
/// `None` if the rate is free: then no budget bounds the time.
pub fn affordable_ms(rate: Rate, tax_bps: u32, budget: Micros) -> Option<i64> {
    let (price, per) = (i128::from(rate.price.get()), i128::from(rate.per.millis()));
    if price <= 0 {
        return None;
    }
    let gross = gross_within(budget, tax_bps);
    // The last ms before gross + 1 is owed: ⌈(gross + 1) · per / price⌉ − 1.
    let next = gross.saturating_add(1).saturating_mul(per);
    let ms = next
        .saturating_add(price.saturating_sub(1))
        .div_euclid(price)
        .saturating_sub(1);
    Some(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use domain::money::Period;
    use proptest::prelude::*;

    use super::*;

    fn hourly(price: i64) -> Rate {
        Rate {
            price: Micros::new(price),
            per: Period::Hour,
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_total(
            price in 0i64..5_000_000_000,
            fee_bps in 0u32..=10_000,
            tax_bps in 0u32..=3_000,
            steps in prop::collection::vec(0i64..10_000_000, 0..40),
        ) {
            let shares = Shares { fee_bps, tax_bps };
            let (mut at, mut sum) = (0, Due::default());
            for step in &steps {
                let before = due(hourly(price), shares, at).unwrap();
                at += step;
                sum = sum.plus(due(hourly(price), shares, at).unwrap().minus(before).unwrap()).unwrap();
            }
            prop_assert_eq!(sum, due(hourly(price), shares, at).unwrap());
            let parts = sum.provider().unwrap().get() + sum.fee.get() + sum.tax.get();
            prop_assert_eq!(parts, sum.renter().unwrap().get());
        }

        #[test]
        fn affordable_is_the_last_affordable_millisecond(
            price in 1i64..5_000_000_000,
            tax_bps in 0u32..=3_000,
            budget in 0i64..1_000_000_000,
        ) {
            let shares = Shares { fee_bps: 0, tax_bps };
            let ms = affordable_ms(hourly(price), tax_bps, Micros::new(budget)).unwrap();
            let pays = |t| due(hourly(price), shares, t).unwrap().renter().unwrap().get();
            prop_assert!(pays(ms) <= budget);
            prop_assert!(pays(ms + 1) > budget);
        }
    }

    #[test]
    fn thirty_days_of_a_small_rate_are_exact() {
        let due = due(hourly(130_000), Shares::default(), 30 * 24 * 3_600_000).unwrap();
        assert_eq!(due.gross, Micros::new(93_600_000));
    }

    #[test]
    fn a_micro_for_each_millisecond_lasts_as_many() {
        let affordable = |budget| affordable_ms(hourly(3_600_000), 0, Micros::new(budget));
        assert_eq!(affordable(5), Some(5));
        assert_eq!(affordable(-5), Some(0));
        assert_eq!(affordable_ms(hourly(7_200_000), 0, Micros::new(5)), Some(2));
        let slow = affordable_ms(hourly(1), 0, Micros::new(i64::MAX));
        assert_eq!(slow, Some(i64::MAX));
    }

    #[test]
    fn free_time_is_not_bounded_by_money() {
        assert_eq!(affordable_ms(hourly(0), 0, Micros::ZERO), None);
    }
}
