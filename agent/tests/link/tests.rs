//! What the link does when the market speaks, falls silent, cuts or refuses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::identity::MachineKey;
use agent::keeper::KeeperHandle;
use agent::link::LinkError;
use agent::probe::GpuSource;
use agent::service::{MachineSettings, Parts, ServiceError, probe_source, run_with};
use agent::state_dir::StateDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use web_openapi::agent::{DesiredLease, FromAgent, Observed, Target, ToAgent};
use web_openapi::lease::Workload;

use crate::fake_server::FakeServer;
use crate::in_memory::InMemory;

pub(crate) const MACHINE: &str = "mch_fake";
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const BEAT_MS: u64 = 300;

struct Bench {
    listener: TcpListener,
    key: MachineKey,
    state: PathBuf,
    runner: Arc<InMemory>,
    agent: JoinHandle<ServiceError>,
}

impl Bench {
    async fn new(name: &str) -> Self {
        let state = std::env::temp_dir().join(format!("gm-link-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let key = MachineKey::from_seed([9; 32]);
        let runner = Arc::<InMemory>::default();
        let agent = Self::start(&listener, &state, &key, &runner);
        Self {
            listener,
            key,
            state,
            runner,
            agent,
        }
    }

    fn start(
        listener: &TcpListener,
        state: &Path,
        key: &MachineKey,
        runner: &Arc<InMemory>,
    ) -> JoinHandle<ServiceError> {
        let machine = MachineSettings {
            source: GpuSource::Profile("1xrtx-4090".into()),
            engine: None,
            country: None,
            disk_gib: None,
            disk_path: "/".into(),
        };
        let parts = Parts {
            state: Arc::new(StateDir::open(state).unwrap()),
            probe: probe_source(&machine, key, "in memory".into()),
            key: key.clone(),
            server: format!("http://{}", listener.local_addr().unwrap())
                .parse()
                .unwrap(),
            machine_id: MACHINE.into(),
        };
        let runner = Arc::clone(runner);
        tokio::spawn(async move {
            match run_with(runner, parts).await {
                Ok(never) => match never {},
                Err(error) => error,
            }
        })
    }

    async fn accept(&self) -> FakeServer {
        FakeServer::accept(&self.listener, &self.key).await
    }
}

fn desired(target: Target) -> ToAgent {
    ToAgent::Desired {
        leases: vec![DesiredLease {
            lease_id: "lse_a".into(),
            target,
            start_no: 1,
            workload: Workload {
                image: "i:1".into(),
                command: vec![],
                env: BTreeMap::new(),
            },
            gpu_uuids: vec!["SIM-1".into()],
            simulated: true,
            cpu_millis: 1_000,
            ram_mib: 64,
            disk_gib: 1,
        }],
    }
}

#[tokio::test]
async fn desired_is_made_true_reported_and_acknowledged() {
    let bench = Bench::new("desired").await;
    let mut server = bench.accept().await;
    server.welcome().await;
    server.send(&desired(Target::Run)).await;
    let (first, _) = server.until(Observed::Running).await;
    // The heartbeat goes on with growing numbers though nothing changes.
    let (second, _) = server.until(Observed::Running).await;
    assert!(second > first);
    server.send(&desired(Target::Gone)).await;
    server.until(Observed::Gone).await;
    assert!(bench.runner.0.lock().unwrap().is_empty());
    bench.agent.abort();
}

#[tokio::test]
async fn logs_are_answered_also_when_there_are_none() {
    let bench = Bench::new("logs").await;
    let mut server = bench.accept().await;
    server.welcome().await;
    server.send(&desired(Target::Run)).await;
    server.until(Observed::Running).await;
    for (request, lease) in [(7, "lse_a"), (8, "lse_b")] {
        let (lease_id, after) = (lease.to_owned(), Some("2026-12-01T00:00:00Z".to_owned()));
        server
            .send(&ToAgent::GetLogs {
                request,
                lease_id,
                tail: 5,
                after,
            })
            .await;
        let (got, lines, live, fault) = loop {
            if let FromAgent::Logs {
                request,
                lines,
                live,
                fault,
            } = server.next().await
            {
                break (request, lines, live, fault);
            }
        };
        assert_eq!(
            (got, live, fault.is_none()),
            (request, request == 7, request == 7)
        );
        let expected = ["gpumarket-lse_a-1 5 true"];
        assert_eq!(
            lines.iter().map(|l| l.text.as_str()).eq(expected),
            request == 7
        );
    }
    bench.agent.abort();
}

#[tokio::test]
async fn a_cut_link_is_dialled_again_and_nothing_was_restarted() {
    let bench = Bench::new("cut").await;
    let mut server = bench.accept().await;
    server.welcome().await;
    server.send(&desired(Target::Run)).await;
    server.until(Observed::Running).await;
    drop(server);
    let mut server = bench.accept().await;
    server.welcome().await;
    // Without a word of the server the machine is held to what was desired before.
    let (seq, _) = server.until(Observed::Running).await;
    assert_eq!(seq, 1, "reports count from 1 in each connection");
    bench.agent.abort();
}

#[tokio::test]
async fn a_silent_server_is_left_and_dialled_again() {
    let bench = Bench::new("silent").await;
    let mut server = bench.accept().await;
    server.welcome().await;
    // Nobody reads or answers: no pong, no acknowledgement.
    let started = tokio::time::Instant::now();
    let mut again = bench.accept().await;
    assert!(started.elapsed() >= Duration::from_millis(3 * BEAT_MS));
    again.welcome().await;
    drop(server);
    bench.agent.abort();
}

#[tokio::test]
async fn a_fatal_refusal_ends_the_agent_with_its_words() {
    let bench = Bench::new("fatal").await;
    let mut server = bench.accept().await;
    let (code, detail) = (
        "unauthenticated".to_owned(),
        "this machine is retired".to_owned(),
    );
    server
        .send(&ToAgent::Refused {
            code,
            detail,
            fatal: true,
        })
        .await;
    let error = timeout(PATIENCE, bench.agent).await.unwrap().unwrap();
    assert!(matches!(
        error,
        ServiceError::Link(LinkError::Refused { .. })
    ));
    assert!(
        error.to_string().contains("this machine is retired"),
        "{error}"
    );
}

#[tokio::test]
async fn a_refusal_that_is_not_fatal_is_tried_again() {
    let bench = Bench::new("retry").await;
    let mut server = bench.accept().await;
    let (code, detail) = (
        "machine_connected".to_owned(),
        "another is linked".to_owned(),
    );
    server
        .send(&ToAgent::Refused {
            code,
            detail,
            fatal: false,
        })
        .await;
    bench.accept().await.welcome().await;
    bench.agent.abort();
}

#[tokio::test]
async fn a_killed_agent_goes_on_from_its_state_without_a_server() {
    let mut bench = Bench::new("killed").await;
    let mut server = bench.accept().await;
    server.welcome().await;
    server.send(&desired(Target::Run)).await;
    server.until(Observed::Running).await;
    drop(server);
    bench.agent.abort();
    assert!(bench.agent.await.unwrap_err().is_cancelled());
    bench.agent = Bench::start(&bench.listener, &bench.state, &bench.key, &bench.runner);
    let mut server = bench.accept().await;
    server.welcome().await;
    server.until(Observed::Running).await;
    bench.agent.abort();
}

/// The handle can be used by tests elsewhere: it is `Clone` and `Send`.
#[test]
fn handles_can_be_shared() {
    fn shared<T: Clone + Send + Sync>() {}
    shared::<KeeperHandle>();
}
