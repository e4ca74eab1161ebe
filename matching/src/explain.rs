//! Why this one, and why not the others.

use std::collections::BTreeMap;
use std::fmt;

use domain::id::OfferId;
use domain::money::Micros;

use crate::constraint::Constraint;

/// The record of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The offer that was taken.
    pub chosen: OfferId,
    /// Its version.
    pub version: i64,
    /// Its all-in total.
    pub total: Micros,
    /// Free GPUs on the machine before.
    pub free_before: u16,
    /// The next best offer and its all-in total, where offers were compared.
    pub runner_up: Option<(OfferId, Micros)>,
    /// In words.
    pub why: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            chosen, total, why, ..
        } = self;
        write!(f, "{chosen} for {total} in all: {why}")?;
        match self.runner_up {
            Some((offer, total)) => write!(f, "; next best {offer} for {total}"),
            None => Ok(()),
        }
    }
}

/// How many offers each constraint excludes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Exclusions {
    counts: BTreeMap<Constraint, u32>,
    alone: BTreeMap<Constraint, u32>,
}

impl Exclusions {
    /// Counts one excluded offer.
    pub fn add(&mut self, broken: &[Constraint]) {
        for constraint in broken {
            let count = self.counts.entry(*constraint).or_default();
            *count = count.saturating_add(1);
        }
        if let [only] = broken {
            let count = self.alone.entry(*only).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Counts offers that break a constraint, and those of them that break no other.
    pub(crate) fn count(&mut self, constraint: Constraint, (all, alone): (u32, u32)) {
        for (counts, offers) in [(&mut self.counts, all), (&mut self.alone, alone)] {
            if offers > 0 {
                let count = counts.entry(constraint).or_default();
                *count = count.saturating_add(offers);
            }
        }
    }

    /// Constraints with the number of offers that break them, in order.
    pub fn counts(&self) -> impl Iterator<Item = (Constraint, u32)> {
        self.counts.iter().map(|(c, n)| (*c, *n))
    }

    /// The constraint that binds: the one that alone excludes most offers, else the commonest.
    pub fn binding(&self) -> Option<Constraint> {
        let most = |counts: &BTreeMap<Constraint, u32>| {
            counts
                .iter()
                .max_by_key(|(c, n)| (**n, std::cmp::Reverse(**c)))
                .map(|(c, _)| *c)
        };
        most(&self.alone).or_else(|| most(&self.counts))
    }
}

/// A change of the request that would find offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relaxation {
    /// Which constraint to relax.
    pub constraint: Constraint,
    /// What was asked.
    pub from: String,
    /// What would do.
    pub to: String,
    /// Offers that would then fit.
    pub offers: u32,
}
