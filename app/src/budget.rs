//! Budgets: made, shown, changed, and asked before money is spent.

use billing::budget::{BudgetScope, BudgetTerms, Spender};
use billing::rating::Due;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{BudgetId, PartyId};
use domain::money::{Currency, Micros};
use domain::refusal::Code;
use serde_json::json;
use store::budget::{AlertRecord, BudgetRecord};
use store::db::{Ro, Tx};
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;

/// Most alerts of one budget.
const ALERTS: usize = 10;
/// Most budgets of one party: each is looked at again and again.
const MOST: i64 = 100;

/// A budget and how far it is used.
#[derive(Clone, Debug)]
pub struct BudgetView {
    /// The budget.
    pub budget: BudgetRecord,
    /// Since when cost counts.
    pub period_from: Timestamp,
    /// Charged and proven since then, tax included.
    pub spent: Micros,
    /// Alerts that were given in this period.
    pub alerts: Vec<AlertRecord>,
}

/// What is to change.
#[derive(Clone, Debug, Default)]
pub struct BudgetChange {
    /// The limit.
    pub limit: Option<Micros>,
    /// The thresholds.
    pub alerts: Option<Vec<u16>>,
    /// What happens at 100 %.
    pub action: Option<billing::budget::BudgetAction>,
}

/// What counts against a budget at `now`: charges of the period, and what is proven but not charged.
pub(crate) async fn spent(
    ro: &mut Ro,
    budget: &BudgetRecord,
    now: Timestamp,
) -> Result<Micros, Error> {
    let since = budget.terms.period.start(now);
    let charged = store::budget::charged(ro, budget, since).await?;
    let live = store::budget::live_leases(ro, budget).await?;
    let mut open = Due::default();
    for meter in store::meter::of_leases(ro, &live).await? {
        open = open.plus(meter.unsettled()?)?;
    }
    Ok(charged.plus(open.renter()?)?)
}

/// The budgets of some parties that forbid spending now: those of which 100 % were told in this
/// period. Nothing is summed here, since bookings of others wait in the same transaction; the sums
/// are made by the watch, and when a budget is made or changed.
#[derive(Debug)]
pub(crate) struct Gate(Vec<(BudgetRecord, Micros)>);

impl Gate {
    pub(crate) async fn load(
        ro: &mut Ro,
        parties: &[PartyId],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut shut = Vec::new();
        for (budget, reached) in store::budget::stopping(ro, parties).await? {
            let period_from = budget.terms.period.start(now);
            let now_reached = reached
                .iter()
                .find(|r| r.version == budget.version && r.period_from == period_from);
            if let Some(reached) = now_reached {
                shut.push((budget, reached.spent));
            }
        }
        Ok(Self(shut))
    }

    /// Refuses if one of the party's budgets that are used up covers `spender`.
    pub(crate) fn check(&self, party: PartyId, spender: Spender<'_>) -> Result<(), Error> {
        let shut = self
            .0
            .iter()
            .find(|(b, _spent)| b.party == party && b.terms.scope.covers(spender));
        let Some((budget, spent)) = shut else {
            return Ok(());
        };
        let text = format!(
            "Budget {} ({}, {}) is used up: {spent} of {} USD.",
            budget.id,
            budget.terms.scope.as_str(),
            budget.terms.period.as_str(),
            budget.terms.limit,
        );
        Err(Error::refused(Code::BudgetExhausted, text)
            .suggesting("Raise or remove it with PATCH or DELETE /v1/budgets/{id}."))
    }
}

fn check(terms: &BudgetTerms) -> Result<(), Error> {
    if terms.limit <= Micros::ZERO {
        let told = "Must be above zero.";
        return Err(Error::field("/limit", "out_of_range", told));
    }
    let rising = terms.alerts.is_sorted_by(|a, b| a < b);
    let within = terms.alerts.iter().all(|p| (1..=1_000).contains(p));
    if !rising || !within || terms.alerts.len() > ALERTS {
        let told = "At most ten percentages from 1 to 1000, each once, rising.";
        return Err(Error::field("/alert_percents", "out_of_range", told));
    }
    Ok(())
}

/// Is there, in the party, what the budget is about?
async fn check_subject(ro: &mut Ro, party: PartyId, scope: &BudgetScope) -> Result<(), Error> {
    let (there, pointer) = match scope {
        BudgetScope::Party | BudgetScope::Label(_) => return Ok(()),
        BudgetScope::Member(user) => (
            store::budget::is_member(ro, party, *user).await?,
            "/member_id",
        ),
        BudgetScope::Lease(id) => {
            let lease = store::lease::get(ro, *id).await?;
            (lease.is_some_and(|l| l.party == party), "/lease_id")
        }
    };
    if there {
        return Ok(());
    }
    let told = "There is none in your party.";
    Err(Error::field(pointer, "unknown_value", told))
}

