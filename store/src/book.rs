//! The feed of the book: which machines' supply changed since a snapshot.
//!
//! Invariant: a committed change is in the difference of the reader's next two snapshots, once, in
//! whatever order transactions commit. Change numbers are transaction ids.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::{Span, Timestamp};
use domain::id::MachineId;
use domain::machine::STALE_AFTER;
use matching::book::{Seen, Supply};
use uuid::Uuid;

use crate::convert::{parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::offer;
use crate::schema::offer as offers;

/// How long changes are kept for readers that were away, on the database's clock.
pub const KEPT: Span = Span::from_hours(1);

/// What changed between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The present snapshot.
    pub seen: Seen,
    /// Machines whose supply may have changed, with the number of the last such change.
    pub machines: BTreeMap<MachineId, u64>,
}

/// Every supply, and what is needed to go on from there.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The snapshot.
    pub seen: Seen,
    /// Every live offer with its machine's facts, with the number of its last change that is kept.
    pub supplies: Vec<(Supply, u64)>,
}

#[derive(QueryableByName)]
struct Snapshot {
    #[diesel(sql_type = Text)]
    snapshot: String,
    #[diesel(sql_type = BigInt)]
    floor: i64,
}

#[derive(QueryableByName)]
struct Changed {
    #[diesel(sql_type = SqlUuid)]
    machine_id: Uuid,
    #[diesel(sql_type = BigInt)]
    xid: i64,
}

#[derive(QueryableByName)]
struct Machine {
    #[diesel(sql_type = SqlUuid)]
    machine_id: Uuid,
}

/// A snapshot's text, `xmin:xmax:xip,…`, as what it has seen.
fn read_snapshot(text: &str) -> Option<Seen> {
    let mut parts = text.split(':');
    let (_begin, end) = (parts.next()?, parts.next()?.parse().ok()?);
    let open = parts.next()?.split(',').filter(|x| !x.is_empty());
    let mut open: Vec<u64> = open.map(|x| x.parse().ok()).collect::<Option<_>>()?;
    open.sort_unstable();
    Some(Seen { end, open })
}

/// The same in the database's words.
fn snapshot_text(seen: &Seen) -> String {
    let open: Vec<String> = seen.open.iter().map(ToString::to_string).collect();
    format!("{}:{}:{}", seen.begin(), seen.end, open.join(","))
}

fn number(xid: i64) -> u64 {
    u64::try_from(xid).unwrap_or(0)
}

/// The present snapshot, and before which number changes may be gone.
async fn present(ro: &mut Ro) -> Result<(Seen, u64), Error> {
    let row: Snapshot = sql_query(
        "SELECT pg_current_snapshot()::text AS snapshot, coalesce(max(xid), 0) AS floor FROM book_floor",
    )
    .get_result(ro.sql()?)
    .await?;
    let seen = parsed("snapshot", read_snapshot(&row.snapshot))?;
    // A floor above all transactions is of another cluster, from before a restore.
    let floor = Some(number(row.floor)).filter(|floor| *floor <= seen.end);
    Ok((seen, floor.unwrap_or(0)))
}

/// What changed since a snapshot; `None` if that cannot be told any more.
pub async fn changes(ro: &mut Ro, since: &Seen) -> Result<Option<Changes>, Error> {
    let (seen, floor) = present(ro).await?;
    // Before the floor changes may be gone; after the end the database is another one.
    if since.begin() < floor || since.end > seen.end {
        return Ok(None);
    }
    let rows: Vec<Changed> = sql_query(
        "SELECT machine_id, max(xid) AS xid FROM book_change
          WHERE xid >= $1 AND xid < $2 AND NOT pg_visible_in_snapshot(xid::text::xid8, $3::pg_snapshot)
          GROUP BY machine_id",
    )
    .bind::<BigInt, _>(i64::try_from(since.begin()).unwrap_or(i64::MAX))
    .bind::<BigInt, _>(i64::try_from(seen.end).unwrap_or(i64::MAX))
    .bind::<Text, _>(snapshot_text(since))
    .load(ro.sql()?)
    .await?;
    let machine = |row: Changed| (MachineId::from_uuid(row.machine_id), number(row.xid));
    Ok(Some(Changes {
        seen,
        machines: rows.into_iter().map(machine).collect(),
    }))
}

