//! Search and placement over the book.

use domain::id::{GpuId, MachineId, OfferId};
use domain::money::MoneyError;

use crate::book::{Book, Supply};
use crate::constraint::{Constraint, broken};
use crate::explain::{Exclusions, Explanation, Relaxation};
use crate::price::{AllIn, Size, all_in};
use crate::relax::relaxations;
use crate::request::Request;
use crate::score::{compare, pick};

/// One offer that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The offer with its machine's facts.
    pub supply: Supply,
    /// Its whole price.
    pub price: AllIn,
}

/// The answer of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What fits, in the wanted order.
    pub matches: Vec<Match>,
    /// Live offers looked at.
    pub considered: usize,
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
    NoFit(Found),
    /// A price does not fit into 64 bits.
    Price,
}

impl From<MoneyError> for Miss {
    fn from(_cause: MoneyError) -> Self {
        Self::Price
    }
}

fn size(request: &Request) -> Size {
    Size {
        gpus: request.count,
        disk_gib: request.disk_gib,
        duration_ms: request.duration_ms,
    }
}

/// All offers that fit, in order, with their prices; if none, why.
pub fn search(book: &Book, request: &Request) -> Result<Found, MoneyError> {
    let (mut fitting, mut excluded) = (Vec::new(), Exclusions::default());
    for supply in book.iter() {
        let faults = broken(supply, request);
        if faults.is_empty() {
            fitting.push((
                supply,
                all_in(&supply.offer.terms, size(request), request.fees)?,
            ));
        } else {
            excluded.add(&faults);
        }
    }
    fitting.sort_by(|a, b| compare(request, (a.0, a.1.total), (b.0, b.1.total)));
    let relaxations = if fitting.is_empty() {
        relaxations(book, request)
    } else {
        Vec::new()
    };
    let matches = fitting
        .into_iter()
        .map(|(supply, price)| Match {
            supply: supply.clone(),
            price,
        })
        .collect();
    Ok(Found {
        matches,
        considered: book.len(),
        excluded,
        relaxations,
    })
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
    let found = search(book, request).map_err(|_out_of_range| Refused::Price)?;
    let Some(best) = found.matches.first() else {
        return Err(Refused::NoFit(found));
    };
    let Ok(mut placement) = place(Some(&best.supply), request, best.supply.offer.version) else {
        return Err(Refused::NoFit(found));
    };
    let next = found.matches.get(1);
    placement.explanation.runner_up = next.map(|m| (m.supply.offer.id, m.price.total));
    "the first in the wanted order; ties by whole island, fewest GPUs left, older offer"
        .clone_into(&mut placement.explanation.why);
    Ok(placement)
}

#[cfg(test)]
mod tests;
