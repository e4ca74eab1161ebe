//! What a renter wants.

use std::collections::BTreeSet;

use domain::money::Micros;

use crate::price::Fees;

/// An order of results; later keys decide ties of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// All-in price for the given disk and duration, lowest first.
    Price,
    /// Price of a GPU-hour, lowest first.
    PricePerGpuHour,
    /// Memory of a GPU, largest first.
    GpuMemory,
}

/// A request for GPUs on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Catalogue slugs, any of them; empty = any model.
    pub models: BTreeSet<String>,
    /// GPUs.
    pub count: u16,
    /// Least memory of each GPU, MiB.
    pub min_gpu_memory_mib: Option<u32>,
    /// Least cores of the machine.
    pub min_cpu_cores: Option<u32>,
    /// Least memory of the machine, MiB.
    pub min_ram_mib: Option<u64>,
    /// Disk, GiB.
    pub disk_gib: u32,
    /// For the all-in price, ms.
    pub duration_ms: i64,
    /// Countries, any of them; empty = any.
    pub countries: BTreeSet<String>,
    /// Countries to avoid. A machine that does not tell its country is avoided too.
    pub not_countries: BTreeSet<String>,
    /// Most to pay for a GPU-hour.
    pub max_gpu_hour: Option<Micros>,
    /// Also simulated GPUs.
    pub simulated: bool,
    /// Fee and tax of the market.
    pub fees: Fees,
    /// Order of results; empty = by price.
    pub sort: Vec<SortKey>,
}

impl Request {
    /// One GPU of any model for an hour, with 10 GiB of disk.
    pub fn any(fees: Fees) -> Self {
        Self {
            models: BTreeSet::new(),
            count: 1,
            min_gpu_memory_mib: None,
            min_cpu_cores: None,
            min_ram_mib: None,
            disk_gib: 10,
            duration_ms: domain::money::Period::Hour.millis(),
            countries: BTreeSet::new(),
            not_countries: BTreeSet::new(),
            max_gpu_hour: None,
            simulated: false,
            fees,
            sort: Vec::new(),
        }
    }
}
