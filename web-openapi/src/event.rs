//! Events: what happened to a lease, why, by whom; and what a party is told.

use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// Something that the party is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// `wallet.low`, `lease.disk_ends`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Public id of the object that it is about.
    pub object: String,
    /// For people.
    pub detail: String,
    /// For programs; its fields depend on the type.
    #[schema(value_type = Object)]
    pub data: Value,
}

crate::page::page! {
    /// A page of what was told, newest first.
    EventPage of Event
}
