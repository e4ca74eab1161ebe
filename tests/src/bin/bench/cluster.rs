//! The private cluster that is measured on, and pgbench as a yardstick on it.

use std::path::PathBuf;
use std::time::Duration;

use tests::database::connect;
use tokio_postgres::Client;

/// Branches in pgbench's tables: as many as its clients, or they would wait for each other's rows.
const SCALE: u32 = 32;

/// A cluster with durable settings, ours alone.
#[derive(Debug)]
pub struct Cluster {
    /// Its superuser's URL.
    pub url: String,
    pgbench: PathBuf,
    /// The postmaster.
    pub pid: u32,
}

/// A built-in script of pgbench.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// Three updates, a select, an insert.
    TpcbLike,
    /// One update, a select, an insert.
    SimpleUpdate,
}

impl Cluster {
    /// Looks at the cluster behind `url`, which must be durable.
    pub async fn connect(url: &str, pgbench: PathBuf) -> Self {
        let client = connect(url).await;
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let row = client.query_one(&format!("SHOW {setting}"), &[]).await;
            let value: String = row.unwrap().get(0);
            assert_eq!(
                value, "on",
                "{setting}: durable settings are what is measured"
            );
        }
        let file = client.query_one("SELECT pg_read_file('postmaster.pid')", &[]);
        let file: String = file.await.unwrap().get(0);
        Self {
            url: url.to_owned(),
            pgbench,
            pid: file.lines().next().unwrap().trim().parse().unwrap(),
        }
    }

    /// The URL of another database of the cluster.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.url.rsplit_once('/').unwrap().0)
    }

    /// An empty database; what had its name is dropped.
    pub async fn fresh(&self, name: &str) -> String {
        let client = connect(&self.url).await;
        for statement in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
            let tail = if statement.starts_with("DROP") {
                " WITH (FORCE)"
            } else {
                ""
            };
            client
                .batch_execute(&format!("{statement} {name}{tail}"))
                .await
                .unwrap();
        }
        self.at(name)
    }

    /// A database with the market's schema.
    pub async fn market(&self, name: &str) -> (String, Client) {
        let url = self.fresh(name).await;
        let db = store::Db::connect(&url, 2).unwrap();
        let catalogue = domain::gpu::Catalogue::embedded().unwrap();
        db.migrate(&catalogue).await.unwrap();
        let client = connect(&url).await;
        (url, client)
    }

    /// Clears away what preparing left behind.
    pub async fn vacuum(sql: &Client, tables: &[&str]) {
        for table in tables {
            let statement = format!("VACUUM ANALYZE {table}");
            sql.batch_execute(&statement).await.unwrap();
        }
    }

    /// What a checkpoint left open would be paid for by whoever is measured next.
    pub async fn settle_down(&self) {
        connect(&self.url)
            .await
            .batch_execute("CHECKPOINT")
            .await
            .unwrap();
    }

    /// Makes pgbench's tables.
    pub async fn prepare_pgbench(&self) {
        let url = self.fresh("pgbench").await;
        let out = tokio::process::Command::new(&self.pgbench)
            .args([
                "--initialize",
                "--quiet",
                "--scale",
                &SCALE.to_string(),
                &url,
            ])
            .output()
            .await
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    /// Transactions of pgbench, and how many per second.
    pub async fn pgbench(&self, script: Script, clients: u32, time: Duration) -> (u64, f64) {
        let name = match script {
            Script::TpcbLike => "tpcb-like",
            Script::SimpleUpdate => "simple-update",
        };
        let (clients, seconds) = (clients.to_string(), time.as_secs().to_string());
        let out = tokio::process::Command::new(&self.pgbench)
            .args([
                "--no-vacuum",
                "--builtin",
                name,
                "--client",
                &clients,
                "--jobs",
                "2",
            ])
            .args(["--time", &seconds, &self.at("pgbench")])
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            out.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let number = |head: &str| {
            let found = text.lines().find_map(|l| l.strip_prefix(head));
            let found = found.unwrap_or_else(|| panic!("no `{head}` from pgbench:\n{text}"));
            found.split(['/', ' ']).next().unwrap().to_owned()
        };
        let count = number("number of transactions actually processed: ");
        (count.parse().unwrap(), number("tps = ").parse().unwrap())
    }
}
