//! Credit from the market to renters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::Money;

/// Why credit is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CreditType {
    /// To win a renter; must expire.
    Promo,
    /// For lost service of a lease.
    Sla,
    /// For anything else.
    Goodwill,
}

/// Grant a credit. It is spent before the wallet's money, and never paid out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantCredit {
    /// Why.
    #[serde(rename = "type")]
    pub kind: CreditType,
    /// `pty_…`; not needed with a lease.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub party_id: Option<String>,
    /// How much. Of `sla`: what is owed for the lease in total, so that what was credited before is
    /// not credited again.
    pub amount: Money,
    /// `lse_…`; `sla` needs it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_id: Option<String>,
    /// It cannot be used from then on; `promo` needs it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// In words; on the record.
    #[schema(min_length = 3, max_length = 500)]
    pub reason: String,
}

/// A credit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Credit {
    /// `crd_…`
    pub id: String,
    /// `pty_…`
    pub party_id: String,
    /// `promo`, `sla` or `goodwill`.
    #[serde(rename = "type")]
    pub kind: String,
    /// How much was given.
    pub amount: Money,
    /// Neither used nor expired.
    pub remaining: Money,
    /// In words.
    pub reason: String,
    /// `lse_…`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_id: Option<String>,
    /// It cannot be used from then on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// `usr_…` who granted it.
    pub granted_by: String,
    /// When.
    #[schema(format = "date-time")]
    pub created_at: String,
}

crate::page::page! {
    /// A page of credits.
    CreditPage of Credit
}
