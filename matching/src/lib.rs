//! Matching, pure: which offers fit a request, at what all-in price, on which GPUs, and why not.
//!
//! Invariants: same input, same output; every returned offer satisfies the request; a lease lies on
//! one machine; every refusal names the constraint that bound.

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

pub mod book;
pub mod constraint;
pub mod explain;
pub mod offer;
pub mod plan;
pub mod pool;
pub mod price;
pub mod reference;
mod relax;
pub mod replay;
pub mod request;
pub mod score;
