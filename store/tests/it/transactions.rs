//! transactions.
