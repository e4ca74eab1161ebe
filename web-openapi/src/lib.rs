//! The wire: what clients and agents send and get, and the problem codes' HTTP faces.
//!
//! Invariants: requests refuse unknown fields; money is a decimal string with its currency; units
//! stand in names; times are RFC 3339 in UTC; ids are texts with a typed prefix.

pub mod adjustment;
pub mod agent;
pub mod api_key;
pub mod budget;
pub mod credit;
pub mod event;
pub mod gpu;
pub mod invoice;
pub mod lease;
pub mod ledger;
pub mod machine;
pub mod money;
pub mod offer;
pub mod page;
pub mod payout;
pub mod problem;
pub mod quote;
pub mod session;
pub mod time;
pub mod usage;
pub mod wallet;
