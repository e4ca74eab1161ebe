//! The signed ends of days: append-only.

use billing::chain::{Hash, Head};
use diesel::QueryableByName;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Nullable, SmallInt, Timestamptz};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use serde_json::{Value, json};

use crate::convert::{from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::ledger_day;

/// A day's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayRecord {
    /// `2026-12-01`, UTC.
    pub day: String,
    /// Every shard's last batch.
    pub heads: Vec<Head>,
    /// Hash over them.
    pub root: Hash,
    /// Of the market's key.
    pub public_key: [u8; 32],
    /// The market's.
    pub signature: [u8; 64],
    /// When.
    pub signed_at: Timestamp,
}

#[derive(QueryableByName)]
struct HeadRow {
    #[diesel(sql_type = SmallInt)]
    shard: i16,
    #[diesel(sql_type = BigInt)]
    no: i64,
    #[diesel(sql_type = Bytea)]
    hash: Vec<u8>,
}

#[derive(QueryableByName)]
struct First {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    at: Option<PgTimestamp>,
}

/// When the first batch was sealed.
pub async fn first_batch(ro: &mut Ro) -> Result<Option<Timestamp>, Error> {
    let first: First = diesel::sql_query("SELECT min(sealed_at) AS at FROM batch")
        .get_result(ro.sql()?)
        .await?;
    Ok(first.at.map(from_pg))
}

/// The last batch of each shard that was sealed before `end`.
pub async fn heads(ro: &mut Ro, end: Timestamp) -> Result<Vec<Head>, Error> {
    let rows: Vec<HeadRow> = diesel::sql_query(
        "SELECT DISTINCT ON (shard) shard, no, hash FROM batch WHERE sealed_at < $1 ORDER BY shard, no DESC",
    )
    .bind::<Timestamptz, _>(to_pg(end))
    .load(ro.sql()?)
    .await?;
    let head = |row: HeadRow| {
        Ok(Head {
            shard: row.shard,
            no: row.no,
            hash: parsed("hash", row.hash.try_into().ok())?,
        })
    };
    rows.into_iter().map(head).collect()
}

/// Writes a day's end; one that is there stays. Says whether it was new.
pub async fn insert(tx: &mut Tx, d: &DayRecord) -> Result<bool, Error> {
    let heads = d
        .heads
        .iter()
        .map(|h| json!([h.shard, h.no, hex::encode(h.hash)]));
    let rows = diesel::insert_into(ledger_day::table)
        .values((
            ledger_day::day.eq(&d.day),
            ledger_day::heads.eq(Value::Array(heads.collect())),
            ledger_day::root.eq(d.root.to_vec()),
            ledger_day::public_key.eq(d.public_key.to_vec()),
            ledger_day::signature.eq(d.signature.to_vec()),
            ledger_day::signed_at.eq(to_pg(d.signed_at)),
        ))
        .on_conflict_do_nothing()
        .execute(tx.sql()?)
        .await?;
    Ok(rows == 1)
}

fn read_head(value: &Value) -> Option<Head> {
    let hash = hex::decode(value.get(2)?.as_str()?).ok()?;
    Some(Head {
        shard: i16::try_from(value.get(0)?.as_i64()?).ok()?,
        no: value.get(1)?.as_i64()?,
        hash: hash.try_into().ok()?,
    })
}

/// The last `most` days, newest first.
pub async fn list(ro: &mut Ro, most: i64) -> Result<Vec<DayRecord>, Error> {
    type Row = (String, Value, Vec<u8>, Vec<u8>, Vec<u8>, PgTimestamp);
    let rows: Vec<Row> = ledger_day::table
        .order(ledger_day::day.desc())
        .limit(most)
        .load(ro.sql()?)
        .await?;
    let record = |(day, heads, root, key, signature, at): Row| {
        let heads = heads
            .as_array()
            .map(|all| all.iter().map(read_head).collect());
        Ok(DayRecord {
            day,
            heads: parsed("heads", heads.flatten())?,
            root: parsed("root", root.try_into().ok())?,
            public_key: parsed("key", key.try_into().ok())?,
            signature: parsed("signature", signature.try_into().ok())?,
            signed_at: from_pg(at),
        })
    };
    rows.into_iter().map(record).collect()
}
