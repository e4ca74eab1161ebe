//! The system's clock and fresh ids.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::clock::{Clock, IdSource, Timestamp};
use uuid::Uuid;

/// The system's clock, made monotone: it never goes back within this process.
#[derive(Debug, Default)]
pub struct SystemClock {
    last: AtomicI64,
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the server's time is made"
    )]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let last = self.last.fetch_max(micros, Ordering::Relaxed);
        Timestamp::from_micros(micros.max(last))
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
