//! Money as integers: micro-units of a currency, and rates as a price per fixed period.
//!
//! Invariant: no float, no unchecked arithmetic; an intermediate product is an `i128`.
//! A GiB-month is 730 hours by definition, so neither calendars nor time zones enter metering.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Micro-units in one major unit (one dollar).
pub const MICROS_PER_UNIT: i64 = 1_000_000;

/// What can go wrong with an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// The result does not fit into 64 bits of micro-units.
    #[error("the amount is out of range")]
    OutOfRange,
    /// The text is not a plain decimal number with at most six decimals.
    #[error("not a decimal amount with at most six decimals")]
    Malformed,
    /// The currency code is not one that this market knows.
    #[error("unknown currency")]
    UnknownCurrency,
}

/// A currency of the market. The first release sells in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Currency {
    /// US dollar.
    Usd,
}

impl Currency {
    /// ISO 4217 code in upper case.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Usd => "USD",
        }
    }

    /// The ledger number of this currency (`account.ledger`): ISO 4217 numeric code.
    pub const fn ledger(self) -> i32 {
        match self {
            Self::Usd => 840,
        }
    }

    /// The currency of a ledger number.
    pub const fn from_ledger(ledger: i32) -> Option<Self> {
        match ledger {
            840 => Some(Self::Usd),
            _ => None,
        }
    }
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(code: &str) -> Result<Self, MoneyError> {
        match code {
            "USD" => Ok(Self::Usd),
            _ => Err(MoneyError::UnknownCurrency),
        }
    }
}

/// An amount in micro-units (10⁻⁶ of the major unit); negative only where a difference is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(i64);

impl Micros {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From micro-units.
    pub const fn new(micros: i64) -> Self {
        Self(micros)
    }

    /// The micro-units.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Sum, or [`MoneyError::OutOfRange`].
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        self.0
            .checked_add(other.0)
            .map(Self)
            .ok_or(MoneyError::OutOfRange)
    }

    /// Difference, or [`MoneyError::OutOfRange`].
    pub fn minus(self, other: Self) -> Result<Self, MoneyError> {
        self.0
            .checked_sub(other.0)
            .map(Self)
            .ok_or(MoneyError::OutOfRange)
    }

    /// Product with a count, or [`MoneyError::OutOfRange`].
    pub fn times(self, count: i64) -> Result<Self, MoneyError> {
        self.0
            .checked_mul(count)
            .map(Self)
            .ok_or(MoneyError::OutOfRange)
    }

    /// From an `i128` intermediate, or [`MoneyError::OutOfRange`].
    pub fn from_wide(wide: i128) -> Result<Self, MoneyError> {
        i64::try_from(wide)
            .map(Self)
            .map_err(|_ignored| MoneyError::OutOfRange)
    }
}

/// Six decimals always: `12.340000`.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let unit = MICROS_PER_UNIT.unsigned_abs();
        let (whole, part) = (size.div_euclid(unit), size.rem_euclid(unit));
        write!(f, "{sign}{whole}.{part:06}")
    }
}

/// Accepts `-?digits[.1–6 digits]`; no exponent, no sign `+`, no blanks.
impl FromStr for Micros {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let (negative, digits) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (whole, part) = digits
            .split_once('.')
            .map_or((digits, None), |(w, p)| (w, Some(p)));
        let all_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        let part_is_bad = part.is_some_and(|p| !all_digits(p) || p.len() > 6);
        if !all_digits(whole) || part_is_bad {
            return Err(MoneyError::Malformed);
        }
        let joined = format!("{whole}{:0<6}", part.unwrap_or(""));
        let size: i128 = joined.parse().map_err(|_ignored| MoneyError::OutOfRange)?;
        Self::from_wide(if negative {
            size.checked_neg().unwrap_or(size)
        } else {
            size
        })
    }
}

/// An amount with its currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    /// How much.
    pub amount: Micros,
    /// Of what.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency.code())
    }
}

/// The fixed period that a rate is quoted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// 3,600,000 ms.
    Hour,
    /// 730 hours by definition: 2,628,000,000 ms.
    Month,
}

