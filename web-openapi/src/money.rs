//! Money on the wire: decimal strings with a currency; rates say their period.

use domain::money::{self as ground, Currency, Micros, Period};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Plain decimal with up to six decimals.
    #[schema(
        example = "12.340000",
        pattern = r"^-?[0-9]{1,13}(\.[0-9]{1,6})?$",
        max_length = 21
    )]
    pub amount: String,
    /// ISO 4217 code; the first release knows `USD`.
    #[schema(example = "USD", pattern = "^[A-Z]{3}$")]
    pub currency: String,
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One GPU for one hour.
    GpuHour,
    /// The whole lease for one hour.
    Hour,
    /// One GiB for 730 hours.
    GibMonth,
    /// The whole disk for 730 hours.
    Month,
}

/// A price per period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Plain decimal with up to six decimals.
    #[schema(
        example = "2.100000",
        pattern = r"^[0-9]{1,13}(\.[0-9]{1,6})?$",
        max_length = 20
    )]
    pub amount: String,
    /// ISO 4217 code.
    #[schema(example = "USD", pattern = "^[A-Z]{3}$")]
    pub currency: String,
    /// What the price is for.
    pub per: Per,
}

impl Money {
    /// US dollars.
    pub fn usd(amount: Micros) -> Self {
        Self {
            amount: amount.to_string(),
            currency: Currency::Usd.code().to_owned(),
        }
    }

    /// The amount, if text and currency are valid.
    pub fn parse(&self) -> Result<ground::Money, ground::MoneyError> {
        Ok(ground::Money {
            amount: self.amount.parse()?,
            currency: self.currency.parse()?,
        })
    }
}

impl Rate {
    /// A price in US dollars.
    pub fn usd(amount: Micros, per: Per) -> Self {
        Self {
            amount: amount.to_string(),
            currency: Currency::Usd.code().to_owned(),
            per,
        }
    }

    /// The price, if text and currency are valid and it is not negative.
    pub fn parse(&self) -> Result<Micros, ground::MoneyError> {
        let _known: Currency = self.currency.parse()?;
        let amount: Micros = self.amount.parse()?;
        if amount < Micros::ZERO {
            Err(ground::MoneyError::OutOfRange)
        } else {
            Ok(amount)
        }
    }
}

impl Per {
    /// The metering period behind it.
    pub const fn period(self) -> Period {
        match self {
            Self::GpuHour | Self::Hour => Period::Hour,
            Self::GibMonth | Self::Month => Period::Month,
        }
    }
}
