//! supply.
