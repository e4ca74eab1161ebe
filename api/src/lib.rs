//! The server's door: HTTP for clients, WebSocket for agents, workers, and the wiring of it all.
//!
//! Invariant: only here are clock, ids, keys and configuration made; a handler is typed input, an
//! actor, one use-case, a view.

pub mod config;
pub mod edge;
pub mod http;
pub mod replay;
pub mod state;
pub mod telemetry;
pub mod worker;

pub use http::docs::openapi;
