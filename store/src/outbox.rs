//! The outbox: messages that commit with their cause and are delivered afterwards, in order.

use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use serde_json::Value;

use crate::bulk::bulk;
use crate::convert::to_pg;
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::outbox;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Place in the order.
    pub seq: i64,
    /// What it is about, e.g. `lease.state`.
    pub topic: String,
    /// Public id of the object.
    pub key: String,
    /// The rest.
    pub payload: Value,
}

/// Puts a message in.
pub async fn put(
    tx: &mut Tx,
    (topic, key): (&str, &str),
    payload: &Value,
    now: Timestamp,
) -> Result<(), Error> {
    diesel::insert_into(outbox::table)
        .values((
            outbox::topic.eq(topic),
            outbox::key.eq(key),
            outbox::payload.eq(payload),
            outbox::at.eq(to_pg(now)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Puts several messages of one topic in: key and the rest.
pub async fn put_all(
    tx: &mut Tx,
    topic: &str,
    messages: &[(String, Value)],
    now: Timestamp,
) -> Result<(), Error> {
    bulk!(tx, "outbox", messages, {
        topic: sql::Text = |_| topic.to_owned(),
        key: sql::Text = |(key, _)| key.clone(),
        payload: sql::Jsonb = |(_, payload)| payload.clone(),
        at: sql::Timestamptz = |_| to_pg(now),
    });
    Ok(())
}

/// The first `most` messages that wait.
pub async fn undelivered(ro: &mut Ro, most: i64) -> Result<Vec<Message>, Error> {
    let rows: Vec<(i64, String, String, Value)> = outbox::table
        .filter(outbox::delivered_at.is_null())
        .order(outbox::seq)
        .limit(most)
        .select((outbox::seq, outbox::topic, outbox::key, outbox::payload))
        .load(ro.sql()?)
        .await?;
    let message = |(seq, topic, key, payload)| Message {
        seq,
        topic,
        key,
        payload,
    };
    Ok(rows.into_iter().map(message).collect())
}

/// Notes that messages were delivered.
pub async fn mark_delivered(tx: &mut Tx, seqs: &[i64], now: Timestamp) -> Result<usize, Error> {
    Ok(
        diesel::update(outbox::table.filter(outbox::seq.eq_any(seqs)))
            .set(outbox::delivered_at.eq(to_pg(now)))
            .execute(tx.sql()?)
            .await?,
    )
}
