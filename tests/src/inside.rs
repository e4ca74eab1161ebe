//! Use-cases without a process: a context on a test's database, whose clock the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use app::Cx;
use billing::tax_rule::TaxTable;
use domain::clock::{Clock, Span, Timestamp};

use crate::node::context;

/// A context with its clock.
#[derive(Debug)]
pub struct Inside {
    /// For use-cases and reconcilers.
    pub cx: Cx,
    ahead: Arc<AtomicI64>,
}

struct Ahead(Arc<AtomicI64>);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = i64::try_from(now.unwrap().as_micros()).unwrap();
        Timestamp::from_micros(now + self.0.load(Ordering::Relaxed))
    }
}

impl Inside {
    /// A context on the database at `url`.
    pub fn on(url: &str) -> Self {
        let ahead = Arc::new(AtomicI64::new(0));
        let clock = Box::new(Ahead(Arc::clone(&ahead)));
        Self {
            cx: context(url, clock, TaxTable::flat(0)),
            ahead,
        }
    }

    /// Moves the clock on.
    pub fn pass(&self, hours: i64) {
        let span = Span::from_hours(hours).micros();
        self.ahead.fetch_add(span, Ordering::Relaxed);
    }
}
