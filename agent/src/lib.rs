//! The agent of a machine: it dials the market, holds the machine's containers to the desired state
//! that the market sends, and reports what it sees.
//!
//! Invariants: containers outlive the agent and the server, and are stopped by order only; nothing
//! is reported that was not just seen; only containers labelled with this machine are touched.

pub mod config;
pub mod converge;
pub mod enroll;
pub mod identity;
pub mod journal;
pub mod keeper;
pub mod link;
pub mod meter;
pub mod probe;
pub mod report;
pub mod runner;
pub mod service;
pub mod simulate;
pub mod state_dir;
