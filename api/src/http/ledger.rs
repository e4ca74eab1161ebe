//! The public heads of the ledger: no login.

use actix_web::web::Data;
use actix_web::{HttpResponse, get};
use store::day::DayRecord;
use web_openapi::ledger::{LedgerDay, LedgerDayPage, LedgerHead};
use web_openapi::time::to_text;

use super::docs::Problems;
use super::fault::Fault;
use crate::state::Shared;

fn view(d: &DayRecord) -> LedgerDay {
    let head = |h: &billing::chain::Head| LedgerHead {
        shard: h.shard,
        no: h.no,
        hash: hex::encode(h.hash),
    };
    LedgerDay {
        day: d.day.clone(),
        heads: d.heads.iter().map(head).collect(),
        root: hex::encode(d.root),
        signed_by: hex::encode(d.public_key),
        signature: hex::encode(d.signature),
        signed_at: to_text(d.signed_at),
    }
}

/// List the signed ends of days, newest first: keep them, and nothing before can be changed unseen.
#[utoipa::path(tag = "wallet", responses((status = 200, body = LedgerDayPage), Problems))]
#[get("/v1/ledger/days")]
pub(crate) async fn list_ledger_days(shared: Data<Shared>) -> Result<HttpResponse, Fault> {
    let days = app::day::list(&shared.cx).await?;
    Ok(HttpResponse::Ok().json(LedgerDayPage {
        data: days.iter().map(view).collect(),
    }))
}
