//! A database for each test, copied from a template that is migrated once.
//!
//! The template's name contains a hash of the migrations and the GPU catalogue, so a change of
//! either makes a new one; an advisory lock lets one process make it while others wait. The copy
//! is dropped at the end, also of a test that fails.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use domain::gpu::Catalogue;
use store::Db;

/// Names the superuser URL of a private cluster.
const VARIABLE: &str = "GPUMARKET_TEST_DATABASE_URL";
static COPIES: AtomicU32 = AtomicU32::new(0);

/// A test's own database.
#[derive(Debug)]
pub(crate) struct Database {
    /// What is tested.
    pub db: Db,
    /// For a connection beside it.
    pub url: String,
    name: String,
    cluster: String,
}

fn cluster() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests' cluster is told by the environment"
    )]
    std::env::var(VARIABLE).unwrap_or_else(|_unset| {
        panic!("{VARIABLE} must name a private cluster, e.g. postgres://postgres@127.0.0.1:5498/postgres")
    })
}

/// `cluster` with another database's name.
fn at(cluster: &str, name: &str) -> String {
    let (base, _database) = cluster.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Runs statements on a database, each in its own transaction.
pub(crate) async fn execute(url: &str, statements: &[&str]) {
    let mut connection = AsyncPgConnection::establish(url).await.unwrap();
    for statement in statements {
        connection.batch_execute(statement).await.unwrap();
    }
}

/// Hash (FNV-1a) of all that a template is made of.
fn fingerprint() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().join("up.sql"))
        .collect();
    files.sort();
    let mut text = format!("{:?}", Catalogue::embedded().unwrap());
    for file in files {
        text.push_str(&std::fs::read_to_string(file).unwrap());
    }
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

async fn template(cluster: &str) -> String {
    use diesel::sql_types::BigInt;
    use diesel_async::RunQueryDsl;
    #[derive(diesel::QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        n: i64,
    }
    let name = format!("store_template_{}", fingerprint());
    let mut lock = AsyncPgConnection::establish(cluster).await.unwrap();
    lock.batch_execute("SELECT pg_advisory_lock(7232012)")
        .await
        .unwrap();
    let ready =
        format!("SELECT count(*) AS n FROM pg_database WHERE datname = '{name}' AND datistemplate");
    let found: Count = diesel::sql_query(ready)
        .get_result(&mut lock)
        .await
        .unwrap();
    if found.n == 0 {
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        let create = format!("CREATE DATABASE {name}");
        execute(cluster, &[&drop, &create]).await;
        let db = Db::connect(&at(cluster, &name), 4).unwrap();
        db.migrate(&Catalogue::embedded().unwrap()).await.unwrap();
        drop_pool(db, cluster, &name).await;
        let mark = format!("ALTER DATABASE {name} IS_TEMPLATE true");
        execute(cluster, &[&mark]).await;
    }
    name
}

/// A template must have no connections.
async fn drop_pool(db: Db, cluster: &str, name: &str) {
    drop(db);
    let kick =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    execute(cluster, &[&kick]).await;
}

impl Database {
    /// A fresh migrated database.
    pub(crate) async fn fresh() -> Self {
        let cluster = cluster();
        let template = template(&cluster).await;
        Self::create(cluster, &format!(" TEMPLATE {template}")).await
    }

    /// A fresh database without tables.
    pub(crate) async fn bare() -> Self {
        Self::create(cluster(), "").await
    }

    /// A copy of this one, as it is now. Its connections are closed for that.
    pub(crate) async fn copy(&self) -> Self {
        let kick = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
            self.name
        );
        execute(&self.cluster, &[&kick]).await;
        Self::create(self.cluster.clone(), &format!(" TEMPLATE {}", self.name)).await
    }

    async fn create(cluster: String, from: &str) -> Self {
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("store_test_{}_{number}", std::process::id());
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        let create = format!("CREATE DATABASE {name}{from}");
        execute(&cluster, &[&drop, &create]).await;
        let url = at(&cluster, &name);
        let db = Db::connect(&url, 16).unwrap();
        Self {
            db,
            url,
            name,
            cluster,
        }
    }

    /// Runs statements beside the tested code.
    pub(crate) async fn run(&self, statements: &[&str]) {
        execute(&self.url, statements).await;
    }

    /// What the database says to a statement that it refuses.
    pub(crate) async fn fault(&self, statement: &str) -> String {
        let mut sql = AsyncPgConnection::establish(&self.url).await.unwrap();
        sql.batch_execute(statement).await.unwrap_err().to_string()
    }

    /// Runs statements with triggers and foreign keys off, and without named constraints that would
    /// refuse them: how a broken row comes into a test.
    pub(crate) async fn tamper(&self, statements: &[&str]) {
        let mut all = vec!["SET session_replication_role = replica"];
        all.extend(statements);
        execute(&self.url, &all).await;
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let cluster = self.cluster.clone();
        // The test's own runtime cannot be waited for in `drop`.
        let work = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(execute(&cluster, &[&drop]));
        });
        if work.join().is_err() {
            eprintln!("{} was not dropped", self.name);
        }
    }
}
