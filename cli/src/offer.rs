//! Offers: the search of renters, and what providers ask.

use comfy_table::Table;
use domain::id::{MachineId, OfferId};
use domain::money::Micros;
use web_openapi::money::{Per, Rate};
use web_openapi::offer::{
    CreateOffer, FacetCount, Offer, OfferMatch, OfferPage, OfferSearch, PatchOffer, SearchFacets,
};

use crate::client::Answer;
use crate::command::Page;
use crate::command::provider::Terms;
use crate::command::renter::{Search, flag_of};
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, gpus, memory, money, rate, seconds};

/// Finds offers.
pub(crate) async fn search(
    cx: &Context,
    output: &mut Output<'_>,
    args: &Search,
) -> Result<(), Fault> {
    let sort = args.sort.iter().map(|order| order.key()).collect();
    let mut request = args.filter.request(sort, args.limit);
    request.cursor.clone_from(&args.cursor);
    request.facets = args.facets.then_some(true);
    let answer = cx.client.post("/v1/offers/search", &request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let found: OfferSearch = answer.read()?;
    if found.data.is_empty() {
        return output.say(&nothing_found(&found).join("\n"));
    }
    output.table(&matches(&found.data))?;
    let size = &args.filter.size;
    output.say(&format!(
        "\nTotals are for {} with {} GiB disk, fee and tax included. \
         Offers looked at: {}; that fit: {}.",
        seconds(size.duration_seconds.into()),
        size.disk,
        found.considered,
        found.fitting,
    ))?;
    if found.changed > 0 {
        output.say(&format!(
            "Changed since the first part, and left out: {}. Search again to see them.",
            found.changed
        ))?;
    }
    if let Some(facets) = &found.facets {
        output.say(&counts(facets).join("\n"))?;
    }
    output.more(found.next_cursor.as_deref())
}

/// What fits, counted.
fn counts(facets: &SearchFacets) -> Vec<String> {
    let line = |name: &str, counts: &[FacetCount]| {
        let each = counts.iter().map(|c| {
            let value = if c.value.is_empty() {
                "not told"
            } else {
                &c.value
            };
            format!("{value}: {}", c.offers)
        });
        format!("{name}: {}", each.collect::<Vec<_>>().join(", "))
    };
    vec![
        line("By model", &facets.gpu_models),
        line("By country", &facets.countries),
        line("By USD per GPU-hour, from", &facets.prices),
    ]
}

/// Matches as rows.
pub(crate) fn matches(rows: &[OfferMatch]) -> Table {
    let rows = rows.iter().map(|row| {
        vec![
            row.offer_id.clone(),
            gpus(row.gpu_count, &row.gpu_model, row.simulated),
            row.gpus_free.to_string(),
            memory(row.gpu_memory_mib.into()),
            row.cpu_cores.to_string(),
            memory(row.ram_mib),
            format!("{} GiB", row.disk_gib),
            row.country.clone().unwrap_or_else(|| "-".to_owned()),
            rate(&row.price.gpu_hour),
            money(&row.price.total),
        ]
    });
    let heading = [
        "OFFER",
        "GPUS",
        ">FREE",
        ">GPU MEMORY",
        ">CORES",
        ">RAM",
        ">DISK",
        "COUNTRY",
        ">PRICE",
        ">TOTAL",
    ];
    grid(&heading, rows.collect())
}

/// Why nothing fits, and what would.
pub(crate) fn nothing_found(found: &OfferSearch) -> Vec<String> {
    if found.considered == 0 {
        return vec!["Nothing is offered on this market now.".to_owned()];
    }
    let mut lines = vec![format!(
        "Nothing fits. Offers looked at: {}.",
        found.considered
    )];
    for excluded in &found.excluded {
        let flag = flag_of(&excluded.constraint);
        lines.push(format!("  left out by {flag}: {}", excluded.offers));
    }
    if !found.relaxations.is_empty() {
        lines.push("What would find something:".to_owned());
    }
    for change in &found.relaxations {
        lines.push(format!(
            "  {} {} instead of {}: {} {}",
            flag_of(&change.field),
            change.to,
            if change.from.is_empty() {
                "none"
            } else {
                &change.from
            },
            change.offers,
            if change.offers == 1 {
                "offer"
            } else {
                "offers"
            },
        ));
    }
    lines
}

/// Lists own offers.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/offers", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: OfferPage = answer.read()?;
    if page.data.is_empty() {
        return output
            .say("No offers. Make one: gpumarket offer create --machine MACHINE --price USD");
    }
    let rows = page.data.iter().map(|offer| {
        let bid_floor = offer.bid_floor.as_ref();
        vec![
            offer.id.clone(),
            offer.state.clone(),
            offer.machine_id.clone(),
            gpus(offer.gpu_count, &offer.gpu_model, offer.simulated),
            offer.gpus_free.to_string(),
            rate(&offer.price),
            bid_floor.map_or_else(|| "-".to_owned(), rate),
            rate(&offer.storage_price),
        ]
    });
    let heading = [
        "OFFER",
        "STATE",
        "MACHINE",
        "GPUS",
        ">FREE",
        ">PRICE",
        ">BID FLOOR",
        ">STORAGE",
    ];
    output.table(&grid(&heading, rows.collect()))?;
    output.more(page.next_cursor.as_deref())
}

