//! Budgets watched: each threshold is told once, and what a used-up budget covers is stopped.

use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use domain::money::Micros;
use serde_json::json;
use store::budget::{AlertRecord, BudgetRecord};
use store::db::{Ro, Tx};

use super::lease::move_lease;
use crate::budget::spent;
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
    let mut changed = 0;
    for percent in budget.terms.due_alerts(spent) {
        if given.iter().all(|a| a.percent != percent) {
            let alert = AlertRecord {
                percent,
                period_from,
                spent,
                at: now,
            };
            changed += usize::from(alert_once(cx, budget, alert).await?);
        }
    }
    if budget.terms.forbids(spent) {
        for lease in live {
            changed += stop(cx, lease, (budget, spent), now).await?;
        }
    }
    Ok(changed)
}

/// Puts the message of an alert out, unless somebody else has.
async fn alert_once(cx: &Cx, budget: &BudgetRecord, alert: AlertRecord) -> Result<bool, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            if !store::budget::insert_alert(tx, budget, alert).await? {
                return Ok(false);
            }
            let message = json!({
                "party": budget.party.to_string(),
                "scope": budget.terms.scope.as_str(),
                "period": budget.terms.period.as_str(),
                "percent": alert.percent,
                "spent": alert.spent.to_string(),
                "limit": budget.terms.limit.to_string(),
                "currency": budget.currency.code(),
                "action": budget.terms.action.as_str(),
            });
            let key = budget.id.to_string();
            store::outbox::put(tx, ("budget.alert", &key), &message, alert.at).await?;
            Ok(true)
        })
        .await
}

/// Stops a lease that runs. One that is about to run is stopped once it does.
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
        let runs = lease.state == LeaseState::Running;
        Ok(runs.then(|| {
            Cause::market(LeaseEvent::StopRequested, LeaseReason::BudgetReached, now)
                .saying(text.clone())
        }))
    })
    .await
}
