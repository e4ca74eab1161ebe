//! Payouts to providers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::Money;

/// Ask for a payout.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePayout {
    /// In whole cents; absent: all that is payable.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub amount: Option<Money>,
}

/// A payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payout {
    /// `pay_…`
    pub id: String,
    /// How much.
    pub amount: Money,
    /// `requested`, `in_flight`, `paid`, `failed` (the money is payable again) or `returned` (the
    /// bank sent it back; the money is payable again).
    pub state: String,
    /// Why.
    pub state_reason: String,
    /// Play money: no bank is told.
    pub sandbox: bool,
    /// When it was asked for.
    #[schema(format = "date-time")]
    pub requested_at: String,
    /// When it came into its state.
    #[schema(format = "date-time")]
    pub state_at: String,
}

crate::page::page! {
    /// A page of payouts.
    PayoutPage of Payout
}
