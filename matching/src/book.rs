//! The book: all live offers with the facts of their machines, in classes of equal ones.
//!
//! Invariant: each supply is a member of the one class that its facts make, so that a search costs
//! the classes that there are, not the machines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::id::{GpuId, OfferId};

use crate::offer::Offer;

pub(crate) mod bits;
pub(crate) mod class;

use class::Index;

/// One GPU of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The GPU.
    pub gpu: GpuId,
    /// Position in the machine.
    pub index: u16,
    /// GPUs of one island are joined by NVLink or the like.
    pub island: u16,
    /// No lease and no foreign process on it.
    pub free: bool,
}

/// An offer with the facts of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// What is asked.
    pub offer: Offer,
    /// Listed, heard of lately, not quarantined.
    pub bookable: bool,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// Catalogue slug of its GPUs.
    pub model: String,
    /// Memory of each GPU, MiB.
    pub gpu_memory_mib: u32,
    /// Cores.
    pub cpu_cores: u32,
    /// Memory, MiB.
    pub ram_mib: u64,
    /// Disk that no lease has, GiB.
    pub disk_free_gib: u64,
    /// ISO 3166-1 alpha-2, if told.
    pub country: Option<String>,
    /// Its GPUs, by index.
    pub slots: Vec<Slot>,
}

impl Supply {
    /// How many GPUs can be booked now.
    pub fn free(&self) -> u16 {
        u16::try_from(self.slots.iter().filter(|s| s.free).count()).unwrap_or(u16::MAX)
    }
}

/// Free GPUs of the island that has most of them.
pub(crate) fn largest_island(slots: &[Slot]) -> u16 {
    let mut islands: BTreeMap<u16, u16> = BTreeMap::new();
    for slot in slots.iter().filter(|s| s.free) {
        let size = islands.entry(slot.island).or_default();
        *size = size.saturating_add(1);
    }
    islands.into_values().max().unwrap_or(0)
}

/// Which changes of the market are known: those with a number below `end`, except the open ones.
/// Numbers are given when a change begins, and changes end in any order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Seen {
    /// Changes from here on are not known.
    pub end: u64,
    /// Changes before `end` that are not known, from the smallest.
    pub open: Vec<u64>,
}

impl Seen {
    /// Is that change known? Number 0, what was there before all changes, always is.
    pub fn has(&self, change: u64) -> bool {
        change == 0 || (change < self.end && self.open.binary_search(&change).is_err())
    }

    /// Every change before it is known.
    pub fn begin(&self) -> u64 {
        self.open
            .first()
            .map_or(self.end, |first| *first.min(&self.end))
    }
}

/// A supply in its place.
#[derive(Clone, Debug)]
struct Held {
    supply: Arc<Supply>,
    class: u32,
    /// The change of the market that made it so.
    changed: u64,
}

/// All live offers.
#[derive(Clone, Debug, Default)]
pub struct Book {
    supplies: BTreeMap<OfferId, Held>,
    index: Index,
    /// Offers by the change that made them what they are.
    by_change: BTreeSet<(u64, OfferId)>,
    /// Dense FP16 rate by model, GFLOPS.
    fp16_gflops: BTreeMap<String, u64>,
    seen: Seen,
}

/// Two books are equal if they offer the same, however they came to it.
impl PartialEq for Book {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Book {}

impl Book {
    /// A book of these supplies.
    pub fn new(supplies: impl IntoIterator<Item = Supply>) -> Self {
        let mut book = Self::default();
        for supply in supplies {
            book.upsert(supply);
        }
        book
    }

    /// The same with the dense FP16 rate of each model in GFLOPS, for prices by rate; a model
    /// without one is last in that order.
    pub fn with_rates(mut self, fp16_gflops: BTreeMap<String, u64>) -> Self {
        self.fp16_gflops = fp16_gflops;
        self
    }

    /// An empty book with the same rates.
    pub fn emptied(&self) -> Self {
        Self::default().with_rates(self.fp16_gflops.clone())
    }