impl Period {
    /// Length in milliseconds. The only place of these constants in the code.
    pub const fn millis(self) -> i64 {
        match self {
            Self::Hour => 3_600_000,
            Self::Month => 2_628_000_000,
        }
    }

    /// The period with this length, if it is one.
    pub const fn from_millis(millis: i64) -> Option<Self> {
        match millis {
            3_600_000 => Some(Self::Hour),
            2_628_000_000 => Some(Self::Month),
            _ => None,
        }
    }
}

/// A price per period, e.g. 2.10 USD per GPU-hour: `price / period`, exact as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Price of one period of one unit, not negative.
    pub price: Micros,
    /// The period.
    pub per: Period,
}

impl Rate {
    /// The rate of `count` units.
    pub fn times(self, count: i64) -> Result<Self, MoneyError> {
        Ok(Self {
            price: self.price.times(count)?,
            per: self.per,
        })
    }

    /// Cost of `millis` at this rate, rounded down to the micro-unit. `millis` must not be negative.
    pub fn cost_floor(self, millis: i64) -> Result<Micros, MoneyError> {
        let product = self.product(millis)?;
        Micros::from_wide(product.div_euclid(i128::from(self.per.millis())))
    }

    /// Cost of `millis` at this rate, rounded up to the micro-unit: for holds, never for charges.
    pub fn cost_ceil(self, millis: i64) -> Result<Micros, MoneyError> {
        let per = i128::from(self.per.millis());
        let lifted = per
            .checked_sub(1)
            .and_then(|most| self.product(millis).ok()?.checked_add(most))
            .ok_or(MoneyError::OutOfRange)?;
        Micros::from_wide(lifted.div_euclid(per))
    }

    fn product(self, millis: i64) -> Result<i128, MoneyError> {
        i128::from(self.price.get())
            .checked_mul(i128::from(millis))
            .ok_or(MoneyError::OutOfRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for (text, micros) in [
            ("0", 0),
            ("12.34", 12_340_000),
            ("-0.000001", -1),
            ("9223372036854.775807", i64::MAX),
        ] {
            let parsed: Micros = text.parse().unwrap();
            assert_eq!(parsed, Micros::new(micros), "{text}");
            assert_eq!(parsed.to_string().parse::<Micros>(), Ok(parsed));
        }
        assert_eq!(Micros::new(i64::MIN).to_string(), "-9223372036854.775808");
    }

    #[test]
    fn refuses_what_is_not_a_plain_decimal() {
        for bad in [
            "",
            ".5",
            "1.",
            "1e3",
            "+1",
            " 1",
            "1.0000001",
            "--1",
            "0x1",
            "NaN",
            "1,0",
            "९",
        ] {
            assert_eq!(bad.parse::<Micros>(), Err(MoneyError::Malformed), "{bad:?}");
        }
        assert_eq!(
            "9223372036854.775808".parse::<Micros>(),
            Err(MoneyError::OutOfRange)
        );
        assert_eq!(
            "99999999999999999999999999999999999999999".parse::<Micros>(),
            Err(MoneyError::OutOfRange)
        );
    }

    #[test]
    fn ceil_is_floor_or_one_more() {
        let rate = Rate {
            price: Micros::new(130_000),
            per: Period::Hour,
        };
        for millis in [0, 1, 999, 3_600_000, 12_345_678] {
            let (low, high) = (
                rate.cost_floor(millis).unwrap(),
                rate.cost_ceil(millis).unwrap(),
            );
            assert!(high.get() - low.get() <= 1, "{millis}");
        }
        assert_eq!(rate.cost_floor(3_600_000).unwrap(), rate.price);
    }

    #[test]
    fn a_decade_of_a_dear_cluster_does_not_overflow_the_product() {
        let rate = Rate {
            price: Micros::new(1_000_000_000),
            per: Period::Hour,
        };
        let decade = 10 * 365 * 24 * 3_600_000;
        assert_eq!(
            rate.cost_floor(decade).unwrap(),
            Micros::new(87_600_000_000_000)
        );
    }
}
