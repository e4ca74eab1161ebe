//! Offers, and the search over them.

use std::collections::BTreeSet;

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, delete, get, patch, post};
use app::context::Once;
use app::offer::{OfferAsk, OfferPatch, OfferView, SearchAsk, SearchView};
use domain::clock::Span;
use domain::money::Micros;
use matching::request::SortKey as EngineSort;
use web_openapi::money::{Per, Rate};
use web_openapi::offer::{
    CreateOffer, Exclusion, Offer, OfferMatch, OfferPage, OfferSearch, PatchOffer, Relaxation,
    SearchOffers, SortKey,
};
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

fn price(pointer: &str, rate: &Rate, per: Per) -> Result<Micros, Fault> {
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

fn countries(pointer: &str, codes: &[String]) -> Result<BTreeSet<String>, Fault> {
    let one = |(place, code): (usize, &String)| {
        let fits = code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
        if fits {
            Ok(code.clone())
        } else {
            let text = "Must be a two-letter country code in capitals.";
            Err(Fault::field(
                &format!("{pointer}/{place}"),
                "malformed",
                text,
            ))
        }
    };
    codes.iter().enumerate().map(one).collect()
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

fn ask(input: &SearchOffers) -> Result<SearchAsk, Fault> {
    let sort = |key: &SortKey| match key {
        SortKey::Price => EngineSort::Price,
        SortKey::PricePerGpuHour => EngineSort::PricePerGpuHour,
        SortKey::GpuMemory => EngineSort::GpuMemory,
    };
    let most = |r: &Rate| price("/max_price", r, Per::GpuHour);
    let seconds = within(
        "/duration_seconds",
        input.duration_seconds.unwrap_or(3_600),
        60..=31_536_000,
    )?;
    within("/gpu_models", input.gpu_models.len(), 0..=50)?;
    Ok(SearchAsk {
        models: input.gpu_models.clone(),
        count: within("/gpu_count", input.gpu_count.unwrap_or(1), 1..=64)?,
        min_gpu_memory_mib: input.min_gpu_memory_mib,
        min_cpu_cores: input.min_cpu_cores,
        min_ram_mib: input.min_ram_mib,
        disk_gib: within("/disk_gib", input.disk_gib.unwrap_or(10), 1..=1_000_000)?,
        duration: Span::from_secs(i64::from(seconds)),
        countries: countries("/countries", &input.countries)?,
        not_countries: countries("/not_countries", &input.not_countries)?,
        max_gpu_hour: input.max_price.as_ref().map(most).transpose()?,
        simulated: input.simulated.unwrap_or(false),
        sort: input.sort.iter().map(sort).collect(),
        limit: within("/limit", input.limit.unwrap_or(50), 1..=200)?,
    })
}

fn search_view(v: &SearchView) -> OfferSearch {
    let one = |m: &matching::plan::Match| OfferMatch {
        offer_id: m.supply.offer.id.to_string(),
        offer_version: m.supply.offer.version,
        gpu_model: m.supply.model.clone(),
        gpu_count: v.count,
        gpus_free: m.supply.free(),
        gpu_memory_mib: m.supply.gpu_memory_mib,
        cpu_cores: m.supply.cpu_cores,
        ram_mib: m.supply.ram_mib,
        disk_gib: m.supply.disk_free_gib,
        country: m.supply.country.clone(),
        simulated: m.supply.simulated,
        price: view::price(&m.price),
    };
    let excluded = v.found.excluded.counts();
    let relaxed = |r: &matching::explain::Relaxation| Relaxation {
        field: r.constraint.field().to_owned(),
        from: r.from.clone(),
        to: r.to.clone(),
        offers: r.offers,
    };
    OfferSearch {
        data: v.matches.iter().map(one).collect(),
        has_more: v.has_more,
        as_of: to_text(v.as_of),
        considered: v.considered,
        excluded: excluded
            .map(|(c, offers)| Exclusion {
                constraint: c.field().to_owned(),
                offers,
            })
            .collect(),
        relaxations: v.found.relaxations.iter().map(relaxed).collect(),
    }
}

/// Search all live offers by what is needed; no login. Prices are all-in for the given disk and duration.
#[utoipa::path(tag = "offers", request_body = SearchOffers,
    responses((status = 200, body = OfferSearch), Problems))]
#[post("/v1/offers/search")]
pub(crate) async fn search_offers(
    shared: Data<Shared>,
    body: Body<SearchOffers>,
) -> Result<HttpResponse, Fault> {
    let found = app::offer::search(&shared.cx, ask(&body.value)?).await?;
    Ok(HttpResponse::Ok().json(search_view(&found)))
}
