//! Use-cases without a process: a context on a test's database, whose clock the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use app::context::{Cx, PaymentsMode, PayoutPolicy, Policy, Settings, Signer, Wake};
use billing::statement::{StatementBody, StatementFault};
use domain::clock::{Clock, IdSource, Span, Timestamp};
use domain::gpu::Catalogue;
use domain::id::MachineId;
use domain::money::Micros;
use uuid::Uuid;

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

struct Fresh;

impl IdSource for Fresh {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

struct Mute;

impl Signer for Mute {
    fn sign(&self, _bytes: &[u8]) -> [u8; 64] {
        [0; 64]
    }

    fn public_key(&self) -> [u8; 32] {
        [0; 32]
    }

    fn sign_statement(&self, _body: StatementBody) -> Result<Vec<u8>, StatementFault> {
        Err(StatementFault::Signature)
    }
}

impl Wake for Mute {
    fn machine(&self, _id: MachineId) {}

    fn reconcile(&self) {}
}

impl Inside {
    /// A context on the database at `url`: earnings mature after a week, a tenth is kept back for a
    /// month.
    pub fn on(url: &str) -> Self {
        let ahead = Arc::new(AtomicI64::new(0));
        let settings = Settings {
            db: store::Db::connect(url, 4).unwrap(),
            clock: Box::new(Ahead(Arc::clone(&ahead))),
            ids: Box::new(Fresh),
            policy: Policy {
                fee_bps: 500,
                tax_bps: 0,
                payments: PaymentsMode::Sandbox,
                allow_simulated: true,
                quote_ttl: Span::from_secs(120),
                enrollment_ttl: Span::from_hours(24),
                heartbeat: Span::from_secs(10),
                settle_every: Span::from_mins(10),
                payouts: PayoutPolicy {
                    maturing: Span::from_hours(168),
                    reserve_bps: 1_000,
                    reserve_kept: Span::from_hours(720),
                    least: Micros::new(1_000_000),
                },
                approval_above: Micros::new(100_000_000),
            },
            catalogue: Catalogue::embedded().unwrap(),
            signer: Box::new(Mute),
            wake: Box::new(Mute),
        };
        Self {
            cx: Cx::new(settings),
            ahead,
        }
    }

    /// Moves the clock on.
    pub fn pass(&self, hours: i64) {
        let span = Span::from_hours(hours).micros();
        self.ahead.fetch_add(span, Ordering::Relaxed);
    }
}
