//! Search and placement over the book.

use std::sync::Arc;

use domain::id::{GpuId, MachineId, OfferId};
use domain::money::MoneyError;

use crate::book::{Book, Seen, Supply};
use crate::constraint::{Constraint, broken};
use crate::explain::{Exclusions, Explanation, Relaxation};
use crate::price::{AllIn, Size, all_in};
use crate::request::Request;
use crate::score::{Rank, pick};

mod facet;
mod search;

pub use facet::{Facets, PRICE_STEPS};
pub use search::search;

/// One offer that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The offer with its machine's facts.
    pub supply: Arc<Supply>,
    /// Its whole price.
    pub price: AllIn,
}

/// Where a page of a search begins: after an offer, as it stood then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Its rank.
    pub rank: Rank,
    /// The offer.
    pub offer: OfferId,
    /// The changes that the book knew when the first page was made.
    pub seen: Seen,
}

/// Which part of the answer.
#[derive(Clone, Debug)]
pub struct Part {
    /// Offers wanted.
    pub limit: usize,
    /// `None`: from the beginning.
    pub after: Option<After>,
}

impl Part {
    /// The first `limit` offers.
    pub const fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }
}

/// The answer of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What fits, in the wanted order, as many as asked for.
    pub matches: Vec<Match>,
    /// Where the next part begins, if there is one.
    pub next: Option<After>,
    /// How many offers fit, in all parts.
    pub fitting: u32,
    /// Live offers looked at.
    pub considered: usize,
    /// Live offers that changed since the first part: they are in no further one.
    pub changed: usize,
    /// How many fit, by model, country and price.
    pub facets: Facets,
    /// Why others were left out.
    pub excluded: Exclusions,
    /// If nothing fits: changes of one field each that would find something.
    pub relaxations: Vec<Relaxation>,
}

/// Where a lease goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offer.
    pub offer: OfferId,
    /// The machine.
    pub machine: MachineId,
    /// The GPUs.
    pub gpus: Vec<GpuId>,
    /// The whole price.
    pub price: AllIn,
    /// Why.
    pub explanation: Explanation,
}

/// Why a lease cannot go there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The offer is not live.
    OfferGone,
    /// The offer is at another version now.
    OfferChanged {
        /// The present version.
        now: i64,
    },
    /// It does not fit; at least one constraint.
    Broken(Vec<Constraint>),
    /// The price does not fit into 64 bits.
    Price,
}

/// Why a request finds no place at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing fits: what excluded the live offers, and what would do.
    NoFit(Box<Found>),
    /// A price does not fit into 64 bits.
    Price,
}

impl From<MoneyError> for Miss {
    fn from(_cause: MoneyError) -> Self {
        Self::Price
    }
}

/// What a request is priced for.
pub(crate) fn size(request: &Request) -> Size {
    Size {
        gpus: request.count,
        disk_gib: request.disk_gib,
        duration_ms: request.duration_ms,
    }
}

/// Places a request on the machine of one offer, at the version that the renter knows.
pub fn place(supply: Option<&Supply>, request: &Request, version: i64) -> Result<Placement, Miss> {
    let supply = supply.ok_or(Miss::OfferGone)?;
    if supply.offer.version != version {
        return Err(Miss::OfferChanged {
            now: supply.offer.version,
        });
    }
    let faults = broken(supply, request);
    if !faults.is_empty() {
        return Err(Miss::Broken(faults));
    }
    let gpus =
        pick(&supply.slots, request.count).ok_or(Miss::Broken(vec![Constraint::FreeGpus]))?;
    let price = all_in(&supply.offer.terms, size(request), request.fees)?;
    let explanation = Explanation {
        chosen: supply.offer.id,
        version,
        total: price.total,
        free_before: supply.free(),
        runner_up: None,
        why: "the quoted offer: GPUs from the smallest island that holds them all".to_owned(),
    };
    Ok(Placement {
        offer: supply.offer.id,
        machine: supply.offer.machine,
        gpus,
        price,
        explanation,
    })
}

/// Places a request on the first offer that [`search`] would name, with the second as runner-up.
pub fn place_best(book: &Book, request: &Request) -> Result<Placement, Refused> {
    let found = search(book, request, &Part::first(2)).map_err(|_out_of_range| Refused::Price)?;
    let Some(best) = found.matches.first() else {
        return Err(Refused::NoFit(Box::new(found)));
    };
    let Ok(mut placement) = place(Some(&best.supply), request, best.supply.offer.version) else {
        return Err(Refused::NoFit(Box::new(found)));
    };
    let next = found.matches.get(1);
    placement.explanation.runner_up = next.map(|m| (m.supply.offer.id, m.price.total));
    "the first in the wanted order; ties by whole island, fewest GPUs left, older offer"
        .clone_into(&mut placement.explanation.why);
    Ok(placement)
}

#[cfg(test)]
mod tests;
