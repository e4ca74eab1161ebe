//! Connections and transactions.
//!
//! READ COMMITTED with row locks taken in id order, and the constraints as the last word: hot rows
//! (a platform account, a wallet) are waited for instead of retried. A transaction that is dropped
//! before its end takes its connection with it, so no other can inherit it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use diesel::migration::{Migration, MigrationSource};
use diesel::pg::Pg;
use diesel::sql_types::{Array, Bool, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use domain::gpu::Catalogue;

use crate::batch;
use crate::convert::int;
use crate::error::{Error, Retryable};
use crate::journal::Journal;
use crate::shard::Shards;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../migrations");
/// How often a transaction is tried when others want the same rows.
const TRIES: u32 = 5;
// A random page costs hardly more than the next one on today's disks; the default was made for
// turning ones, and reads whole tables for a batch's accounts (docs/adr/0013).
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '10s'; \
    SET LOCAL random_page_cost = 1.1";
const INSPECT: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '10min'";
const WRITE: &str = "BEGIN; SET LOCAL statement_timeout = '10s'; SET LOCAL lock_timeout = '5s'; \
    SET LOCAL idle_in_transaction_session_timeout = '20s'; \
    SET LOCAL random_page_cost = 1.1";

#[derive(QueryableByName)]
struct Present {
    #[diesel(sql_type = Bool)]
    present: bool,
}

/// The database.
#[derive(Clone)]
pub struct Db {
    pool: Pool<AsyncPgConnection>,
    url: String,
    shards: Arc<Shards>,
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Db")
    }
}

/// A read-only transaction: one snapshot.
pub struct Ro {
    connection: Option<Object<AsyncPgConnection>>,
    /// What a transaction that may write has moved; always empty in a read.
    journal: Journal,
}

/// A transaction that may write. Balances, transfers and charges are written at its end, set-wise.
pub struct Tx {
    ro: Ro,
    shards: Arc<Shards>,
}

impl fmt::Debug for Ro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ro")
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tx")
    }
}

impl Deref for Tx {
    type Target = Ro;

    fn deref(&self) -> &Ro {
        &self.ro
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Ro {
        &mut self.ro
    }
}

impl Drop for Ro {
    fn drop(&mut self) {
        // Still here: neither committed nor rolled back.
        if let Some(open) = self.connection.take() {
            drop(Object::take(open));
        }
    }
}

impl Ro {
    /// The connection for one statement.
    pub(crate) fn sql(&mut self) -> Result<&mut AsyncPgConnection, Error> {
        self.connection
            .as_deref_mut()
            .ok_or(Error::Corrupt("transaction state"))
    }

    /// What the transaction has moved so far.
    pub(crate) fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    async fn end(&mut self, statement: &str) -> Result<(), Error> {
        self.sql()?.batch_execute(statement).await?;
        // Back to the pool.
        drop(self.connection.take());
        Ok(())
    }
}

impl Tx {
    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Balances are read without locks from here on; the end notices if one was stale, and the
    /// whole transaction is tried again. For a writer that groups the work of many.
    pub fn read_optimistically(&mut self) {
        self.journal().optimistic = true;
    }
}

/// An async closure whose future can be sent to another thread. `AsyncFn` alone cannot say that.
pub trait AsyncFunc<T, R>: AsyncFn(T) -> R + Fn(T) -> <Self as AsyncFunc<T, R>>::Fut {
    /// The future of one call.
    type Fut: Future<Output = R>;
}

impl<F, T, R, Fut> AsyncFunc<T, R> for F
where
    F: AsyncFn(T) -> R + Fn(T) -> Fut,
    Fut: Future<Output = R>,
{
    type Fut = Fut;
}

impl Db {
    /// A pool of at most `connections` connections; connects when first needed.
    pub fn connect(url: &str, connections: usize) -> Result<Self, Error> {
        // A connection that is closed is noticed without asking: no round trip before each use.
        let mut fast = ManagerConfig::default();
        fast.recycling_method = RecyclingMethod::Fast;
        let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new_with_config(url, fast);
        let pool = Pool::builder(manager)
            .max_size(connections)
            .wait_timeout(Some(Duration::from_secs(5)))
            .create_timeout(Some(Duration::from_secs(5)))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|e| Error::Unavailable(e.to_string()))?;
        Ok(Self {
            pool,
            url: url.to_owned(),
            shards: Arc::default(),
        })
    }

    pub(crate) const fn shards(&self) -> &Arc<Shards> {
        &self.shards
    }

    async fn connection(&self) -> Result<Object<AsyncPgConnection>, Error> {
        self.pool
            .get()
            .await
            .map_err(|e| Error::Unavailable(e.to_string()))
    }

