//! Adjustments of accounts by the operator's people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::Money;

/// Which way an adjustment goes, seen from the party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentDirection {
    /// The party gets money.
    Credit,
    /// The party loses money; it is set aside until a second person has decided.
    Debit,
}

/// Propose an adjustment. A small one is made at once.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAdjustment {
    /// `pty_…`
    pub party_id: String,
    /// Which way.
    pub direction: AdjustmentDirection,
    /// `renter_wallet`, `provider_earned` or `provider_payable`.
    pub account: String,
    /// Which account of the platform bears it: `sla_expense`, `dispute_loss`, `bad_debt` or `suspense`.
    pub borne_by: String,
    /// How much.
    pub amount: Money,
    /// In words; on the record.
    #[schema(min_length = 3, max_length = 500)]
    pub reason: String,
}

/// What a second person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentVerdict {
    /// Do it.
    Approve,
    /// Do not; needs a reason.
    Reject,
}

/// Decide on a proposed adjustment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdjustmentAction {
    /// What to do.
    #[serde(rename = "type")]
    pub kind: AdjustmentVerdict,
    /// In words; on the record.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(min_length = 3, max_length = 500)]
    pub reason: Option<String>,
}

/// An adjustment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Adjustment {
    /// `adj_…`
    pub id: String,
    /// `pty_…`
    pub party_id: String,
    /// `credit` or `debit`.
    pub direction: String,
    /// Which account of the party.
    pub account: String,
    /// Which account of the platform bears it.
    pub borne_by: String,
    /// How much.
    pub amount: Money,
    /// In words.
    pub reason: String,
    /// Above the limit: a second person must approve.
    pub needs_approval: bool,
    /// `proposed`, `applied`, `rejected` or `expired`.
    pub state: String,
    /// `usr_…`
    pub proposed_by: String,
    /// When.
    #[schema(format = "date-time")]
    pub proposed_at: String,
    /// It cannot be approved from then on.
    #[schema(format = "date-time")]
    pub expires_at: String,
    /// `usr_…` who decided; absent if nobody had to, or did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decided_by: Option<String>,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub decided_at: Option<String>,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decision_reason: Option<String>,
}

crate::page::page! {
    /// A page of adjustments.
    AdjustmentPage of Adjustment
}
