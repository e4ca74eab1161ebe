//! Money, pure: accounts, transfers, holds, meters, charges, statements, invoices, budgets.
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
pub mod budget;
pub mod chain;
pub mod charge;
pub mod credit_note;
pub mod exhaustion;
pub mod focus;
pub mod hold;
pub mod invoice;
pub mod ledger;
pub mod meter;
pub mod month;
pub mod pending;
pub mod posting;
pub mod rating;
pub mod segment;
pub mod sheet;
pub mod statement;
pub mod tax_rule;
pub mod transfer;
