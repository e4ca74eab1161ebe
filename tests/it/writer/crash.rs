//! PostgreSQL itself stopped at once, as a power cut would, under writers.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::money::Currency;
use futures_util::future::join_all;
use store::Db;
use store::writer::Writer;
use tests::database::connect;
use tests::ledger_stream::{between, prove};
use tests::market::free_port;
use tests::process::Folder;
use uuid::Uuid;

const WRITERS: u64 = 8;

/// A cluster of the test's own, durable.
struct Cluster {
    folder: Folder,
    port: String,
}

impl Cluster {
    fn run(&self, verb: &str) -> String {
        let script = crate::house::root().join("deploy/dev/postgres.sh");
        let out = Command::new("bash")
            .arg(script)
            .arg(verb)
            .arg(self.folder.0.join("postgres"))
            .arg(&self.port)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "postgres.sh {verb}: {error}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    fn start() -> Self {
        let folder = Folder::create("crash");
        let port = free_port().to_string();
        let cluster = Self { folder, port };
        cluster.run("start");
        cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("remove");
    }
}

/// Writes until a write fails; gives what was acknowledged.
async fn write(db: Db, writer: Arc<Writer>, next: Arc<AtomicU64>, n: u64) -> Vec<Uuid> {
    let mut acked = Vec::new();
    loop {
        let id = Uuid::from_u64_pair(1, next.fetch_add(1, Ordering::SeqCst));
        // Two share a wallet, all share the clearing account.
        let wanted = between(id, (Uuid::from_u64_pair(7, n / 2), 1), false);
        match writer.post(&db, Currency::Usd, wanted).await {
            Ok(posted) => acked.push(posted.unwrap().id.uuid()),
            Err(_stopped) => return acked,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_database_loses_nothing_that_was_acknowledged() {
    let rounds = super::number("GPUMARKET_CRASHES", 3);
    let cluster = Cluster::start();
    let url = format!(
        "{}/gpumarket",
        cluster.run("url").rsplit_once('/').unwrap().0
    );
    let first = Db::connect(&url, 2).unwrap();
    let catalogue = domain::gpu::Catalogue::embedded().unwrap();
    first.migrate(&catalogue).await.unwrap();
    let next = Arc::new(AtomicU64::new(1));
    let mut acked = BTreeSet::new();
    for round in 0..rounds {
        let before = acked.len();
        let tasks = (0..WRITERS).map(|n| {
            let db = Db::connect(&url, 2).unwrap();
            tokio::spawn(write(db, Arc::new(Writer::default()), Arc::clone(&next), n))
        });
        let tasks: Vec<_> = tasks.collect();
        tokio::time::sleep(Duration::from_millis(
            300 + 170 * u64::try_from(round).unwrap(),
        ))
        .await;
        cluster.run("crash");
        for task in join_all(tasks).await {
            acked.extend(task.unwrap());
        }
        assert!(
            acked.len() > before,
            "nothing was acknowledged in round {round}"
        );
        cluster.run("start");
    }
    let sql = connect(&url).await;
    let rows = sql
        .query("SELECT id::text FROM transfer", &[])
        .await
        .unwrap();
    let there: BTreeSet<Uuid> = rows
        .iter()
        .map(|r| r.get::<_, String>(0).parse().unwrap())
        .collect();
    let lost: Vec<_> = acked.difference(&there).collect();
    assert!(
        lost.is_empty(),
        "{} of {} are lost",
        lost.len(),
        acked.len()
    );
    // At most what every writer had in flight.
    let in_doubt = there.len() - acked.len();
    assert!(
        in_doubt <= rounds * usize::try_from(WRITERS).unwrap(),
        "{in_doubt}"
    );
    prove(&Db::connect(&url, 2).unwrap()).await;
}
