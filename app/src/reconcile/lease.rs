//! Leases that stayed somewhere too long, or whose guard has fallen.

use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use store::db::{Ro, Tx};
use store::lease::LeaseRecord;

use crate::context::Cx;
use crate::error::Error;
use crate::lease::change::{Cause, apply};
use crate::lease::money::LeaseMoney;

/// Moves one lease, if `decide` still says so once it is locked.
pub(crate) async fn move_lease(
    cx: &Cx,
    id: LeaseId,
    decide: impl Fn(&LeaseRecord, &LeaseMoney) -> Result<Option<Cause>, Error> + Send + Sync,
) -> Result<usize, Error> {
    let decide = &decide;
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(mut lease) = store::lease::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            let mut money = LeaseMoney::load(tx, &lease).await?;
            let Some(cause) = decide(&lease, &money)? else {
                return Ok(0);
            };
            apply(cx, tx, (&mut lease, &mut money), &cause).await?;
            Ok(1)
        })
        .await
}

fn overdue(lease: &LeaseRecord, now: Timestamp) -> Option<Cause> {
    let limit = lease.state.limit()?;
    if now.since(lease.progress_at) <= limit {
        return None;
    }
    let event = lease.state.overdue()?;
    // The end's own reason stays: only the evidence is missing.
    let reason = match lease.state {
        LeaseState::Ending => lease.reason,
        LeaseState::Placing
        | LeaseState::Provisioning
        | LeaseState::Running
        | LeaseState::Interrupting
        | LeaseState::Interrupted
        | LeaseState::Stopping
        | LeaseState::Stopped
        | LeaseState::Resuming
        | LeaseState::Ended
        | LeaseState::Failed => LeaseReason::TimedOut,
    };
    let detail = format!("no progress in `{}` for more than {limit}", lease.state);
    Some(Cause::market(event, reason, now).saying(detail))
}

/// Leases without progress beyond their state's limit take its exit.
pub async fn overdue_leases(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::lease::overdue(ro, now).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += move_lease(cx, id, |lease, _money| Ok(overdue(lease, now))).await?;
    }
    Ok(changed)
}

fn guard(lease: &LeaseRecord, money: &LeaseMoney, now: Timestamp) -> Result<Option<Cause>, Error> {
    if matches!(
        lease.state,
        LeaseState::Ending | LeaseState::Ended | LeaseState::Failed
    ) {
        return Ok(None);
    }
    if let Some(end) = lease.end_at.filter(|end| *end <= now) {
        let cause = Cause::market(
            LeaseEvent::EndRequested,
            LeaseReason::EndAt,
            end.max(lease.state_at),
        );
        let cause = Cause { at: now, ..cause };
        return Ok(Some(
            cause.saying("the end time that was set at booking is reached"),
        ));
    }
    let spent = match money.max_spend {
        Some(most) => {
            let both = money
                .compute
                .accrued()?
                .renter()?
                .plus(money.storage.accrued()?.renter()?)?;
            let burns = lease.state.yields_gpus(lease.keeps_gpus).is_some();
            both >= most || (burns && money.compute_is_spent()?)
        }
        None => false,
    };
    if !spent {
        return Ok(None);
    }
    let both = money
        .compute
        .accrued()?
        .renter()?
        .plus(money.storage.accrued()?.renter()?)?;
    let text = format!("{both} USD of the limit that was set at booking are spent");
    let capped = money.max_spend.is_some_and(|most| both >= most);
    let event = if capped {
        // Another micro-dollar of disk would exceed the limit.
        Some(LeaseEvent::EndRequested)
    } else {
        lease.state.yields_gpus(lease.keeps_gpus)
    };
    Ok(event.map(|e| Cause::market(e, LeaseReason::MaxSpend, now).saying(text)))
}

/// Leases whose end time or cost limit is reached.
pub async fn guard_leases(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::lease::guarded(ro, now).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += move_lease(cx, id, |lease, money| guard(lease, money, now)).await?;
    }
    Ok(changed)
}
