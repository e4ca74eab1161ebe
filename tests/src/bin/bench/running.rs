//! Many running leases: proofs of life taken, proven time settled, wallets watched and holds kept
//! ahead of their use.
//!
//! Each kind of work is measured by itself on a world of many leases, through the use-cases that the
//! server runs, in this process: what the machine sustains is what fits into one second together.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use api::config::Config;
use api::state::Shared;
use app::link::{ReportIn, Seen, SeenLease};
use domain::id::{LeaseId, MachineId};
use futures_util::future::join_all;
use store::lease::ContainerRef;
use tests::process::Folder;
use tokio_postgres::Client;

use crate::Asked;
use crate::cluster::Cluster;
use crate::report::{Report, Row};
use crate::supply;
use crate::world::{self, Running};

/// The leases that should be sustained.
const WANTED: f64 = 1_000_000.0;
/// Links that report at the same time.
const LINKS: usize = 16;
/// Leases on a machine.
const ON_MACHINE: i64 = supply::GPUS;

fn shared(folder: &Folder, url: &str) -> Shared {
    let file = folder.0.join("gpumarket.toml");
    let text = format!(
        "database_url = {url:?}\nstate_dir = {:?}\nallow_simulated = true\npayments = \"sandbox\"\n\
         database_connections = 24\n",
        folder.0.join("state")
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::load(Some(&file)).unwrap();
    Shared::build(&config, None).unwrap()
}

fn sight(lease: &str) -> SeenLease {
    SeenLease {
        lease: LeaseId::from_uuid(lease.parse().unwrap()),
        seen: Seen::Running,
        start_no: 1,
        progress: 1,
        detail: "runs".to_owned(),
        container: Some(ContainerRef {
            id: "c1".to_owned(),
            started_at: world::STARTED.to_owned(),
        }),
    }
}

/// Leases proven per second by reports of whole machines.
async fn proofs(shared: &Shared, machines: &Arc<Vec<Running>>, time: Duration) -> f64 {
    let begun = Instant::now();
    let next = Arc::new(AtomicI64::new(0));
    let links = (0..LINKS).map(|_| {
        let (cx, machines, next) = (shared.cx.clone(), Arc::clone(machines), Arc::clone(&next));
        tokio::spawn(async move {
            let mut proven = 0_u32;
            while begun.elapsed() < time {
                let turn = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                let machine = &machines[turn % machines.len()];
                let mono = i64::try_from(begun.elapsed().as_millis()).unwrap();
                let report = ReportIn {
                    boot_id: world::BOOT.to_owned(),
                    mono_ms: world::MONO_MS + mono,
                    leases: machine.leases.iter().map(|l| sight(l)).collect(),
                };
                let id = MachineId::from_uuid(machine.machine.parse().unwrap());
                app::link::report(&cx, id, report).await.unwrap();
                proven += u32::try_from(machine.leases.len()).unwrap();
            }
            proven
        })
    });
    let proven: u32 = join_all(links).await.into_iter().map(Result::unwrap).sum();
    f64::from(proven) / begun.elapsed().as_secs_f64()
}

async fn count(sql: &Client, query: &str) -> i64 {
    sql.query_one(query, &[]).await.unwrap().get(0)
}

/// Runs a reconciler again and again for `time`; gives what `done` counts of it per second.
async fn steps(shared: &Shared, sql: &Client, (name, done, time): (&str, &str, Duration)) -> f64 {
    let step = app::reconcile::STEPS.iter().find(|s| s.name == name);
    let step = *step.unwrap_or_else(|| panic!("no reconciler `{name}`"));
    let before = count(sql, done).await;
    let begun = Instant::now();
    while begun.elapsed() < time {
        // A pass over every lease may be longer than what is measured.
        let left = time.saturating_sub(begun.elapsed());
        if let Ok(result) = tokio::time::timeout(left, (step.run)(&shared.cx)).await {
            result.unwrap();
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = count(sql, done).await;
    f64::from(u32::try_from(after - before).unwrap()) / seconds
}

const CHARGES: &str = "SELECT count(*) FROM charge";
const RAISED: &str = "SELECT count(*) FROM hold WHERE amount > 600000";

/// Measures the row.
pub async fn measure(cluster: &Cluster, asked: &Asked, report: &mut Report) {
    println!("  running_leases: preparing {} leases", asked.leases);
    let (url, sql) = cluster.market("running").await;
    supply::machines(&sql, asked.leases.div_euclid(ON_MACHINE)).await;
    let machines = Arc::new(world::running(&sql).await);
    let folder = Folder::create("bench");
    let shared = shared(&folder, &url);
    shared.cx.db.claim_shards("bench", 5).await.unwrap();
    cluster.settle_down().await;
    let proofs = proofs(&shared, &machines, asked.time).await;
    cluster.settle_down().await;
    let charges = steps(&shared, &sql, ("settle", CHARGES, asked.time)).await;
    cluster.settle_down().await;
    let renewals = steps(&shared, &sql, ("renew_holds", RAISED, asked.time)).await;
    // One lease needs a proof each heartbeat; two charges and a longer hold each settlement.
    let policy = &shared.cx.policy;
    let seconds = |span: domain::clock::Span| f64::from(u32::try_from(span.secs()).unwrap());
    let (heartbeat, settle) = (seconds(policy.heartbeat), seconds(policy.settle_every));
    let each = 1.0 / (proofs * heartbeat) + 2.0 / (charges * settle) + 1.0 / (renewals * settle);
    report.figure("running: proofs of life taken", proofs, "leases/s");
    report.figure("running: charges settled", charges, "charges/s");
    report.figure("running: holds renewed", renewals, "holds/s");
    report.row(Row {
        name: "running_leases",
        values: vec![1.0 / each],
        unit: "leases",
        yardstick: "a million, each proven every heartbeat",
        yardstick_values: vec![WANTED],
        goal: 1.0,
    });
}
