//! Instants and spans as plain integers (microseconds, UTC), and the two ports that make them.
//!
//! Pure functions take `now` and ids as arguments; only a door (`api`, `agent`, `cli`) and the
//! test harness implement [`Clock`] and [`IdSource`].

use std::fmt;

use uuid::Uuid;

/// An instant: microseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A signed length of time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Timestamp {
    /// The largest instant that PostgreSQL, RFC 3339 in any zone and this type all can show:
    /// 9999-12-30T22:00:00Z.
    pub const MAX: Self = Self(253_402_207_200_000_000);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From milliseconds since the Unix epoch; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the Unix epoch, rounded down: the unit of metering.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// This instant plus `span`; saturates at the ends of `i64`.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This instant minus `span`; saturates at the ends of `i64`.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// Time from `earlier` to `self`; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// From seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// From minutes; saturates.
    pub const fn from_mins(mins: i64) -> Self {
        Self(mins.saturating_mul(60_000_000))
    }

    /// From hours; saturates.
    pub const fn from_hours(hours: i64) -> Self {
        Self::from_mins(hours.saturating_mul(60))
    }

    /// Microseconds.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Whole seconds, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.secs())
    }
}

/// Tells the time. One use-case reads it once, so that one decision has one time.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// Makes ids. Production gives UUIDv7; tests count.
pub trait IdSource: Send + Sync {
    /// A fresh UUID.
    fn next(&self) -> Uuid;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millis_round_down_also_before_the_epoch() {
        assert_eq!(Timestamp::from_micros(-1).millis(), -1);
        assert_eq!(Span::from_micros(1_999).millis(), 1);
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Timestamp::from_micros(i64::MAX);
        assert_eq!(end.plus(Span::from_secs(1)), end);
    }
}
