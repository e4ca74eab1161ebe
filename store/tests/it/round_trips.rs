//! round_trips.