/// Shows an offer.
pub(crate) async fn show(cx: &Context, output: &mut Output<'_>, id: OfferId) -> Result<(), Fault> {
    let answer = cx.client.get(&format!("/v1/offers/{id}"), &[]).await?;
    tell(cx, output, &answer, None)
}

fn tell(
    cx: &Context,
    output: &mut Output<'_>,
    answer: &Answer,
    done: Option<&str>,
) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let offer: Offer = answer.read()?;
    if let Some(done) = done {
        output.say(done)?;
    }
    output.table(&picture(&offer, &cx.view()))
}

fn picture(offer: &Offer, view: &View) -> Table {
    let size = gpus(offer.gpu_count, &offer.gpu_model, offer.simulated);
    facts([
        ("offer", Some(offer.id.clone())),
        (
            "state",
            Some(format!("{}, version {}", offer.state, offer.version)),
        ),
        ("machine", Some(offer.machine_id.clone())),
        ("GPUs", Some(format!("{size}, {} free", offer.gpus_free))),
        ("price", Some(rate(&offer.price))),
        ("bid floor", offer.bid_floor.as_ref().map(rate)),
        ("if kept", Some(rate(&offer.keep_price))),
        ("storage", Some(rate(&offer.storage_price))),
        (
            "GPUs in a lease",
            Some(format!("{} to {}", offer.min_gpus, offer.max_gpus)),
        ),
        ("made", Some(view.time(&offer.created_at))),
        ("changed", Some(view.time(&offer.updated_at))),
    ])
}

/// Puts a machine on the market.
pub(crate) async fn create(
    cx: &Context,
    output: &mut Output<'_>,
    machine: MachineId,
    price: Micros,
    terms: &Terms,
) -> Result<(), Fault> {
    let request = CreateOffer {
        machine_id: machine.to_string(),
        price: Rate::usd(price, Per::GpuHour),
        bid_floor: terms.floor.map(|usd| Rate::usd(usd, Per::GpuHour)),
        keep_price: terms.keep.map(|usd| Rate::usd(usd, Per::GpuHour)),
        storage_price: terms.storage.map(|usd| Rate::usd(usd, Per::GibMonth)),
        min_gpus: terms.min,
        max_gpus: terms.max,
    };
    let answer = cx.client.post("/v1/offers", &request).await?;
    tell(cx, output, &answer, Some("Made."))
}

/// The wanted changes; what is not given is not in it.
pub(crate) fn patch_of(
    price: Option<Micros>,
    terms: &Terms,
    (no_floor, no_keep): (bool, bool),
) -> PatchOffer {
    let hourly = |usd: Option<Micros>| usd.map(|usd| Some(Rate::usd(usd, Per::GpuHour)));
    PatchOffer {
        price: price.map(|usd| Rate::usd(usd, Per::GpuHour)),
        bid_floor: if no_floor {
            Some(None)
        } else {
            hourly(terms.floor)
        },
        keep_price: if no_keep {
            Some(None)
        } else {
            hourly(terms.keep)
        },
        storage_price: terms.storage.map(|usd| Rate::usd(usd, Per::GibMonth)),
        min_gpus: terms.min,
        max_gpus: terms.max,
    }
}

/// Changes an offer, unless somebody else changed it meanwhile.
pub(crate) async fn set(
    cx: &Context,
    output: &mut Output<'_>,
    id: OfferId,
    if_version: Option<i64>,
    patch: &PatchOffer,
) -> Result<(), Fault> {
    let has_numbers = patch.min_gpus.is_some() || patch.max_gpus.is_some();
    let has_prices = patch.price.is_some()
        || patch.bid_floor.is_some()
        || patch.keep_price.is_some()
        || patch.storage_price.is_some();
    if !has_numbers && !has_prices {
        return Err(Fault::Usage(
            "nothing to change: give e.g. --price".to_owned(),
        ));
    }
    let path = format!("/v1/offers/{id}");
    let tag = |version: i64| format!("\"v{version}\"");
    let if_match = if let Some(version) = if_version {
        tag(version)
    } else {
        let present = cx.client.get(&path, &[]).await?;
        match &present.etag {
            Some(etag) => etag.clone(),
            None => tag(present.read::<Offer>()?.version),
        }
    };
    let answer = cx.client.patch(&path, if_match, patch).await?;
    tell(
        cx,
        output,
        &answer,
        Some("Changed. Running leases keep their price."),
    )
}

/// Withdraws an offer.
pub(crate) async fn withdraw(
    cx: &Context,
    output: &mut Output<'_>,
    id: OfferId,
) -> Result<(), Fault> {
    let answer = cx.client.delete(&format!("/v1/offers/{id}")).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&format!("Withdrew {id}. Running leases go on."))
}
