//! The system's clock and fresh ids.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use domain::clock::{Clock, IdSource, Timestamp};
use uuid::Uuid;

/// The server's time: the system's clock where that is ahead, and never back. When the system's
/// clock is set back, the server's goes on at the pace of the monotonic clock: it does not stand
/// still, since time that passes must be metered. A new process starts with the system's clock
/// again; meters take that step out (`billing::meter`).
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    /// The server's time less the time since `started`, in µs. Only grows.
    origin: AtomicI64,
}

impl Default for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the server's time is made"
    )]
    fn default() -> Self {
        Self {
            started: Instant::now(),
            origin: AtomicI64::new(i64::MIN),
        }
    }
}

impl SystemClock {
    fn at(&self, wall_us: i64, elapsed_us: i64) -> Timestamp {
        let origin = wall_us.saturating_sub(elapsed_us);
        let before = self.origin.fetch_max(origin, Ordering::Relaxed);
        Timestamp::from_micros(before.max(origin).saturating_add(elapsed_us))
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the server's time is made"
    )]
    fn now(&self) -> Timestamp {
        // In this order: a pause between the two must not set the server's time ahead for good.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let elapsed = self.started.elapsed();
        let wide = |t: std::time::Duration| i64::try_from(t.as_micros()).unwrap_or(i64::MAX);
        self.at(wide(since), wide(elapsed))
    }
}

/// UUIDv7: ordered by time of making, also within a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct FreshIds;

impl IdSource for FreshIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the server's ids are made"
    )]
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_clock_that_is_set_back_goes_on_and_one_that_is_set_ahead_is_followed() {
        let clock = SystemClock::default();
        let told = |wall, elapsed| clock.at(wall, elapsed).micros();
        assert_eq!(told(10 * HOUR, 0), 10 * HOUR);
        assert_eq!(told(10 * HOUR + 5, 5), 10 * HOUR + 5);
        // Set back: the time goes on at its own pace.
        assert_eq!(told(9 * HOUR + 7, 7), 10 * HOUR + 7);
        assert_eq!(told(9 * HOUR + HOUR / 2, HOUR / 2), 10 * HOUR + HOUR / 2);
        // Set ahead, and put right again.
        assert_eq!(told(12 * HOUR, HOUR), 12 * HOUR);
        assert_eq!(told(11 * HOUR + 9, HOUR + 9), 12 * HOUR + 9);
    }

    #[test]
    fn the_time_of_this_machine_is_told_and_never_goes_back() {
        let clock = SystemClock::default();
        let first = clock.now();
        assert!(first.micros() > 1_700_000_000_000_000);
        assert!((0..1_000).all(|_| clock.now() >= first));
    }
}
