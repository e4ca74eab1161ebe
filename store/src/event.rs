//! What parties are told: append-only.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{EventId, PartyId};
use serde_json::Value;
use uuid::Uuid;

use crate::convert::{from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::party_event;

/// Something that a party is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Its id.
    pub id: EventId,
    /// Who is told.
    pub party: PartyId,
    /// When.
    pub at: Timestamp,
    /// `wallet.low`, say.
    pub kind: String,
    /// Public id of the object.
    pub object: String,
    /// For people.
    pub detail: String,
    /// For programs.
    pub data: Value,
}

/// Writes an event, and the message that delivers it.
pub async fn insert(tx: &mut Tx, event: &EventRecord) -> Result<(), Error> {
    diesel::insert_into(party_event::table)
        .values((
            party_event::id.eq(event.id.uuid()),
            party_event::party_id.eq(event.party.uuid()),
            party_event::at.eq(to_pg(event.at)),
            party_event::kind.eq(&event.kind),
            party_event::object.eq(&event.object),
            party_event::detail.eq(&event.detail),
            party_event::data.eq(&event.data),
        ))
        .execute(tx.sql()?)
        .await?;
    let message = serde_json::json!({
        "event": event.id.to_string(),
        "party": event.party.to_string(),
        "object": event.object,
        "data": event.data,
    });
    crate::outbox::put(tx, (&event.kind, &event.object), &message, event.at).await
}

/// The party's events, newest first.
pub async fn list(ro: &mut Ro, party: PartyId, page: Page) -> Result<Paged<EventRecord>, Error> {
    type Row = (Uuid, Uuid, PgTimestamp, String, String, String, Value);
    let mut query = party_event::table
        .filter(party_event::party_id.eq(party.uuid()))
        .order(party_event::id.desc())
        .limit(page.fetch())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(party_event::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let record = |(id, party, at, kind, object, detail, data): Row| EventRecord {
        id: EventId::from_uuid(id),
        party: PartyId::from_uuid(party),
        at: from_pg(at),
        kind,
        object,
        detail,
        data,
    };
    let records = rows.into_iter().map(record).collect();
    Ok(page.cut(records, |e: &EventRecord| e.id.uuid()))
}
