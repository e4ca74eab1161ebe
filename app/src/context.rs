//! What every use-case gets: database, clock, ids, policy, and who asks.

use std::fmt;
use std::sync::Arc;

use billing::invoice::Identity;
use billing::tax_rule::TaxTable;
use domain::access::{Actor, Decision, Scope, decide};
use domain::audit::{ActorRef, AuditLine};
use domain::clock::{Clock, IdSource, Span, Timestamp};
use domain::gpu::Catalogue;
use domain::id::{AuditId, MachineId, PartyId};
use domain::money::Micros;
use domain::refusal::Code;
use store::Db;
use store::db::{AsyncFunc, Tx};
use store::group::Group;
use uuid::Uuid;

use crate::book::LiveBook;
use crate::error::Error;
use crate::lease::Ask;

/// How money gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentsMode {
    /// Play money, marked as such everywhere.
    Sandbox,
    /// No top-ups.
    Disabled,
}

impl PaymentsMode {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Disabled => "disabled",
        }
    }
}

/// The operator's rules.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The platform's share of each charge, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, by who buys.
    pub tax: TaxTable,
    /// Who the operator is on documents.
    pub operator: Identity,
    /// How money gets in.
    pub payments: PaymentsMode,
    /// May machines with simulated GPUs be listed?
    pub allow_simulated: bool,
    /// How long a quote holds.
    pub quote_ttl: Span,
    /// How long an enrolment token can be used.
    pub enrollment_ttl: Span,
    /// How often agents report.
    pub heartbeat: Span,
    /// Longest time between two settlements of a running lease.
    pub settle_every: Span,
    /// What holds for money that leaves the market, and for people who move it.
    pub payouts: PayoutPolicy,
    /// Adjustments and credits above it need a second person.
    pub approval_above: Micros,
}

/// The rules for earnings on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayoutPolicy {
    /// How long earnings can still be taken back before they are payable.
    pub maturing: Span,
    /// Share of matured earnings that is kept back, in 1/10,000.
    pub reserve_bps: u32,
    /// For how long.
    pub reserve_kept: Span,
    /// Least payout.
    pub least: Micros,
}

/// Signs for the market with its Ed25519 key. Made in `api`.
pub trait Signer: Send + Sync {
    /// The signature over `bytes`.
    fn sign(&self, bytes: &[u8]) -> [u8; 64];
    /// The public key.
    fn public_key(&self) -> [u8; 32];
    /// Signs the statement of a lease and renders the document.
    fn sign_statement(
        &self,
        body: billing::statement::StatementBody,
    ) -> Result<Vec<u8>, billing::statement::StatementFault>;
    /// Signs a provider's earnings of a period and renders the document.
    fn sign_earnings(
        &self,
        body: billing::statement::EarningsBody,
    ) -> Result<Vec<u8>, billing::statement::StatementFault>;
}

/// Told when the desired state of a machine changed, so that its link sends it at once.
pub trait Wake: Send + Sync {
    /// The machine's desired state may have changed.
    fn machine(&self, id: MachineId);
    /// Reconcilers have something to do.
    fn reconcile(&self);
}

/// What the process gives to every use-case.
pub struct Settings {
    /// The database.
    pub db: Db,
    /// The time.
    pub clock: Box<dyn Clock>,
    /// Fresh ids.
    pub ids: Box<dyn IdSource>,
    /// The operator's rules.
    pub policy: Policy,
    /// GPU models.
    pub catalogue: Catalogue,
    /// The market's key.
    pub signer: Box<dyn Signer>,
    /// Wakes links and reconcilers.
    pub wake: Box<dyn Wake>,
}

struct Shared {
    settings: Settings,
    bookings: Group<Cx, Ask, Answer, Error>,
    book: LiveBook,
}

/// The context of use-cases; cheap to clone.
#[derive(Clone)]
pub struct Cx(Arc<Shared>);

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cx({:?})", self.0.settings.policy)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({:?})", self.policy)
    }
}

impl std::ops::Deref for Cx {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0.settings
    }
}

