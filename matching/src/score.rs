//! Which GPUs of a machine, and which of several machines: what stays possible afterwards counts.

use std::collections::BTreeMap;

use domain::id::GpuId;
use domain::money::Micros;

use crate::book::Slot;
use crate::request::{Request, SORT_MAX, SortKey};

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

/// Where an offer stands in the wanted order; less is earlier. Offers of equal rank stand by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// By the request's keys; 0 where there is none.
    pub keys: [i128; SORT_MAX],
    /// The lease would lie on several islands.
    pub split: bool,
    /// Free GPUs of the machine: the fullest one first.
    pub free: u16,
}

/// What an order looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// All-in total.
    pub(crate) total: Micros,
    /// Price of a GPU-hour.
    pub(crate) gpu_hour: Micros,
    /// Memory of each GPU, MiB.
    pub(crate) gpu_memory_mib: u32,
    /// Dense FP16 rate, GFLOPS, if published.
    pub(crate) fp16_gflops: Option<u64>,
    /// Free GPUs, and those of the largest island.
    pub(crate) free: (u16, u16),
}

/// A millionth of `total / by`, so that close ones differ; none: after all others.
fn ratio(total: Micros, by: Option<u64>) -> i128 {
    let fine = i128::from(total.get()).saturating_mul(1_000_000);
    let by = by.map_or(0, i128::from);
    fine.checked_div_euclid(by).unwrap_or(i128::MAX)
}

/// The rank of an offer in a request's order.
pub(crate) fn rank(request: &Request, of: &Ranked) -> Rank {
    let default = [SortKey::Price];
    let wanted: &[SortKey] = if request.sort.is_empty() {
        &default
    } else {
        &request.sort
    };
    let mut keys = [0; SORT_MAX];
    for (place, key) in keys.iter_mut().zip(wanted) {
        *place = match key {
            SortKey::Price => i128::from(of.total.get()),
            SortKey::PricePerGpuHour => i128::from(of.gpu_hour.get()),
            SortKey::GpuMemory => i128::from(of.gpu_memory_mib).saturating_neg(),
            SortKey::PricePerTflop => ratio(of.total, of.fp16_gflops),
            SortKey::PricePerGpuGib => ratio(of.total, Some(of.gpu_memory_mib.into())),
        };
    }
    let (free, island) = of.free;
    Rank {
        keys,
        split: island < request.count,
        free,
    }
}
