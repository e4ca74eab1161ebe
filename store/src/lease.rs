//! Leases.

use std::collections::BTreeMap;

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MachineId, MeterId, OfferId, PartyId, UserId};
use domain::lease::{LeaseReason, LeaseState};
use domain::money::Micros;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::{from_pg, int, money, parsed, to_pg, unsigned};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::quote::{QuoteRecord, Row as QuoteRow};
use crate::schema::{lease, quote};

mod find;
mod gpu;

pub use find::{
    guarded, live_of_machine, of_ids, overdue, provider_live, quotes_used, renter_live,
    wanted_of_machine,
};
pub use gpu::{gpus_of, release_gpus, take_gpus};

/// What runs in the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Image reference.
    pub image: String,
    /// Command and arguments; empty = the image's.
    pub command: Vec<String>,
    /// Environment.
    pub env: BTreeMap<String, String>,
}

/// A container as the machine reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRef {
    /// The engine's id.
    pub id: String,
    /// The engine's start time.
    pub started_at: String,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its id.
    pub id: LeaseId,
    /// The quote that it was booked from: its terms. Its disk is the lease's, which may have grown.
    pub terms: QuoteRecord,
    /// The renter.
    pub party: PartyId,
    /// The provider.
    pub provider: PartyId,
    /// The offer.
    pub offer: OfferId,
    /// The machine.
    pub machine: MachineId,
    /// What runs.
    pub workload: Workload,
    /// Why it was placed there.
    pub placement: Value,
    /// Who booked it, also by key; unknown for leases from before that was noted.
    pub booked_by: Option<UserId>,
    /// For people.
    pub label: Option<String>,
    /// Guard: stop at this cost, tax included.
    pub max_spend: Option<Micros>,
    /// Guard: end then.
    pub end_at: Option<Timestamp>,
    /// Where it is in its life.
    pub state: LeaseState,
    /// Are its GPUs kept for a resume?
    pub keeps_gpus: bool,
    /// Why.
    pub reason: LeaseReason,
    /// For people.
    pub detail: String,
    /// Since when.
    pub state_at: Timestamp,
    /// Counts signs of progress while it starts.
    pub progress: i64,
    /// The last of them.
    pub progress_at: Timestamp,
    /// Counts wanted starts.
    pub start_no: i64,
    /// Counts up with each change.
    pub version: i64,
    /// When it was booked.
    pub created_at: Timestamp,
    /// When the container first ran.
    pub started_at: Option<Timestamp>,
    /// When its end was asked for.
    pub end_requested_at: Option<Timestamp>,
    /// When nothing was left of it.
    pub ended_at: Option<Timestamp>,
    /// The container, once there is one.
    pub container: Option<ContainerRef>,
    /// Meter of GPU time.
    pub compute_meter: MeterId,
    /// Meter of the disk.
    pub storage_meter: MeterId,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = lease, treat_none_as_null = true)]
pub(crate) struct Row {
    id: Uuid,
    quote_id: Uuid,
    party_id: Uuid,
    provider_id: Uuid,
    offer_id: Uuid,
    machine_id: Uuid,
    workload: Value,
    placement: Value,
    label: Option<String>,
    max_spend: Option<i64>,
    end_at: Option<PgTimestamp>,
    state: String,
    state_reason: String,
    state_detail: String,
    state_at: PgTimestamp,
    progress: i64,
    progress_at: PgTimestamp,
    start_no: i64,
    version: i64,
    created_at: PgTimestamp,
    started_at: Option<PgTimestamp>,
    end_requested_at: Option<PgTimestamp>,
    ended_at: Option<PgTimestamp>,
    container_id: Option<String>,
    container_started_at: Option<String>,
    compute_meter: Uuid,
    storage_meter: Uuid,
    disk_gib: i32,
    booked_by: Option<Uuid>,
    keeps_gpus: bool,
}

