//! What a party is told: notices of low money, of disks to be deleted, and the like.

use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{EventId, PartyId};
use serde_json::Value;
use store::db::{Ro, Tx};
use store::event::EventRecord;
use store::page::{Page, Paged};

use crate::context::{Caller, Cx};
use crate::error::Error;

/// What is told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) object: String,
    pub(crate) detail: String,
    pub(crate) data: Value,
}

/// Tells a party, in this transaction.
pub(crate) async fn tell(
    cx: &Cx,
    tx: &mut Tx,
    (party, now): (PartyId, Timestamp),
    told: Told,
) -> Result<(), Error> {
    let event = EventRecord {
        id: EventId::from_uuid(cx.id()),
        party,
        at: now,
        kind: told.kind.to_owned(),
        object: told.object,
        detail: told.detail,
        data: told.data,
    };
    Ok(store::event::insert(tx, &event).await?)
}

/// What the caller's party was told, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<EventRecord>, Error> {
    caller.may(Scope::LeasesRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::event::list(ro, party, page).await?))
        .await
}
