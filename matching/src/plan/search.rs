//! The search: sets of classes that fit, the best of them by rank, and their offers.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use domain::id::OfferId;
use domain::money::{Micros, MoneyError};

use super::{After, Facets, Found, Match, Part, size};
use crate::book::Book;
use crate::book::bits::Bits;
use crate::book::class::{Brief, Index};
use crate::constraint::Constraint;
use crate::explain::Exclusions;
use crate::offer::OfferTerms;
use crate::price::all_in;
use crate::relax::{fitting, relaxations};
use crate::request::Request;
use crate::score::{Rank, Ranked, rank};

/// The offers that fit, in order, with their prices; if none, why. The cost goes with the classes
/// of the book. A further part leaves out what changed since the first one, so that nothing is told
/// twice and nothing else is missed.
pub fn search(book: &Book, request: &Request, part: &Part) -> Result<Found, MoneyError> {
    let index = book.index();
    let keepers = index.keepers(request);
    let fit = fitting(index.live(), &keepers);
    let after = part.after.as_ref();
    let seen = after.map_or(book.seen(), |after| &after.seen);
    let changed = after.map_or(0, |_| book.changed_since(seen));
    let relaxations = if fit.is_empty() {
        relaxations(book, request)
    } else {
        Vec::new()
    };
    let mut found = Found {
        matches: Vec::new(),
        next: None,
        fitting: index.offers(&fit),
        considered: book.len(),
        changed,
        facets: Facets::of(index, &fit),
        excluded: exclusions(index, &keepers),
        relaxations,
    };
    // One more than wanted, to know whether there is more; and all that may have to be left out.
    let needed = part.limit.saturating_add(1).saturating_add(changed);
    let ranked = best(book, request, (&fit, after), needed)?;
    let offers = ranked
        .iter()
        .flat_map(|(rank, classes)| in_order(index, (*rank, classes), after, needed));
    let mut last = None;
    for (rank, offer) in offers {
        let Some(supply) = book.at(offer, after.map(|_| seen)) else {
            continue;
        };
        if found.matches.len() >= part.limit {
            found.next = last.map(|(rank, offer)| After {
                rank,
                offer,
                seen: seen.clone(),
            });
            break;
        }
        found.matches.push(Match {
            supply: Arc::clone(supply),
            price: all_in(&supply.offer.terms, size(request), request.fees)?,
        });
        last = Some((rank, offer));
    }
    Ok(found)
}

/// The classes by rank that come after `after`: those of the first ranks with at least `needed`
/// offers together, if there are so many.
fn best(
    book: &Book,
    request: &Request,
    (fit, after): (&Bits, Option<&After>),
    needed: usize,
) -> Result<BTreeMap<Rank, Vec<u32>>, MoneyError> {
    let index = book.index();
    let mut prices = Prices::new(book, request);
    let mut kept: BTreeMap<Rank, (usize, Vec<u32>)> = BTreeMap::new();
    let (mut held, mut worst) = (0usize, None);
    for class in fit.iter() {
        let Some(brief) = index.brief(class) else {
            continue;
        };
        let rank = prices.rank(brief)?;
        let beyond = worst.is_some_and(|worst| held >= needed && rank > worst);
        if beyond || after.is_some_and(|after| rank < after.rank) {
            continue;
        }
        let members = match after.filter(|after| after.rank == rank) {
            Some(after) => members(index, class, Some(after.offer))
                .take(needed)
                .count(),
            None => usize::try_from(brief.members).unwrap_or(usize::MAX),
        };
        let group = kept.entry(rank).or_default();
        group.0 = group.0.saturating_add(members);
        group.1.push(class);
        held = held.saturating_add(members);
        // Whole ranks only: offers of one rank stand by age, whatever their class.
        while let Some(group) = kept.last_entry() {
            let without = held.saturating_sub(group.get().0);
            if without < needed {
                worst = Some(*group.key());
                break;
            }
            held = without;
            group.remove();
        }
    }
    Ok(kept
        .into_iter()
        .map(|(rank, group)| (rank, group.1))
        .collect())
}

/// All-in totals, once for each price level.
struct Prices<'a> {
    request: &'a Request,
    levels: Vec<((Micros, Micros), Option<Micros>)>,
    /// Dense FP16 rate by number of the model.
    rates: BTreeMap<u32, u64>,
}

impl<'a> Prices<'a> {
    fn new(book: &Book, request: &'a Request) -> Self {
        let index = book.index();
        let rate = |(name, id): (&str, u32)| Some((id, *book.rates().get(name)?));
        Self {
            request,
            levels: index.levels().map(|prices| (prices, None)).collect(),
            rates: index.models().iter().filter_map(rate).collect(),
        }
    }

    fn rank(&mut self, brief: &Brief) -> Result<Rank, MoneyError> {
        let place = usize::try_from(brief.level).unwrap_or(usize::MAX);
        let Some(((gpu_hour, gib_month), known)) = self.levels.get_mut(place) else {
            return Err(MoneyError::OutOfRange);
        };
        let total = if let Some(total) = *known {
            total
        } else {
            let terms = OfferTerms {
                gpu_hour: *gpu_hour,
                storage_gib_month: *gib_month,
                bid_floor: None,
                keep_gpu_hour: None,
                min_gpus: 1,
                max_gpus: 1,
            };
            let total = all_in(&terms, size(self.request), self.request.fees)?.total;
            *known = Some(total);
            total
        };
        let of = Ranked {
            total,
            gpu_hour: *gpu_hour,
            gpu_memory_mib: brief.gpu_memory_mib,
            fp16_gflops: self.rates.get(&brief.model).copied(),
            free: (brief.free, brief.island),
        };
        Ok(rank(self.request, &of))
    }
}

/// The offers of a class, by age, after `after`.
fn members(index: &Index, class: u32, after: Option<OfferId>) -> impl Iterator<Item = OfferId> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let class = index.class(class);
    class
        .into_iter()
        .flat_map(move |c| c.members.range((from, Bound::Unbounded)).copied())
}

/// The offers of one rank, by age, at most `needed`.
fn in_order(
    index: &Index,
    (rank, classes): (Rank, &[u32]),
    after: Option<&After>,
    needed: usize,
) -> Vec<(Rank, OfferId)> {
    let from = after.filter(|after| after.rank == rank).map(|a| a.offer);
    let mut offers: Vec<OfferId> = classes
        .iter()
        .flat_map(|class| members(index, *class, from).take(needed))
        .collect();
    offers.sort_unstable();
    offers.truncate(needed);
    offers.into_iter().map(|offer| (rank, offer)).collect()
}

/// What each constraint excludes, and excludes alone: what keeps all before it and all after it.
fn exclusions(index: &Index, keepers: &[(Constraint, Bits)]) -> Exclusions {
    let mut after = vec![index.live().clone()];
    for (_, kept) in keepers.iter().rev() {
        let next = after.last().cloned().unwrap_or_default().and(kept);
        after.push(next);
    }
    after.pop();
    let mut excluded = Exclusions::default();
    let mut before = index.live().clone();
    for ((constraint, kept), after) in keepers.iter().zip(after.iter().rev()) {
        let broken = index.live().clone().minus(kept);
        if !broken.is_empty() {
            let alone = broken.clone().and(&before).and(after);
            excluded.count(*constraint, (index.offers(&broken), index.offers(&alone)));
        }
        before = before.and(kept);
    }
    excluded
}
