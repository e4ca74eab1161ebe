//! What happened to a lease; what the party was told.

use comfy_table::Table;
use domain::id::LeaseId;
use web_openapi::event::{Event, EventPage, LeaseEvent, LeaseEventPage};

use crate::command::Page;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, grid};
use crate::text::View;

/// Lists a lease's events, oldest first, or what the party was told, newest first.
pub(crate) async fn list(
    cx: &Context,
    output: &mut Output<'_>,
    lease: Option<LeaseId>,
    page: &Page,
) -> Result<(), Fault> {
    let Some(lease) = lease else {
        return told(cx, output, page).await;
    };
    let path = format!("/v1/leases/{lease}/events");
    let answer = cx.client.get(&path, &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: LeaseEventPage = answer.read()?;
    output.table(&table(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

/// Events as rows.
pub(crate) fn table(events: &[LeaseEvent], view: &View) -> Table {
    let rows = events.iter().map(|event| {
        let change = match &event.from {
            Some(from) if *from == event.to => event.to.clone(),
            Some(from) => format!("{from} → {}", event.to),
            None => format!("→ {}", event.to),
        };
        vec![
            view.time(&event.at),
            change,
            event.reason.clone(),
            event.actor.clone(),
            event.detail.clone(),
        ]
    });
    grid(&["TIME", "STATE", "REASON", "BY", "DETAIL"], rows.collect())
}

async fn told(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/events", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: EventPage = answer.read()?;
    if page.data.is_empty() {
        return output.say("Nothing was told yet.");
    }
    let view = cx.view();
    let row = |e: &Event| {
        vec![
            view.time(&e.at),
            e.kind.clone(),
            e.object.clone(),
            e.detail.clone(),
        ]
    };
    let rows = page.data.iter().map(row).collect();
    output.table(&grid(&["TIME", "TYPE", "OBJECT", "DETAIL"], rows))?;
    output.more(page.next_cursor.as_deref())
}
