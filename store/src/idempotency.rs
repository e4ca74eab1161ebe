//! Answers by idempotency key. The row commits with the effect; a repeat gets the same answer.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::PartyId;
use serde_json::Value;
use uuid::Uuid;

use crate::convert::to_pg;
use crate::db::{AsyncFunc, Db, Tx};
use crate::error::{Error, Retryable};
use crate::schema::idempotency;

/// A key with its scope and the fingerprint of the request.
#[derive(Clone, Debug)]
pub struct OnceKey {
    /// Whose; `None` where nobody is logged in.
    pub party: Option<PartyId>,
    /// Which route.
    pub route: String,
    /// As the client sent it.
    pub key: String,
    /// Of method, path and body.
    pub fingerprint: [u8; 32],
}

/// The answer of a once-only mutation.
#[derive(Clone, Debug)]
pub struct Done {
    /// HTTP status.
    pub status: u16,
    /// Body as first rendered.
    pub body: Value,
    /// An earlier request's answer?
    pub replayed: bool,
}

impl OnceKey {
    fn owner(&self) -> Uuid {
        self.party.map_or(Uuid::nil(), PartyId::uuid)
    }

    /// FNV-1a (Fowler, Noll, Vo) over the scope: the number of an advisory lock. A collision makes
    /// one request wait for another, nothing worse.
    fn lock(&self) -> i64 {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let bytes = self.owner().into_bytes().into_iter();
        for byte in bytes
            .chain(self.route.bytes())
            .chain([0])
            .chain(self.key.bytes())
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        i64::from_ne_bytes(hash.to_ne_bytes())
    }
}

impl Db {
    /// Runs `work` unless this key has its answer already.
    pub async fn write_once<E, F>(
        &self,
        key: &OnceKey,
        now: Timestamp,
        status: u16,
        work: F,
    ) -> Result<Done, E>
    where
        for<'r> F: AsyncFn(&'r mut Tx) -> Result<Value, E>
            + AsyncFunc<&'r mut Tx, Result<Value, E>, Fut: Send>
            + Send
            + Sync,
        E: From<Error> + Retryable + Send,
    {
        let work = &work;
        self.write::<Done, E, _>(async |tx: &mut Tx| {
            lock(tx, key).await?;
            if let Some(done) = find(tx, key).await? {
                return Ok(done);
            }
            let body = work(tx).await?;
            insert(tx, key, now, (status, &body)).await?;
            Ok(Done {
                status,
                body,
                replayed: false,
            })
        })
        .await
    }
}

async fn lock(tx: &mut Tx, key: &OnceKey) -> Result<(), Error> {
    let taken = diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(key.lock())
        .execute(tx.sql()?)
        .await
        .map_err(Error::from);
    match taken {
        Err(Error::Contended) => Err(Error::IdempotencyInFlight),
        other => other.map(|_rows| ()),
    }
}

async fn find(tx: &mut Tx, key: &OnceKey) -> Result<Option<Done>, Error> {
    let row: Option<(Vec<u8>, i16, Value)> = idempotency::table
        .find((key.owner(), &key.route, &key.key))
        .select((
            idempotency::fingerprint,
            idempotency::status,
            idempotency::body,
        ))
        .first(tx.sql()?)
        .await
        .optional()?;
    match row {
        None => Ok(None),
        Some((fingerprint, _, _)) if fingerprint != key.fingerprint => {
            Err(Error::IdempotencyMismatch)
        }
        Some((_, status, body)) => Ok(Some(Done {
            status: u16::try_from(status).unwrap_or(200),
            body,
            replayed: true,
        })),
    }
}

async fn insert(
    tx: &mut Tx,
    key: &OnceKey,
    now: Timestamp,
    (status, body): (u16, &Value),
) -> Result<(), Error> {
    diesel::insert_into(idempotency::table)
        .values((
            idempotency::party_id.eq(key.owner()),
            idempotency::route.eq(&key.route),
            idempotency::key.eq(&key.key),
            idempotency::fingerprint.eq(key.fingerprint.as_slice()),
            idempotency::status.eq(i16::try_from(status).unwrap_or(200)),
            idempotency::body.eq(body),
            idempotency::created_at.eq(to_pg(now)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Forgets answers older than `before`.
pub async fn sweep(tx: &mut Tx, before: Timestamp) -> Result<usize, Error> {
    Ok(
        diesel::delete(idempotency::table.filter(idempotency::created_at.lt(to_pg(before))))
            .execute(tx.sql()?)
            .await?,
    )
}