/// The whole book.
pub async fn whole(ro: &mut Ro, now: Timestamp) -> Result<Whole, Error> {
    let (seen, _floor) = present(ro).await?;
    let rows: Vec<Changed> = sql_query(
        "SELECT machine_id, max(xid) AS xid FROM book_change WHERE xid < $1 GROUP BY machine_id",
    )
    .bind::<BigInt, _>(i64::try_from(seen.end).unwrap_or(i64::MAX))
    .load(ro.sql()?)
    .await?;
    let last: BTreeMap<Uuid, u64> = rows
        .into_iter()
        .map(|row| (row.machine_id, number(row.xid)))
        .collect();
    let supplies = offer::supplies(ro, now).await?.into_iter().map(|supply| {
        let machine = supply.offer.machine.uuid();
        (supply, last.get(&machine).copied().unwrap_or(0))
    });
    Ok(Whole {
        seen,
        supplies: supplies.collect(),
    })
}

/// The supply of machines at `now`; none of one without a live offer.
pub async fn supplies_on(
    ro: &mut Ro,
    machines: &[MachineId],
    now: Timestamp,
) -> Result<Vec<Supply>, Error> {
    let ids: Vec<Uuid> = machines.iter().map(|m| m.uuid()).collect();
    let found: Vec<Uuid> = offers::table
        .filter(offers::machine_id.eq_any(ids).and(offers::state.eq("live")))
        .select(offers::id)
        .load(ro.sql()?)
        .await?;
    let ids: Vec<_> = found
        .into_iter()
        .map(domain::id::OfferId::from_uuid)
        .collect();
    let records = offer::by_ids(ro, &ids).await?;
    offer::supplies_of(ro, records, now).await
}

/// Machines with a live offer that cannot be booked at `now`: not listed, or silent. That is a
/// matter of time, so no change tells it.
pub async fn unbookable(ro: &mut Ro, now: Timestamp) -> Result<BTreeSet<MachineId>, Error> {
    let rows: Vec<Machine> = sql_query(
        "SELECT o.machine_id FROM offer o JOIN machine m ON m.id = o.machine_id
          WHERE o.state = 'live'
            AND (m.state <> 'listed' OR m.last_seen_at IS NULL OR m.last_seen_at < $1)",
    )
    .bind::<Timestamptz, _>(to_pg(now.minus(STALE_AFTER)))
    .load(ro.sql()?)
    .await?;
    let machine = |row: Machine| MachineId::from_uuid(row.machine_id);
    Ok(rows.into_iter().map(machine).collect())
}

/// Forgets changes that are older than [`KEPT`] and that every snapshot sees; gives how many.
pub async fn sweep(tx: &mut Tx) -> Result<usize, Error> {
    let gone: Vec<Changed> = sql_query(
        "DELETE FROM book_change
          WHERE at < clock_timestamp() - $1 * interval '1 microsecond'
            AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         RETURNING machine_id, xid",
    )
    .bind::<BigInt, _>(KEPT.micros())
    .load(tx.sql()?)
    .await?;
    if let Some(last) = gone.iter().map(|row| row.xid).max() {
        sql_query("UPDATE book_floor SET xid = greatest(xid, $1)")
            .bind::<BigInt, _>(last.saturating_add(1))
            .execute(tx.sql()?)
            .await?;
    }
    Ok(gone.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_read_and_written() {
        let seen = Seen {
            end: 20,
            open: vec![10, 14, 15],
        };
        assert_eq!(read_snapshot("10:20:10,14,15").as_ref(), Some(&seen));
        assert_eq!(snapshot_text(&seen), "10:20:10,14,15");
        let calm = read_snapshot("795:795:").unwrap();
        assert_eq!(
            (calm.begin(), snapshot_text(&calm)),
            (795, "795:795:".to_owned())
        );
        for bad in ["", "1:2", "a:b:", "1:2:x"] {
            assert_eq!(read_snapshot(bad), None, "{bad}");
        }
    }
}