/// Tells each threshold that `spent` has reached, unless it was told before; how many were told.
pub(crate) async fn tell(
    tx: &mut Tx,
    budget: &BudgetRecord,
    spent: Micros,
    now: Timestamp,
) -> Result<usize, Error> {
    let period_from = budget.terms.period.start(now);
    let mut told = 0usize;
    for percent in budget.terms.due_alerts(spent) {
        let alert = AlertRecord {
            percent,
            period_from,
            spent,
            at: now,
        };
        if !store::budget::insert_alert(tx, budget, alert).await? {
            continue;
        }
        let message = json!({
            "party": budget.party.to_string(),
            "scope": budget.terms.scope.as_str(),
            "period": budget.terms.period.as_str(),
            "percent": percent,
            "spent": spent.to_string(),
            "limit": budget.terms.limit.to_string(),
            "currency": budget.currency.code(),
            "action": budget.terms.action.as_str(),
        });
        let key = budget.id.to_string();
        store::outbox::put(tx, ("budget.alert", &key), &message, now).await?;
        told = told.saturating_add(1);
    }
    Ok(told)
}

async fn view(ro: &mut Ro, budget: BudgetRecord, now: Timestamp) -> Result<BudgetView, Error> {
    let period_from = budget.terms.period.start(now);
    Ok(BudgetView {
        period_from,
        spent: spent(ro, &budget, now).await?,
        alerts: store::budget::alerts(ro, &budget, period_from).await?,
        budget,
    })
}

/// Makes a budget.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    terms: BudgetTerms,
    once: Once<'_, BudgetView>,
) -> Result<Answer, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    check(&terms)?;
    let (now, party) = (cx.now(), caller.actor.party);
    let budget = BudgetRecord {
        id: BudgetId::from_uuid(cx.id()),
        party,
        terms,
        currency: Currency::Usd,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let (once, budget) = (&once, &budget);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        store::invoice::lock_party(tx, party).await?;
        if store::budget::count(tx, party).await? >= MOST {
            let told = format!("A party has at most {MOST} budgets.");
            return Err(Error::field("/scope", "out_of_range", told));
        }
        check_subject(tx, party, &budget.terms.scope).await?;
        store::budget::insert(tx, budget).await?;
        let spent = spent(tx, budget, now).await?;
        tell(tx, budget, spent, now).await?;
        let what = Audited {
            action: "budget.create",
            object: budget.id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        view(tx, budget.clone(), now).await
    })
    .await
}

/// The party's budgets, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<BudgetView>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let found = store::budget::list(ro, party, page).await?;
            let mut rows = Vec::new();
            for budget in found.rows {
                rows.push(view(ro, budget, now).await?);
            }
            Ok(Paged {
                rows,
                next: found.next,
            })
        })
        .await
}

/// One budget of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: BudgetId) -> Result<BudgetView, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let budget = store::budget::get(ro, party, id).await?;
            view(ro, budget.ok_or_else(|| Error::not_found("budget"))?, now).await
        })
        .await
}

/// The budget, locked, if it is the caller's and at the version that was seen.
async fn own(
    tx: &mut Tx,
    caller: &Caller,
    (id, if_version): (BudgetId, Option<i64>),
) -> Result<BudgetRecord, Error> {
    let budget = store::budget::get_for_update(tx, id)
        .await?
        .filter(|b| b.party == caller.actor.party)
        .ok_or_else(|| Error::not_found("budget"))?;
    if if_version.is_some_and(|v| v != budget.version) {
        return Err(Error::refused(
            Code::StaleVersion,
            format!("The budget is at version {} now.", budget.version),
        ));
    }
    Ok(budget)
}

/// Changes a budget; its alerts can be given anew.
pub async fn change(
    cx: &Cx,
    caller: &Caller,
    seen: (BudgetId, Option<i64>),
    change: BudgetChange,
) -> Result<BudgetView, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    let (now, change) = (cx.now(), &change);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let before = own(tx, caller, seen).await?;
            let mut after = before.clone();
            let terms = &mut after.terms;
            terms.limit = change.limit.unwrap_or(terms.limit);
            terms.action = change.action.unwrap_or(terms.action);
            if let Some(alerts) = &change.alerts {
                terms.alerts.clone_from(alerts);
            }
            check(terms)?;
            if after.terms != before.terms {
                after.version = before.version.saturating_add(1);
                after.updated_at = now;
                store::budget::save(tx, &after).await?;
                let spent = spent(tx, &after, now).await?;
                tell(tx, &after, spent, now).await?;
                let what = Audited {
                    action: "budget.change",
                    object: after.id.to_string(),
                    reason: "by request",
                };
                store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
            }
            view(tx, after, now).await
        })
        .await
}

/// Takes a budget out of force.
pub async fn remove(
    cx: &Cx,
    caller: &Caller,
    seen: (BudgetId, Option<i64>),
) -> Result<BudgetView, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let budget = own(tx, caller, seen).await?;
            store::budget::remove(tx, budget.id, now).await?;
            let what = Audited {
                action: "budget.remove",
                object: budget.id.to_string(),
                reason: "by request",
            };
            store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
            view(tx, budget, now).await
        })
        .await
}
