//! When holds must be looked at.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{HoldId, LeaseId};
use uuid::Uuid;

use crate::convert::{from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::prepared::prepared;
use crate::schema::hold;

/// What is noted of an open hold beside its money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HoldWatch {
    /// When it must be looked at.
    pub due_at: Option<Timestamp>,
    /// The wallet could not fill it: it is looked at when money comes.
    pub short: bool,
    /// Notices given of the disk's deletion.
    pub warned: u8,
}

/// Leases whose open hold must be looked at, the longest due first, at most `most`.
pub async fn due(ro: &mut Ro, now: Timestamp, most: i64) -> Result<Vec<LeaseId>, Error> {
    let ids: Vec<Uuid> = hold::table
        .filter(hold::state.eq("open").and(hold::due_at.le(to_pg(now))))
        .order(hold::due_at)
        .limit(most)
        .select(hold::lease_id)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(LeaseId::from_uuid).collect())
}

/// What is noted of a hold.
pub async fn watch(ro: &mut Ro, id: HoldId) -> Result<HoldWatch, Error> {
    let row: Option<(Option<PgTimestamp>, bool, i16)> = hold::table
        .find(id.uuid())
        .select((hold::due_at, hold::short, hold::warned))
        .first(ro.sql()?)
        .await
        .optional()?;
    Ok(
        row.map_or_else(HoldWatch::default, |(due, short, warned)| HoldWatch {
            due_at: due.map(from_pg),
            short,
            warned: u8::try_from(warned).unwrap_or(0),
        }),
    )
}

/// Notes it. The caller holds the lease's lock.
pub async fn set_watch(tx: &mut Tx, id: HoldId, watch: HoldWatch) -> Result<(), Error> {
    diesel::update(hold::table.find(id.uuid()))
        .set((
            hold::due_at.eq(watch.due_at.map(to_pg)),
            hold::short.eq(watch.short),
            hold::warned.eq(i16::from(watch.warned)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Money came into these wallets: holds that it could not fill are looked at, at once.
pub(crate) async fn wake_short(tx: &mut Tx, wallets: &[i64]) -> Result<(), Error> {
    prepared(
        diesel::sql_query(
            "UPDATE hold SET due_at = 'epoch' WHERE account = ANY($1) AND state = 'open' AND short",
        )
        .bind::<Array<BigInt>, _>(wallets),
    )
    .execute(tx.sql()?)
    .await?;
    Ok(())
}
