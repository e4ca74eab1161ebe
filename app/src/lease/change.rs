//! A change of a lease's state with everything that belongs to it, in one transaction: meters cut
//! and settled, GPUs and money released, event and outbox message written.

use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::EventId;
use domain::lease::{Billed, GpuTime, LeaseEvent, LeaseReason, LeaseState};
use domain::refusal::Code;
use serde_json::json;
use store::db::Tx;
use store::hold::HoldWatch;
use store::lease::LeaseRecord;
use store::lease_event::LeaseEventRecord;

use super::money::LeaseMoney;
use crate::context::Cx;
use crate::error::Error;

/// Why a lease changes.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) event: LeaseEvent,
    pub(crate) reason: LeaseReason,
    pub(crate) detail: String,
    pub(crate) actor: ActorRef,
    pub(crate) at: Timestamp,
}

impl Cause {
    /// A cause that the market itself is.
    pub(crate) fn market(event: LeaseEvent, reason: LeaseReason, at: Timestamp) -> Self {
        Self {
            event,
            reason,
            detail: String::new(),
            actor: ActorRef::Market,
            at,
        }
    }

    pub(crate) fn saying(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// Applies `cause` to a lease whose lock is held. A repeated request changes nothing.
pub(crate) async fn apply(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    cause: &Cause,
) -> Result<(), Error> {
    let from = lease.state;
    let to = from
        .after(cause.event)
        .map_err(|illegal| Error::refused(Code::LeaseState, format!("{illegal}.")))?;
    let kept = lease.keeps_gpus;
    lease.keeps_gpus = to.keeps_gpus(cause.event, kept);
    if to == from && lease.keeps_gpus == kept {
        return Ok(());
    }
    let now = cause.at;
    let (before, after) = (from.billed(kept), to.billed(lease.keeps_gpus));
    cut((before, after), to, money, now);
    reprice(tx, (lease, money), (before.compute, after.compute), now).await?;
    if to.is_final() || matches!(to, LeaseState::Stopped | LeaseState::Interrupted) {
        money.settle(cx, tx, lease, now).await?;
    } else {
        money.save_meters(tx).await?;
    }
    match to {
        LeaseState::Stopping | LeaseState::Stopped if lease.keeps_gpus => {}
        LeaseState::Stopping | LeaseState::Stopped | LeaseState::Ending => {
            let disk = to != LeaseState::Ending;
            money.release_excess(cx, tx, (lease, disk), now).await?;
        }
        LeaseState::Provisioning | LeaseState::Running => {
            money
                .change_hold(tx, lease, |book, hold| {
                    book.keep_hold(hold.id).map_err(crate::wallet::refuse)
                })
                .await?;
        }
        LeaseState::Ended | LeaseState::Failed => {
            money.compute = money.compute.finished();
            money.storage = money.storage.finished();
            money.save_meters(tx).await?;
            money.close_hold(cx, tx, (lease, now)).await?;
        }
        LeaseState::Placing
        | LeaseState::Interrupting
        | LeaseState::Interrupted
        | LeaseState::Resuming => {}
    }
    // Both look again: what burns has changed.
    look_again(tx, money).await?;
    if before != after {
        store::wallet::touch(tx, lease.party, lease.terms.currency).await?;
    }
    if from.holds_gpus(kept) && !to.holds_gpus(lease.keeps_gpus) {
        store::lease::release_gpus(tx, lease.id, now).await?;
    }
    stamp(lease, to, cause);
    *lease = store::lease::save(tx, lease).await?;
    record(cx, tx, lease, (Some(from), cause)).await
}

/// The hold is looked at as soon as may be.
pub(super) async fn look_again(tx: &mut Tx, money: &LeaseMoney) -> Result<(), Error> {
    if let Some(hold) = &money.hold {
        let at_once = HoldWatch {
            due_at: Some(Timestamp::from_micros(0)),
            ..HoldWatch::default()
        };
        store::hold::set_watch(tx, hold.id, at_once).await?;
    }
    Ok(())
}

/// From this moment on nothing more is billed of what the new state does not bill, and what it
/// bills again is counted again.
fn cut((before, after): (Billed, Billed), to: LeaseState, money: &mut LeaseMoney, now: Timestamp) {
    if before.compute != GpuTime::Free && after.compute == GpuTime::Free {
        // A container that ended by itself was seen alive last at the last proof, not now.
        let by_itself = to == LeaseState::Stopped && before.compute == GpuTime::Used;
        money.compute = if by_itself {
            money.compute.cut_here()
        } else {
            money.compute.cut(now)
        };
    }
    if before.storage && !after.storage {
        money.storage = money.storage.cut(now);
    }
    let again = before.compute == GpuTime::Free || to == LeaseState::Stopped;
    if again && after.compute != GpuTime::Free {
        money.compute = money.compute.reopened();
    }
}

/// GPUs that are kept have another price than GPUs that are used.
async fn reprice(
    tx: &mut Tx,
    (lease, money): (&LeaseRecord, &mut LeaseMoney),
    (before, after): (GpuTime, GpuTime),
    now: Timestamp,
) -> Result<(), Error> {
    let rate = match after {
        GpuTime::Free => return Ok(()),
        GpuTime::Kept => lease.terms.keep_rate()?,
        GpuTime::Used => lease.terms.compute_rate()?,
    };
    if before == after || rate == money.compute.last_rate() {
        return Ok(());
    }
    let (segment, compute) = money
        .compute
        .reprice(now, rate)
        .map_err(|refusal| Error::refused(Code::LeaseState, format!("{refusal}.")))?;
    money.compute = compute;
    store::segment::insert(tx, &[(money.compute.id, segment)]).await?;
    Ok(())
}

fn stamp(lease: &mut LeaseRecord, to: LeaseState, cause: &Cause) {
    let now = cause.at;
    lease.state = to;
    lease.reason = cause.reason;
    lease.detail.clone_from(&cause.detail);
    lease.state_at = now;
    lease.progress_at = now;
    if to == LeaseState::Running && lease.started_at.is_none() {
        lease.started_at = Some(now);
    }
    if to == LeaseState::Ending && lease.end_requested_at.is_none() {
        lease.end_requested_at = Some(now);
    }
    if to.is_final() {
        lease.ended_at = Some(now);
    }
}

/// The event and the outbox message of a change.
pub(crate) fn event_of(
    cx: &Cx,
    lease: &LeaseRecord,
    (from, cause): (Option<LeaseState>, &Cause),
) -> (LeaseEventRecord, serde_json::Value) {
    let event = LeaseEventRecord {
        id: EventId::from_uuid(cx.id()),
        lease: lease.id,
        at: cause.at,
        from,
        to: lease.state,
        reason: cause.reason,
        detail: cause.detail.clone(),
        actor_kind: cause.actor.kind().to_owned(),
    };
    let message = json!({
        "event": event.id.to_string(),
        "machine": lease.machine.to_string(),
        "from": from.map(LeaseState::as_str),
        "to": lease.state.as_str(),
        "reason": cause.reason.as_str(),
    });
    (event, message)
}

/// Writes the event and the outbox message of a change.
pub(super) async fn record(
    cx: &Cx,
    tx: &mut Tx,
    lease: &LeaseRecord,
    (from, cause): (Option<LeaseState>, &Cause),
) -> Result<(), Error> {
    let (event, message) = event_of(cx, lease, (from, cause));
    store::lease_event::insert(tx, &[(event, cause.actor)]).await?;
    let key = lease.id.to_string();
    store::outbox::put(tx, ("lease.state", &key), &message, cause.at).await?;
    Ok(())
}
