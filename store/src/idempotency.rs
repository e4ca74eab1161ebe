//! Answers by idempotency key. The row commits with the effect; a repeat gets the same answer.

use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel::sql_types::{Array, BigInt, Bytea, Json, SmallInt, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::PartyId;
use serde_json::Value;
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::to_pg;
use crate::db::{AsyncFunc, Db, Tx};
use crate::error::{Error, Retryable};
use crate::prepared::prepared;
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
            let mut known = begin(tx, std::slice::from_ref(key)).await?;
            if let Some(done) = known.pop().transpose()?.flatten() {
                return Ok(done);
            }
            let body = work(tx).await?;
            finish(tx, &[(key.clone(), status, body.clone())], now).await?;
            Ok(Done {
                status,
                body,
                replayed: false,
            })
        })
        .await
    }
}

#[derive(QueryableByName)]
struct Answered {
    #[diesel(sql_type = SqlUuid)]
    party_id: Uuid,
    #[diesel(sql_type = Text)]
    route: String,
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Bytea)]
    fingerprint: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Json)]
    body: Value,
}

const LOCK: &str = "SELECT pg_advisory_xact_lock(k) FROM unnest($1) AS k";
const FIND: &str = "
SELECT i.party_id, i.route, i.key, i.fingerprint, i.status, i.body FROM idempotency i
  JOIN unnest($1, $2, $3) AS w (party, route, key)
    ON i.party_id = w.party AND i.route = w.route AND i.key = w.key";

/// Takes the keys for this transaction, and says of each, in order, what it was answered already:
/// nothing, the stored answer, or [`Error::IdempotencyMismatch`].
/// [`Error::IdempotencyInFlight`] if somebody else works on one of them for too long.
pub async fn begin(
    tx: &mut Tx,
    keys: &[OnceKey],
) -> Result<Vec<Result<Option<Done>, Error>>, Error> {
    let mut locks: Vec<i64> = keys.iter().map(OnceKey::lock).collect();
    locks.sort_unstable();
    let taken = prepared(diesel::sql_query(LOCK).bind::<Array<BigInt>, _>(locks))
        .execute(tx.sql()?)
        .await
        .map_err(Error::from);
    match taken {
        Err(Error::Contended) => return Err(Error::IdempotencyInFlight),
        other => other.map(|_rows| ())?,
    }
    let rows: Vec<Answered> = prepared(
        diesel::sql_query(FIND)
            .bind::<Array<SqlUuid>, _>(keys.iter().map(OnceKey::owner).collect::<Vec<_>>())
            .bind::<Array<Text>, _>(keys.iter().map(|k| k.route.as_str()).collect::<Vec<_>>())
            .bind::<Array<Text>, _>(keys.iter().map(|k| k.key.as_str()).collect::<Vec<_>>()),
    )
    .load(tx.sql()?)
    .await?;
    let answer = |key: &OnceKey| {
        let same =
            |r: &&Answered| r.party_id == key.owner() && r.route == key.route && r.key == key.key;
        match rows.iter().find(same) {
            None => Ok(None),
            Some(row) if row.fingerprint != key.fingerprint => Err(Error::IdempotencyMismatch),
            Some(row) => Ok(Some(Done {
                status: u16::try_from(row.status).unwrap_or(200),
                body: row.body.clone(),
                replayed: true,
            })),
        }
    };
    Ok(keys.iter().map(answer).collect())
}

/// Stores the answers of keys that this transaction has begun.
pub async fn finish(
    tx: &mut Tx,
    answers: &[(OnceKey, u16, Value)],
    now: Timestamp,
) -> Result<(), Error> {
    bulk!(tx, "idempotency", answers, {
        party_id: sql::Uuid = |(key, ..)| key.owner(),
        route: sql::Text = |(key, ..)| key.route.clone(),
        key: sql::Text = |(key, ..)| key.key.clone(),
        fingerprint: sql::Bytea = |(key, ..)| key.fingerprint.to_vec(),
        status: sql::SmallInt = |(_, status, _)| i16::try_from(*status).unwrap_or(200),
        body: sql::Json = |(.., body)| body.clone(),
        created_at: sql::Timestamptz = |_| to_pg(now),
    });
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