impl Row {
    fn of(l: &LeaseRecord) -> Result<Self, Error> {
        let workload = serde_json::to_value(&l.workload);
        Ok(Self {
            id: l.id.uuid(),
            quote_id: l.terms.id.uuid(),
            party_id: l.party.uuid(),
            provider_id: l.provider.uuid(),
            offer_id: l.offer.uuid(),
            machine_id: l.machine.uuid(),
            workload: workload.map_err(|_never| Error::Corrupt("workload"))?,
            placement: l.placement.clone(),
            label: l.label.clone(),
            max_spend: l.max_spend.map(Micros::get),
            end_at: l.end_at.map(to_pg),
            state: l.state.as_str().to_owned(),
            state_reason: l.reason.as_str().to_owned(),
            state_detail: l.detail.clone(),
            state_at: to_pg(l.state_at),
            progress: l.progress,
            progress_at: to_pg(l.progress_at),
            start_no: l.start_no,
            version: l.version,
            created_at: to_pg(l.created_at),
            started_at: l.started_at.map(to_pg),
            end_requested_at: l.end_requested_at.map(to_pg),
            ended_at: l.ended_at.map(to_pg),
            container_id: l.container.as_ref().map(|c| c.id.clone()),
            container_started_at: l.container.as_ref().map(|c| c.started_at.clone()),
            compute_meter: l.compute_meter.uuid(),
            storage_meter: l.storage_meter.uuid(),
            disk_gib: int(l.terms.disk_gib),
            booked_by: l.booked_by.map(UserId::uuid),
            keeps_gpus: l.keeps_gpus,
        })
    }

    pub(crate) fn record(self, terms: QuoteRow) -> Result<LeaseRecord, Error> {
        let container = self
            .container_id
            .zip(self.container_started_at)
            .map(|(id, started_at)| ContainerRef { id, started_at });
        let terms = QuoteRecord {
            disk_gib: unsigned(self.disk_gib),
            ..terms.record()?
        };
        Ok(LeaseRecord {
            id: LeaseId::from_uuid(self.id),
            terms,
            party: PartyId::from_uuid(self.party_id),
            provider: PartyId::from_uuid(self.provider_id),
            offer: OfferId::from_uuid(self.offer_id),
            machine: MachineId::from_uuid(self.machine_id),
            workload: parsed("workload", serde_json::from_value(self.workload).ok())?,
            placement: self.placement,
            booked_by: self.booked_by.map(UserId::from_uuid),
            label: self.label,
            max_spend: money(self.max_spend),
            end_at: self.end_at.map(from_pg),
            state: parsed("lease state", self.state.parse().ok())?,
            keeps_gpus: self.keeps_gpus,
            reason: parsed("lease reason", self.state_reason.parse().ok())?,
            detail: self.state_detail,
            state_at: from_pg(self.state_at),
            progress: self.progress,
            progress_at: from_pg(self.progress_at),
            start_no: self.start_no,
            version: self.version,
            created_at: from_pg(self.created_at),
            started_at: self.started_at.map(from_pg),
            end_requested_at: self.end_requested_at.map(from_pg),
            ended_at: self.ended_at.map(from_pg),
            container,
            compute_meter: MeterId::from_uuid(self.compute_meter),
            storage_meter: MeterId::from_uuid(self.storage_meter),
        })
    }
}

