//! Tax by a table of rules: who buys, where, and when decides the rate of a new quote and the words
//! on an invoice.
//!
//! The table comes from the operator, who knows where it is registered; without one, every quote has
//! the one rate of the configuration. What is charged already keeps the tax that it was charged with.

use domain::clock::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use crate::invoice::Identity;
use crate::month::day_start;

/// Who buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Customer {
    /// With a VAT or other tax number.
    Business,
    /// Without one.
    Consumer,
}

impl Customer {
    /// Who an identity is.
    pub const fn of(identity: &Identity) -> Self {
        if identity.vat_id.is_some() {
            Self::Business
        } else {
            Self::Consumer
        }
    }
}

/// A rule as the operator's file says it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxRule {
    /// Buyer's country, ISO 3166-1 alpha-2; absent: any, or unknown.
    #[serde(default)]
    pub country: Option<String>,
    /// Who buys; absent: anybody.
    #[serde(default)]
    pub customer: Option<Customer>,
    /// First UTC day, `2026-01-01`; absent: always.
    #[serde(default)]
    pub valid_from: Option<String>,
    /// First UTC day on which it does not hold any more; absent: for ever.
    #[serde(default)]
    pub valid_to: Option<String>,
    /// In 1/10,000.
    pub rate_bps: u32,
    /// Words for the invoice, e.g. on reverse charge.
    #[serde(default)]
    pub note: Option<String>,
}

/// The operator's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaxRules {
    /// The rules, in any order.
    #[serde(default)]
    pub rule: Vec<TaxRule>,
}

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaxFault {
    /// Not two capital letters.
    #[error("`{0}` is no country code of two capital letters")]
    Country(String),
    /// No UTC day.
    #[error("`{0}` is no day such as 2026-01-01")]
    Day(String),
    /// Above 100 %.
    #[error("a rate of {0} bps is more than 10,000")]
    Rate(u32),
    /// The end is not after the beginning.
    #[error("rule {0} ends before it begins")]
    Empty(usize),
    /// Two rules for the same buyers at the same time.
    #[error("rules {0} and {1} hold for the same buyers at the same time")]
    Overlap(usize, usize),
}

#[derive(Clone, Debug)]
struct Known {
    country: Option<String>,
    customer: Option<Customer>,
    from: Timestamp,
    to: Timestamp,
    tax: Tax,
}

/// What the table says for a buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tax {
    /// In 1/10,000, on top.
    pub rate_bps: u32,
    /// Words for the invoice.
    pub note: Option<String>,
}

/// A checked table.
#[derive(Clone, Debug)]
pub struct TaxTable {
    otherwise: Tax,
    rules: Vec<Known>,
}

fn day(text: Option<&String>, otherwise: Timestamp) -> Result<Timestamp, TaxFault> {
    let Some(text) = text else {
        return Ok(otherwise);
    };
    day_start(text).ok_or_else(|| TaxFault::Day(text.clone()))
}

/// Is it two capital letters?
pub fn is_country(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase())
}

impl TaxTable {
    /// One rate for everybody.
    pub const fn flat(rate_bps: u32) -> Self {
        Self {
            otherwise: Tax {
                rate_bps,
                note: None,
            },
            rules: Vec::new(),
        }
    }

    /// Checks `rules`; who fits none has `otherwise_bps`.
    pub fn new(otherwise_bps: u32, rules: &TaxRules) -> Result<Self, TaxFault> {
        let mut table = Self::flat(otherwise_bps);
        for (place, rule) in rules.rule.iter().enumerate() {
            let known = known(place, rule)?;
            let clash = |other: &Known| {
                other.country == known.country
                    && other.customer == known.customer
                    && other.from < known.to
                    && known.from < other.to
            };
            if let Some(other) = table.rules.iter().position(clash) {
                return Err(TaxFault::Overlap(other, place));
            }
            table.rules.push(known);
        }
        Ok(table)
    }

    /// What holds for `buyer` at `now`: the rule that says most about it; the country counts more
    /// than the kind of customer.
    pub fn of(&self, buyer: &Identity, now: Timestamp) -> &Tax {
        let customer = Customer::of(buyer);
        let holds = |rule: &&Known| {
            let there = rule.country.is_none() || rule.country == buyer.country;
            let they = rule.customer.is_none_or(|c| c == customer);
            there && they && rule.from <= now && now < rule.to
        };
        let found = self
            .rules
            .iter()
            .filter(holds)
            .max_by_key(|rule| (rule.country.is_some(), rule.customer.is_some()));
        found.map_or(&self.otherwise, |rule| &rule.tax)
    }
}

