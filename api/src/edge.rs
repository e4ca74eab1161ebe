//! The outside that use-cases are given: clock, ids, keys, links to agents.

pub mod clock;
pub mod hub;
pub mod keys;
pub mod token;