/// Inserts leases. Their meters must follow in the same transaction.
pub async fn insert(tx: &mut Tx, records: &[LeaseRecord]) -> Result<(), Error> {
    let rows = records.iter().map(Row::of).collect::<Result<Vec<_>, _>>()?;
    bulk!(tx, "lease", &rows, {
        id: sql::Uuid = |r| r.id,
        quote_id: sql::Uuid = |r| r.quote_id,
        party_id: sql::Uuid = |r| r.party_id,
        provider_id: sql::Uuid = |r| r.provider_id,
        offer_id: sql::Uuid = |r| r.offer_id,
        machine_id: sql::Uuid = |r| r.machine_id,
        workload: sql::Jsonb = |r| r.workload.clone(),
        placement: sql::Jsonb = |r| r.placement.clone(),
        label: sql::Nullable<sql::Text> = |r| r.label.clone(),
        max_spend: sql::Nullable<sql::BigInt> = |r| r.max_spend,
        end_at: sql::Nullable<sql::Timestamptz> = |r| r.end_at,
        state: sql::Text = |r| r.state.clone(),
        state_reason: sql::Text = |r| r.state_reason.clone(),
        state_detail: sql::Text = |r| r.state_detail.clone(),
        state_at: sql::Timestamptz = |r| r.state_at,
        progress: sql::BigInt = |r| r.progress,
        progress_at: sql::Timestamptz = |r| r.progress_at,
        start_no: sql::BigInt = |r| r.start_no,
        version: sql::BigInt = |r| r.version,
        created_at: sql::Timestamptz = |r| r.created_at,
        started_at: sql::Nullable<sql::Timestamptz> = |r| r.started_at,
        end_requested_at: sql::Nullable<sql::Timestamptz> = |r| r.end_requested_at,
        ended_at: sql::Nullable<sql::Timestamptz> = |r| r.ended_at,
        container_id: sql::Nullable<sql::Text> = |r| r.container_id.clone(),
        container_started_at: sql::Nullable<sql::Text> = |r| r.container_started_at.clone(),
        compute_meter: sql::Uuid = |r| r.compute_meter,
        storage_meter: sql::Uuid = |r| r.storage_meter,
        disk_gib: sql::Integer = |r| r.disk_gib,
        booked_by: sql::Nullable<sql::Uuid> = |r| r.booked_by,
        keeps_gpus: sql::Bool = |r| r.keeps_gpus,
    });
    Ok(())
}

/// One lease.
pub async fn get(ro: &mut Ro, id: LeaseId) -> Result<Option<LeaseRecord>, Error> {
    let query = lease::table
        .inner_join(quote::table)
        .filter(lease::id.eq(id.uuid()))
        .select((Row::as_select(), QuoteRow::as_select()));
    let row: Option<(Row, QuoteRow)> = query.first(ro.sql()?).await.optional()?;
    row.map(|(row, terms)| row.record(terms)).transpose()
}

/// Locks and gives one lease: whoever changes it or its meters holds this lock.
pub async fn get_for_update(tx: &mut Tx, id: LeaseId) -> Result<Option<LeaseRecord>, Error> {
    let lock = lease::table.find(id.uuid()).select(lease::id).for_update();
    let found: Option<Uuid> = lock.first(tx.sql()?).await.optional()?;
    if found.is_none() {
        Ok(None)
    } else {
        get(tx, id).await
    }
}

/// Saves a lease; its version counts up.
pub async fn save(tx: &mut Tx, record: &LeaseRecord) -> Result<LeaseRecord, Error> {
    let next = LeaseRecord {
        version: record.version.saturating_add(1),
        ..record.clone()
    };
    diesel::update(lease::table.find(record.id.uuid()))
        .set(Row::of(&next)?)
        .execute(tx.sql()?)
        .await?;
    Ok(next)
}

/// Saves what machines tell (progress, container) without counting the version up: clients that
/// wait for a version are not disturbed by it. The caller holds the lock.
pub async fn save_quietly(tx: &mut Tx, record: &LeaseRecord) -> Result<(), Error> {
    diesel::update(lease::table.find(record.id.uuid()))
        .set(Row::of(record)?)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The renter's leases, newest first; `states` empty = all.
pub async fn list(
    ro: &mut Ro,
    party: PartyId,
    page: Page,
    states: &[LeaseState],
) -> Result<Paged<LeaseRecord>, Error> {
    let mut query = lease::table
        .inner_join(quote::table)
        .filter(lease::party_id.eq(party.uuid()))
        .order(lease::id.desc())
        .limit(page.fetch())
        .select((Row::as_select(), QuoteRow::as_select()))
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(lease::id.lt(after));
    }
    if !states.is_empty() {
        let names: Vec<&str> = states.iter().map(|s| s.as_str()).collect();
        query = query.filter(lease::state.eq_any(names));
    }
    let rows: Vec<(Row, QuoteRow)> = query.load(ro.sql()?).await?;
    let records = rows.into_iter().map(|(row, terms)| row.record(terms));
    Ok(
        page.cut(records.collect::<Result<_, _>>()?, |l: &LeaseRecord| {
            l.id.uuid()
        }),
    )
}
