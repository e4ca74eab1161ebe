//! Which chains a process writes to. A shard is claimed for a time and renewed; each claim counts
//! the shard's epoch up, so a process that lost a shard (it was paused, say) cannot seal a batch in
//! it any more. Shard 0 needs no claim: whoever has none writes there, behind its row lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use diesel::sql_types::{BigInt, Integer, Nullable, SmallInt, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::RunQueryDsl;
use domain::clock::Span;

use crate::convert::int;
use crate::db::{Db, Tx};
use crate::error::Error;

/// How long a claim holds without renewal.
pub const CLAIM: Span = Span::from_secs(60);
/// How often a process should renew.
pub const RENEW_EVERY: Span = Span::from_secs(15);

/// The right to seal batches in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, QueryableByName)]
pub struct Claim {
    /// The shard.
    #[diesel(sql_type = SmallInt)]
    pub shard: i16,
    /// The claim's number; `None` for the shared shard 0.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub epoch: Option<i64>,
}

const SHARED: Claim = Claim {
    shard: 0,
    epoch: None,
};

/// The claims of this process. The first serves the group commit, the others single transactions.
#[derive(Debug, Default)]
pub(crate) struct Shards {
    claims: RwLock<Vec<Claim>>,
    turn: AtomicUsize,
}

impl Shards {
    fn all(&self) -> Vec<Claim> {
        self.claims.read().map(|c| c.clone()).unwrap_or_default()
    }

    fn set(&self, claims: Vec<Claim>) {
        if let Ok(mut own) = self.claims.write() {
            *own = claims;
        }
    }

    /// The chain for the next transaction.
    pub(crate) fn next(&self, grouped: bool) -> Claim {
        let all = self.all();
        match all.as_slice() {
            [] => SHARED,
            [only] => *only,
            [first, ..] if grouped => *first,
            [_, rest @ ..] => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let at = turn.checked_rem(rest.len()).unwrap_or(0);
                rest.get(at).copied().unwrap_or(SHARED)
            }
        }
    }

    /// Another process has it now.
    pub(crate) fn lose(&self, claim: Claim) {
        self.set(self.all().into_iter().filter(|c| *c != claim).collect());
    }
}

const TAKE: &str = "
UPDATE writer SET epoch = epoch + 1, node = $1, lease_until = clock_timestamp() + $3 * interval '1 ms'
 WHERE shard IN (SELECT shard FROM writer
                  WHERE shard > 0 AND (lease_until IS NULL OR lease_until < clock_timestamp())
                  ORDER BY shard LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING shard, epoch";

const RENEW: &str = "
UPDATE writer SET lease_until = clock_timestamp() + $3 * interval '1 ms'
 WHERE shard = $1 AND epoch = $2";

const RELEASE: &str =
    "UPDATE writer SET lease_until = NULL, node = NULL WHERE shard = $1 AND epoch = $2";

async fn take(tx: &mut Tx, node: &str, count: usize) -> Result<Vec<Claim>, Error> {
    let wanted = int(u32::try_from(count).unwrap_or(0));
    let mut claims: Vec<Claim> = sql_query(TAKE)
        .bind::<Text, _>(node)
        .bind::<Integer, _>(wanted)
        .bind::<BigInt, _>(CLAIM.millis())
        .load(tx.sql()?)
        .await?;
    claims.sort_unstable_by_key(|c| c.shard);
    Ok(claims)
}

async fn renew(tx: &mut Tx, claim: Claim) -> Result<bool, Error> {
    let rows = sql_query(RENEW)
        .bind::<SmallInt, _>(claim.shard)
        .bind::<BigInt, _>(claim.epoch.unwrap_or(-1))
        .bind::<BigInt, _>(CLAIM.millis())
        .execute(tx.sql()?)
        .await?;
    Ok(rows == 1)
}

const STOP: &str = "UPDATE writer SET stopped = $1 WHERE (stopped IS NULL) = ($1 IS NOT NULL)";

/// Stops every writer with a reason, or lets all go on. Gives the number of those changed: a stop
/// that stands keeps its reason.
pub async fn set_stop(tx: &mut Tx, reason: Option<&str>) -> Result<usize, Error> {
    Ok(sql_query(STOP)
        .bind::<Nullable<Text>, _>(reason)
        .execute(tx.sql()?)
        .await?)
}

impl Db {
    /// Renews this process's claims and claims more until it has `wanted`; gives the number it has.
    /// Call it every [`RENEW_EVERY`]. `node` names the process, for people.
    pub async fn claim_shards(&self, node: &str, wanted: usize) -> Result<usize, Error> {
        let shards = Arc::clone(self.shards());
        let held = shards.all();
        let held = &held;
        let claims = self
            .write::<_, Error, _>(async |tx: &mut Tx| {
                let mut kept = Vec::new();
                for claim in held {
                    if renew(tx, *claim).await? {
                        kept.push(*claim);
                    }
                }
                let missing = wanted.saturating_sub(kept.len());
                if missing > 0 {
                    kept.extend(take(tx, node, missing).await?);
                }
                Ok(kept)
            })
            .await?;
        let count = claims.len();
        shards.set(claims);
        Ok(count)
    }

    /// Gives this process's shards back: others need not wait for the claims to end.
    pub async fn release_shards(&self) -> Result<(), Error> {
        let held = self.shards().all();
        self.shards().set(Vec::new());
        let held = &held;
        self.write::<_, Error, _>(async |tx: &mut Tx| {
            for claim in held {
                sql_query(RELEASE)
                    .bind::<SmallInt, _>(claim.shard)
                    .bind::<BigInt, _>(claim.epoch.unwrap_or(-1))
                    .execute(tx.sql()?)
                    .await?;
            }
            Ok(())
        })
        .await
    }

    /// The shards that this process holds.
    pub fn claimed(&self) -> Vec<Claim> {
        self.shards().all()
    }
}
