//! Use-cases: load, decide (pure), save. And the reconcilers that keep promises.
//!
//! Invariants: every mutation commits its effect, its audit line, its idempotency answer and its
//! outbox message together; nothing but SQL and pure code runs inside a transaction; `now` is read
//! once per use-case.

pub mod adjustment;
pub mod api_key;
pub mod billing_profile;
pub mod book;
pub mod budget;
mod burning;
pub mod context;
pub mod credit;
pub mod credit_note;
pub mod day;
pub mod dispute;
pub mod earnings;
pub mod error;
pub mod event;
pub mod invoice;
pub mod lease;
pub mod link;
pub mod machine;
pub mod offer;
pub mod party;
pub mod payout;
mod posting;
pub mod prove;
pub mod quote;
pub mod reconcile;
mod staff;
pub mod transaction;
pub mod usage;
pub mod wallet;

pub use context::{Answer, Caller, Cx, Once, OnceKey, Policy, Settings};
pub use error::{Error, FieldFault};
