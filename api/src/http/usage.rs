//! Usage: sums, and the FOCUS file.

use actix_web::web::Data;
use actix_web::{HttpResponse, get};
use app::usage::{UsageAsk, key_text};
use billing::focus::Side;
use billing::month::{Month, Period, date_text};
use billing::rating::Due;
use domain::clock::Timestamp;
use domain::money::{Micros, MoneyError};
use domain::refusal::Code;
use serde::Deserialize;
use store::usage::{GroupBy, UsageRow as Row};
use utoipa::IntoParams;
use web_openapi::money::Money;
use web_openapi::time::to_text;
use web_openapi::usage::{Usage, UsageRow};

use super::auth::Auth;
use super::docs::{Problems, Query};
use super::fault::Fault;
use super::invoice::{file, instant};
use super::offer::within;
use crate::state::Shared;

/// Which usage.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// Start (RFC 3339); absent: the beginning of this UTC month.
    #[param(max_length = 64)]
    pub from: Option<String>,
    /// End, not contained; absent: now.
    #[param(max_length = 64)]
    pub to: Option<String>,
    /// `cost` (default) or `earnings`.
    #[param(max_length = 16)]
    pub side: Option<String>,
    /// `lease`, `label`, `resource` or `day` (default).
    #[param(max_length = 16)]
    pub group_by: Option<String>,
    /// Rows wanted.
    #[param(minimum = 1, maximum = 1000, default = 400)]
    pub limit: Option<u32>,
}

/// Which file.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FocusQuery {
    /// Start (RFC 3339); absent: the beginning of this UTC month.
    #[param(max_length = 64)]
    pub from: Option<String>,
    /// End, not contained; absent: now.
    #[param(max_length = 64)]
    pub to: Option<String>,
    /// `cost` (default) or `earnings`.
    #[param(max_length = 16)]
    pub side: Option<String>,
}

fn ask(
    now: Timestamp,
    (from, to): (Option<&String>, Option<&String>),
    side: Option<&String>,
) -> Result<UsageAsk, Fault> {
    let side = side.map_or("cost", String::as_str);
    let side = Side::parse(side)
        .ok_or_else(|| Fault::field("query/side", "unknown_value", "`cost` or `earnings`."))?;
    let from = from.map(|t| instant("query/from", t)).transpose()?;
    let to = to.map(|t| instant("query/to", t)).transpose()?;
    Ok(UsageAsk {
        side,
        period: Period {
            from: from.unwrap_or_else(|| Month::of(now).period().from),
            to: to.unwrap_or(now),
        },
    })
}

fn group(name: &str) -> Result<GroupBy, Fault> {
    match name {
        "lease" => Ok(GroupBy::Lease),
        "label" => Ok(GroupBy::Label),
        "resource" => Ok(GroupBy::Resource),
        "day" => Ok(GroupBy::Day),
        _ => Err(Fault::field(
            "query/group_by",
            "unknown_value",
            "`lease`, `label`, `resource` or `day`.",
        )),
    }
}

fn sum(side: Side, due: Due) -> Result<Micros, Fault> {
    let sum = match side {
        Side::Cost => due.renter(),
        Side::Earnings => due.provider(),
    };
    sum.map_err(|_huge: MoneyError| {
        Fault::new(Code::AmountOutOfRange, "A sum is too large to be shown.")
    })
}

fn row(side: Side, by: GroupBy, r: &Row) -> Result<UsageRow, Fault> {
    Ok(UsageRow {
        key: key_text(by, &r.key),
        gpu_seconds: r.gpu_ms.div_euclid(1_000),
        gib_seconds: r.gib_ms.div_euclid(1_000),
        gross: Money::usd(r.due.gross),
        fee: Money::usd(r.due.fee),
        tax: Money::usd(r.due.tax),
        total: Money::usd(sum(side, r.due)?),
    })
}

/// Get what was charged or earned, by lease, label, resource or UTC day.
#[utoipa::path(tag = "usage", security(("bearer" = [])), params(UsageQuery),
    responses((status = 200, body = Usage), Problems))]
#[get("/v1/usage")]
pub(crate) async fn get_usage(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<UsageQuery>,
) -> Result<HttpResponse, Fault> {
    let q = query.0;
    let bounds = (q.from.as_ref(), q.to.as_ref());
    let ask = ask(shared.cx.now(), bounds, q.side.as_ref())?;
    let name = q.group_by.as_deref().unwrap_or("day");
    let by = group(name)?;
    let most = within("query/limit", q.limit.unwrap_or(400), 1..=1_000)?;
    let found = app::usage::sums(&shared.cx, &auth.0, ask, (by, most)).await?;
    let rows = found.rows.iter().map(|r| row(ask.side, by, r));
    Ok(HttpResponse::Ok().json(Usage {
        side: ask.side.as_str().to_owned(),
        group_by: name.to_owned(),
        from: to_text(ask.period.from),
        to: to_text(ask.period.to),
        data: rows.collect::<Result<_, _>>()?,
        has_more: found.has_more,
        total: Money::usd(sum(ask.side, found.total)?),
    }))
}

/// Get usage as a FOCUS 1.2 file (CSV): cost for renters, earnings for providers.
#[utoipa::path(tag = "usage", security(("bearer" = [])), params(FocusQuery),
    responses((status = 200, body = String, content_type = "text/csv"), Problems))]
#[get("/v1/usage/focus")]
pub(crate) async fn get_usage_focus(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<FocusQuery>,
) -> Result<HttpResponse, Fault> {
    let q = query.0;
    let bounds = (q.from.as_ref(), q.to.as_ref());
    let ask = ask(shared.cx.now(), bounds, q.side.as_ref())?;
    let bytes = app::usage::focus(&shared.cx, &auth.0, ask).await?;
    let name = format!(
        "focus-{}-{}-{}.csv",
        ask.side.as_str(),
        date_text(ask.period.from),
        date_text(ask.period.to)
    );
    Ok(file("text/csv", name, bytes))
}
