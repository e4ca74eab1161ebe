//! Which GPUs a lease has. That two live leases never share one is an index, not this code.

use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{GpuId, LeaseId};
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::to_pg;
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::machine::GpuRecord;
use crate::schema::{gpu, lease_gpu};

/// Gives GPUs to leases, or [`crate::error::Constraint::LeaseGpuOnce`].
pub async fn take_gpus(
    tx: &mut Tx,
    taken: &[(LeaseId, GpuId)],
    now: Timestamp,
) -> Result<(), Error> {
    // In id order, so that two bookings of overlapping sets wait instead of deadlocking.
    let mut ordered = taken.to_vec();
    ordered.sort_unstable_by_key(|(_lease, gpu)| *gpu);
    bulk!(tx, "lease_gpu", &ordered, {
        lease_id: sql::Uuid = |(lease, _)| lease.uuid(),
        gpu_id: sql::Uuid = |(_, gpu)| gpu.uuid(),
        held_at: sql::Timestamptz = |_| to_pg(now),
    });
    Ok(())
}

/// Takes the GPUs back.
pub async fn release_gpus(tx: &mut Tx, lease: LeaseId, now: Timestamp) -> Result<(), Error> {
    let held = lease_gpu::lease_id
        .eq(lease.uuid())
        .and(lease_gpu::released_at.is_null());
    diesel::update(lease_gpu::table.filter(held))
        .set(lease_gpu::released_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The GPUs that these leases have now, by lease and slot.
pub async fn gpus_of(ro: &mut Ro, leases: &[LeaseId]) -> Result<Vec<(LeaseId, GpuRecord)>, Error> {
    let ids: Vec<Uuid> = leases.iter().map(|l| l.uuid()).collect();
    let rows: Vec<(Uuid, crate::machine::GpuRow)> = lease_gpu::table
        .inner_join(gpu::table)
        .filter(
            lease_gpu::lease_id
                .eq_any(ids)
                .and(lease_gpu::released_at.is_null()),
        )
        .order((lease_gpu::lease_id, gpu::slot))
        .select((lease_gpu::lease_id, crate::machine::GPU_COLUMNS))
        .load(ro.sql()?)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(l, g)| (LeaseId::from_uuid(l), crate::machine::gpu_record(g, true)))
        .collect())
}
