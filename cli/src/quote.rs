//! Quotes: a firm price, and how it is made up.

use comfy_table::Table;
use domain::id::OfferId;
use serde_json::Value;
use web_openapi::offer::{OfferMatch, OfferSearch, SortKey};
use web_openapi::quote::{CreateQuote, Quote};

use crate::client::Answer;
use crate::command::renter::{Filter, Quote as QuoteArgs, Size};
use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::offer::nothing_found;
use crate::output::{Output, facts};
use crate::text::{View, gpus, money, rate, seconds};

/// Makes a quote, or shows one again.
pub(crate) async fn quote(
    cx: &Context,
    output: &mut Output<'_>,
    args: &QuoteArgs,
) -> Result<(), Fault> {
    let answer = match (args.quote, args.offer) {
        (Some(id), _) => cx.client.get(&format!("/v1/quotes/{id}"), &[]).await?,
        (None, Some(offer)) => of_offer(cx, offer, &args.filter.size).await?,
        (None, None) => of_match(cx, &cheapest(cx, &args.filter).await?, &args.filter.size).await?,
    };
    if output.json() {
        return output.document(&answer.body);
    }
    let quote: Quote = answer.read()?;
    output.table(&picture(&quote, &cx.view()))?;
    output.say(&format!(
        "\nBook it: gpumarket book --quote {} --image IMAGE",
        quote.id
    ))
}

/// The cheapest offer that fits, or a failure that says what would fit.
pub(crate) async fn cheapest(cx: &Context, filter: &Filter) -> Result<OfferMatch, Fault> {
    let request = filter.request(vec![SortKey::Price], 1);
    let answer = cx.client.post("/v1/offers/search", &request).await?;
    let mut found: OfferSearch = answer.read()?;
    if found.data.is_empty() {
        let told = nothing_found(&found).join("\n");
        let search = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        return Err(Local::new("nothing_fits", told)
            .with("search", search)
            .into());
    }
    Ok(found.data.swap_remove(0))
}

/// Quotes a match at the version that was searched.
pub(crate) async fn of_match(
    cx: &Context,
    found: &OfferMatch,
    size: &Size,
) -> Result<Answer, Fault> {
    ask(cx, found.offer_id.clone(), Some(found.offer_version), size).await
}

/// Quotes an offer as it is now.
pub(crate) async fn of_offer(cx: &Context, offer: OfferId, size: &Size) -> Result<Answer, Fault> {
    ask(cx, offer.to_string(), None, size).await
}

async fn ask(
    cx: &Context,
    offer_id: String,
    offer_version: Option<i64>,
    size: &Size,
) -> Result<Answer, Fault> {
    let request = CreateQuote {
        offer_id,
        offer_version,
        gpu_count: size.count,
        disk_gib: Some(size.disk),
        duration_seconds: Some(size.duration_seconds),
    };
    cx.client.post("/v1/quotes", &request).await
}

/// A quote as names and values.
pub(crate) fn picture(quote: &Quote, view: &View) -> Table {
    let price = &quote.price;
    facts([
        ("quote", Some(quote.id.clone())),
        (
            "offer",
            Some(format!(
                "{}, version {}",
                quote.offer_id, quote.offer_version
            )),
        ),
        (
            "GPUs",
            Some(gpus(quote.gpu_count, &quote.gpu_model, quote.simulated)),
        ),
        ("one GPU", Some(rate(&price.gpu_hour))),
        ("  if kept", Some(rate(&price.keep_price))),
        ("all GPUs", Some(rate(&price.compute_per_hour))),
        (
            "disk",
            Some(format!(
                "{} GiB, {}",
                quote.disk_gib,
                rate(&price.storage_per_month)
            )),
        ),
        ("", Some(String::new())),
        ("for", Some(seconds(price.duration_seconds.into()))),
        ("  GPUs", Some(money(&price.compute))),
        ("  disk", Some(money(&price.storage))),
        ("  tax", Some(money(&price.tax))),
        ("  total", Some(money(&price.total))),
        ("  fee in it", Some(money(&price.fee_included))),
        ("all-in rate", Some(rate(&price.total_per_hour))),
        ("good until", Some(view.distant_time(&quote.expires_at))),
    ])
}
