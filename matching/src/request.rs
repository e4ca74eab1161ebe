//! What a renter wants.

use std::collections::BTreeSet;

use domain::money::{Micros, Period};

use crate::price::Fees;

/// The longest duration that is priced: 8,760 hours. With [`DISK_MAX_GIB`] and the limits of
/// [`crate::offer`] no price leaves 64 bits.
pub const DURATION_MAX_MS: i64 = 31_536_000_000;
/// The largest disk: 1 PiB.
pub const DISK_MAX_GIB: u32 = 1_048_576;
/// The most keys of an order.
pub const SORT_MAX: usize = 5;
/// All of an amount, in 1/10,000.
const WHOLE_BPS: u32 = 10_000;

/// A field of a request that is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// No GPU.
    Count,
    /// More than [`DISK_MAX_GIB`].
    Disk,
    /// Not above zero, or more than [`DURATION_MAX_MS`].
    Duration,
    /// A country that is not two upper-case ASCII letters (ISO 3166-1 alpha-2).
    Country,
    /// A ceiling that is not above zero.
    Ceiling,
    /// Fee or tax above 10,000.
    Fees,
    /// More than [`SORT_MAX`] keys.
    Sort,
}

/// An order of results; later keys decide ties of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// All-in price for the given disk and duration, lowest first.
    Price,
    /// Price of a GPU-hour, lowest first.
    PricePerGpuHour,
    /// Memory of a GPU, largest first.
    GpuMemory,
    /// All-in price for each TFLOP per second of dense FP16, lowest first; models without a
    /// published rate last.
    PricePerTflop,
    /// All-in price for each GiB of GPU memory, lowest first.
    PricePerGpuGib,
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
            duration_ms: Period::Hour.millis(),
            countries: BTreeSet::new(),
            not_countries: BTreeSet::new(),
            max_gpu_hour: None,
            simulated: false,
            fees,
            sort: Vec::new(),
        }
    }

    /// Checks the fields by themselves; the first fault in the order of the enum.
    pub fn check(&self) -> Result<(), RequestFault> {
        let is_code = |c: &String| c.len() == 2 && c.bytes().all(|b| b.is_ascii_uppercase());
        let mut countries = self.countries.iter().chain(&self.not_countries);
        let tests = [
            (self.count > 0, RequestFault::Count),
            (self.disk_gib <= DISK_MAX_GIB, RequestFault::Disk),
            (
                (1..=DURATION_MAX_MS).contains(&self.duration_ms),
                RequestFault::Duration,
            ),
            (countries.all(is_code), RequestFault::Country),
            (
                self.max_gpu_hour.is_none_or(|most| most > Micros::ZERO),
                RequestFault::Ceiling,
            ),
            (
                self.fees.fee_bps <= WHOLE_BPS && self.fees.tax_bps <= WHOLE_BPS,
                RequestFault::Fees,
            ),
            (self.sort.len() <= SORT_MAX, RequestFault::Sort),
        ];
        tests
            .into_iter()
            .find(|(holds, _)| !holds)
            .map_or(Ok(()), |(_, fault)| Err(fault))
    }
}