impl Cx {
    /// Wraps the process's settings.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared {
            book: LiveBook::new(&settings.catalogue),
            settings,
            bookings: crate::lease::bookings(),
        }))
    }

    /// Where bookings wait to be committed together.
    pub(crate) fn bookings(&self) -> &Group<Cx, Ask, Answer, Error> {
        &self.0.bookings
    }

    /// What is offered, in memory.
    pub(crate) fn book(&self) -> &LiveBook {
        &self.0.book
    }

    /// The present instant; read once per use-case.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A fresh UUID.
    pub fn id(&self) -> Uuid {
        self.ids.next()
    }

    /// An audit line of `caller` about `object`.
    pub fn audit(&self, caller: &Caller, now: Timestamp, what: Audited<'_>) -> AuditLine {
        AuditLine {
            id: AuditId::from_uuid(self.id()),
            at: now,
            party: Some(caller.actor.party),
            actor: caller.actor.who,
            action: what.action,
            object: what.object,
            reason: what.reason.to_owned(),
            request_id: Some(caller.request_id.clone()),
        }
    }

    /// An audit line of the market itself or a machine.
    pub fn audit_by(&self, who: ActorRef, now: Timestamp, what: Audited<'_>) -> AuditLine {
        AuditLine {
            id: AuditId::from_uuid(self.id()),
            at: now,
            party: None,
            actor: who,
            action: what.action,
            object: what.object,
            reason: what.reason.to_owned(),
            request_id: None,
        }
    }
}

/// What an audit line says.
#[derive(Clone, Debug)]
pub struct Audited<'a> {
    /// `noun.verb`.
    pub action: &'static str,
    /// Public id of the object.
    pub object: String,
    /// Why; never empty.
    pub reason: &'a str,
}

/// Who asks, and in which request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub actor: Actor,
    /// The HTTP request's id.
    pub request_id: String,
}

impl Caller {
    /// May the caller use `scope` on an object of `owner` (`None`: something new of its own)?
    pub fn may(&self, scope: Scope, owner: Option<PartyId>) -> Result<(), Error> {
        match decide(&self.actor, scope, owner) {
            Decision::Allow => Ok(()),
            Decision::Hide => Err(Error::not_found("object")),
            Decision::Forbid => Err(Error::refused(
                Code::Forbidden,
                format!("This needs the scope `{}`.", scope.as_str()),
            )),
        }
    }
}

/// The idempotency key of a request, with the fingerprint of its body.
#[derive(Clone, Debug)]
pub struct OnceKey {
    /// `POST /v1/leases`, say.
    pub route: &'static str,
    /// As the client sent it.
    pub key: String,
    /// BLAKE3 of method, path and body.
    pub fingerprint: [u8; 32],
}

impl OnceKey {
    /// The key in its scope.
    pub(crate) fn stored(&self, party: Option<PartyId>) -> store::idempotency::OnceKey {
        store::idempotency::OnceKey {
            party,
            route: self.route.to_owned(),
            key: self.key.clone(),
            fingerprint: self.fingerprint,
        }
    }
}

/// How a mutation is answered: rendered inside the transaction, so that a repeat gets the same.
pub struct Once<'a, T> {
    /// The key, if the client sent one.
    pub key: Option<OnceKey>,
    /// The HTTP status of success.
    pub status: u16,
    /// Turns the result into the stored answer. Must be pure, and leave secrets out.
    pub render: &'a (dyn Fn(&T) -> serde_json::Value + Send + Sync),
}

impl<T> fmt::Debug for Once<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Once({:?})", self.key)
    }
}

/// The answer of a mutation.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body as rendered, now or the first time.
    pub body: serde_json::Value,
    /// Is it the stored answer of an earlier, equal request?
    pub replayed: bool,
}

impl Answer {
    pub(crate) fn stored(done: store::idempotency::Done) -> Self {
        Self {
            status: done.status,
            body: done.body,
            replayed: done.replayed,
        }
    }
}

/// Runs a mutation once: in one transaction, together with the idempotency answer if there is a
/// key. The closure may run again after a serialisation failure, so it does nothing but SQL and
/// pure code.
pub(crate) async fn mutate<T, F>(
    cx: &Cx,
    caller: Option<&Caller>,
    once: &Once<'_, T>,
    now: Timestamp,
    work: F,
) -> Result<Answer, Error>
where
    for<'r> F: AsyncFn(&'r mut Tx) -> Result<T, Error>
        + AsyncFunc<&'r mut Tx, Result<T, Error>, Fut: Send>
        + Send
        + Sync,
    T: Send,
{
    let render = once.render;
    let Some(key) = &once.key else {
        let work = &work;
        let body = cx
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| Ok(render(&work(tx).await?)))
            .await?;
        return Ok(Answer {
            status: once.status,
            body,
            replayed: false,
        });
    };
    let key = key.stored(caller.map(|c| c.actor.party));
    let work = &work;
    let done = cx
        .db
        .write_once::<Error, _>(&key, now, once.status, async |tx: &mut Tx| {
            Ok(render(&work(tx).await?))
        })
        .await?;
    Ok(Answer::stored(done))
}
