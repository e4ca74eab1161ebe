//! What the caller's party was told.

use actix_web::web::Data;
use actix_web::{HttpResponse, get};
use store::event::EventRecord;
use web_openapi::event::{Event, EventPage};
use web_openapi::page::PageQuery;
use web_openapi::time::to_text;

use super::auth::Auth;
use super::docs::{Problems, Query};
use super::fault::Fault;
use super::page;
use crate::state::Shared;

fn view(e: &EventRecord) -> Event {
    Event {
        id: e.id.to_string(),
        at: to_text(e.at),
        kind: e.kind.clone(),
        object: e.object.clone(),
        detail: e.detail.clone(),
        data: e.data.clone(),
    }
}

/// List what the party was told (low money, disks to be deleted, budgets), newest first.
#[utoipa::path(tag = "wallet", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = EventPage), Problems))]
#[get("/v1/events")]
pub(crate) async fn list_events(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::event::list(&shared.cx, &auth.0, page::page("events", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("events", id));
    let body = EventPage {
        data: found.rows.iter().map(view).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/events", &query.0),
        next_cursor.as_deref(),
    ))
}