fn known(place: usize, rule: &TaxRule) -> Result<Known, TaxFault> {
    if let Some(bad) = rule.country.as_ref().filter(|c| !is_country(c)) {
        return Err(TaxFault::Country(bad.clone()));
    }
    if rule.rate_bps > 10_000 {
        return Err(TaxFault::Rate(rule.rate_bps));
    }
    let from = day(rule.valid_from.as_ref(), Timestamp::from_micros(0))?;
    let to = day(rule.valid_to.as_ref(), Timestamp::MAX)?;
    if from >= to {
        return Err(TaxFault::Empty(place));
    }
    Ok(Known {
        country: rule.country.clone(),
        customer: rule.customer,
        from,
        to,
        tax: Tax {
            rate_bps: rule.rate_bps,
            note: rule.note.clone(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Vec<TaxRule> {
        let rule = |country: Option<&str>, customer, rate_bps, note: Option<&str>| TaxRule {
            country: country.map(str::to_owned),
            customer,
            valid_from: None,
            valid_to: None,
            rate_bps,
            note: note.map(str::to_owned),
        };
        vec![
            rule(Some("DE"), None, 1_900, None),
            rule(Some("FR"), Some(Customer::Consumer), 2_000, None),
            rule(
                Some("FR"),
                Some(Customer::Business),
                0,
                Some("Reverse charge"),
            ),
            rule(None, Some(Customer::Business), 100, None),
        ]
    }

    fn buyer(country: Option<&str>, vat_id: Option<&str>) -> Identity {
        Identity {
            name: "b".to_owned(),
            address: Vec::new(),
            country: country.map(str::to_owned),
            vat_id: vat_id.map(str::to_owned),
        }
    }

    fn day(text: &str) -> Timestamp {
        super::day(Some(&text.to_owned()), Timestamp::MAX).unwrap()
    }

    #[test]
    fn the_rule_that_says_most_wins() {
        let table = TaxTable::new(700, &TaxRules { rule: rules() }).unwrap();
        let rate = |country, vat| table.of(&buyer(country, vat), day("2026-12-01")).rate_bps;
        assert_eq!(rate(Some("DE"), None), 1_900);
        assert_eq!(rate(Some("DE"), Some("DE1")), 1_900);
        assert_eq!(rate(Some("FR"), None), 2_000);
        assert_eq!(rate(Some("US"), Some("x")), 100);
        assert_eq!(rate(Some("US"), None), 700);
        assert_eq!(rate(None, None), 700);
        let reverse = table.of(&buyer(Some("FR"), Some("FR1")), day("2026-12-01"));
        assert_eq!(
            (reverse.rate_bps, reverse.note.as_deref()),
            (0, Some("Reverse charge"))
        );
    }

    #[test]
    fn a_rate_changes_at_midnight_utc() {
        let rule = |from: Option<&str>, to: Option<&str>, rate_bps| TaxRule {
            valid_from: from.map(str::to_owned),
            valid_to: to.map(str::to_owned),
            rate_bps,
            ..rules()[0].clone()
        };
        let pair = vec![
            rule(None, Some("2027-01-01"), 1_900),
            rule(Some("2027-01-01"), None, 2_100),
        ];
        let table = TaxTable::new(0, &TaxRules { rule: pair }).unwrap();
        let turn = day("2027-01-01");
        let german = buyer(Some("DE"), None);
        let before = turn.minus(domain::clock::Span::from_micros(1));
        assert_eq!(table.of(&german, before).rate_bps, 1_900);
        assert_eq!(table.of(&german, turn).rate_bps, 2_100);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let with = |change: fn(&mut TaxRule)| {
            let mut list = rules();
            change(&mut list[0]);
            TaxTable::new(0, &TaxRules { rule: list }).unwrap_err()
        };
        assert_eq!(
            with(|r| r.country = Some("de".into())),
            TaxFault::Country("de".into())
        );
        assert_eq!(with(|r| r.rate_bps = 10_001), TaxFault::Rate(10_001));
        assert_eq!(
            with(|r| r.valid_from = Some("2026-02-30".into())),
            TaxFault::Day("2026-02-30".into())
        );
        assert_eq!(
            with(|r| (r.valid_from, r.valid_to) =
                (Some("2026-02-02".into()), Some("2026-02-02".into()))),
            TaxFault::Empty(0)
        );
        let twice = with(|r| (r.country, r.customer) = (None, Some(Customer::Business)));
        assert_eq!(twice, TaxFault::Overlap(0, 3));
    }
}
