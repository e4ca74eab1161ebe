//! The keeper with a scripted runner in memory.

use std::sync::Mutex;

use tokio::sync::Notify;
use web_openapi::agent::{LeaseReport, Observed};
use web_openapi::lease::{LogLine, Workload};

use super::*;
use crate::runner::{LogQuery, Phase, Progress, Spec};

#[derive(Default)]
struct Scripted {
    containers: Mutex<Vec<Container>>,
    calls: Mutex<Vec<String>>,
    fetch_forever: Mutex<bool>,
    refuse: Mutex<Option<RunnerError>>,
    silent: Mutex<bool>,
    fetching: Notify,
}

impl Scripted {
    fn called(&self, what: String) {
        self.calls.lock().unwrap().push(what);
    }

    fn set(&self, id: &str, phase: Phase) -> Result<(), RunnerError> {
        let mut all = self.containers.lock().unwrap();
        let run = self.calls.lock().unwrap().len();
        let found = all.iter_mut().find(|c| c.id == id);
        let found = found.ok_or_else(|| RunnerError::NotFound(id.to_owned()))?;
        if phase == Phase::Running {
            found.started_at = Some(format!("run {run}"));
        }
        found.phase = phase;
        Ok(())
    }
}

impl Runner for Scripted {
    async fn list(&self) -> Result<Vec<Container>, RunnerError> {
        if *self.silent.lock().unwrap() {
            return Err(RunnerError::Unavailable("asleep".into()));
        }
        Ok(self.containers.lock().unwrap().clone())
    }

    async fn fetch(&self, image: &str, progress: &dyn Progress) -> Result<(), RunnerError> {
        self.called(format!("fetch {image}"));
        progress.note("pulling".into());
        self.fetching.notify_one();
        if *self.fetch_forever.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        self.refuse.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    async fn create(&self, spec: &Spec) -> Result<String, RunnerError> {
        let id = spec.container_name();
        self.called(format!("create {id}"));
        self.containers.lock().unwrap().push(Container {
            id: id.clone(),
            lease: spec.lease.lease_id.clone(),
            made_for: spec.lease.start_no,
            gpus: spec.lease.gpu_uuids.clone(),
            phase: Phase::Created,
            started_at: None,
        });
        Ok(id)
    }

    async fn rebuild(&self, old: &str, spec: &Spec) -> Result<String, RunnerError> {
        self.called(format!("rebuild {old}"));
        self.create(spec).await
    }

    async fn start(&self, id: &str) -> Result<(), RunnerError> {
        self.called(format!("start {id}"));
        self.set(id, Phase::Running)
    }

    async fn stop(&self, id: &str) -> Result<(), RunnerError> {
        self.called(format!("stop {id}"));
        let fault = String::new();
        self.set(
            id,
            Phase::Ended {
                exit_code: Some(143),
                out_of_memory: false,
                fault,
            },
        )
    }

    async fn unpause(&self, id: &str) -> Result<(), RunnerError> {
        self.set(id, Phase::Running)
    }

    async fn remove(&self, id: &str) -> Result<(), RunnerError> {
        self.called(format!("remove {id}"));
        self.containers.lock().unwrap().retain(|c| c.id != id);
        Ok(())
    }

    async fn clear(&self, lease: &str) -> Result<(), RunnerError> {
        self.called(format!("clear {lease}"));
        Ok(())
    }

    async fn logs(&self, _id: &str, _query: &LogQuery) -> Result<Vec<LogLine>, RunnerError> {
        Ok(Vec::new())
    }
}

fn want(target: Target, start_no: i64) -> Vec<DesiredLease> {
    vec![DesiredLease {
        lease_id: "lse_a".into(),
        target,
        start_no,
        workload: Workload {
            image: "i:1".into(),
            command: vec![],
            env: BTreeMap::new(),
        },
        gpu_uuids: vec!["g".into()],
        simulated: true,
        cpu_millis: 1_000,
        ram_mib: 64,
        disk_gib: 1,
    }]
}

struct Bench {
    runner: Arc<Scripted>,
    path: std::path::PathBuf,
    task: tokio::task::JoinHandle<()>,
    handle: KeeperHandle,
}

impl Bench {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gm-keeper-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        Self::start(Arc::default(), path)
    }

    fn start(runner: Arc<Scripted>, path: std::path::PathBuf) -> Self {
        let state = Arc::new(StateDir::open(&path).unwrap());
        let (keeper, handle) = Keeper::new(Arc::clone(&runner), state).unwrap();
        Self {
            runner,
            path,
            task: tokio::spawn(keeper.run()),
            handle,
        }
    }

    /// Kills the agent and starts another one on what is left.
    async fn restart(self) -> Self {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        Self::start(self.runner, self.path)
    }