    /// Is the database there?
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.connection().await?.batch_execute("SELECT 1").await?)
    }

    /// Applies what is missing of the schema and puts the GPU models in. Returns the names of the
    /// migrations that were applied. One process at a time (advisory lock).
    pub async fn migrate(&self, catalogue: &Catalogue) -> Result<Vec<String>, Error> {
        // Out of the pool: whatever fails, the lock ends with its connection.
        let mut lock = Object::take(self.connection().await?);
        lock.batch_execute("SELECT pg_advisory_lock(7232011)")
            .await?;
        let connection = Object::take(self.connection().await?);
        let mut harness = AsyncMigrationHarness::new(connection);
        let applied = harness
            .run_pending_migrations(MIGRATIONS)
            .map(|names| names.into_iter().map(|n| n.to_string()).collect())
            .map_err(|e| Error::Unavailable(format!("a migration failed: {e}")));
        let seeded = match &applied {
            Ok(_) => self.seed(catalogue).await,
            Err(_) => Ok(()),
        };
        lock.batch_execute("SELECT pg_advisory_unlock(7232011)")
            .await?;
        seeded?;
        applied
    }

    async fn seed(&self, catalogue: &Catalogue) -> Result<(), Error> {
        use crate::schema::gpu_model::dsl;
        use diesel::ExpressionMethods;
        let rows: Vec<_> = catalogue
            .models()
            .iter()
            .map(|m| {
                (
                    dsl::slug.eq(&m.slug),
                    dsl::name.eq(&m.name),
                    dsl::vendor.eq(m.vendor.as_str()),
                    dsl::memory_mib.eq(int(m.memory_mib)),
                )
            })
            .collect();
        diesel::insert_into(dsl::gpu_model)
            .values(rows)
            .on_conflict(dsl::slug)
            .do_update()
            .set((
                dsl::name.eq(diesel::upsert::excluded(dsl::name)),
                dsl::vendor.eq(diesel::upsert::excluded(dsl::vendor)),
                dsl::memory_mib.eq(diesel::upsert::excluded(dsl::memory_mib)),
            ))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Has the database every migration that this build needs? Only reads.
    pub async fn migrated(&self) -> Result<bool, Error> {
        let known: Vec<Box<dyn Migration<Pg>>> = MIGRATIONS
            .migrations()
            .map_err(|e| Error::Unavailable(e.to_string()))?;
        let versions: Vec<String> = known
            .iter()
            .map(|m| m.name().version().to_string())
            .collect();
        let mut connection = self.connection().await?;
        let table: Present =
            sql_query("SELECT to_regclass('__diesel_schema_migrations') IS NOT NULL AS present")
                .get_result(&mut *connection)
                .await?;
        if !table.present {
            return Ok(false);
        }
        let all: Present = sql_query(
            "SELECT NOT EXISTS (SELECT unnest($1) EXCEPT SELECT version FROM __diesel_schema_migrations) AS present",
        )
        .bind::<Array<Text>, _>(versions)
        .get_result(&mut *connection)
        .await?;
        Ok(all.present)
    }

    /// Where it connects, for a message; without credentials.
    pub fn target(&self) -> String {
        self.url
            .rsplit_once('@')
            .map_or_else(|| self.url.clone(), |(_, host)| host.to_owned())
    }

    async fn begin(&self, statement: &str) -> Result<Ro, Error> {
        let mut ro = Ro {
            connection: Some(self.connection().await?),
            journal: Journal::default(),
        };
        ro.sql()?.batch_execute(statement).await?;
        Ok(ro)
    }

    /// Runs `work` over one snapshot.
    pub async fn read<R, E, F>(&self, work: F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut Ro) -> Result<R, E>
            + AsyncFunc<&'r mut Ro, Result<R, E>, Fut: Send>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        let mut ro = self.begin(READ).await?;
        let result = work(&mut ro).await;
        ro.end("COMMIT").await?;
        result
    }

    /// Runs the one statement of `work`, without a transaction around it: a third of the round trips.
    pub async fn glance<R, E, F>(&self, work: F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut Ro) -> Result<R, E>
            + AsyncFunc<&'r mut Ro, Result<R, E>, Fut: Send>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        let mut ro = Ro {
            connection: Some(self.connection().await?),
            journal: Journal::default(),
        };
        let result = work(&mut ro).await;
        if result.is_ok() {
            // Back to the pool; after a failure it is closed.
            drop(ro.connection.take());
        }
        result
    }

    /// Runs `work` over one snapshot, however large what it looks through.
    pub async fn inspect<R, E, F>(&self, work: F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut Ro) -> Result<R, E>
            + AsyncFunc<&'r mut Ro, Result<R, E>, Fut: Send>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        let mut ro = self.begin(INSPECT).await?;
        let result = work(&mut ro).await;
        ro.end("COMMIT").await?;
        result
    }

    /// Runs `work` in a transaction, again if others were in the way. It must do nothing but SQL
    /// and pure code.
    pub async fn write<R, E, F>(&self, work: F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut Tx) -> Result<R, E>
            + AsyncFunc<&'r mut Tx, Result<R, E>, Fut: Send>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Retryable + Send,
    {
        let mut attempt = 1;
        loop {
            let result = self.attempt(&work).await;
            match result {
                Err(error) if error.retryable() && attempt < TRIES => {
                    tracing::debug!(attempt, "transaction is tried again");
                    tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 7)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    async fn attempt<R, E, F>(&self, work: &F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut Tx) -> Result<R, E>
            + AsyncFunc<&'r mut Tx, Result<R, E>, Fut: Send>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Retryable + Send,
    {
        let mut tx = Tx {
            ro: self.begin(WRITE).await?,
            shards: Arc::clone(&self.shards),
        };
        let done = match work(&mut tx).await {
            Ok(value) => batch::flush(&mut tx).await.map(|()| value).map_err(E::from),
            Err(error) => Err(error),
        };
        match done {
            Ok(value) => {
                tx.end("COMMIT").await?;
                Ok(value)
            }
            Err(error) => {
                // The refusal counts, not what a broken connection says to the rollback.
                if let Err(cause) = tx.end("ROLLBACK").await {
                    tracing::debug!(%cause, "rollback");
                }
                Err(error)
            }
        }
    }
}
