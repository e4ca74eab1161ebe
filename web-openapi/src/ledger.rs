//! The public heads of the ledger.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The last batch of a shard before a day's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerHead {
    /// The shard.
    pub shard: i16,
    /// Number of its last batch.
    pub no: i64,
    /// That batch's BLAKE3 hash, hex.
    pub hash: String,
}

/// The signed end of a UTC day: whoever keeps it can prove later that nothing before was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerDay {
    /// `2026-12-01` (UTC).
    pub day: String,
    /// Every shard that has batches.
    pub heads: Vec<LedgerHead>,
    /// BLAKE3 over day and heads, hex.
    pub root: String,
    /// Public key of the market (Ed25519), hex.
    pub signed_by: String,
    /// Signature over `gpumarket-ledger-day/1`, `\n` and the root's bytes, hex.
    pub signature: String,
    /// When it was signed.
    #[schema(format = "date-time")]
    pub signed_at: String,
}

/// The signed days, newest first, at most a year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerDayPage {
    /// The days.
    pub data: Vec<LedgerDay>,
}
