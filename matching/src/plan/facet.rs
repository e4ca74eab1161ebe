//! How many offers fit, by model, country and price.

use std::collections::BTreeMap;

use domain::money::Micros;

use crate::book::bits::Bits;
use crate::book::class::{Index, NOWHERE, Names};

/// Where the steps of prices per GPU-hour begin.
pub const PRICE_STEPS: [Micros; 9] = [
    Micros::ZERO,
    Micros::new(250_000),
    Micros::new(500_000),
    Micros::new(1_000_000),
    Micros::new(2_000_000),
    Micros::new(4_000_000),
    Micros::new(8_000_000),
    Micros::new(16_000_000),
    Micros::new(32_000_000),
];

/// Offers that fit, counted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Facets {
    /// By slug.
    pub models: BTreeMap<String, u32>,
    /// By country; the empty text: not told.
    pub countries: BTreeMap<String, u32>,
    /// By the beginning of the price step.
    pub prices: BTreeMap<Micros, u32>,
}

/// Counts by number.
#[derive(Default)]
struct Tally(Vec<u32>);

impl Tally {
    fn add(&mut self, number: u32, offers: u32) {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if self.0.len() <= place {
            self.0.resize(place.saturating_add(1), 0);
        }
        if let Some(count) = self.0.get_mut(place) {
            *count = count.saturating_add(offers);
        }
    }

    fn named(&self, names: &Names) -> BTreeMap<String, u32> {
        let count = |id: u32| self.0.get(usize::try_from(id).ok()?).copied();
        let counts = names.iter().filter_map(|(name, id)| {
            let count = count(id).filter(|n| *n > 0)?;
            Some((name.to_owned(), count))
        });
        counts.collect()
    }
}

/// The step that a price is in.
fn step(price: Micros) -> Option<Micros> {
    PRICE_STEPS.into_iter().rev().find(|from| *from <= price)
}

impl Facets {
    /// Counts the offers of a set of classes.
    pub(crate) fn of(index: &Index, set: &Bits) -> Self {
        let (mut models, mut countries, mut levels) =
            (Tally::default(), Tally::default(), Tally::default());
        let mut untold: u32 = 0;
        for brief in set.iter().filter_map(|class| index.brief(class)) {
            models.add(brief.model, brief.members);
            levels.add(brief.level, brief.members);
            if brief.country == NOWHERE {
                untold = untold.saturating_add(brief.members);
            } else {
                countries.add(brief.country, brief.members);
            }
        }
        let mut prices: BTreeMap<Micros, u32> = BTreeMap::new();
        for ((gpu_hour, _), offers) in index.levels().zip(levels.0) {
            if let Some(from) = step(gpu_hour).filter(|_| offers > 0) {
                let count = prices.entry(from).or_default();
                *count = count.saturating_add(offers);
            }
        }
        let mut countries = countries.named(index.countries());
        if untold > 0 {
            countries.insert(String::new(), untold);
        }
        Self {
            models: models.named(index.models()),
            countries,
            prices,
        }
    }
}
