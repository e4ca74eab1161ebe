//! Statements of periods.

use actix_web::web::Data;
use actix_web::{HttpResponse, get};
use app::earnings::EarningsPeriod;
use billing::month::Month;
use domain::clock::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use web_openapi::time::from_text;

use super::auth::Auth;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use crate::state::Shared;

/// Which earnings.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EarningsQuery {
    /// Charges booked from this time on; absent = the beginning of this UTC month.
    #[param(
        format = "date-time",
        max_length = 64,
        example = "2026-11-01T00:00:00Z"
    )]
    pub from: Option<String>,
    /// And before this time; absent = now.
    #[param(
        format = "date-time",
        max_length = 64,
        example = "2026-12-01T00:00:00Z"
    )]
    pub to: Option<String>,
    /// Only this lease.
    #[param(max_length = 64, example = "lse_01jd8m")]
    pub lease: Option<String>,
}

fn time(pointer: &str, text: &str) -> Result<Timestamp, Fault> {
    from_text(text).ok_or_else(|| Fault::field(pointer, "malformed", "Must be RFC 3339."))
}

/// Get the signed earnings of a period: store it as it is, verify it with `gpumarket verify`.
#[utoipa::path(tag = "earnings", security(("bearer" = [])), params(EarningsQuery),
    responses((status = 200, body = serde_json::Value), Problems))]
#[get("/v1/earnings/statement")]
pub(crate) async fn get_earnings_statement(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<EarningsQuery>,
) -> Result<HttpResponse, Fault> {
    let asked = &query.0;
    let lease = asked.lease.as_ref();
    let period = EarningsPeriod {
        from: match &asked.from {
            Some(text) => time("query/from", text)?,
            None => Month::of(shared.cx.now()).period().from,
        },
        to: asked.to.as_ref().map(|t| time("query/to", t)).transpose()?,
        lease: lease.map(|l| Id::field("query/lease", l)).transpose()?,
    };
    let bytes = app::earnings::statement(&shared.cx, &auth.0, period).await?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .body(bytes))
}
