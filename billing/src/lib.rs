//! Money, pure: accounts, transfers, holds, meters, charges, statements.
//!
//! Invariants: integers only, checked; provider + fee + tax = renter to the micro-unit; nothing
//! changes on a refusal; any cadence of settlement gives the same total.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::float_arithmetic,
        clippy::integer_division,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

pub mod account;
pub mod chain;
pub mod charge;
pub mod exhaustion;
pub mod hold;
pub mod ledger;
pub mod meter;
pub mod pending;
pub mod posting;
pub mod rating;
pub mod statement;
pub mod transfer;