    async fn until(&self, observed: Observed, start_no: i64) -> LeaseReport {
        let mut changes = self.handle.changes();
        changes.mark_changed();
        loop {
            changes.changed().await.unwrap();
            let seen = changes.borrow_and_update().clone();
            let report = seen.and_then(|s| s.leases.into_iter().next());
            if let Some(report) = report
                && (report.observed, report.start_no) == (observed, start_no)
            {
                return report;
            }
        }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.runner.calls.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_life_from_start_to_gone() {
    let bench = Bench::new("life");
    bench.handle.desire(want(Target::Run, 1)).await;
    let first = bench.until(Observed::Running, 1).await;
    assert!(first.progress > 0);
    let made = [
        "fetch i:1",
        "create gpumarket-lse_a-1",
        "start gpumarket-lse_a-1",
    ];
    assert_eq!(bench.calls(), made);
    bench.handle.desire(want(Target::Stop, 1)).await;
    bench.until(Observed::Stopped, 1).await;
    bench.handle.desire(want(Target::Run, 2)).await;
    let again = bench.until(Observed::Running, 2).await;
    assert_ne!(again.container_started_at, first.container_started_at);
    bench.handle.desire(want(Target::Gone, 2)).await;
    bench.until(Observed::Gone, 2).await;
    let calls = bench.calls();
    assert_eq!(calls[0], "stop gpumarket-lse_a-1");
    assert_eq!(calls[1], "start gpumarket-lse_a-1");
    assert_eq!(
        calls[2..],
        [
            "stop gpumarket-lse_a-1",
            "remove gpumarket-lse_a-1",
            "clear lse_a"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_goes_on_without_a_server_and_restarts_nothing() {
    let bench = Bench::new("again");
    bench.handle.desire(want(Target::Run, 1)).await;
    let before = bench.until(Observed::Running, 1).await;
    bench.calls();
    let bench = bench.restart().await;
    let after = bench.until(Observed::Running, 1).await;
    assert_eq!(after.container_started_at, before.container_started_at);
    assert_eq!(bench.calls(), Vec::<String>::new());
    // What was ordered before the crash is still known: an ended one stays ended.
    let phase = Phase::Ended {
        exit_code: Some(0),
        out_of_memory: false,
        fault: String::new(),
    };
    bench.runner.set("gpumarket-lse_a-1", phase).unwrap();
    let bench = bench.restart().await;
    bench.until(Observed::Exited, 1).await;
    assert_eq!(bench.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_refused_image_is_given_up_and_the_next_start_tries_again() {
    let bench = Bench::new("refused");
    *bench.runner.refuse.lock().unwrap() = Some(RunnerError::Refused("no such image".into()));
    bench.handle.desire(want(Target::Run, 1)).await;
    let report = bench.until(Observed::Failed, 1).await;
    assert_eq!(report.detail, "no such image");
    for _ in 0..5 {
        bench.handle.look().await.unwrap();
    }
    assert_eq!(bench.calls(), ["fetch i:1"]);
    *bench.runner.refuse.lock().unwrap() = None;
    bench.handle.desire(want(Target::Run, 2)).await;
    bench.until(Observed::Running, 2).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_asked_again() {
    let bench = Bench::new("unavailable");
    *bench.runner.refuse.lock().unwrap() = Some(RunnerError::Unavailable("busy".into()));
    bench.handle.desire(want(Target::Run, 1)).await;
    bench.runner.fetching.notified().await;
    bench.runner.fetching.notified().await;
    *bench.runner.refuse.lock().unwrap() = None;
    bench.until(Observed::Running, 1).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_look_nothing_is_claimed() {
    let bench = Bench::new("silent");
    bench.handle.desire(want(Target::Run, 1)).await;
    bench.until(Observed::Running, 1).await;
    *bench.runner.silent.lock().unwrap() = true;
    assert_eq!(bench.handle.look().await, None);
    *bench.runner.silent.lock().unwrap() = false;
    assert_eq!(
        bench.handle.look().await.unwrap().leases[0].observed,
        Observed::Running
    );
}

#[tokio::test(start_paused = true)]
async fn a_pull_is_broken_off_when_it_is_not_wanted_any_more() {
    let bench = Bench::new("cancel");
    *bench.runner.fetch_forever.lock().unwrap() = true;
    bench.handle.desire(want(Target::Run, 1)).await;
    bench.runner.fetching.notified().await;
    bench.handle.desire(want(Target::Gone, 1)).await;
    bench.until(Observed::Gone, 1).await;
    assert_eq!(bench.calls(), ["fetch i:1", "clear lse_a"]);
}

#[tokio::test(start_paused = true)]
async fn other_gpus_after_a_resume_move_the_disk() {
    let bench = Bench::new("rebuild");
    bench.handle.desire(want(Target::Run, 1)).await;
    bench.until(Observed::Running, 1).await;
    bench.handle.desire(want(Target::Stop, 1)).await;
    bench.until(Observed::Stopped, 1).await;
    bench.calls();
    let mut moved = want(Target::Run, 2);
    moved[0].gpu_uuids = vec!["h".into()];
    bench.handle.desire(moved).await;
    bench.until(Observed::Running, 2).await;
    let calls = bench.calls();
    assert_eq!(calls[0], "rebuild gpumarket-lse_a-1");
    assert_eq!(
        calls[2..],
        ["remove gpumarket-lse_a-1", "start gpumarket-lse_a-2"]
    );
}
