//! Another node of a market, in the test's own process, whose clock the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use app::context::{Cx, PaymentsMode, PayoutPolicy, Policy, Settings, Signer, Wake};
use billing::invoice::Identity;
use billing::statement::{EarningsBody, StatementBody, StatementFault, sign};
use billing::tax_rule::TaxTable;
use domain::clock::{Clock, IdSource, Span, Timestamp};
use domain::gpu::Catalogue;
use domain::id::MachineId;
use domain::money::Micros;
use ed25519_dalek::SigningKey;
use uuid::Uuid;

use crate::market::Market;

/// A clock that stands where it was put.
#[derive(Clone, Debug)]
pub struct StandingClock(Arc<AtomicI64>);

impl StandingClock {
    /// Stands at `at`.
    pub fn at(at: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(at.micros())))
    }

    /// Lets time pass.
    pub fn pass(&self, span: Span) {
        self.0.fetch_add(span.micros(), Ordering::Relaxed);
    }

    /// Puts it somewhere else.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.micros(), Ordering::Relaxed);
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

struct Fresh;

impl IdSource for Fresh {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// The key of a market in tests.
struct TestKey(SigningKey);

impl Signer for TestKey {
    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        ed25519_dalek::Signer::sign(&self.0, bytes).to_bytes()
    }

    fn public_key(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    fn sign_statement(&self, body: StatementBody) -> Result<Vec<u8>, StatementFault> {
        sign(body, &self.0)
    }

    fn sign_earnings(&self, body: EarningsBody) -> Result<Vec<u8>, StatementFault> {
        sign(body, &self.0)
    }
}

struct Asleep;

impl Wake for Asleep {
    fn machine(&self, _id: MachineId) {}

    fn reconcile(&self) {}
}

/// Who runs the market in tests.
pub fn operator() -> Identity {
    Identity {
        name: "Market Operator GmbH".to_owned(),
        address: vec!["Musterstraße 1".to_owned()],
        country: Some("DE".to_owned()),
        vat_id: Some("DE123456789".to_owned()),
    }
}

/// A node on the market's database.
pub fn node(market: &Market, clock: &StandingClock, tax: TaxTable) -> Cx {
    context(&market.database.url, Box::new(clock.clone()), tax)
}

/// Use-cases on the database at `url`: earnings mature after a week, a tenth is kept back for a
/// month.
pub fn context(url: &str, clock: Box<dyn Clock>, tax: TaxTable) -> Cx {
    Cx::new(Settings {
        db: store::Db::connect(url, 8).unwrap(),
        clock,
        ids: Box::new(Fresh),
        policy: Policy {
            fee_bps: 500,
            tax,
            operator: operator(),
            payments: PaymentsMode::Sandbox,
            allow_simulated: true,
            quote_ttl: Span::from_secs(120),
            enrollment_ttl: Span::from_hours(1),
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
        signer: Box::new(TestKey(SigningKey::from_bytes(&[7; 32]))),
        wake: Box::new(Asleep),
    })
}
