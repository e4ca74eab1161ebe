//! Budgets watched: each threshold is told once, and what a used-up budget covers is stopped.

use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::LeaseReason;
use domain::money::Micros;
use store::budget::BudgetRecord;
use store::db::{Ro, Tx};

use super::lease::move_lease;
use crate::budget::{spent, tell};
use crate::context::Cx;
use crate::error::Error;
use crate::lease::change::Cause;

/// Looks at every budget of a party with a live lease.
pub async fn watch_budgets(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let budgets = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::budget::watched(ro).await?))
        .await?;
    let mut changed = 0;
    for budget in budgets {
        changed += watch(cx, &budget, now).await?;
    }
    Ok(changed)
}

async fn watch(cx: &Cx, budget: &BudgetRecord, now: Timestamp) -> Result<usize, Error> {
    let period_from = budget.terms.period.start(now);
    let (spent, given, live) = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok((
                spent(ro, budget, now).await?,
                store::budget::alerts(ro, budget, period_from).await?,
                store::budget::live_leases(ro, budget).await?,
            ))
        })
        .await?;
    let due = budget.terms.due_alerts(spent);
    let mut changed = 0;
    if due.iter().any(|p| given.iter().all(|a| a.percent != *p)) {
        changed = cx
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                // It may have been changed or removed since it was read.
                match store::budget::get_for_update(tx, budget.id).await? {
                    Some(same) if same.version == budget.version => {
                        tell(tx, &same, spent, now).await
                    }
                    Some(_) | None => Ok(0),
                }
            })
            .await?;
    }
    if budget.terms.forbids(spent) {
        for lease in live {
            changed += stop(cx, lease, (budget, spent), now).await?;
        }
    }
    Ok(changed)
}

/// Stops a lease that runs, or gives back the GPUs that it keeps. One that is about to run is stopped
/// once it does.
async fn stop(
    cx: &Cx,
    lease: LeaseId,
    (budget, spent): (&BudgetRecord, Micros),
    now: Timestamp,
) -> Result<usize, Error> {
    let text = format!(
        "budget {} is used up: {spent} of {} USD; the disk is kept for a while",
        budget.id, budget.terms.limit
    );
    move_lease(cx, lease, |lease, _money| {
        let event = lease.state.yields_gpus(lease.keeps_gpus);
        Ok(event.map(|e| Cause::market(e, LeaseReason::BudgetReached, now).saying(text.clone())))
    })
    .await
}
