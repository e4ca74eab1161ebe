//! Events of a lease: what happened, why, by whom.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One change of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseEvent {
    /// `evt_…`
    pub id: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// State before; absent for the booking.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// State after.
    pub to: String,
    /// Reason code.
    #[schema(example = "renter")]
    pub reason: String,
    /// For people.
    pub detail: String,
    /// `user`, `api_key`, `machine` or `market`.
    pub actor: String,
}

crate::page::page! {
    /// A page of events, oldest first.
    LeaseEventPage of LeaseEvent
}
