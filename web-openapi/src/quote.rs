//! Quotes: firm all-in prices for two minutes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::offer::AllInPrice;

/// Ask for a firm price.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateQuote {
    /// `ofr_…`
    pub offer_id: String,
    /// Refuse (409) if the offer is not at this version any more.
    #[serde(default)]
    pub offer_version: Option<i64>,
    /// GPUs wanted.
    #[schema(minimum = 1, maximum = 64)]
    pub gpu_count: u16,
    /// Disk wanted; absent = 10.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub disk_gib: Option<u32>,
    /// Duration for the total; absent = one hour. The rates hold for any duration.
    #[serde(default)]
    #[schema(minimum = 60, maximum = 31_536_000)]
    pub duration_seconds: Option<u32>,
}

/// A firm price. Booking it before `expires_at` gives exactly these rates, or 409 and no charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quote {
    /// `quo_…`
    pub id: String,
    /// `ofr_…`
    pub offer_id: String,
    /// Version that it was made from.
    pub offer_version: i64,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// True if the GPUs are simulated.
    pub simulated: bool,
    /// The whole price.
    pub price: AllInPrice,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// It can be booked before this.
    #[schema(format = "date-time")]
    pub expires_at: String,
    /// Ed25519 signature (hex) of the market over id, offer, version, size, rates and expiry.
    pub signature: String,
}
