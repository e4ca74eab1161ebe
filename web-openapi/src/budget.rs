//! Budgets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::Money;

/// Whose cost counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// The whole party's.
    Party,
    /// Of the leases that one member booked.
    Member,
    /// Of the leases with one label.
    Label,
    /// Of one lease.
    Lease,
}

/// Over which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// Each UTC calendar month anew.
    Month,
    /// For ever.
    Total,
}

/// What happens at 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAction {
    /// Somebody is told.
    Alert,
    /// Running leases are stopped (disks stay), and bookings and resumes are refused.
    Stop,
}

/// Make a budget.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBudget {
    /// Whose cost counts.
    pub scope: BudgetScope,
    /// `usr_…`, for the scope `member`.
    #[serde(default)]
    pub member_id: Option<String>,
    /// For the scope `label`.
    #[serde(default)]
    #[schema(max_length = 100)]
    pub label: Option<String>,
    /// `lse_…`, for the scope `lease`.
    #[serde(default)]
    pub lease_id: Option<String>,
    /// Over which time.
    pub period: BudgetPeriod,
    /// The most, tax included.
    pub limit: Money,
    /// Percentages of the limit at which somebody is told, rising; absent = 50, 80. 100 always is.
    #[serde(default)]
    #[schema(max_items = 10, example = json!([50, 80]))]
    pub alert_percents: Option<Vec<u16>>,
    /// What happens at 100 %.
    pub action: BudgetAction,
}

/// Changes a budget; absent fields stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchBudget {
    /// The most, tax included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Money>,
    /// Percentages of the limit at which somebody is told, rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 10)]
    pub alert_percents: Option<Vec<u16>>,
    /// What happens at 100 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<BudgetAction>,
}

/// An alert that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetAlert {
    /// The threshold.
    pub percent: u16,
    /// What was spent then.
    pub spent: Money,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
}

/// A budget and how far it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    /// `bud_…`
    pub id: String,
    /// Whose cost counts.
    pub scope: BudgetScope,
    /// `usr_…`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub member_id: Option<String>,
    /// The label.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// `lse_…`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_id: Option<String>,
    /// Over which time.
    pub period: BudgetPeriod,
    /// Since when cost counts; absent: since ever.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub period_from: Option<String>,
    /// The most, tax included.
    pub limit: Money,
    /// Charged and proven in the period, tax included.
    pub spent: Money,
    /// Is 100 % reached?
    pub exhausted: bool,
    /// Percentages of the limit at which somebody is told.
    pub alert_percents: Vec<u16>,
    /// What happens at 100 %.
    pub action: BudgetAction,
    /// Alerts that were given in this period.
    pub alerts: Vec<BudgetAlert>,
    /// Counts up with each change; also the `ETag`.
    pub version: i64,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When it last changed.
    #[schema(format = "date-time")]
    pub updated_at: String,
}

crate::page::page! {
    /// A page of budgets.
    BudgetPage of Budget
}
