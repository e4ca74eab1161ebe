//! Payouts of the party's earnings.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use store::payout::PayoutRecord;
use web_openapi::money::Money;
use web_openapi::page::PageQuery;
use web_openapi::payout::{CreatePayout, Payout, PayoutPage};
use web_openapi::time::to_text;

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{answer, detached, page, view};
use crate::state::Shared;

fn payout(p: &PayoutRecord) -> Payout {
    Payout {
        id: p.id.to_string(),
        amount: Money::usd(p.amount),
        state: p.state.as_str().to_owned(),
        state_reason: p.state_reason.clone(),
        sandbox: p.sandbox,
        requested_at: to_text(p.requested_at),
        state_at: to_text(p.state_at),
    }
}

/// Ask for a payout of what is payable. In the sandbox no bank is told.
#[utoipa::path(tag = "earnings", security(("bearer" = [])), request_body = CreatePayout,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Payout), Problems))]
#[post("/v1/payouts")]
pub(crate) async fn create_payout(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreatePayout>,
) -> Result<HttpResponse, Fault> {
    let amount = body.value.amount.as_ref().map(Money::parse).transpose();
    let amount = amount.map_err(|e| Fault::field("/amount", "malformed", format!("{e}")))?;
    let amount = amount.map(|money| money.amount);
    let key = key.on("POST /v1/payouts", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|p: &PayoutRecord| view::json(&payout(p)),
        };
        Ok(answer(
            &app::payout::create(&shared.cx, &auth.0, amount, once).await?,
        ))
    })
    .await
}

/// List the party's payouts, newest first.
#[utoipa::path(tag = "earnings", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = PayoutPage), Problems))]
#[get("/v1/payouts")]
pub(crate) async fn list_payouts(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::payout::list(&shared.cx, &auth.0, page::page("payouts", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("payouts", id));
    let body = PayoutPage {
        data: found.rows.iter().map(payout).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    let path = ("/v1/payouts", &query.0);
    Ok(page::reply(&body, path, next_cursor.as_deref()))
}

/// Get a payout of the party.
#[utoipa::path(tag = "earnings", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Payout), Problems))]
#[get("/v1/payouts/{id}")]
pub(crate) async fn get_payout(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::payout::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok().json(payout(&found)))
}
