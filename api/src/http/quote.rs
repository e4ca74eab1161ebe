//! Quotes.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::quote::{QuoteAsk, QuoteView};
use domain::clock::Span;
use web_openapi::quote::{CreateQuote, Quote};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems};
use super::fault::Fault;
use super::offer::within;
use super::once::IdempotencyKey;
use super::{answer, detached, view};
use crate::state::Shared;

/// Get a firm all-in price, valid for two minutes. It does not take the GPUs.
#[utoipa::path(tag = "quotes", security(("bearer" = [])), request_body = CreateQuote,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Quote), Problems))]
#[post("/v1/quotes")]
pub(crate) async fn create_quote(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateQuote>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let seconds = within(
        "/duration_seconds",
        input.duration_seconds.unwrap_or(3_600),
        60..=31_536_000,
    )?;
    let ask = QuoteAsk {
        offer: Id::field("/offer_id", &input.offer_id)?,
        offer_version: input.offer_version,
        gpu_count: within("/gpu_count", input.gpu_count, 1..=64)?,
        disk_gib: within("/disk_gib", input.disk_gib.unwrap_or(10), 1..=1_000_000)?,
        duration: Span::from_secs(i64::from(seconds)),
    };
    let key = key.on("POST /v1/quotes", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|v: &QuoteView| view::json(&view::quote(v)),
        };
        Ok(answer(
            &app::quote::create(&shared.cx, &auth.0, ask, once).await?,
        ))
    })
    .await
}

/// Get a quote of the party.
#[utoipa::path(tag = "quotes", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Quote), Problems))]
#[get("/v1/quotes/{id}")]
pub(crate) async fn get_quote(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::quote::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok().json(view::quote(&found)))
}
