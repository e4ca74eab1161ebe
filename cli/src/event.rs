//! What happened to a lease.

use comfy_table::Table;
use domain::id::LeaseId;
use web_openapi::event::{LeaseEvent, LeaseEventPage};

use crate::command::Page;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, grid};
use crate::text::View;

/// Lists events, oldest first.
pub(crate) async fn list(
    cx: &Context,
    output: &mut Output<'_>,
    lease: LeaseId,
    page: &Page,
) -> Result<(), Fault> {
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
