//! Credit from the market, for the operator's people.

use actix_web::web::Data;
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::credit::NewCredit;
use billing::posting::credit::CreditKind;
use store::credit::CreditRecord;
use web_openapi::credit::{Credit, CreditPage, CreditType, GrantCredit};
use web_openapi::money::Money;
use web_openapi::page::PageQuery;
use web_openapi::time::{from_text, to_text};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{answer, detached, page, view};
use crate::state::Shared;

fn credit(c: &CreditRecord) -> Credit {
    Credit {
        id: c.id.to_string(),
        party_id: c.party.to_string(),
        kind: c.kind.as_str().to_owned(),
        amount: Money::usd(c.amount),
        remaining: Money::usd(c.remaining),
        reason: c.reason.clone(),
        lease_id: c.lease.map(|id| id.to_string()),
        expires_at: c.expires_at.map(to_text),
        granted_by: c.granted_by.to_string(),
        created_at: to_text(c.created_at),
    }
}

fn input(body: GrantCredit) -> Result<NewCredit, Fault> {
    let amount = body.amount.parse();
    let amount = amount.map_err(|e| Fault::field("/amount", "malformed", format!("{e}")))?;
    let party = body.party_id.as_deref();
    let lease = body.lease_id.as_deref();
    let at = body.expires_at.as_deref().map(|text| {
        let not_time = || Fault::field("/expires_at", "malformed", "Not a time of RFC 3339.");
        from_text(text).ok_or_else(not_time)
    });
    Ok(NewCredit {
        party: party.map(|id| Id::field("/party_id", id)).transpose()?,
        kind: match body.kind {
            CreditType::Promo => CreditKind::Promo,
            CreditType::Sla => CreditKind::Sla,
            CreditType::Goodwill => CreditKind::Goodwill,
        },
        amount: amount.amount,
        lease: lease.map(|id| Id::field("/lease_id", id)).transpose()?,
        expires_at: at.transpose()?,
        reason: body.reason,
    })
}

/// Grant a renter a credit. Operators and finance only.
#[utoipa::path(tag = "admin", security(("bearer" = [])), request_body = GrantCredit,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Credit), Problems))]
#[post("/v1/admin/credits")]
pub(crate) async fn grant_credit(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<GrantCredit>,
) -> Result<HttpResponse, Fault> {
    let key = key.on("POST /v1/admin/credits", body.fingerprint);
    let new = input(body.value)?;
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|c: &CreditRecord| view::json(&credit(c)),
        };
        Ok(answer(
            &app::credit::grant(&shared.cx, &auth.0, new, once).await?,
        ))
    })
    .await
}

/// List all credits, newest first.
#[utoipa::path(tag = "admin", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = CreditPage), Problems))]
#[get("/v1/admin/credits")]
pub(crate) async fn list_credits(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let wanted = page::page("credits", &query.0)?;
    let found = app::credit::list_all(&shared.cx, &auth.0, wanted).await?;
    let next_cursor = found.next.map(|id| page::encode("credits", id));
    let body = CreditPage {
        data: found.rows.iter().map(credit).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    let path = ("/v1/admin/credits", &query.0);
    Ok(page::reply(&body, path, next_cursor.as_deref()))
}
