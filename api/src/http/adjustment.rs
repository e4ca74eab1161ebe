//! Adjustments of accounts, for the operator's people.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, post};
use app::adjustment::{NewAdjustment, Verdict};
use app::context::Once;
use billing::account::AccountCode;
use billing::posting::adjustment::Direction;
use store::adjustment::AdjustmentRecord;
use web_openapi::adjustment::{
    Adjustment, AdjustmentAction, AdjustmentDirection, AdjustmentPage, AdjustmentVerdict,
    ProposeAdjustment,
};
use web_openapi::money::Money;
use web_openapi::page::PageQuery;
use web_openapi::time::to_text;

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{answer, detached, page, view};
use crate::state::Shared;

fn adjustment(a: &AdjustmentRecord) -> Adjustment {
    let decision = a.decision.as_ref();
    Adjustment {
        id: a.id.to_string(),
        party_id: a.party.to_string(),
        direction: a.direction.as_str().to_owned(),
        account: a.account.as_str().to_owned(),
        borne_by: a.bearer.as_str().to_owned(),
        amount: Money::usd(a.amount),
        reason: a.reason.clone(),
        needs_approval: a.needs_approval,
        state: a.state.as_str().to_owned(),
        proposed_by: a.proposed_by.to_string(),
        proposed_at: to_text(a.proposed_at),
        expires_at: to_text(a.expires_at),
        decided_by: decision.and_then(|d| d.by).map(|id| id.to_string()),
        decided_at: decision.map(|d| to_text(d.at)),
        decision_reason: decision.and_then(|d| d.reason.clone()),
    }
}

fn account(pointer: &str, name: &str) -> Result<AccountCode, Fault> {
    AccountCode::parse(name)
        .ok_or_else(|| Fault::field(pointer, "unknown", "There is no such account."))
}

fn input(body: ProposeAdjustment) -> Result<NewAdjustment, Fault> {
    let amount = body.amount.parse();
    let amount = amount.map_err(|e| Fault::field("/amount", "malformed", format!("{e}")))?;
    Ok(NewAdjustment {
        party: Id::field("/party_id", &body.party_id)?,
        direction: match body.direction {
            AdjustmentDirection::Credit => Direction::Credit,
            AdjustmentDirection::Debit => Direction::Debit,
        },
        account: account("/account", &body.account)?,
        bearer: account("/borne_by", &body.borne_by)?,
        amount: amount.amount,
        reason: body.reason,
    })
}

/// Propose an adjustment of a party's account; a small one is made at once. Operators and finance only.
#[utoipa::path(tag = "admin", security(("bearer" = [])), request_body = ProposeAdjustment,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Adjustment), Problems))]
#[post("/v1/admin/adjustments")]
pub(crate) async fn propose_adjustment(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<ProposeAdjustment>,
) -> Result<HttpResponse, Fault> {
    let key = key.on("POST /v1/admin/adjustments", body.fingerprint);
    let new = input(body.value)?;
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|a: &AdjustmentRecord| view::json(&adjustment(a)),
        };
        Ok(answer(
            &app::adjustment::propose(&shared.cx, &auth.0, new, once).await?,
        ))
    })
    .await
}

/// List all adjustments, newest first.
#[utoipa::path(tag = "admin", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = AdjustmentPage), Problems))]
#[get("/v1/admin/adjustments")]
pub(crate) async fn list_adjustments(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let wanted = page::page("adjustments", &query.0)?;
    let found = app::adjustment::list(&shared.cx, &auth.0, wanted).await?;
    let next_cursor = found.next.map(|id| page::encode("adjustments", id));
    let body = AdjustmentPage {
        data: found.rows.iter().map(adjustment).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    let path = ("/v1/admin/adjustments", &query.0);
    Ok(page::reply(&body, path, next_cursor.as_deref()))
}

/// Get an adjustment.
#[utoipa::path(tag = "admin", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Adjustment), Problems))]
#[get("/v1/admin/adjustments/{id}")]
pub(crate) async fn get_adjustment(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::adjustment::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok().json(adjustment(&found)))
}

/// Approve or reject a proposed adjustment. Who proposed it cannot approve it.
#[utoipa::path(tag = "admin", security(("bearer" = [])), request_body = AdjustmentAction,
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = Adjustment), Problems))]
#[post("/v1/admin/adjustments/{id}/actions")]
pub(crate) async fn decide_adjustment(
    shared: Data<Shared>,
    auth: Auth,
    (id, key): (Path<String>, IdempotencyKey),
    body: Body<AdjustmentAction>,
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    let key = key.on("POST /v1/admin/adjustments/{id}/actions", body.fingerprint);
    let verdict = match body.value.kind {
        AdjustmentVerdict::Approve => Verdict::Approve,
        AdjustmentVerdict::Reject => Verdict::Reject,
    };
    let reason = body.value.reason;
    detached(async move {
        let once = Once {
            key,
            status: 200,
            render: &|a: &AdjustmentRecord| view::json(&adjustment(a)),
        };
        Ok(answer(
            &app::adjustment::decide(&shared.cx, &auth.0, (id, verdict, reason), once).await?,
        ))
    })
    .await
}
