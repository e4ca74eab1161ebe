//! Which leases need something.

use std::collections::BTreeSet;

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MachineId, PartyId, QuoteId};
use domain::lease::LeaseState;
use uuid::Uuid;

use super::{LeaseRecord, QuoteRow, Row};
use crate::convert::to_pg;
use crate::db::Ro;
use crate::error::Error;
use crate::schema::{lease, quote};

const FINAL: [&str; 2] = ["ended", "failed"];

async fn records(ro: &mut Ro, column: Who, id: Uuid) -> Result<Vec<LeaseRecord>, Error> {
    let mut query = lease::table
        .inner_join(quote::table)
        .filter(lease::state.ne_all(FINAL))
        .order(lease::id)
        .select((Row::as_select(), QuoteRow::as_select()))
        .into_boxed();
    query = match column {
        Who::Machine => query.filter(lease::machine_id.eq(id)),
        Who::Renter => query.filter(lease::party_id.eq(id)),
        Who::Provider => query.filter(lease::provider_id.eq(id)),
    };
    let rows: Vec<(Row, QuoteRow)> = query.load(ro.sql()?).await?;
    rows.into_iter()
        .map(|(row, terms)| row.record(terms))
        .collect()
}

#[derive(Clone, Copy)]
enum Who {
    Machine,
    Renter,
    Provider,
}

/// Every lease on the machine whose life is not over.
pub async fn live_of_machine(ro: &mut Ro, id: MachineId) -> Result<Vec<LeaseRecord>, Error> {
    records(ro, Who::Machine, id.uuid()).await
}

/// Every lease of the renter whose life is not over.
pub async fn renter_live(ro: &mut Ro, id: PartyId) -> Result<Vec<LeaseRecord>, Error> {
    records(ro, Who::Renter, id.uuid()).await
}

/// Every lease on the provider's machines whose life is not over.
pub async fn provider_live(ro: &mut Ro, id: PartyId) -> Result<Vec<LeaseRecord>, Error> {
    records(ro, Who::Provider, id.uuid()).await
}

/// Leases in a state that has a limit, without progress for longer than it.
pub async fn overdue(ro: &mut Ro, now: Timestamp) -> Result<Vec<LeaseId>, Error> {
    let mut found = Vec::new();
    for (state, limit) in LeaseState::ALL
        .into_iter()
        .filter_map(|s| Some((s, s.limit()?)))
    {
        let ids: Vec<Uuid> = lease::table
            .filter(lease::state.eq(state.as_str()))
            .filter(lease::progress_at.lt(to_pg(now.minus(limit))))
            .order(lease::id)
            .select(lease::id)
            .load(ro.sql()?)
            .await?;
        found.extend(ids.into_iter().map(LeaseId::from_uuid));
    }
    Ok(found)
}

/// Live leases with a guard that may have fallen: an end time before `now`, or a cost limit.
pub async fn guarded(ro: &mut Ro, now: Timestamp) -> Result<Vec<LeaseId>, Error> {
    let ids: Vec<Uuid> = lease::table
        .filter(lease::state.ne_all(["ending", "ended", "failed"]))
        .filter(
            lease::end_at
                .le(to_pg(now))
                .or(lease::max_spend.is_not_null()),
        )
        .order(lease::id)
        .select(lease::id)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(LeaseId::from_uuid).collect())
}

/// Those of the quotes that became leases.
pub async fn quotes_used(ro: &mut Ro, quotes: &[QuoteId]) -> Result<BTreeSet<QuoteId>, Error> {
    let asked: Vec<Uuid> = quotes.iter().map(|q| q.uuid()).collect();
    let used: Vec<Uuid> = lease::table
        .filter(lease::quote_id.eq_any(asked))
        .select(lease::quote_id)
        .load(ro.sql()?)
        .await?;
    Ok(used.into_iter().map(QuoteId::from_uuid).collect())
}

/// These leases, by id.
pub async fn of_ids(ro: &mut Ro, ids: &[LeaseId]) -> Result<Vec<LeaseRecord>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|l| l.uuid()).collect();
    let rows: Vec<(Row, QuoteRow)> = lease::table
        .inner_join(quote::table)
        .filter(lease::id.eq_any(ids))
        .order(lease::id)
        .select((Row::as_select(), QuoteRow::as_select()))
        .load(ro.sql()?)
        .await?;
    rows.into_iter()
        .map(|(row, terms)| row.record(terms))
        .collect()
}

/// Every lease that the machine must be told about: those that live, and those that are over but
/// whose container was not seen gone.
pub async fn wanted_of_machine(ro: &mut Ro, id: MachineId) -> Result<Vec<LeaseRecord>, Error> {
    let rows: Vec<(Row, QuoteRow)> = lease::table
        .inner_join(quote::table)
        .filter(lease::machine_id.eq(id.uuid()))
        .filter(
            lease::state
                .ne_all(FINAL)
                .or(lease::container_id.is_not_null()),
        )
        .order(lease::id)
        .select((Row::as_select(), QuoteRow::as_select()))
        .load(ro.sql()?)
        .await?;
    rows.into_iter()
        .map(|(row, terms)| row.record(terms))
        .collect()
}
