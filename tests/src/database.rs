//! A database for each test, copied from a migrated template.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A database of its own; dropped with the test.
#[derive(Debug)]
pub struct TestDatabase {
    /// Where.
    pub url: String,
    name: String,
    admin: String,
}

/// The value of a variable that `make test` sets.
pub fn service(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run the tests with `make test`, which starts what they need")
    })
}

/// Connects and keeps the connection alive in the background.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .unwrap_or_else(|e| panic!("the test database at {url} cannot be reached: {e}"));
    tokio::spawn(connection);
    client
}

impl TestDatabase {
    /// Makes one. The first caller of a run makes and migrates the template, the others wait.
    pub async fn create() -> Self {
        let admin = service("GPUMARKET_TEST_DATABASE_URL");
        let client = connect(&admin).await;
        let template = format!("gpumarket_template_{}", fingerprint());
        client
            .batch_execute("SELECT pg_advisory_lock(815)")
            .await
            .unwrap();
        let there = client
            .query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&template])
            .await
            .unwrap();
        if there.is_none() {
            let fresh = format!("{template}_new");
            client
                .batch_execute(&format!("DROP DATABASE IF EXISTS {fresh}"))
                .await
                .unwrap();
            client
                .batch_execute(&format!("CREATE DATABASE {fresh}"))
                .await
                .unwrap();
            migrate(&with_name(&admin, &fresh)).await;
            let rename = format!("ALTER DATABASE {fresh} RENAME TO {template}");
            client.batch_execute(&rename).await.unwrap();
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpumarket_test_{}_{number}", std::process::id());
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log");
        client.batch_execute(&create).await.unwrap();
        client
            .batch_execute("SELECT pg_advisory_unlock(815)")
            .await
            .unwrap();
        Self {
            url: with_name(&admin, &name),
            name,
            admin,
        }
    }

    /// A connection for looking at rows.
    pub async fn client(&self) -> Client {
        connect(&self.url).await
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.name.clone());
        // A thread of its own: the test's runtime may be going away.
        let done = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = connect(&admin).await;
                client
                    .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                    .await
            })
        })
        .join();
        if let Ok(Err(error)) = done {
            eprintln!("the test database was not dropped: {error}");
        }
    }
}

/// The template belongs to these migrations.
fn fingerprint() -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap();
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    let mut folders: Vec<_> = std::fs::read_dir(root.join("migrations"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    let up = folders
        .iter()
        .map(|f| f.join("up.sql"))
        .filter(|f| f.exists());
    let models = root.join("domain/data/gpu-models.toml");
    for file in up.chain([models]) {
        for byte in std::fs::read(file).unwrap() {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{sum:016x}")
}

fn with_name(url: &str, name: &str) -> String {
    let (base, _) = url.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

async fn migrate(url: &str) {
    let db = store::Db::connect(url, 4).unwrap();
    let catalogue = domain::gpu::Catalogue::embedded().unwrap();
    db.migrate(&catalogue).await.unwrap();
}
