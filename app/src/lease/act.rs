//! Stop, resume, end; a resize is in `resize`.

use billing::budget::Spender;
use domain::access::Scope;
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use domain::refusal::Code;
use store::db::Tx;
use store::error::Constraint;
use store::lease::LeaseRecord;

use super::change::{Cause, apply};
use super::money::LeaseMoney;
use super::resize::resize;
use super::resume::{gpus_gone, prepare_resume};
use super::{LeaseAct, LeaseView, own, view};
use crate::budget::Gate;
use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;

/// Acts on a lease. The renter's billing ends at the second of a stop or end request, whatever the
/// machine does. A repeated request changes nothing.
pub async fn act(
    cx: &Cx,
    caller: &Caller,
    (id, act, if_version): (LeaseId, LeaseAct, Option<i64>),
    once: Once<'_, LeaseView>,
) -> Result<Answer, Error> {
    caller.may(Scope::LeasesWrite, None)?;
    let now = cx.now();
    let once = &once;
    let answer = mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let seen = own(store::lease::get(tx, id).await?, caller)?;
        if matches!(act, LeaseAct::Resume | LeaseAct::Resize { .. }) {
            // Before the lease, as bookings do: the order of locks is machine, lease, accounts.
            store::machine::get_for_update(tx, seen.machine).await?;
        }
        let mut lease = own(store::lease::get_for_update(tx, id).await?, caller)?;
        if if_version.is_some_and(|v| v != lease.version) {
            return Err(Error::refused(
                Code::StaleVersion,
                format!("The lease is at version {} now.", lease.version),
            ));
        }
        let mut money = LeaseMoney::load(tx, &lease).await?;
        let (event, action) = match act {
            LeaseAct::Stop { keep_gpus } => (stop(&lease, keep_gpus)?, "lease.stop"),
            LeaseAct::Resume => (LeaseEvent::ResumeRequested, "lease.resume"),
            LeaseAct::End => (LeaseEvent::EndRequested, "lease.end"),
            LeaseAct::Resize { disk_gib } => {
                let wanted = (disk_gib, now);
                resize(cx, caller, tx, (&mut lease, &mut money), wanted).await?;
                return view::one(tx, lease, now).await;
            }
        };
        let mut cause = Cause::market(event, LeaseReason::Renter, now).saying("by request");
        cause.actor = caller.actor.who;
        if act == LeaseAct::Resume && lease.state != LeaseState::Resuming {
            let spender = Spender {
                lease: Some(id),
                member: lease.booked_by,
                label: lease.label.as_deref(),
            };
            let gate = Gate::load(tx, &[lease.party], now).await?;
            gate.check(lease.party, spender)?;
            prepare_resume(cx, tx, (&mut lease, &mut money), now).await?;
        }
        apply(cx, tx, (&mut lease, &mut money), &cause).await?;
        let what = Audited {
            action,
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        view::one(tx, lease, now).await
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::LeaseGpuOnce) => gpus_gone(),
        _ => error,
    })?;
    cx.wake.reconcile();
    Ok(answer)
}

/// What a stop amounts to. GPUs that were given back are not taken again by a stop.
fn stop(lease: &LeaseRecord, keep_gpus: bool) -> Result<LeaseEvent, Error> {
    let stopped = matches!(lease.state, LeaseState::Stopping | LeaseState::Stopped);
    match (keep_gpus, stopped, lease.keeps_gpus) {
        (false, true, true) => Ok(LeaseEvent::GpusReleased),
        // They are kept already, or there is nothing to keep.
        (true, true, true) | (false, ..) => Ok(LeaseEvent::StopRequested),
        (true, true, false) => Err(Error::refused(
            Code::LeaseState,
            format!("The lease is {}: it has given its GPUs back.", lease.state),
        )
        .suggesting("Resume it, then stop it with `keep_gpus`.")),
        (true, false, _) => Ok(LeaseEvent::KeepRequested),
    }
}
