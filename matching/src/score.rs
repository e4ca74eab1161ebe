//! Which GPUs of a machine, and which of several machines: what stays possible afterwards counts.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use domain::id::GpuId;
use domain::money::Micros;

use crate::book::{Slot, Supply};
use crate::request::{Request, SortKey};

/// Picks `count` free GPUs: from the smallest island that holds them all, so that large islands stay
/// whole; else from the fullest islands first, so that few are touched. By index within an island.
pub fn pick(slots: &[Slot], count: u16) -> Option<Vec<GpuId>> {
    let count = usize::from(count);
    let mut islands: BTreeMap<u16, Vec<&Slot>> = BTreeMap::new();
    for slot in slots.iter().filter(|s| s.free) {
        islands.entry(slot.island).or_default().push(slot);
    }
    let mut ordered: Vec<Vec<&Slot>> = islands.into_values().collect();
    for island in &mut ordered {
        island.sort_by_key(|s| s.index);
    }
    let whole = ordered
        .iter()
        .filter(|i| i.len() >= count)
        .min_by_key(|i| i.len());
    if let Some(island) = whole {
        return Some(island.iter().take(count).map(|s| s.gpu).collect());
    }
    ordered.sort_by_key(|i| std::cmp::Reverse(i.len()));
    let picked: Vec<GpuId> = ordered
        .into_iter()
        .flatten()
        .take(count)
        .map(|s| s.gpu)
        .collect();
    (picked.len() == count).then_some(picked)
}

/// Would `count` GPUs of this machine lie on more than one island?
fn splits(supply: &Supply, count: u16) -> bool {
    let mut islands: BTreeMap<u16, usize> = BTreeMap::new();
    for slot in supply.slots.iter().filter(|s| s.free) {
        let size = islands.entry(slot.island).or_default();
        *size = size.saturating_add(1);
    }
    islands.values().all(|size| *size < usize::from(count))
}

/// Orders two fitting supplies for a request, given their all-in totals.
pub fn compare(request: &Request, a: (&Supply, Micros), b: (&Supply, Micros)) -> Ordering {
    let default = [SortKey::Price];
    let keys: &[SortKey] = if request.sort.is_empty() {
        &default
    } else {
        &request.sort
    };
    keys.iter()
        .map(|key| match key {
            SortKey::Price => a.1.cmp(&b.1),
            SortKey::PricePerGpuHour => a.0.offer.terms.gpu_hour.cmp(&b.0.offer.terms.gpu_hour),
            SortKey::GpuMemory => b.0.gpu_memory_mib.cmp(&a.0.gpu_memory_mib),
        })
        .fold(Ordering::Equal, Ordering::then)
        // Equal in price: one island before several, then the machine that is left with the fewest
        // free GPUs, then the older offer.
        .then_with(|| splits(a.0, request.count).cmp(&splits(b.0, request.count)))
        .then(a.0.free().cmp(&b.0.free()))
        .then(a.0.offer.id.cmp(&b.0.offer.id))
}
