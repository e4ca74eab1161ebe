//! The hash of every batch, computed again from its rows.

use std::collections::BTreeMap;

use billing::chain::{Hash, Row, seal};
use billing::charge::Charge;
use billing::transfer::Transfer;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::money::Currency;

use super::InvariantRow;
use crate::convert::parsed;
use crate::db::Ro;
use crate::error::Error;
use crate::schema::batch;

/// Batches looked at together.
const STEP: i64 = 1_000;

struct Sealed {
    id: i64,
    shard: i16,
    no: i64,
    rows: i32,
    prev: Hash,
    hash: Hash,
}

async fn sealed_after(ro: &mut Ro, id: i64) -> Result<Vec<Sealed>, Error> {
    type Columns = (i64, i16, i64, i32, Vec<u8>, Vec<u8>);
    let rows: Vec<Columns> = batch::table
        .filter(batch::id.gt(id))
        .order(batch::id)
        .limit(STEP)
        .select((
            batch::id,
            batch::shard,
            batch::no,
            batch::rows,
            batch::prev_hash,
            batch::hash,
        ))
        .load(ro.sql()?)
        .await?;
    let sealed = |(id, shard, no, rows, prev, hash): Columns| {
        Ok(Sealed {
            id,
            shard,
            no,
            rows,
            prev: parsed("hash", prev.try_into().ok())?,
            hash: parsed("hash", hash.try_into().ok())?,
        })
    };
    rows.into_iter().map(sealed).collect()
}

type Rows = (Vec<(Transfer, Currency)>, Vec<(Charge, Currency)>);

fn holds(sealed: &Sealed, (transfers, charges): &Rows) -> bool {
    let transfers = transfers.iter().map(|(t, c)| Row::Transfer(t, *c));
    let charges = charges.iter().map(|(ch, c)| Row::Charge(ch, *c));
    let mut rows: Vec<Row<'_>> = transfers.chain(charges).collect();
    let count = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    count == sealed.rows && seal(&sealed.prev, (sealed.shard, sealed.no), &mut rows) == sealed.hash
}

/// Batches whose rows are not those that were sealed.
pub(super) async fn recomputed(ro: &mut Ro) -> Result<InvariantRow, Error> {
    let (mut examples, mut violations, mut last) = (Vec::new(), 0_i64, 0_i64);
    loop {
        let step = sealed_after(ro, last).await?;
        let Some(end) = step.as_slice().last().map(|b| b.id) else {
            break;
        };
        let mut rows: BTreeMap<i64, Rows> = BTreeMap::new();
        for (batch, transfer, currency) in crate::ledger::of_batches(ro, (last, end)).await? {
            rows.entry(batch).or_default().0.push((transfer, currency));
        }
        for (batch, charge, currency) in crate::charge::of_batches(ro, (last, end)).await? {
            rows.entry(batch).or_default().1.push((charge, currency));
        }
        for sealed in &step {
            if !holds(sealed, &rows.remove(&sealed.id).unwrap_or_default()) {
                violations = violations.saturating_add(1);
                if examples.len() < 10 {
                    examples.push(format!("{}/{}", sealed.shard, sealed.no));
                }
            }
        }
        last = end;
    }
    Ok(InvariantRow {
        id: "C1",
        statement: "each batch's hash is that of its rows: none was changed, added or dropped",
        violations,
        examples,
    })
}
