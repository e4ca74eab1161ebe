//! Stop, resume, end; a resize is in `resize`.

use billing::budget::Spender;
use billing::hold::size;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use domain::money::Micros;
use domain::refusal::Code;
use matching::score::pick;
use store::db::Tx;
use store::error::Constraint;
use store::lease::LeaseRecord;

use super::change::{Cause, apply};
use super::money::{LeaseMoney, burn};
use super::resize::resize;
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
            LeaseAct::Stop => (LeaseEvent::StopRequested, "lease.stop"),
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

fn gpus_gone() -> Error {
    Error::refused(
        Code::CapacityTaken,
        "The machine's GPUs are taken by others now.",
    )
    .suggesting("Try again later, or end this lease and book elsewhere; the disk stays until then.")
}

/// Takes GPUs and money for another start. A stop gave the GPUs back, so they may be gone.
async fn prepare_resume(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    now: Timestamp,
) -> Result<(), Error> {
    lease
        .state
        .after(LeaseEvent::ResumeRequested)
        .map_err(|illegal| Error::refused(Code::LeaseState, format!("{illegal}.")))?;
    let machine = store::machine::get(tx, lease.machine)
        .await?
        .ok_or(Error::Fault("a lease without its machine"))?;
    // A drained machine takes no new leases, but this one lives there: only trust matters.
    let reachable = machine
        .last_seen_at
        .is_some_and(|seen| now.since(seen) <= domain::machine::STALE_AFTER);
    if !reachable {
        return Err(
            Error::refused(Code::MachineUnreachable, "The machine does not report now.")
                .suggesting("Try again in a minute. The disk stays."),
        );
    }
    let gpus = store::machine::gpus(tx, &[lease.machine]).await?;
    let slots = gpus.iter().map(|g| matching::book::Slot {
        gpu: g.id,
        index: g.slot,
        island: g.island,
        free: !g.leased && !g.busy_elsewhere,
    });
    let picked = pick(&slots.collect::<Vec<_>>(), lease.terms.gpu_count).ok_or_else(gpus_gone)?;
    let taken: Vec<_> = picked.into_iter().map(|gpu| (lease.id, gpu)).collect();
    store::lease::take_gpus(tx, &taken, now).await?;
    crate::dispute::refuse_frozen(tx, lease.party).await?;
    let burn = burn(lease)?;
    let left = money.remaining();
    let wanted = |available: Micros| {
        let free = available.plus(left)?;
        let sized = size(burn, free)?.map_err(|least| {
            Error::refused(
                Code::InsufficientFunds,
                format!("Resuming needs {least} USD; {free} USD are there."),
            )
            .suggesting("Top up with POST /v1/wallet/top-ups.")
        })?;
        Ok(sized.amount.minus(left)?.max(Micros::ZERO))
    };
    money.raise_hold(cx, tx, (lease, now), wanted).await?;
    lease.start_no = lease.start_no.saturating_add(1);
    lease.progress = 0;
    Ok(())
}