    /// The changes of the market that are in it.
    pub const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Says which changes are in it.
    pub fn catch_up(&mut self, seen: Seen) {
        self.seen = seen;
    }

    /// The supply behind an offer.
    pub fn get(&self, offer: OfferId) -> Option<&Supply> {
        self.supplies.get(&offer).map(|held| &*held.supply)
    }

    /// All supplies, by offer id.
    pub fn iter(&self) -> impl Iterator<Item = &Supply> {
        self.supplies.values().map(|held| &*held.supply)
    }

    /// How many live offers there are.
    pub fn len(&self) -> usize {
        self.supplies.len()
    }

    /// How many classes of equal offers there are.
    pub fn classes(&self) -> usize {
        self.index.len()
    }

    /// No live offers?
    pub fn is_empty(&self) -> bool {
        self.supplies.is_empty()
    }

    /// Puts a new or changed supply in, by a change before all that are numbered.
    pub fn upsert(&mut self, supply: Supply) {
        self.put(supply, 0);
    }

    /// Puts a supply in that change number `at` made; one that is the same as before stays as old
    /// as it was.
    pub fn put(&mut self, supply: Supply, at: u64) {
        let id = supply.offer.id;
        if self.get(id) == Some(&supply) {
            return;
        }
        let before = self.forget(id).map_or(0, |held| held.changed);
        let at = at.max(before);
        let supply = Arc::new(supply);
        let class = self.index.join(&supply);
        self.by_change.insert((at, id));
        let held = Held {
            supply,
            class,
            changed: at,
        };
        self.supplies.insert(id, held);
    }

    /// Takes a supply out.
    pub fn remove(&mut self, offer: OfferId) -> Option<Supply> {
        let held = self.forget(offer)?;
        Some(Arc::unwrap_or_clone(held.supply))
    }

    fn forget(&mut self, offer: OfferId) -> Option<Held> {
        let held = self.supplies.remove(&offer)?;
        self.index.leave(held.class, offer);
        self.by_change.remove(&(held.changed, offer));
        Some(held)
    }

    /// The index over its classes.
    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    /// See [`Self::with_rates`].
    pub(crate) const fn rates(&self) -> &BTreeMap<String, u64> {
        &self.fp16_gflops
    }

    /// The supply of an offer; if `since` is told, only if it is still what it was when only those
    /// changes were known.
    pub(crate) fn at(&self, offer: OfferId, since: Option<&Seen>) -> Option<&Arc<Supply>> {
        let held = self.supplies.get(&offer)?;
        let same = since.is_none_or(|since| since.has(held.changed));
        same.then_some(&held.supply)
    }

    /// How many offers are not what they were when only those changes were known.
    pub(crate) fn changed_since(&self, since: &Seen) -> usize {
        let latest = self.by_change.iter().rev();
        latest
            .take_while(|(changed, _)| *changed >= since.begin())
            .filter(|(changed, _)| !since.has(*changed))
            .count()
    }

    /// Marks GPUs of one offer as taken: all of them, or none and `false` if one is not there or
    /// not free.
    pub fn take(&mut self, offer: OfferId, gpus: &[GpuId]) -> bool {
        self.turn(offer, gpus, false)
    }

    /// Marks taken GPUs as free again: all of them, or none and `false` if one is not there or free.
    pub fn release(&mut self, offer: OfferId, gpus: &[GpuId]) -> bool {
        self.turn(offer, gpus, true)
    }

    fn turn(&mut self, offer: OfferId, gpus: &[GpuId], free: bool) -> bool {
        let Some(supply) = self.get(offer) else {
            return false;
        };
        let wanted: BTreeSet<GpuId> = gpus.iter().copied().collect();
        let fits = |s: &Slot| s.free != free && wanted.contains(&s.gpu);
        // A GPU that is named twice is a caller's fault too: the counts differ.
        if supply.slots.iter().filter(|s| fits(s)).count() != gpus.len() {
            return false;
        }
        let mut turned = supply.clone();
        for slot in turned.slots.iter_mut().filter(|s| fits(s)) {
            slot.free = free;
        }
        self.upsert(turned);
        true
    }
}
