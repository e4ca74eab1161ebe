//! Usage: what was charged or earned, summed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::Money;

/// One sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// `lse_…`, a label (empty: leases without one), a resource, or a UTC day.
    pub key: String,
    /// Proven GPU time × GPUs.
    pub gpu_seconds: i64,
    /// Proven disk time × GiB.
    pub gib_seconds: i64,
    /// Before tax; fee included.
    pub gross: Money,
    /// The platform's share.
    pub fee: Money,
    /// On top.
    pub tax: Money,
    /// `cost`: gross + tax. `earnings`: gross − fee.
    pub total: Money,
}

/// Sums of the charges whose range ends in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// `cost` or `earnings`.
    pub side: String,
    /// `lease`, `label`, `resource` or `day`.
    pub group_by: String,
    /// Start of the period.
    #[schema(format = "date-time")]
    pub from: String,
    /// End of the period, not contained.
    #[schema(format = "date-time")]
    pub to: String,
    /// The largest first; days in order.
    pub data: Vec<UsageRow>,
    /// Are there more rows than wanted?
    pub has_more: bool,
    /// Of everything in the period, also of rows that are not shown.
    pub total: Money,
}
