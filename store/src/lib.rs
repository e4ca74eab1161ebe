//! All SQL. One file for each noun; rows are private, records are made of the house's nouns.
//!
//! Invariants: functions that change something take a [`db::Tx`]; what must never happen is a
//! constraint in `migrations`, reported as [`error::Error::Conflict`].

pub mod adjustment;
pub mod api_key;
pub mod audit;
mod batch;
pub mod billing_profile;
pub mod book;
pub mod budget;
mod bulk;
pub mod charge;
mod convert;
pub mod credit;
pub mod day;
pub mod db;
pub mod dispute;
pub mod enrollment;
pub mod error;
pub mod event;
pub mod group;
pub mod hold;
pub mod idempotency;
pub mod invoice;
mod journal;
pub mod lease;
pub mod lease_event;
pub mod ledger;
pub mod machine;
pub mod maturing;
pub mod meter;
pub mod offer;
pub mod outbox;
pub mod page;
pub mod party;
pub mod payout;
mod prepared;
pub mod prove;
pub mod quote;
mod schema;
pub mod segment;
pub mod shard;
pub mod transaction;
pub mod usage;
pub mod wallet;
pub mod writer;

pub use db::Db;
