//! The GPUs of machines. One physical GPU is one row, whichever machine claims it.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{GpuId, MachineId};
use uuid::Uuid;

use crate::convert::{count, int, small, to_pg, unsigned};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{gpu, lease_gpu};

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuRecord {
    /// Its id.
    pub id: GpuId,
    /// Its machine.
    pub machine: MachineId,
    /// Position in the machine.
    pub slot: u16,
    /// Vendor's UUID.
    pub uuid: String,
    /// Catalogue slug.
    pub model: String,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// GPUs of one island are joined by NVLink or the like.
    pub island: u16,
    /// A process that no lease explains is on it.
    pub busy_elsewhere: bool,
    /// A live lease has it.
    pub leased: bool,
}

/// A GPU as probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGpu {
    /// Its id, if it is new.
    pub id: GpuId,
    /// Position in the machine.
    pub slot: u16,
    /// Vendor's UUID.
    pub uuid: String,
    /// Catalogue slug.
    pub model: String,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Island.
    pub island: u16,
    /// A process that no lease explains is on it.
    pub busy_elsewhere: bool,
}

pub(crate) type Row = (Uuid, Uuid, i16, String, String, i32, i16, bool);

/// The columns of [`Row`].
type Columns = (
    gpu::id,
    gpu::machine_id,
    gpu::slot,
    gpu::uuid,
    gpu::model,
    gpu::memory_mib,
    gpu::island,
    gpu::busy_elsewhere,
);

/// The columns of [`Row`], to select.
pub(crate) const COLUMNS: Columns = (
    gpu::id,
    gpu::machine_id,
    gpu::slot,
    gpu::uuid,
    gpu::model,
    gpu::memory_mib,
    gpu::island,
    gpu::busy_elsewhere,
);

pub(crate) fn record(row: Row, leased: bool) -> GpuRecord {
    let (id, machine, slot, uuid, model, memory, island, busy_elsewhere) = row;
    GpuRecord {
        id: GpuId::from_uuid(id),
        machine: MachineId::from_uuid(machine),
        slot: count(slot),
        uuid,
        model,
        memory_mib: unsigned(memory),
        island: count(island),
        busy_elsewhere,
        leased,
    }
}

/// The GPUs of these machines, by machine and slot.
pub async fn gpus(ro: &mut Ro, machines: &[MachineId]) -> Result<Vec<GpuRecord>, Error> {
    let ids: Vec<Uuid> = machines.iter().map(|m| m.uuid()).collect();
    let held = lease_gpu::gpu_id
        .eq(gpu::id)
        .and(lease_gpu::released_at.is_null());
    let rows: Vec<(Row, Option<Uuid>)> = gpu::table
        .left_join(lease_gpu::table.on(held))
        .filter(gpu::machine_id.eq_any(ids).and(gpu::retired_at.is_null()))
        .order((gpu::machine_id, gpu::slot))
        .select((COLUMNS, lease_gpu::lease_id.nullable()))
        .load(ro.sql()?)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(row, lease)| record(row, lease.is_some()))
        .collect())
}

/// Makes the machine's GPUs those that were probed. One that was ever seen on this machine keeps its
/// id, wherever it is plugged now, so that a lease on it stays a lease on it; one that is not there
/// any more is retired. The caller holds the machine's lock.
pub async fn replace_gpus(
    tx: &mut Tx,
    machine: MachineId,
    probed: &[NewGpu],
    now: Timestamp,
) -> Result<(), Error> {
    let known: Vec<(Uuid, String)> = gpu::table
        .filter(gpu::machine_id.eq(machine.uuid()))
        .order((
            gpu::retired_at.is_null().desc(),
            gpu::retired_at.desc(),
            gpu::id,
        ))
        .select((gpu::id, gpu::uuid))
        .load(tx.sql()?)
        .await?;
    let present = gpus(tx, &[machine]).await?;
    let in_place = |old: &GpuRecord| {
        probed
            .iter()
            .any(|p| p.uuid == old.uuid && p.slot == old.slot)
    };
    // All that move or are gone free their slots first; those that move come back below.
    let moving: Vec<Uuid> = present
        .iter()
        .filter(|g| !in_place(g))
        .map(|g| g.id.uuid())
        .collect();
    diesel::update(gpu::table.filter(gpu::id.eq_any(moving)))
        .set(gpu::retired_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    for new in probed {
        match known.iter().find(|(_, uuid)| *uuid == new.uuid) {
            Some((id, _)) => place(tx, *id, new).await?,
            None => insert(tx, machine, new).await?,
        }
    }
    Ok(())
}

async fn place(tx: &mut Tx, id: Uuid, new: &NewGpu) -> Result<(), Error> {
    diesel::update(gpu::table.find(id))
        .set((
            gpu::slot.eq(small(new.slot)),
            gpu::model.eq(&new.model),
            gpu::memory_mib.eq(int(new.memory_mib)),
            gpu::island.eq(small(new.island)),
            gpu::busy_elsewhere.eq(new.busy_elsewhere),
            gpu::retired_at.eq(None::<PgTimestamp>),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

async fn insert(tx: &mut Tx, machine: MachineId, new: &NewGpu) -> Result<(), Error> {
    diesel::insert_into(gpu::table)
        .values((
            gpu::id.eq(new.id.uuid()),
            gpu::machine_id.eq(machine.uuid()),
            gpu::slot.eq(small(new.slot)),
            gpu::uuid.eq(&new.uuid),
            gpu::model.eq(&new.model),
            gpu::memory_mib.eq(int(new.memory_mib)),
            gpu::island.eq(small(new.island)),
            gpu::busy_elsewhere.eq(new.busy_elsewhere),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The other machines that have one of these GPUs.
pub async fn other_owners(
    ro: &mut Ro,
    machine: MachineId,
    uuids: &[String],
) -> Result<Vec<MachineId>, Error> {
    let owners: Vec<Uuid> = gpu::table
        .filter(gpu::uuid.eq_any(uuids).and(gpu::retired_at.is_null()))
        .filter(gpu::machine_id.ne(machine.uuid()))
        .select(gpu::machine_id)
        .distinct()
        .load(ro.sql()?)
        .await?;
    Ok(owners.into_iter().map(MachineId::from_uuid).collect())
}
