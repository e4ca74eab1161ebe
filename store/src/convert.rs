//! Between the database's types and the house's.

use diesel::pg::data_types::PgTimestamp;
use domain::clock::Timestamp;
use domain::money::{Currency, Micros};

use crate::error::Error;

/// PostgreSQL counts microseconds from 2000-01-01T00:00:00Z.
const PG_EPOCH_US: i64 = 946_684_800_000_000;

pub(crate) fn to_pg(at: Timestamp) -> PgTimestamp {
    PgTimestamp(at.micros().saturating_sub(PG_EPOCH_US))
}

pub(crate) fn from_pg(at: PgTimestamp) -> Timestamp {
    Timestamp::from_micros(at.0.saturating_add(PG_EPOCH_US))
}

pub(crate) fn parsed<T>(what: &'static str, value: Option<T>) -> Result<T, Error> {
    value.ok_or(Error::Corrupt(what))
}

pub(crate) fn small(count: u16) -> i16 {
    i16::try_from(count).unwrap_or(i16::MAX)
}

pub(crate) fn count(small: i16) -> u16 {
    u16::try_from(small).unwrap_or(0)
}

pub(crate) fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

pub(crate) fn unsigned(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub(crate) fn big(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned_big(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(crate) fn money(value: Option<i64>) -> Option<Micros> {
    value.map(Micros::new)
}

pub(crate) fn currency(ledger: i32) -> Result<Currency, Error> {
    parsed("currency", Currency::from_ledger(ledger))
}
