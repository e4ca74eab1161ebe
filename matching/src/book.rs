//! The book: all live offers with the facts of their machines.

use std::collections::{BTreeMap, BTreeSet};

use domain::id::{GpuId, OfferId};

use crate::offer::Offer;

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

/// All live offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    supplies: BTreeMap<OfferId, Supply>,
}

impl Book {
    /// A book of these supplies.
    pub fn new(supplies: impl IntoIterator<Item = Supply>) -> Self {
        Self {
            supplies: supplies.into_iter().map(|s| (s.offer.id, s)).collect(),
        }
    }

    /// The supply behind an offer.
    pub fn get(&self, offer: OfferId) -> Option<&Supply> {
        self.supplies.get(&offer)
    }

    /// All supplies, by offer id.
    pub fn iter(&self) -> impl Iterator<Item = &Supply> {
        self.supplies.values()
    }

    /// How many live offers there are.
    pub fn len(&self) -> usize {
        self.supplies.len()
    }

    /// No live offers?
    pub fn is_empty(&self) -> bool {
        self.supplies.is_empty()
    }

    /// Puts a new or changed supply in.
    pub fn upsert(&mut self, supply: Supply) {
        self.supplies.insert(supply.offer.id, supply);
    }

    /// Takes a supply out.
    pub fn remove(&mut self, offer: OfferId) -> Option<Supply> {
        self.supplies.remove(&offer)
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
        let Some(supply) = self.supplies.get_mut(&offer) else {
            return false;
        };
        let wanted: BTreeSet<GpuId> = gpus.iter().copied().collect();
        let fits = |s: &Slot| s.free != free && wanted.contains(&s.gpu);
        // A GPU that is named twice is a caller's fault too: the counts differ.
        if supply.slots.iter().filter(|s| fits(s)).count() != gpus.len() {
            return false;
        }
        for slot in supply.slots.iter_mut().filter(|s| fits(s)) {
            slot.free = free;
        }
        true
    }
}
