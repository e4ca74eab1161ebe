//! Ground floor: the nouns that two rooms above need, and their rules.
//!
//! Invariant: pure. No IO, no clock, no randomness, no environment, no logging, no async.

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

pub mod access;
pub mod audit;
pub mod clock;
pub mod gpu;
pub mod id;
pub mod lease;
pub mod machine;
pub mod money;
pub mod party;
pub mod refusal;
