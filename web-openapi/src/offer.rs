//! Offers: what providers ask, and the search over them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::{Money, Rate};

/// List a machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateOffer {
    /// `mch_…`
    pub machine_id: String,
    /// Price of one GPU for one hour, on demand (`per: gpu_hour`).
    pub price: Rate,
    /// Lowest bid that interruptible leases may make (`per: gpu_hour`); absent = none taken.
    #[serde(default)]
    pub bid_floor: Option<Rate>,
    /// Price of one GPU for one hour that a stopped lease keeps for its resume (`per: gpu_hour`), at
    /// most `price`; absent = `price`.
    #[serde(default)]
    pub keep_price: Option<Rate>,
    /// Price of disk (`per: gib_month`); absent = free.
    #[serde(default)]
    pub storage_price: Option<Rate>,
    /// Smallest number of GPUs in one lease; absent = 1.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 64)]
    pub min_gpus: Option<u16>,
    /// Largest number of GPUs in one lease; absent = all of the machine.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 64)]
    pub max_gpus: Option<u16>,
}

/// Change an offer (`application/merge-patch+json`, with `If-Match`). Running leases keep their price.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchOffer {
    /// See [`CreateOffer::price`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Rate>,
    /// See [`CreateOffer::bid_floor`]; `null` removes it.
    #[serde(default, with = "double", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Rate>)]
    pub bid_floor: Option<Option<Rate>>,
    /// See [`CreateOffer::keep_price`]; `null` makes it `price`.
    #[serde(default, with = "double", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Rate>)]
    pub keep_price: Option<Option<Rate>>,
    /// See [`CreateOffer::storage_price`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_price: Option<Rate>,
    /// See [`CreateOffer::min_gpus`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 64)]
    pub min_gpus: Option<u16>,
    /// See [`CreateOffer::max_gpus`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 64)]
    pub max_gpus: Option<u16>,
}

/// Tells `null` from absent.
pub(crate) mod double {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(
        clippy::option_option,
        reason = "absent, null and a value are three things"
    )]
    pub(crate) fn deserialize<'de, T, D>(input: D) -> Result<Option<Option<T>>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Option::<T>::deserialize(input).map(Some)
    }

    #[expect(
        clippy::option_option,
        reason = "absent, null and a value are three things"
    )]
    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<T, S>(value: &Option<Option<T>>, out: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize,
        S: Serializer,
    {
        value.as_ref().and_then(Option::as_ref).serialize(out)
    }
}

/// An offer as its provider sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// `ofr_…`
    pub id: String,
    /// Counts up with each change; also the `ETag`.
    pub version: i64,
    /// `mch_…`
    pub machine_id: String,
    /// Catalogue slug of its GPUs.
    pub gpu_model: String,
    /// All GPUs of the machine.
    pub gpu_count: u16,
    /// GPUs that can be booked now.
    pub gpus_free: u16,
    /// Per GPU-hour.
    pub price: Rate,
    /// Per GPU-hour.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bid_floor: Option<Rate>,
    /// Per GPU-hour, while it is kept for a stopped lease.
    pub keep_price: Rate,
    /// Per GiB-month.
    pub storage_price: Rate,
    /// Smallest lease.
    pub min_gpus: u16,
    /// Largest lease.
    pub max_gpus: u16,
    /// `live` or `withdrawn`.
    pub state: String,
    /// True if the GPUs are simulated.
    pub simulated: bool,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When it last changed.
    #[schema(format = "date-time")]
    pub updated_at: String,
}

crate::page::page! {
    /// A page of offers.
    OfferPage of Offer
}

/// What a renter looks for. Absent fields do not limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchOffers {
    /// Slugs or aliases of GPU models; any of them.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub gpu_models: Vec<String>,
    /// GPUs wanted on one machine; absent = 1.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 64)]
    pub gpu_count: Option<u16>,
    /// Least memory of each GPU.
    #[serde(default)]
    #[schema(maximum = 10_000_000)]
    pub min_gpu_memory_mib: Option<u32>,
    /// Least cores of the machine.
    #[serde(default)]
    #[schema(maximum = 100_000)]
    pub min_cpu_cores: Option<u32>,
    /// Least memory of the machine.
    #[serde(default)]
    #[schema(maximum = 1_000_000_000)]
    pub min_ram_mib: Option<u64>,
    /// Disk wanted; absent = 10.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub disk_gib: Option<u32>,
    /// For how long, for the all-in price; absent = one hour.
    #[serde(default)]
    #[schema(minimum = 60, maximum = 31_536_000)]
    pub duration_seconds: Option<u32>,
    /// Two-letter countries; any of them.
    #[serde(default)]
    #[schema(max_items = 250)]
    pub countries: Vec<String>,
    /// Two-letter countries to avoid.
    #[serde(default)]
    #[schema(max_items = 250)]
    pub not_countries: Vec<String>,
    /// Most to pay for one GPU-hour.
    #[serde(default)]
    pub max_price: Option<Rate>,
    /// Also simulated GPUs; absent = false.
    #[serde(default)]
    pub simulated: Option<bool>,
    /// What the order goes by, the first key before the second; absent = `price`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 5)]
    pub sort: Vec<SortKey>,
    /// Rows wanted; absent = 50.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the part before, with the rest of the search unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4000)]
    pub cursor: Option<String>,
    /// Also count what fits by model, country and price; absent = false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<bool>,
}

