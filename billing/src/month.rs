//! Calendar months and days in UTC: the only calendar that bills know.
//!
//! A month is `[00:00 UTC on its first day, 00:00 UTC on the next month's first day)`. No time zone
//! and no daylight saving enters: days have 24 hours, and nothing of the machine's settings is read.

use std::fmt;
use std::str::FromStr;

use domain::clock::{Span, Timestamp};
use jiff::civil;
use jiff::tz::Offset;

/// A calendar month in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i16,
    month: i8,
}

/// `[from, to)` of server time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first instant in it.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
}

fn civil_of(at: Timestamp) -> civil::DateTime {
    let micros = at.micros().clamp(0, Timestamp::MAX.micros());
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Offset::UTC.to_datetime(at)
}

fn start_of(date: civil::Date) -> Timestamp {
    let at = Offset::UTC.to_timestamp(date.to_datetime(civil::Time::midnight()));
    at.map_or(Timestamp::MAX, |t| {
        Timestamp::from_micros(t.as_microsecond())
    })
}

impl Month {
    /// The month that contains `at`.
    pub fn of(at: Timestamp) -> Self {
        let civil = civil_of(at);
        Self {
            year: civil.year(),
            month: civil.month(),
        }
    }

    fn first(self) -> civil::Date {
        civil::Date::new(self.year, self.month, 1).unwrap_or(civil::Date::ZERO)
    }

    /// The month after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.month {
            12 => Self {
                year: self.year.saturating_add(1),
                month: 1,
            },
            month => Self {
                year: self.year,
                month: month.saturating_add(1),
            },
        }
    }

    /// The month before this one.
    #[must_use]
    pub const fn previous(self) -> Self {
        match self.month {
            1 => Self {
                year: self.year.saturating_sub(1),
                month: 12,
            },
            month => Self {
                year: self.year,
                month: month.saturating_sub(1),
            },
        }
    }

    /// Its bounds.
    pub fn period(self) -> Period {
        Period {
            from: start_of(self.first()),
            to: start_of(self.next().first()),
        }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// The text is not `YYYY-MM` of a year from 2000 to 9998.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a month is written as YYYY-MM")]
pub struct NotAMonth;

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let (year, month) = text.split_once('-').ok_or(NotAMonth)?;
        let digits = |t: &str, n: usize| t.len() == n && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) {
            return Err(NotAMonth);
        }
        let read = Self {
            year: year.parse().map_err(|_bad| NotAMonth)?,
            month: month.parse().map_err(|_bad| NotAMonth)?,
        };
        let known = (2000..=9998).contains(&read.year) && (1..=12).contains(&read.month);
        known.then_some(read).ok_or(NotAMonth)
    }
}

/// The UTC day that `at` is in.
pub fn day_of(at: Timestamp) -> Period {
    let from = start_of(civil_of(at).date());
    Period {
        from,
        to: from.plus(Span::from_hours(24)),
    }
}

/// The year that `at` is in, in UTC.
pub fn year_of(at: Timestamp) -> i16 {
    civil_of(at).year()
}

/// Midnight UTC at the beginning of a day that is written as `2026-12-01`.
pub fn day_start(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(start_of)
}

/// `2026-12-01`.
pub fn date_text(at: Timestamp) -> String {
    civil_of(at).date().to_string()
}

/// `2026-12-01T10:00:00Z`: whole seconds, rounded down.
pub fn second_text(at: Timestamp) -> String {
    format!("{:.0}Z", civil_of(at))
}

/// `2026-12-01T10:00:00.123Z`: whole milliseconds, rounded down.
pub fn milli_text(at: Timestamp) -> String {
    format!("{:.3}Z", civil_of(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_micros(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn a_month_begins_and_ends_at_midnight_utc() {
        for (inside, from, to) in [
            ("2026-11-30T23:59:59.999999Z", "2026-11-01", "2026-12-01"),
            ("2026-12-01T00:00:00Z", "2026-12-01", "2027-01-01"),
            ("2028-02-29T12:00:00Z", "2028-02-01", "2028-03-01"),
            // Clocks change on these days in Europe, New York and Chatham.
            ("2026-03-29T01:00:00Z", "2026-03-01", "2026-04-01"),
            ("2026-10-25T01:00:00Z", "2026-10-01", "2026-11-01"),
            ("2026-03-08T07:00:00Z", "2026-03-01", "2026-04-01"),
            ("2026-04-05T02:45:00Z", "2026-04-01", "2026-05-01"),
        ] {
            let period = Month::of(at(inside)).period();
            assert_eq!(period.from, at(&format!("{from}T00:00:00Z")), "{inside}");
            assert_eq!(period.to, at(&format!("{to}T00:00:00Z")), "{inside}");
        }
    }

    #[test]
    fn months_tile_and_days_have_24_hours() {
        let mut month: Month = "2025-12".parse().unwrap();
        for _ in 0..40 {
            assert_eq!(month.period().to, month.next().period().from);
            assert_eq!(month.next().previous(), month);
            let mut day = day_of(month.period().from);
            while day.to < month.period().to {
                assert_eq!(day.to.since(day.from), Span::from_hours(24));
                day = day_of(day.to);
            }
            assert_eq!(day.to, month.period().to);
            month = month.next();
        }
    }

    #[test]
    fn texts() {
        assert_eq!("2026-11".parse::<Month>().unwrap().to_string(), "2026-11");
        for bad in [
            "", "2026", "2026-13", "2026-00", "26-01", "2026-1", "2026-011", "+026-01",
        ] {
            assert_eq!(bad.parse::<Month>(), Err(NotAMonth), "{bad}");
        }
        let instant = at("2026-12-01T10:00:00.123999Z");
        assert_eq!(second_text(instant), "2026-12-01T10:00:00Z");
        assert_eq!(milli_text(instant), "2026-12-01T10:00:00.123Z");
        assert_eq!(date_text(instant), "2026-12-01");
        assert_eq!(year_of(instant), 2026);
    }
}
