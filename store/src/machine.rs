//! Machines and their GPUs.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{MachineId, PartyId};
use domain::machine::MachineState;
use uuid::Uuid;

use crate::convert::{big, from_pg, int, parsed, to_pg, unsigned, unsigned_big};
use crate::db::{Ro, Tx};
use crate::enrollment::EnrollmentRecord;
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::machine;

mod gpu;

pub(crate) use gpu::{COLUMNS as GPU_COLUMNS, Row as GpuRow, record as gpu_record};
pub use gpu::{GpuRecord, NewGpu, gpus, other_owners, replace_gpus};

/// What a machine reported to be.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MachineFacts {
    /// The GPUs are simulated.
    pub simulated: bool,
    /// Host name.
    pub hostname: String,
    /// Cores.
    pub cpu_cores: u32,
    /// Memory, MiB.
    pub ram_mib: u64,
    /// Disk for leases, GiB.
    pub disk_gib: u64,
    /// ISO 3166-1 alpha-2, if told.
    pub country: Option<String>,
    /// Driver version, if there is a driver.
    pub driver_version: Option<String>,
    /// CUDA version, if there is one.
    pub cuda_version: Option<String>,
    /// Container engine.
    pub engine: String,
    /// Version of the agent.
    pub agent_version: String,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRecord {
    /// Its id.
    pub id: MachineId,
    /// Its provider.
    pub party: PartyId,
    /// For people.
    pub name: String,
    /// Where it is in its life.
    pub state: MachineState,
    /// Why.
    pub state_reason: String,
    /// Was it listed when it fell silent?
    pub listed_before: bool,
    /// Ed25519.
    pub public_key: [u8; 32],
    /// What it reported to be.
    pub facts: MachineFacts,
    /// Last heartbeat.
    pub last_seen_at: Option<Timestamp>,
    /// When it enrolled.
    pub created_at: Timestamp,
    /// Counts up with each change.
    pub version: i64,
}

impl MachineRecord {
    /// A machine that has just used its token.
    pub fn enrolled(
        id: MachineId,
        token: &EnrollmentRecord,
        public_key: [u8; 32],
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            party: token.party,
            name: token.machine_name.clone(),
            state: MachineState::Enrolled,
            state_reason: "a one-time token was used".to_owned(),
            listed_before: false,
            public_key,
            facts: MachineFacts::default(),
            last_seen_at: None,
            created_at: now,
            version: 1,
        }
    }
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = machine, treat_none_as_null = true)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    name: String,
    state: String,
    state_reason: String,
    listed_before: bool,
    public_key: Vec<u8>,
    simulated: bool,
    hostname: String,
    cpu_cores: i32,
    ram_mib: i64,
    disk_gib: i64,
    country: Option<String>,
    driver_version: Option<String>,
    cuda_version: Option<String>,
    engine: String,
    agent_version: String,
    last_seen_at: Option<PgTimestamp>,
    created_at: PgTimestamp,
    version: i64,
}

impl Row {
    fn of(m: &MachineRecord) -> Self {
        let facts = m.facts.clone();
        Self {
            id: m.id.uuid(),
            party_id: m.party.uuid(),
            name: m.name.clone(),
            state: m.state.as_str().to_owned(),
            state_reason: m.state_reason.clone(),
            listed_before: m.listed_before,
            public_key: m.public_key.to_vec(),
            simulated: facts.simulated,
            hostname: facts.hostname,
            cpu_cores: int(facts.cpu_cores),
            ram_mib: big(facts.ram_mib),
            disk_gib: big(facts.disk_gib),
            country: facts.country,
            driver_version: facts.driver_version,
            cuda_version: facts.cuda_version,
            engine: facts.engine,
            agent_version: facts.agent_version,
            last_seen_at: m.last_seen_at.map(to_pg),
            created_at: to_pg(m.created_at),
            version: m.version,
        }
    }

