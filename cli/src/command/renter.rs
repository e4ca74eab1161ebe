//! The renter's commands: search, quote, book, and what is done with a lease.

use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::id::{LeaseId, OfferId, QuoteId};
use domain::money::Micros;
use web_openapi::money::{Per, Rate};
use web_openapi::offer::{SearchOffers, SortKey};

use crate::text;

/// How much of a machine, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Size {
    /// GPUs on one machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), default_value_t = 1)]
    pub(crate) count: u16,
    /// Disk in GiB
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 10)]
    pub(crate) disk: u32,
    /// Hours that the total is shown for; the rates hold for any duration
    #[arg(long = "hours", value_name = "H", value_parser = text::hours, default_value = "1")]
    pub(crate) duration_seconds: u32,
}

/// What offers must satisfy.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// GPU model (slug or alias, see `models`); may be repeated: any of them
    #[arg(long, value_name = "MODEL")]
    pub(crate) gpu: Vec<String>,
    /// Size.
    #[command(flatten)]
    pub(crate) size: Size,
    /// Most to pay for one GPU-hour, in US dollars
    #[arg(long, value_name = "USD", value_parser = text::amount)]
    pub(crate) max_price: Option<Micros>,
    /// Two-letter country; may be repeated: any of them
    #[arg(long, value_name = "CC")]
    pub(crate) country: Vec<String>,
    /// Two-letter country to avoid; may be repeated
    #[arg(long, value_name = "CC")]
    pub(crate) not_country: Vec<String>,
    /// Least memory of each GPU, in MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) min_gpu_memory: Option<u32>,
    /// Least CPU cores of the machine
    #[arg(long, value_name = "N")]
    pub(crate) min_cores: Option<u32>,
    /// Least memory of the machine, in MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) min_ram: Option<u64>,
    /// Also simulated GPUs: nothing computes on them
    #[arg(long)]
    pub(crate) simulated: bool,
}

/// Arguments that choose an offer, and so make no sense beside a chosen one.
const FILTERS: [&str; 7] = [
    "gpu",
    "max_price",
    "country",
    "not_country",
    "min_gpu_memory",
    "min_cores",
    "min_ram",
];

impl Filter {
    /// As the API wants it.
    pub(crate) fn request(&self, sort: Vec<SortKey>, limit: u32) -> SearchOffers {
        let upper = |countries: &[String]| {
            let each = countries.iter().map(|c| c.to_ascii_uppercase());
            each.collect::<Vec<_>>()
        };
        SearchOffers {
            gpu_models: self.gpu.clone(),
            gpu_count: Some(self.size.count),
            min_gpu_memory_mib: self.min_gpu_memory,
            min_cpu_cores: self.min_cores,
            min_ram_mib: self.min_ram,
            disk_gib: Some(self.size.disk),
            duration_seconds: Some(self.size.duration_seconds),
            countries: upper(&self.country),
            not_countries: upper(&self.not_country),
            max_price: self.max_price.map(|usd| Rate::usd(usd, Per::GpuHour)),
            simulated: Some(self.simulated),
            sort,
            limit: Some(limit),
            cursor: None,
            facets: None,
        }
    }
}

/// The flag of a field of the search, as it is spelt here.
pub(crate) fn flag_of(field: &str) -> &str {
    match field {
        "gpu_models" => "--gpu",
        "gpu_count" => "--count",
        "min_gpu_memory_mib" => "--min-gpu-memory",
        "min_cpu_cores" => "--min-cores",
        "min_ram_mib" => "--min-ram",
        "disk_gib" => "--disk",
        "duration_seconds" => "--hours",
        "countries" => "--country",
        "not_countries" => "--not-country",
        "max_price" => "--max-price",
        "simulated" => "--simulated",
        other => other,
    }
}

/// Order of the results.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Order {
    /// All-in price, lowest first
    Price,
    /// Price of a GPU-hour, lowest first
    PricePerGpuHour,
    /// Memory of a GPU, largest first
    GpuMemory,
    /// All-in price for each TFLOP/s of dense FP16, lowest first
    PricePerTflop,
    /// All-in price for each GiB of GPU memory, lowest first
    PricePerGpuGib,
}

impl Order {
    /// As the API wants it.
    pub(crate) const fn key(self) -> SortKey {
        match self {
            Self::Price => SortKey::Price,
            Self::PricePerGpuHour => SortKey::PricePerGpuHour,
            Self::GpuMemory => SortKey::GpuMemory,
            Self::PricePerTflop => SortKey::PricePerTflop,
            Self::PricePerGpuGib => SortKey::PricePerGpuGib,
        }
    }
}

/// Find offers.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What they must satisfy.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Order of the results; several keys with commas between
    #[arg(long, value_enum, value_delimiter = ',', default_value = "price")]
    pub(crate) sort: Vec<Order>,
    /// Rows wanted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200), default_value_t = 20)]
    pub(crate) limit: u32,
    /// Go on where this cursor of the part before says
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Also count what fits by model, country and price
    #[arg(long)]
    pub(crate) facets: bool,
}

/// Get a firm price.
#[derive(Debug, Args)]
pub(crate) struct Quote {
    /// Show this quote again instead of making one
    #[arg(value_name = "QUOTE", conflicts_with = "offer", conflicts_with_all = FILTERS)]
    pub(crate) quote: Option<QuoteId>,
    /// Quote this offer instead of the cheapest that fits
    #[arg(long, conflicts_with_all = FILTERS)]
    pub(crate) offer: Option<OfferId>,
    /// What the offer must satisfy.
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// Book.
#[derive(Debug, Args)]
pub(crate) struct Book {
    /// Book this offer instead of the cheapest that fits
    #[arg(long, conflicts_with = "quote", conflicts_with_all = FILTERS)]
    pub(crate) offer: Option<OfferId>,
    /// Book this quote, at its price
    #[arg(long, conflicts_with_all = FILTERS, conflicts_with_all = ["count", "disk", "duration_seconds"])]
    pub(crate) quote: Option<QuoteId>,
    /// What the offer must satisfy.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Container image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// Environment of the container; may be repeated; not for secrets
    #[arg(long, value_name = "NAME=VALUE", value_parser = text::assignment)]
    pub(crate) env: Vec<(String, String)>,
    /// Name of the lease, for people
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Stop the lease when it has cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = text::amount)]
    pub(crate) max_spend: Option<Micros>,
    /// End the lease after this time, e.g. 90m, 2h, 1d12h
    #[arg(long, value_name = "DURATION", value_parser = text::duration)]
    pub(crate) end_after: Option<Duration>,
    /// Do not wait until it runs
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Command and arguments [default: the image's]
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// Stop, resume or end.
#[derive(Debug, Args)]
pub(crate) struct LeaseAct {
    /// Which lease
    #[arg(value_name = "LEASE")]
    pub(crate) lease: LeaseId,
    /// Wait until the machine has done it
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Print a container's output.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Which lease
    #[arg(value_name = "LEASE")]
    pub(crate) lease: LeaseId,
    /// The last so many lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tail: Option<u32>,
    /// Go on until the container ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Show when each line was written
    #[arg(long, short)]
    pub(crate) timestamps: bool,
    /// Pass control characters (colours) on to the terminal
    #[arg(long)]
    pub(crate) raw: bool,
}