/// An order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortKey {
    /// All-in price for the given disk and duration, lowest first.
    Price,
    /// Price of a GPU-hour, lowest first.
    PricePerGpuHour,
    /// Memory of a GPU, largest first.
    GpuMemory,
    /// All-in price for each TFLOP per second of dense FP16 (`/v1/gpu-models` has the rates and
    /// their sources), lowest first; models without a published rate last.
    PricePerTflop,
    /// All-in price for each GiB of GPU memory, lowest first.
    PricePerGpuGib,
}

/// The whole price of a lease of given size and duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllInPrice {
    /// One GPU, one hour.
    pub gpu_hour: Rate,
    /// One GPU, one hour, kept while the lease is stopped (`stop` with `keep_gpus`).
    pub keep_price: Rate,
    /// All GPUs of the lease, one hour.
    pub compute_per_hour: Rate,
    /// The whole disk, one month of 730 hours.
    pub storage_per_month: Rate,
    /// Seconds that the amounts below are for.
    pub duration_seconds: u32,
    /// GPUs for the duration.
    pub compute: Money,
    /// Disk for the duration.
    pub storage: Money,
    /// The platform's fee, contained in `compute` and `storage`.
    pub fee_included: Money,
    /// Tax, on top.
    pub tax: Money,
    /// What the renter pays: compute + storage + tax.
    pub total: Money,
    /// The same for one hour.
    pub total_per_hour: Rate,
}

/// One offer that satisfies the search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferMatch {
    /// `ofr_…`
    pub offer_id: String,
    /// Version that the price belongs to.
    pub offer_version: i64,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs of the lease.
    pub gpu_count: u16,
    /// GPUs that can be booked now.
    pub gpus_free: u16,
    /// Memory of each.
    pub gpu_memory_mib: u32,
    /// Cores of the machine.
    pub cpu_cores: u32,
    /// Memory of the machine.
    pub ram_mib: u64,
    /// Free disk of the machine.
    pub disk_gib: u64,
    /// Two-letter country, if told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub country: Option<String>,
    /// True if the GPUs are simulated.
    pub simulated: bool,
    /// The whole price.
    pub price: AllInPrice,
}

/// What could be changed to find something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Relaxation {
    /// Field of the search.
    pub field: String,
    /// What was asked.
    pub from: String,
    /// What would do.
    pub to: String,
    /// Offers that would be found.
    pub offers: u32,
}

/// Why nothing, or not more, was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Exclusion {
    /// Field of the search, or the rule.
    pub constraint: String,
    /// Offers that it alone excludes or helps to exclude.
    pub offers: u32,
}

/// How many of the offers that fit have something in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetCount {
    /// A slug, a country (empty: not told), or where a step of prices per GPU-hour begins.
    pub value: String,
    /// Offers that fit.
    pub offers: u32,
}

/// Offers that fit, counted. Each list sums up to `fitting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchFacets {
    /// By GPU model.
    pub gpu_models: Vec<FacetCount>,
    /// By country.
    pub countries: Vec<FacetCount>,
    /// By price per GPU-hour, in steps that double.
    pub prices: Vec<FacetCount>,
}

/// The search's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferSearch {
    /// What fits, in the wanted order.
    pub data: Vec<OfferMatch>,
    /// Were there more than `limit`?
    pub has_more: bool,
    /// Cursor of the next part; absent on the last one. Good for an hour.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
    /// The state of the market that was searched.
    #[schema(format = "date-time")]
    pub as_of: String,
    /// Live offers looked at.
    pub considered: u32,
    /// How many offers fit, in all parts.
    #[serde(default)]
    #[schema(required = true)]
    pub fitting: u32,
    /// Offers that changed since the first part: no further part has them.
    #[serde(default)]
    #[schema(required = true)]
    pub changed: u32,
    /// Counts of what fits, if asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub facets: Option<SearchFacets>,
    /// If nothing fits: the field that stands most in the way.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binding: Option<String>,
    /// Why others were left out.
    pub excluded: Vec<Exclusion>,
    /// If nothing fits: the nearest changes that would.
    pub relaxations: Vec<Relaxation>,
}
