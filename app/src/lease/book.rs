//! Booking: GPUs and money are held together with the lease, or nothing happens. Bookings that
//! arrive together are decided one after another in memory and committed together.

use std::collections::BTreeMap;

use billing::meter::{Meter, NewMeter, Resource};
use billing::rating::Shares;
use domain::access::Scope;
use domain::audit::{ActorRef, AuditLine};
use domain::clock::Timestamp;
use domain::id::{LeaseId, MeterId};
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use domain::money::{Micros, MoneyError};
use domain::refusal::Code;
use matching::plan::Placement;
use serde_json::{Value, json};
use store::db::Tx;
use store::error::Constraint;
use store::group::{Group, Served};
use store::lease::LeaseRecord;
use store::lease_event::LeaseEventRecord;
use store::quote::QuoteRecord;

use super::change::{Cause, event_of};
use super::{LeaseView, NewLease, view};
use crate::context::{Answer, Audited, Caller, Cx, Once};
use crate::error::Error;

mod stock;

use stock::{Booked, Stock};

/// Most bookings in one transaction.
const MOST: usize = 128;

/// A booking that waits.
pub(crate) struct Ask {
    caller: Caller,
    input: NewLease,
    id: LeaseId,
    once: Once<'static, LeaseView>,
}

/// Where bookings wait to be committed together.
pub(crate) fn group() -> Group<Cx, Ask, Answer, Error> {
    Group::new(MOST, serve, |ask| {
        let key = ask.key()?;
        Some(format!("{:?} {} {}", key.party, key.route, key.key))
    })
}

impl Ask {
    fn key(&self) -> Option<store::idempotency::OnceKey> {
        let party = Some(self.caller.actor.party);
        self.once.key.as_ref().map(|k| k.stored(party))
    }
}

/// Books a quote: exactly its price, or 409 and nothing is charged.
pub async fn book(
    cx: &Cx,
    caller: &Caller,
    input: NewLease,
    once: Once<'static, LeaseView>,
) -> Result<Answer, Error> {
    caller.may(Scope::LeasesWrite, None)?;
    check(&input, cx.now())?;
    let ask = Ask {
        caller: caller.clone(),
        input,
        id: LeaseId::from_uuid(cx.id()),
        once,
    };
    let answer = cx
        .bookings()
        .run(cx, ask)
        .await
        .map_err(|error| match error.constraint() {
            Some(Constraint::LeaseGpuOnce) => Error::refused(
                Code::CapacityTaken,
                "Somebody else has just booked these GPUs.",
            )
            .suggesting("Search again with POST /v1/offers/search."),
            Some(Constraint::QuoteUsed) => quote_used(),
            _ => error,
        })?;
    cx.wake.reconcile();
    Ok(answer)
}

fn serve<'a>(cx: &'a Cx, asks: &'a [Ask]) -> Served<'a, Answer, Error> {
    Box::pin(async move {
        let now = cx.now();
        cx.db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                // Alone it may wait for rows; together nobody waits for one, so a stale balance is
                // noticed at the end and all are decided again.
                if asks.len() > 1 {
                    tx.read_optimistically();
                }
                many(cx, tx, asks, now).await
            })
            .await
    })
}

/// Books all that can be booked, in one transaction; what came of each.
async fn many(
    cx: &Cx,
    tx: &mut Tx,
    asks: &[Ask],
    now: Timestamp,
) -> Result<Vec<Result<Answer, Error>>, Error> {
    let mut known = answered(tx, asks).await?;
    let open: Vec<&Ask> = asks.iter().filter(|a| !known.contains_key(&a.id)).collect();
    if !open.is_empty() {
        let mut stock = Stock::load(tx, &open, now).await?;
        let mut booked = Vec::new();
        for ask in open {
            match stock.book(cx, ask, now) {
                Ok(one) => booked.push((ask, one)),
                Err(refusal) => {
                    known.insert(ask.id, Err(refusal));
                }
            }
        }
        if !booked.is_empty() {
            save(cx, tx, (&stock, &booked), now).await?;
            known.extend(render(tx, booked, now).await?);
        }
    }
    let outcome = |a: &Ask| {
        known
            .remove(&a.id)
            .unwrap_or(Err(Error::Fault("a booking without an outcome")))
    };
    Ok(asks.iter().map(outcome).collect())
}

type Outcomes = BTreeMap<LeaseId, Result<Answer, Error>>;

/// What repeated requests were answered.
async fn answered(tx: &mut Tx, asks: &[Ask]) -> Result<Outcomes, Error> {
    let keyed: Vec<_> = asks.iter().filter_map(|a| Some((a.id, a.key()?))).collect();
    if keyed.is_empty() {
        return Ok(Outcomes::new());
    }
    let keys: Vec<_> = keyed.iter().map(|(_id, key)| key.clone()).collect();
    let found = store::idempotency::begin(tx, &keys).await?;
    let outcome = |(id, _key): &(LeaseId, _), found| match found {
        Ok(None) => None,
        Ok(Some(done)) => Some((*id, Ok(Answer::stored(done)))),
        Err(mismatch) => Some((*id, Err(Error::from(mismatch)))),
    };
    let outcomes = keyed.iter().zip(found).filter_map(|(k, f)| outcome(k, f));
    Ok(outcomes.collect())
}

