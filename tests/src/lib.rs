//! The harness: real processes on a real PostgreSQL, and a scripted agent where a real one would
//! only be slow.
//!
//! Services come from the environment, as `make test` sets them:
//! `GPUMARKET_TEST_DATABASE_URL` and `GPUMARKET_TEST_ENGINE`.

pub mod agent;
pub mod client;
pub mod database;
pub mod inside;
pub mod ledger_stream;
pub mod market;
pub mod node;
pub mod openb;
pub mod process;
pub mod proxy;
pub mod scripted_agent;
pub mod wait;
pub mod world;
