//! The search over all live offers.

use std::collections::BTreeSet;

use billing::invoice::Identity;
use domain::clock::{Span, Timestamp};
use domain::money::Micros;
use domain::refusal::Code;
use matching::book::Book;
use matching::plan::{After, Found, Part};
use matching::request::{Request, SortKey};

use super::fees;
use crate::book::with_book;
use crate::context::Cx;
use crate::error::Error;

/// What a renter looks for.
#[derive(Clone, Debug)]
pub struct SearchAsk {
    /// Slugs or aliases as given.
    pub models: Vec<String>,
    /// GPUs on one machine.
    pub count: u16,
    /// Least memory of each GPU.
    pub min_gpu_memory_mib: Option<u32>,
    /// Least cores.
    pub min_cpu_cores: Option<u32>,
    /// Least memory.
    pub min_ram_mib: Option<u64>,
    /// Disk.
    pub disk_gib: u32,
    /// For the all-in price.
    pub duration: Span,
    /// Countries.
    pub countries: BTreeSet<String>,
    /// Countries to avoid.
    pub not_countries: BTreeSet<String>,
    /// Most to pay for a GPU-hour.
    pub max_gpu_hour: Option<Micros>,
    /// Also simulated GPUs.
    pub simulated: bool,
    /// Order.
    pub sort: Vec<SortKey>,
    /// Rows wanted.
    pub limit: u32,
    /// Where to go on.
    pub after: Option<After>,
}

/// The search's answer.
#[derive(Clone, Debug)]
pub struct SearchView {
    /// GPUs of the lease asked for.
    pub count: u16,
    /// The state of the market that was searched.
    pub as_of: Timestamp,
    /// Live offers looked at.
    pub considered: u32,
    /// The whole answer of the engine.
    pub found: Found,
}

/// The canonical slugs of model names as given, or 422 with near names.
pub(crate) fn slugs(cx: &Cx, names: &[String]) -> Result<BTreeSet<String>, Error> {
    names
        .iter()
        .map(|name| {
            cx.catalogue
                .find(name)
                .map(|m| m.slug.clone())
                .ok_or_else(|| {
                    let near = cx.catalogue.near(name, 3).join(", ");
                    Error::refused(
                        Code::UnknownGpuModel,
                        format!("There is no GPU model `{name}`."),
                    )
                    .suggesting(format!(
                        "Near names: {near}. All models: GET /v1/gpu-models."
                    ))
                })
        })
        .collect()
}

/// Searches all live offers. Nobody need be logged in, so tax is that of an unknown buyer; a quote
/// has the caller's.
pub async fn search(cx: &Cx, ask: SearchAsk) -> Result<SearchView, Error> {
    let now = cx.now();
    let request = Request {
        models: slugs(cx, &ask.models)?,
        count: ask.count,
        min_gpu_memory_mib: ask.min_gpu_memory_mib,
        min_cpu_cores: ask.min_cpu_cores,
        min_ram_mib: ask.min_ram_mib,
        disk_gib: ask.disk_gib,
        duration_ms: ask.duration.millis(),
        countries: ask.countries,
        not_countries: ask.not_countries,
        max_gpu_hour: ask.max_gpu_hour,
        simulated: ask.simulated && cx.policy.allow_simulated,
        fees: fees(cx, &Identity::default(), now),
        sort: ask.sort,
    };
    let part = Part {
        limit: usize::try_from(ask.limit).unwrap_or(usize::MAX),
        after: ask.after,
    };
    let look = |book: &Book, as_of: Timestamp| -> Result<SearchView, Error> {
        let found = matching::plan::search(book, &request, &part)?;
        Ok(SearchView {
            count: request.count,
            as_of,
            considered: u32::try_from(found.considered).unwrap_or(u32::MAX),
            found,
        })
    };
    with_book(cx, look).await?
}
