//! Hard constraints: a closed list, tested in a fixed order.

use std::fmt;

use crate::book::Supply;
use crate::request::Request;

/// A rule that an offer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// The machine takes no leases now.
    Bookable,
    /// The GPUs are simulated and the request does not want that.
    Simulated,
    /// Another GPU model.
    Model,
    /// The offer's smallest or largest lease does not allow so many GPUs.
    Chunk,
    /// Too little memory on each GPU.
    GpuMemory,
    /// Too few cores.
    CpuCores,
    /// Too little memory in the machine.
    Ram,
    /// Not in the wanted countries.
    Country,
    /// In a country to avoid, or in one that is not told.
    NotCountry,
    /// Dearer than the ceiling.
    Price,
    /// Too little free disk.
    Disk,
    /// Too few free GPUs.
    FreeGpus,
}

impl Constraint {
    /// The field of the search that it belongs to.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Bookable => "bookable",
            Self::Simulated => "simulated",
            Self::Model => "gpu_models",
            Self::Chunk | Self::FreeGpus => "gpu_count",
            Self::GpuMemory => "min_gpu_memory_mib",
            Self::CpuCores => "min_cpu_cores",
            Self::Ram => "min_ram_mib",
            Self::Country => "countries",
            Self::NotCountry => "not_countries",
            Self::Price => "max_price",
            Self::Disk => "disk_gib",
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bookable => "the machine takes no leases now",
            Self::Simulated => "its GPUs are simulated",
            Self::Model => "another GPU model",
            Self::Chunk => "the offer does not allow a lease of that size",
            Self::GpuMemory => "too little memory on each GPU",
            Self::CpuCores => "too few cores",
            Self::Ram => "too little memory",
            Self::Country => "not in the wanted countries",
            Self::NotCountry => "in a country to avoid, or in one that is not told",
            Self::Price => "dearer than the ceiling",
            Self::Disk => "too little free disk",
            Self::FreeGpus => "too few free GPUs",
        })
    }
}

/// Every constraint that `supply` breaks, in order; empty if it fits.
pub fn broken(supply: &Supply, request: &Request) -> Vec<Constraint> {
    let terms = &supply.offer.terms;
    let country = supply.country.as_deref();
    let at_least = |have: u64, want: Option<u64>| want.is_none_or(|w| have >= w);
    let tests = [
        (supply.bookable, Constraint::Bookable),
        (
            request.simulated || !supply.simulated,
            Constraint::Simulated,
        ),
        (
            request.models.is_empty() || request.models.contains(&supply.model),
            Constraint::Model,
        ),
        (
            (terms.min_gpus..=terms.max_gpus).contains(&request.count),
            Constraint::Chunk,
        ),
        (
            at_least(
                u64::from(supply.gpu_memory_mib),
                request.min_gpu_memory_mib.map(u64::from),
            ),
            Constraint::GpuMemory,
        ),
        (
            at_least(
                u64::from(supply.cpu_cores),
                request.min_cpu_cores.map(u64::from),
            ),
            Constraint::CpuCores,
        ),
        (
            at_least(supply.ram_mib, request.min_ram_mib),
            Constraint::Ram,
        ),
        (
            request.countries.is_empty() || country.is_some_and(|c| request.countries.contains(c)),
            Constraint::Country,
        ),
        (
            request.not_countries.is_empty()
                || country.is_some_and(|c| !request.not_countries.contains(c)),
            Constraint::NotCountry,
        ),
        (
            request
                .max_gpu_hour
                .is_none_or(|most| terms.gpu_hour <= most),
            Constraint::Price,
        ),
        (
            supply.disk_free_gib >= u64::from(request.disk_gib),
            Constraint::Disk,
        ),
        (supply.free() >= request.count, Constraint::FreeGpus),
    ];
    tests
        .into_iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, constraint)| constraint)
        .collect()
}
