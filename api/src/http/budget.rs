//! Budgets.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, delete, get, patch, post};
use app::budget::{BudgetChange, BudgetView};
use app::context::Once;
use billing::budget as rules;
use domain::money::Micros;
use web_openapi::budget::{
    Budget, BudgetAction, BudgetAlert, BudgetPage, BudgetPeriod, BudgetScope, CreateBudget,
    PatchBudget,
};
use web_openapi::money::Money;
use web_openapi::page::PageQuery;
use web_openapi::time::to_text;

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::version::{IfMatch, stamp};
use super::{answer, detached, page, view};
use crate::state::Shared;

fn budget(v: &BudgetView) -> Budget {
    let (b, terms) = (&v.budget, &v.budget.terms);
    let (scope, member, label, lease) = match &terms.scope {
        rules::BudgetScope::Party => (BudgetScope::Party, None, None, None),
        rules::BudgetScope::Member(user) => (BudgetScope::Member, Some(user), None, None),
        rules::BudgetScope::Label(label) => (BudgetScope::Label, None, Some(label), None),
        rules::BudgetScope::Lease(id) => (BudgetScope::Lease, None, None, Some(id)),
    };
    let alert = |a: &store::budget::AlertRecord| BudgetAlert {
        percent: a.percent,
        spent: Money::usd(a.spent),
        at: to_text(a.at),
    };
    let monthly = terms.period == rules::BudgetPeriod::Month;
    Budget {
        id: b.id.to_string(),
        scope,
        member_id: member.map(ToString::to_string),
        label: label.cloned(),
        lease_id: lease.map(ToString::to_string),
        period: if monthly {
            BudgetPeriod::Month
        } else {
            BudgetPeriod::Total
        },
        period_from: monthly.then(|| to_text(v.period_from)),
        limit: Money::usd(terms.limit),
        spent: Money::usd(v.spent),
        exhausted: terms.reached(v.spent, 100),
        alert_percents: terms.alerts.clone(),
        action: match terms.action {
            rules::BudgetAction::Alert => BudgetAction::Alert,
            rules::BudgetAction::Stop => BudgetAction::Stop,
        },
        alerts: v.alerts.iter().map(alert).collect(),
        version: b.version,
        created_at: to_text(b.created_at),
        updated_at: to_text(b.updated_at),
    }
}

fn reply(v: &BudgetView) -> HttpResponse {
    let body = budget(v);
    let mut reply = HttpResponse::Ok();
    stamp(&mut reply, Some(&body.version.into()));
    reply.json(body)
}

fn scope(input: &CreateBudget) -> Result<rules::BudgetScope, Fault> {
    let subjects = [
        ("/member_id", BudgetScope::Member, &input.member_id),
        ("/label", BudgetScope::Label, &input.label),
        ("/lease_id", BudgetScope::Lease, &input.lease_id),
    ];
    for (pointer, of, subject) in subjects {
        if (of == input.scope) != subject.is_some() {
            let (code, text) = if subject.is_some() {
                ("unknown_field", "The scope has no such subject.")
            } else {
                ("missing_field", "The scope needs it.")
            };
            return Err(Fault::field(pointer, code, text));
        }
    }
    let text = |subject: &Option<String>| subject.clone().unwrap_or_default();
    Ok(match input.scope {
        BudgetScope::Party => rules::BudgetScope::Party,
        BudgetScope::Member => {
            rules::BudgetScope::Member(Id::field("/member_id", &text(&input.member_id))?)
        }
        BudgetScope::Label => {
            let label = text(&input.label);
            super::offer::within("/label", label.len(), 1..=100)?;
            rules::BudgetScope::Label(label)
        }
        BudgetScope::Lease => {
            rules::BudgetScope::Lease(Id::field("/lease_id", &text(&input.lease_id))?)
        }
    })
}

fn limit(money: &Money) -> Result<Micros, Fault> {
    money
        .parse()
        .map(|m| m.amount)
        .map_err(|e| Fault::field("/limit", "malformed", format!("{e}")))
}

const fn action(action: BudgetAction) -> rules::BudgetAction {
    match action {
        BudgetAction::Alert => rules::BudgetAction::Alert,
        BudgetAction::Stop => rules::BudgetAction::Stop,
    }
}

/// Make a budget: alerts at its thresholds, and at 100 % a stop if that is wanted.
#[utoipa::path(tag = "budgets", security(("bearer" = [])), request_body = CreateBudget,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Budget), Problems))]
#[post("/v1/budgets")]
pub(crate) async fn create_budget(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateBudget>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let terms = rules::BudgetTerms {
        scope: scope(&input)?,
        period: match input.period {
            BudgetPeriod::Month => rules::BudgetPeriod::Month,
            BudgetPeriod::Total => rules::BudgetPeriod::Total,
        },
        limit: limit(&input.limit)?,
        alerts: input.alert_percents.unwrap_or_else(|| vec![50, 80]),
        action: action(input.action),
    };
    let key = key.on("POST /v1/budgets", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|v: &BudgetView| view::json(&budget(v)),
        };
        Ok(answer(
            &app::budget::create(&shared.cx, &auth.0, terms, once).await?,
        ))
    })
    .await
}

/// List the party's budgets, newest first.
#[utoipa::path(tag = "budgets", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = BudgetPage), Problems))]
#[get("/v1/budgets")]
pub(crate) async fn list_budgets(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::budget::list(&shared.cx, &auth.0, page::page("budgets", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("budgets", id));
    let body = BudgetPage {
        data: found.rows.iter().map(budget).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/budgets", &query.0),
        next_cursor.as_deref(),
    ))
}

/// Get a budget with what is spent of it.
#[utoipa::path(tag = "budgets", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Budget), Problems))]
#[get("/v1/budgets/{id}")]
pub(crate) async fn get_budget(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::budget::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(reply(&found))
}

/// Change a budget. Its alerts can be given anew.
#[utoipa::path(tag = "budgets", security(("bearer" = [])),
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body(content = PatchBudget, content_type = "application/merge-patch+json"),
    responses((status = 200, body = Budget), Problems))]
#[patch("/v1/budgets/{id}")]
pub(crate) async fn change_budget(
    shared: Data<Shared>,
    auth: Auth,
    (id, version): (Path<String>, IfMatch),
    body: Body<PatchBudget>,
) -> Result<HttpResponse, Fault> {
    let (id, input) = (Id::parse(&id)?, body.value);
    let change = BudgetChange {
        limit: input.limit.as_ref().map(limit).transpose()?,
        alerts: input.alert_percents,
        action: input.action.map(action),
    };
    detached(async move {
        Ok(reply(
            &app::budget::change(&shared.cx, &auth.0, (id, version.0), change).await?,
        ))
    })
    .await
}

/// Remove a budget.
#[utoipa::path(tag = "budgets", security(("bearer" = [])),
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 200, body = Budget), Problems))]
#[delete("/v1/budgets/{id}")]
pub(crate) async fn remove_budget(
    shared: Data<Shared>,
    auth: Auth,
    (id, version): (Path<String>, IfMatch),
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    detached(async move {
        Ok(reply(
            &app::budget::remove(&shared.cx, &auth.0, (id, version.0)).await?,
        ))
    })
    .await
}
