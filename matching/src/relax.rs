//! What a renter could ask instead: for each field of the request, the nearest value that would find
//! an offer, all else unchanged.

use std::collections::BTreeSet;

use crate::book::bits::Bits;
use crate::book::{Book, Supply};
use crate::constraint::Constraint;
use crate::explain::Relaxation;
use crate::request::Request;

/// One constraint for each field, in the order in which the changes are proposed.
/// `FreeGpus` stands for `Chunk` too (one field), and nobody can ask for another `Bookable`.
const FIELDS: [Constraint; 10] = [
    Constraint::Price,
    Constraint::Model,
    Constraint::FreeGpus,
    Constraint::Disk,
    Constraint::Simulated,
    Constraint::Country,
    Constraint::NotCountry,
    Constraint::GpuMemory,
    Constraint::CpuCores,
    Constraint::Ram,
];

/// Changes of one field that find at least one offer; none if no single field is enough.
pub(crate) fn relaxations(book: &Book, request: &Request) -> Vec<Relaxation> {
    let index = book.index();
    let keepers = index.keepers(request);
    let proposals = FIELDS.into_iter().filter_map(|constraint| {
        // Only offers that break nothing but this field can be won by it. Those of a class are equal.
        let others = keepers
            .iter()
            .filter(|(c, _)| c.field() != constraint.field());
        let near = others.fold(index.live().clone(), |near, (_, kept)| near.and(kept));
        let near: Vec<&Supply> = near
            .iter()
            .filter_map(|class| Some(&*index.class(class)?.sample))
            .collect();
        if near.is_empty() {
            return None;
        }
        let (from, to, changed) = changed(constraint, &near, request)?;
        let offers = index.offers(&fitting(index.live(), &index.keepers(&changed)));
        (offers > 0).then_some(Relaxation {
            constraint,
            from,
            to,
            offers,
        })
    });
    proposals.collect()
}

/// The classes that keep every constraint.
pub(crate) fn fitting(live: &Bits, keepers: &[(Constraint, Bits)]) -> Bits {
    keepers
        .iter()
        .fold(live.clone(), |fit, (_, kept)| fit.and(kept))
}

/// The field's old and new value in words, and the changed request.
type Change = (String, String, Request);

fn changed(constraint: Constraint, near: &[&Supply], request: &Request) -> Option<Change> {
    let mut changed = request.clone();
    let (from, to) = match constraint {
        Constraint::Price => {
            let least = near.iter().map(|s| s.offer.terms.gpu_hour).min()?;
            let asked = changed.max_gpu_hour.replace(least)?;
            (asked.to_string(), least.to_string())
        }
        Constraint::Model => {
            changed.models = near.iter().map(|s| s.model.clone()).collect();
            (text(&request.models), text(&changed.models))
        }
        Constraint::FreeGpus | Constraint::Chunk => {
            changed.count = nearest_count(near, request.count)?;
            (request.count.to_string(), changed.count.to_string())
        }
        Constraint::Disk => {
            let most = near.iter().map(|s| s.disk_free_gib).max()?;
            changed.disk_gib = u32::try_from(most).unwrap_or(u32::MAX);
            (request.disk_gib.to_string(), changed.disk_gib.to_string())
        }
        Constraint::Simulated => {
            changed.simulated = true;
            (request.simulated.to_string(), true.to_string())
        }
        Constraint::Country => {
            changed.countries.clear();
            (text(&request.countries), "any".to_owned())
        }
        Constraint::NotCountry => {
            changed.not_countries.clear();
            (text(&request.not_countries), "none".to_owned())
        }
        Constraint::GpuMemory => {
            let most = near.iter().map(|s| s.gpu_memory_mib).max()?;
            let asked = changed.min_gpu_memory_mib.replace(most)?;
            (asked.to_string(), most.to_string())
        }
        Constraint::CpuCores => {
            let most = near.iter().map(|s| s.cpu_cores).max()?;
            let asked = changed.min_cpu_cores.replace(most)?;
            (asked.to_string(), most.to_string())
        }
        Constraint::Ram => {
            let most = near.iter().map(|s| s.ram_mib).max()?;
            let asked = changed.min_ram_mib.replace(most)?;
            (asked.to_string(), most.to_string())
        }
        Constraint::Bookable => return None,
    };
    Some((from, to, changed))
}

/// The count nearest to the wanted one that some machine can give; the smaller one of two.
fn nearest_count(near: &[&Supply], wanted: u16) -> Option<u16> {
    let possible = near.iter().filter_map(|supply| {
        let terms = &supply.offer.terms;
        let most = supply.free().min(terms.max_gpus);
        let least = terms.min_gpus.max(1);
        (least <= most).then(|| wanted.clamp(least, most))
    });
    possible.min_by_key(|count| (count.abs_diff(wanted), *count))
}

fn text(set: &BTreeSet<String>) -> String {
    set.iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
