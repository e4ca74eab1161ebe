//! An agent without a market on the real engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::keeper::{Keeper, KeeperHandle};
use agent::runner::engine::{Engine, EngineFlavour, EngineSettings};
use agent::runner::{Container, LogQuery, Runner};
use agent::state_dir::StateDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use web_openapi::agent::{DesiredLease, LeaseReport, Observed, Target};
use web_openapi::lease::{LogLine, Workload};

pub(crate) const IMAGE: &str = "localhost/gpumarket/busybox:1";
const PATIENCE: Duration = Duration::from_mins(1);

#[expect(
    clippy::disallowed_methods,
    reason = "where the test's engine is, is told by the environment"
)]
pub(crate) fn address() -> String {
    std::env::var("GPUMARKET_TEST_ENGINE").unwrap_or_else(|_| {
        panic!(
            "GPUMARKET_TEST_ENGINE is not set: these tests need a container engine. Run \
             `make test`, which starts one and sets it, or set it to unix:///PATH of a socket"
        )
    })
}

/// A name that no other test, also of another process, uses.
pub(crate) fn unique(name: &str) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let nanos = agent::meter::mono_ms();
    format!("{name}{}x{nanos}x{count}", std::process::id())
}

async fn engine(machine: &str, flavour: Option<EngineFlavour>) -> Arc<Engine> {
    let (address, machine) = (Some(address()), machine.to_owned());
    Arc::new(
        Engine::connect(EngineSettings {
            address,
            machine,
            flavour,
        })
        .await
        .unwrap(),
    )
}

pub(crate) struct Bench {
    machine: String,
    pub(crate) engine: Arc<Engine>,
    state: PathBuf,
    task: JoinHandle<()>,
    pub(crate) handle: KeeperHandle,
}

impl Bench {
    pub(crate) async fn new(flavour: Option<EngineFlavour>) -> Self {
        let machine = unique("mch_test");
        let engine = engine(&machine, flavour).await;
        let state = std::env::temp_dir().join(&machine);
        Self::start(machine, engine, state)
    }

    pub(crate) fn start(machine: String, engine: Arc<Engine>, state: PathBuf) -> Self {
        let dir = Arc::new(StateDir::open(&state).unwrap());
        let (keeper, handle) = Keeper::new(Arc::clone(&engine), dir).unwrap();
        Self {
            machine,
            engine,
            state,
            task: tokio::spawn(keeper.run()),
            handle,
        }
    }

    /// Kills the agent; another one with a new connection goes on.
    pub(crate) async fn restart(self) -> Self {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        let engine = engine(&self.machine, None).await;
        Self::start(self.machine, engine, self.state)
    }

    pub(crate) async fn until(&self, lease: &DesiredLease, observed: Observed) -> LeaseReport {
        let mut last = None;
        let wait = async {
            let mut changes = self.handle.changes();
            changes.mark_changed();
            loop {
                changes.changed().await.unwrap();
                let seen = changes.borrow_and_update().clone();
                let all = seen.map(|s| s.leases).unwrap_or_default();
                last = all.into_iter().find(|r| r.lease_id == lease.lease_id);
                if let Some(report) = &last
                    && (report.observed, report.start_no) == (observed, lease.start_no)
                {
                    return report.clone();
                }
            }
        };
        let found = timeout(PATIENCE, wait).await;
        found.unwrap_or_else(|_| panic!("never {observed:?}; last seen: {last:?}"))
    }

    pub(crate) async fn container(&self, lease: &DesiredLease) -> Container {
        let all = self.engine.list().await.unwrap();
        all.into_iter().find(|c| c.lease == lease.lease_id).unwrap()
    }

    /// Waits until the container printed this line; gives all lines.
    pub(crate) async fn printed(&self, lease: &DesiredLease, line: &str) -> Vec<LogLine> {
        let id = self.container(lease).await.id;
        let query = LogQuery {
            tail: 1_000,
            after: None,
        };
        let wait = async {
            loop {
                let lines = self.engine.logs(&id, &query).await.unwrap();
                if lines.iter().any(|l| l.text == line) {
                    return lines;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(PATIENCE, wait)
            .await
            .unwrap_or_else(|_| panic!("`{line}` was never printed"))
    }

    pub(crate) async fn end(&self, leases: &[DesiredLease]) {
        let gone = leases.iter().cloned().map(|l| DesiredLease {
            target: Target::Gone,
            ..l
        });
        let gone: Vec<DesiredLease> = gone.collect();
        self.handle.desire(gone.clone()).await;
        for lease in &gone {
            self.until(lease, Observed::Gone).await;
        }
        assert_eq!(self.engine.list().await.unwrap(), []);
        self.task.abort();
        std::fs::remove_dir_all(&self.state).unwrap();
    }
}

pub(crate) fn lease(script: &str) -> DesiredLease {
    let id = unique("lse_test");
    DesiredLease {
        gpu_uuids: vec![format!("SIM-{id}-0"), format!("SIM-{id}-1")],
        lease_id: id,
        target: Target::Run,
        start_no: 1,
        workload: Workload {
            image: IMAGE.into(),
            command: vec!["/bin/sh".into(), "-c".into(), script.into()],
            env: BTreeMap::from([("NVIDIA_VISIBLE_DEVICES".into(), "all".into())]),
        },
        simulated: true,
        cpu_millis: 500,
        ram_mib: 64,
        disk_gib: 1,
    }
}
