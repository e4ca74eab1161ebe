//! Search and placement over the book.

use std::collections::BTreeSet;

use domain::id::{GpuId, MachineId, OfferId};
use domain::money::MoneyError;

use crate::book::{Book, Supply};
use crate::constraint::{Constraint, broken};
use crate::explain::{Exclusions, Explanation, Relaxation};
use crate::price::{AllIn, Size, all_in};
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
    let gpus = pick(supply, request.count).ok_or(Miss::Broken(vec![Constraint::FreeGpus]))?;
    let price = all_in(&supply.offer.terms, size(request), request.fees)?;
    let explanation = Explanation {
        chosen: supply.offer.id,
        version,
        total: price.total,
        free_before: supply.free(),
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

/// For each bound field, the nearest value that would find something, all else unchanged.
fn relaxations(book: &Book, request: &Request) -> Vec<Relaxation> {
    let bound = [
        Constraint::Price,
        Constraint::Model,
        Constraint::FreeGpus,
        Constraint::Chunk,
        Constraint::Disk,
        Constraint::Simulated,
        Constraint::Country,
    ];
    let tried = bound.into_iter().filter_map(|constraint| {
        // Only offers that break nothing else can be won by relaxing one field.
        let near: Vec<&Supply> = book
            .iter()
            .filter(|s| broken(s, request) == [constraint])
            .collect();
        let (from, to, relaxed) = relaxed(constraint, &near, request)?;
        let offers = book
            .iter()
            .filter(|s| broken(s, &relaxed).is_empty())
            .count();
        let offers = u32::try_from(offers).unwrap_or(u32::MAX);
        (offers > 0).then_some(Relaxation {
            constraint,
            from,
            to,
            offers,
        })
    });
    tried.collect()
}

/// The request relaxed just so far that one of `near` fits, with the field's old and new value.
fn relaxed(
    constraint: Constraint,
    near: &[&Supply],
    request: &Request,
) -> Option<(String, String, Request)> {
    let text = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    let base = request.clone();
    match constraint {
        Constraint::Price => {
            let least = near.iter().map(|s| s.offer.terms.gpu_hour).min()?;
            let from = request
                .max_gpu_hour
                .map(|m| m.to_string())
                .unwrap_or_default();
            Some((
                from,
                least.to_string(),
                Request {
                    max_gpu_hour: Some(least),
                    ..base
                },
            ))
        }
        Constraint::Model => {
            let models: BTreeSet<String> = near.iter().map(|s| s.model.clone()).collect();
            let (from, to) = (text(&request.models), text(&models));
            (!models.is_empty()).then_some((from, to, Request { models, ..base }))
        }
        Constraint::FreeGpus | Constraint::Chunk => {
            let counts = near.iter().map(|s| s.free().min(s.offer.terms.max_gpus));
            let count = counts.filter(|n| *n > 0 && *n < request.count).max()?;
            let (from, to) = (request.count.to_string(), count.to_string());
            Some((from, to, Request { count, ..base }))
        }
        Constraint::Disk => {
            let most = near.iter().map(|s| s.disk_free_gib).max()?;
            let disk_gib = u32::try_from(most).unwrap_or(u32::MAX);
            let (from, to) = (request.disk_gib.to_string(), disk_gib.to_string());
            Some((from, to, Request { disk_gib, ..base }))
        }
        Constraint::Simulated => {
            let relaxed = Request {
                simulated: true,
                ..base
            };
            (!near.is_empty()).then_some(("false".to_owned(), "true".to_owned(), relaxed))
        }
        Constraint::Country => {
            let relaxed = Request {
                countries: BTreeSet::new(),
                ..base
            };
            let from = text(&request.countries);
            (!near.is_empty()).then_some((from, "any".to_owned(), relaxed))
        }
        Constraint::Bookable
        | Constraint::GpuMemory
        | Constraint::CpuCores
        | Constraint::Ram
        | Constraint::NotCountry => None,
    }
}

#[cfg(test)]
mod tests;
