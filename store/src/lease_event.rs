//! Events of leases: append-only.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::{EventId, LeaseId};
use domain::lease::{LeaseReason, LeaseState};
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::{from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::lease_event;

/// A change of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseEventRecord {
    /// Its id.
    pub id: EventId,
    /// The lease.
    pub lease: LeaseId,
    /// When.
    pub at: Timestamp,
    /// State before; `None` for the booking.
    pub from: Option<LeaseState>,
    /// State after.
    pub to: LeaseState,
    /// Why.
    pub reason: LeaseReason,
    /// For people.
    pub detail: String,
    /// Kind of actor.
    pub actor_kind: String,
}

/// Writes events, each with its actor.
pub async fn insert(tx: &mut Tx, events: &[(LeaseEventRecord, ActorRef)]) -> Result<(), Error> {
    bulk!(tx, "lease_event", events, {
        id: sql::Uuid = |(event, _)| event.id.uuid(),
        lease_id: sql::Uuid = |(event, _)| event.lease.uuid(),
        at: sql::Timestamptz = |(event, _)| to_pg(event.at),
        from_state: sql::Nullable<sql::Text> = |(event, _)| event.from.map(LeaseState::as_str),
        to_state: sql::Text = |(event, _)| event.to.as_str(),
        reason: sql::Text = |(event, _)| event.reason.as_str(),
        detail: sql::Text = |(event, _)| event.detail.clone(),
        actor_kind: sql::Text = |(_, actor)| actor.kind(),
        actor_id: sql::Text = |(_, actor)| actor.id(),
    });
    Ok(())
}

type Row = (
    Uuid,
    Uuid,
    PgTimestamp,
    Option<String>,
    String,
    String,
    String,
    String,
);

fn record(row: Row) -> Result<LeaseEventRecord, Error> {
    let (id, lease, at, from, to, reason, detail, actor_kind) = row;
    Ok(LeaseEventRecord {
        id: EventId::from_uuid(id),
        lease: LeaseId::from_uuid(lease),
        at: from_pg(at),
        from: from
            .map(|s| parsed("lease state", s.parse().ok()))
            .transpose()?,
        to: parsed("lease state", to.parse().ok())?,
        reason: parsed("lease reason", reason.parse().ok())?,
        detail,
        actor_kind,
    })
}

/// The events of a lease, oldest first.
pub async fn list(
    ro: &mut Ro,
    lease: LeaseId,
    page: Page,
) -> Result<Paged<LeaseEventRecord>, Error> {
    let mut query = lease_event::table
        .filter(lease_event::lease_id.eq(lease.uuid()))
        .order(lease_event::id)
        .limit(page.fetch())
        .select((
            lease_event::id,
            lease_event::lease_id,
            lease_event::at,
            lease_event::from_state,
            lease_event::to_state,
            lease_event::reason,
            lease_event::detail,
            lease_event::actor_kind,
        ))
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(lease_event::id.gt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows.into_iter().map(record).collect::<Result<_, _>>()?;
    Ok(page.cut(records, |e: &LeaseEventRecord| e.id.uuid()))
}

/// Failed starts on a machine since `since`.
pub async fn failed_starts(
    ro: &mut Ro,
    machine: domain::id::MachineId,
    since: Timestamp,
) -> Result<i64, Error> {
    use crate::schema::lease as l;
    Ok(lease_event::table
        .inner_join(l::table)
        .filter(l::machine_id.eq(machine.uuid()))
        .filter(lease_event::at.ge(to_pg(since)))
        .filter(lease_event::reason.eq_any(["start_failed", "timed_out"]))
        .filter(lease_event::from_state.eq_any(["placing", "provisioning", "resuming"]))
        .count()
        .get_result(ro.sql()?)
        .await?)
}
