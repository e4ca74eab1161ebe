//! Offers of providers.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, delete, get, patch, post};
use app::context::Once;
use app::offer::{OfferAsk, OfferPatch, OfferView};
use domain::money::Micros;
use web_openapi::money::{Per, Rate};
use web_openapi::offer::{CreateOffer, Offer, OfferPage, PatchOffer};
use web_openapi::page::PageQuery;

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::version::{IfMatch, stamp};
use super::{answer, detached, page, view};
use crate::state::Shared;

mod cursor;
pub mod search;

pub(super) fn price(pointer: &str, rate: &Rate, per: Per) -> Result<Micros, Fault> {
    if rate.per != per {
        return Err(Fault::field(
            &format!("{pointer}/per"),
            "unknown_value",
            "Another period is meant here.",
        ));
    }
    rate.parse()
        .map_err(|e| Fault::field(&format!("{pointer}/amount"), "malformed", format!("{e}")))
}

/// List a machine on the market.
#[utoipa::path(tag = "offers", security(("bearer" = [])), request_body = CreateOffer,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Offer), Problems))]
#[post("/v1/offers")]
pub(crate) async fn create_offer(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateOffer>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let floor = |r: &Rate| price("/bid_floor", r, Per::GpuHour);
    let keep = |r: &Rate| price("/keep_price", r, Per::GpuHour);
    let disk = |r: &Rate| price("/storage_price", r, Per::GibMonth);
    let ask = OfferAsk {
        gpu_hour: price("/price", &input.price, Per::GpuHour)?,
        bid_floor: input.bid_floor.as_ref().map(floor).transpose()?,
        keep_gpu_hour: input.keep_price.as_ref().map(keep).transpose()?,
        storage_gib_month: input
            .storage_price
            .as_ref()
            .map(disk)
            .transpose()?
            .unwrap_or(Micros::ZERO),
        min_gpus: input.min_gpus,
        max_gpus: input.max_gpus,
    };
    let machine = Id::field("/machine_id", &input.machine_id)?;
    let key = key.on("POST /v1/offers", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|v: &OfferView| view::json(&view::offer(v)),
        };
        Ok(answer(
            &app::offer::create(&shared.cx, &auth.0, (machine, ask), once).await?,
        ))
    })
    .await
}

/// List the party's offers.
#[utoipa::path(tag = "offers", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = OfferPage), Problems))]
#[get("/v1/offers")]
pub(crate) async fn list_offers(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::offer::list(&shared.cx, &auth.0, page::page("offers", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("offers", id));
    let body = OfferPage {
        data: found.rows.iter().map(view::offer).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/offers", &query.0),
        next_cursor.as_deref(),
    ))
}

fn versioned(v: &OfferView) -> HttpResponse {
    let body = view::offer(v);
    let mut reply = HttpResponse::Ok();
    stamp(&mut reply, Some(&body.version.into()));
    reply.json(body)
}

/// Get an offer of the party.
#[utoipa::path(tag = "offers", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Offer), Problems))]
#[get("/v1/offers/{id}")]
pub(crate) async fn get_offer(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    Ok(versioned(
        &app::offer::get(&shared.cx, &auth.0, Id::parse(&id)?).await?,
    ))
}

/// Change an offer. Running leases keep their price.
#[utoipa::path(tag = "offers", security(("bearer" = [])),
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body(content = PatchOffer, content_type = "application/merge-patch+json"),
    responses((status = 200, body = Offer), Problems))]
#[patch("/v1/offers/{id}")]
pub(crate) async fn change_offer(
    shared: Data<Shared>,
    auth: Auth,
    (id, version): (Path<String>, IfMatch),
    body: Body<PatchOffer>,
) -> Result<HttpResponse, Fault> {
    let (id, input) = (Id::parse(&id)?, body.value);
    let floor = |r: &Rate| price("/bid_floor", r, Per::GpuHour);
    let keep = |r: &Rate| price("/keep_price", r, Per::GpuHour);
    let gpu = |r: &Rate| price("/price", r, Per::GpuHour);
    let disk = |r: &Rate| price("/storage_price", r, Per::GibMonth);
    let patch = OfferPatch {
        gpu_hour: input.price.as_ref().map(gpu).transpose()?,
        bid_floor: input
            .bid_floor
            .as_ref()
            .map(|rate| rate.as_ref().map(floor).transpose())
            .transpose()?,
        keep_gpu_hour: input
            .keep_price
            .as_ref()
            .map(|rate| rate.as_ref().map(keep).transpose())
            .transpose()?,
        storage_gib_month: input.storage_price.as_ref().map(disk).transpose()?,
        min_gpus: input.min_gpus,
        max_gpus: input.max_gpus,
    };
    detached(async move {
        Ok(versioned(
            &app::offer::patch(&shared.cx, &auth.0, (id, version.0), patch).await?,
        ))
    })
    .await
}

/// Withdraw an offer. Running leases go on.
#[utoipa::path(tag = "offers", security(("bearer" = [])),
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    responses((status = 200, body = Offer), Problems))]
#[delete("/v1/offers/{id}")]
pub(crate) async fn withdraw_offer(
    shared: Data<Shared>,
    auth: Auth,
    (id, version): (Path<String>, IfMatch),
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    detached(async move {
        Ok(versioned(
            &app::offer::withdraw(&shared.cx, &auth.0, (id, version.0)).await?,
        ))
    })
    .await
}

/// Bounds a number of the body.
pub fn within<T: PartialOrd + std::fmt::Display + Copy>(
    pointer: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, Fault> {
    if range.contains(&value) {
        return Ok(value);
    }
    let text = format!("Must be {} to {}.", range.start(), range.end());
    Err(Fault::field(pointer, "out_of_range", text))
}