async fn save(
    cx: &Cx,
    tx: &mut Tx,
    (stock, booked): (&Stock, &[(&Ask, Booked)]),
    now: Timestamp,
) -> Result<(), Error> {
    let leases: Vec<LeaseRecord> = booked.iter().map(|(_, b)| b.lease.clone()).collect();
    store::lease::insert(tx, &leases).await?;
    let taken = booked
        .iter()
        .flat_map(|(_, b)| b.gpus.iter().map(|g| (b.lease.id, *g)));
    store::lease::take_gpus(tx, &taken.collect::<Vec<_>>(), now).await?;
    let meters: Vec<[Meter; 2]> = leases
        .iter()
        .map(|l| meters(l, now))
        .collect::<Result<_, _>>()?;
    store::meter::insert(tx, &meters.concat()).await?;
    stock.save(tx).await?;
    let (mut events, mut messages, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (ask, one) in booked {
        let (event, message, line) = told(cx, ask, &one.lease, now);
        messages.push((one.lease.id.to_string(), message));
        events.push(event);
        lines.push(line);
    }
    store::lease_event::insert(tx, &events).await?;
    store::outbox::put_all(tx, "lease.state", &messages, now).await?;
    Ok(store::audit::insert_all(tx, &lines).await?)
}

/// The event, the message and the audit line of a booking.
fn told(
    cx: &Cx,
    ask: &Ask,
    lease: &LeaseRecord,
    now: Timestamp,
) -> ((LeaseEventRecord, ActorRef), Value, AuditLine) {
    let mut cause = Cause::market(LeaseEvent::Placed, LeaseReason::Booked, now);
    cause.actor = ask.caller.actor.who;
    let (event, message) = event_of(cx, lease, (None, &cause));
    let what = Audited {
        action: "lease.book",
        object: lease.id.to_string(),
        reason: "by request",
    };
    let line = cx.audit(&ask.caller, now, what);
    ((event, cause.actor), message, line)
}

/// Renders the answers, and stores those that have a key.
async fn render(
    tx: &mut Tx,
    booked: Vec<(&Ask, Booked)>,
    now: Timestamp,
) -> Result<Outcomes, Error> {
    let asks: BTreeMap<LeaseId, &Ask> = booked.iter().map(|(a, _)| (a.id, *a)).collect();
    let leases = booked.into_iter().map(|(_, b)| b.lease).collect();
    let (mut outcomes, mut stored) = (Outcomes::new(), Vec::new());
    for seen in view::many(tx, leases, now).await? {
        let ask = asks.get(&seen.lease.id);
        let ask = ask.ok_or(Error::Fault("a view of another lease"))?;
        let body = (ask.once.render)(&seen);
        if let Some(key) = ask.key() {
            stored.push((key, ask.once.status, body.clone()));
        }
        let answer = Answer {
            status: ask.once.status,
            body,
            replayed: false,
        };
        outcomes.insert(ask.id, Ok(answer));
    }
    if !stored.is_empty() {
        store::idempotency::finish(tx, &stored, now).await?;
    }
    Ok(outcomes)
}

fn quote_used() -> Error {
    Error::refused(Code::QuoteUsed, "This quote has become a lease already.")
        .suggesting("Ask for a new quote for another lease.")
}

fn check(input: &NewLease, now: Timestamp) -> Result<(), Error> {
    if input.max_spend.is_some_and(|most| most <= Micros::ZERO) {
        return Err(Error::field(
            "/max_spend",
            "out_of_range",
            "Must be above zero.",
        ));
    }
    if input.end_at.is_some_and(|end| end <= now) {
        return Err(Error::field(
            "/end_at",
            "in_the_past",
            "The end must be in the future.",
        ));
    }
    Ok(())
}

fn draft(
    cx: &Cx,
    (id, now): (LeaseId, Timestamp),
    (quote, placed): (QuoteRecord, &Placement),
    input: &NewLease,
) -> LeaseRecord {
    let why = &placed.explanation;
    LeaseRecord {
        id,
        party: quote.party,
        provider: quote.party,
        offer: quote.offer,
        machine: placed.machine,
        workload: input.workload.clone(),
        placement: json!({
            "chosen": why.chosen.to_string(),
            "version": why.version,
            "total": why.total.to_string(),
            "free_before": why.free_before,
            "why": why.why,
        }),
        booked_by: None,
        keeps_gpus: false,
        label: input.label.clone(),
        max_spend: input.max_spend,
        end_at: input.end_at,
        state: LeaseState::Placing,
        reason: LeaseReason::Booked,
        detail: "waiting for the machine to take the order".to_owned(),
        state_at: now,
        progress: 0,
        progress_at: now,
        start_no: 1,
        version: 1,
        created_at: now,
        started_at: None,
        end_requested_at: None,
        ended_at: None,
        container: None,
        compute_meter: MeterId::from_uuid(cx.id()),
        storage_meter: MeterId::from_uuid(cx.id()),
        terms: quote,
    }
}

fn meters(lease: &LeaseRecord, now: Timestamp) -> Result<[Meter; 2], MoneyError> {
    let shares = Shares {
        fee_bps: lease.terms.fee_bps,
        tax_bps: lease.terms.tax_bps,
    };
    let open = |id, resource, rate| {
        let new = NewMeter {
            id,
            lease: lease.id,
            resource,
            rate,
            shares,
        };
        Meter::open(new, now)
    };
    let (gpus, disk) = (lease.terms.compute_rate()?, lease.terms.storage_rate()?);
    Ok([
        open(lease.compute_meter, Resource::Compute, gpus),
        open(lease.storage_meter, Resource::Storage, disk),
    ])
}