    fn record(self) -> Result<MachineRecord, Error> {
        Ok(MachineRecord {
            id: MachineId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            name: self.name,
            state: parsed("machine state", self.state.parse().ok())?,
            state_reason: self.state_reason,
            listed_before: self.listed_before,
            public_key: parsed("machine key", self.public_key.try_into().ok())?,
            facts: MachineFacts {
                simulated: self.simulated,
                hostname: self.hostname,
                cpu_cores: unsigned(self.cpu_cores),
                ram_mib: unsigned_big(self.ram_mib),
                disk_gib: unsigned_big(self.disk_gib),
                country: self.country,
                driver_version: self.driver_version,
                cuda_version: self.cuda_version,
                engine: self.engine,
                agent_version: self.agent_version,
            },
            last_seen_at: self.last_seen_at.map(from_pg),
            created_at: from_pg(self.created_at),
            version: self.version,
        })
    }
}

/// Inserts a machine.
pub async fn insert(tx: &mut Tx, record: &MachineRecord) -> Result<(), Error> {
    diesel::insert_into(machine::table)
        .values(Row::of(record))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One machine.
pub async fn get(ro: &mut Ro, id: MachineId) -> Result<Option<MachineRecord>, Error> {
    let query = machine::table.find(id.uuid()).select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Locks and gives one machine.
pub async fn get_for_update(tx: &mut Tx, id: MachineId) -> Result<Option<MachineRecord>, Error> {
    let query = machine::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Locks machines in the order of their ids.
pub async fn lock(tx: &mut Tx, ids: &[MachineId]) -> Result<(), Error> {
    let ids: Vec<Uuid> = ids.iter().map(|m| m.uuid()).collect();
    let query = machine::table
        .filter(machine::id.eq_any(ids))
        .order(machine::id)
        .select(machine::id)
        .for_update();
    let _locked: Vec<Uuid> = query.load(tx.sql()?).await?;
    Ok(())
}

/// The party's machines, newest first.
pub async fn list(ro: &mut Ro, party: PartyId, page: Page) -> Result<Paged<MachineRecord>, Error> {
    let mut query = machine::table
        .filter(machine::party_id.eq(party.uuid()))
        .order(machine::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(machine::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |m: &MachineRecord| m.id.uuid()))
}

/// Saves a machine; its version counts up.
pub async fn save(tx: &mut Tx, record: &MachineRecord) -> Result<MachineRecord, Error> {
    let next = MachineRecord {
        version: record.version.saturating_add(1),
        ..record.clone()
    };
    diesel::update(machine::table.find(record.id.uuid()))
        .set(Row::of(&next))
        .execute(tx.sql()?)
        .await?;
    Ok(next)
}

/// Notes a heartbeat; the version stays.
pub async fn heartbeat(tx: &mut Tx, id: MachineId, now: Timestamp) -> Result<(), Error> {
    diesel::update(machine::table.find(id.uuid()))
        .set(machine::last_seen_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Listed and unlisted machines that were last heard of before `before`.
pub async fn silent(ro: &mut Ro, before: Timestamp) -> Result<Vec<MachineId>, Error> {
    let on_the_market = [
        MachineState::Listed.as_str(),
        MachineState::Unlisted.as_str(),
    ];
    let ids: Vec<Uuid> = machine::table
        .filter(machine::state.eq_any(on_the_market))
        .filter(machine::last_seen_at.lt(to_pg(before)))
        .order(machine::id)
        .select(machine::id)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(MachineId::from_uuid).collect())
}

/// Machines in a state, by id.
pub async fn in_state(ro: &mut Ro, state: MachineState) -> Result<Vec<MachineId>, Error> {
    let ids: Vec<Uuid> = machine::table
        .filter(machine::state.eq(state.as_str()))
        .order(machine::id)
        .select(machine::id)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(MachineId::from_uuid).collect())
}

/// These machines, by id.
pub async fn by_ids(ro: &mut Ro, ids: &[MachineId]) -> Result<Vec<MachineRecord>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|m| m.uuid()).collect();
    let query = machine::table
        .filter(machine::id.eq_any(ids))
        .order(machine::id)
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    rows.into_iter().map(Row::record).collect()
}
