//! The search over all live offers.

use std::collections::BTreeSet;

use actix_web::web::Data;
use actix_web::{HttpResponse, post};
use app::offer::{SearchAsk, SearchView};
use domain::clock::{Span, Timestamp};
use domain::money::Micros;
use matching::plan::Facets;
use matching::request::SortKey as EngineSort;
use web_openapi::money::{Per, Rate};
use web_openapi::offer::{
    Exclusion, FacetCount, OfferMatch, OfferSearch, Relaxation, SearchFacets, SearchOffers, SortKey,
};
use web_openapi::time::to_text;

use super::cursor::Cursor;
use super::{price, within};
use crate::http::body::Body;
use crate::http::docs::Problems;
use crate::http::fault::Fault;
use crate::http::view;
use crate::state::Shared;

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

fn sort(key: SortKey) -> EngineSort {
    match key {
        SortKey::Price => EngineSort::Price,
        SortKey::PricePerGpuHour => EngineSort::PricePerGpuHour,
        SortKey::GpuMemory => EngineSort::GpuMemory,
        SortKey::PricePerTflop => EngineSort::PricePerTflop,
        SortKey::PricePerGpuGib => EngineSort::PricePerGpuGib,
    }
}

fn ask(input: &SearchOffers, now: Timestamp) -> Result<SearchAsk, Fault> {
    let most = |r: &Rate| price("/max_price", r, Per::GpuHour);
    let seconds = within(
        "/duration_seconds",
        input.duration_seconds.unwrap_or(3_600),
        60..=31_536_000,
    )?;
    within("/gpu_models", input.gpu_models.len(), 0..=50)?;
    within("/sort", input.sort.len(), 0..=5)?;
    let cursor = input.cursor.as_deref();
    let cursor = cursor
        .map(|text| Cursor::read(text, input, now))
        .transpose()?;
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
        sort: input.sort.iter().copied().map(sort).collect(),
        limit: within("/limit", input.limit.unwrap_or(50), 1..=200)?,
        after: cursor.map(|cursor| cursor.after),
    })
}

fn facets(found: &Facets) -> SearchFacets {
    let one = |(value, offers): (String, &u32)| FacetCount {
        value,
        offers: *offers,
    };
    let named = |(value, offers): (&String, _)| one((value.clone(), offers));
    let step = |(from, offers): (&Micros, _)| one((from.to_string(), offers));
    SearchFacets {
        gpu_models: found.models.iter().map(named).collect(),
        countries: found.countries.iter().map(named).collect(),
        prices: found.prices.iter().map(step).collect(),
    }
}

fn search_view(v: &SearchView, input: &SearchOffers) -> Result<OfferSearch, Fault> {
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
    let next = v.found.next.as_ref();
    let next = next
        .map(|after| Cursor::text(after, input, v.as_of))
        .transpose()?;
    let binding = v.found.excluded.binding().filter(|_| v.found.fitting == 0);
    Ok(OfferSearch {
        data: v.found.matches.iter().map(one).collect(),
        has_more: next.is_some(),
        next_cursor: next,
        as_of: to_text(v.as_of),
        considered: v.considered,
        fitting: v.found.fitting,
        changed: u32::try_from(v.found.changed).unwrap_or(u32::MAX),
        facets: input
            .facets
            .unwrap_or(false)
            .then(|| facets(&v.found.facets)),
        binding: binding.map(|c| c.field().to_owned()),
        excluded: excluded
            .map(|(c, offers)| Exclusion {
                constraint: c.field().to_owned(),
                offers,
            })
            .collect(),
        relaxations: v.found.relaxations.iter().map(relaxed).collect(),
    })
}

/// Search all live offers by what is needed; no login. Prices are all-in for the given disk and duration.
#[utoipa::path(tag = "offers", request_body = SearchOffers,
    responses((status = 200, body = OfferSearch), Problems))]
#[post("/v1/offers/search")]
pub(crate) async fn search_offers(
    shared: Data<Shared>,
    body: Body<SearchOffers>,
) -> Result<HttpResponse, Fault> {
    let input = &body.value;
    let ask = ask(input, shared.cx.now())?;
    let found = app::offer::search(&shared.cx, ask).await?;
    Ok(HttpResponse::Ok().json(search_view(&found, input)?))
}
