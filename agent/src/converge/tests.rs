//! The reducer by table.

use web_openapi::lease::Workload;

use super::*;

mod world;

fn want(lease: &str, target: Target, start_no: i64, gpus: &[&str]) -> DesiredLease {
    DesiredLease {
        lease_id: lease.into(),
        target,
        start_no,
        workload: Workload {
            image: "i:1".into(),
            command: vec![],
            env: BTreeMap::new(),
        },
        gpu_uuids: gpus.iter().map(|g| (*g).to_owned()).collect(),
        simulated: true,
        cpu_millis: 1_000,
        ram_mib: 64,
        disk_gib: 1,
    }
}

fn ended() -> Phase {
    Phase::Ended {
        exit_code: Some(0),
        out_of_memory: false,
        fault: String::new(),
    }
}

/// A container of lease `a` with GPU `g`, whose runs are named by its id.
fn container(id: &str, made_for: i64, phase: Phase) -> Container {
    let started_at = (phase != Phase::Created).then(|| format!("{id} ran"));
    let (lease, gpus) = ("a".into(), vec!["g".into()]);
    Container {
        id: id.into(),
        lease,
        made_for,
        gpus,
        phase,
        started_at,
    }
}

struct Case {
    desired: Vec<DesiredLease>,
    containers: Vec<Container>,
    journal: Journal,
    failed: BTreeMap<String, i64>,
    busy: BTreeSet<String>,
    cleared: BTreeSet<String>,
}

impl Case {
    fn new(desired: Vec<DesiredLease>, containers: Vec<Container>) -> Self {
        Self {
            desired,
            containers,
            journal: Journal::default(),
            failed: BTreeMap::new(),
            busy: BTreeSet::new(),
            cleared: BTreeSet::new(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        let view = View {
            desired: &self.desired,
            containers: &self.containers,
            journal: &self.journal,
            failed: &self.failed,
            busy: &self.busy,
            cleared: &self.cleared,
        };
        converge(view).into_iter().map(|(_, step)| step).collect()
    }
}

fn steps(target: Target, start_no: i64, containers: Vec<Container>) -> Vec<Step> {
    Case::new(vec![want("a", target, start_no, &["g"])], containers).steps()
}

fn id(id: &str) -> String {
    id.to_owned()
}

#[test]
fn run_by_table() {
    let run = |n, all| steps(Target::Run, n, all);
    assert_eq!(run(1, vec![]), [Step::Create]);
    let made = container("c", 1, Phase::Created);
    assert_eq!(run(1, vec![made]), [Step::Start { container: id("c") }]);
    assert_eq!(run(1, vec![container("c", 1, Phase::Running)]), []);
    // It ended by itself: only a higher number starts it again.
    assert_eq!(run(1, vec![container("c", 1, ended())]), []);
    let again = run(2, vec![container("c", 1, ended())]);
    assert_eq!(again, [Step::Start { container: id("c") }]);
    // A stop in between was missed.
    let missed = run(2, vec![container("c", 1, Phase::Running)]);
    assert_eq!(missed, [Step::Stop { container: id("c") }]);
    let paused = run(1, vec![container("c", 1, Phase::Paused)]);
    assert_eq!(paused, [Step::Unpause { container: id("c") }]);
    // An old desired state does not turn back a newer start.
    assert_eq!(run(1, vec![container("c", 2, Phase::Running)]), []);
    assert_eq!(run(1, vec![container("c", 2, ended())]), []);
}

#[test]
fn stop_and_gone_by_table() {
    let stop = |all| steps(Target::Stop, 1, all);
    assert_eq!(stop(vec![]), []);
    assert_eq!(stop(vec![container("c", 1, Phase::Created)]), []);
    assert_eq!(stop(vec![container("c", 1, ended())]), []);
    let running = stop(vec![container("c", 1, Phase::Running)]);
    assert_eq!(running, [Step::Stop { container: id("c") }]);
    let gone = |all| steps(Target::Gone, 1, all);
    assert_eq!(gone(vec![]), [Step::Clear]);
    let ended = container("c", 1, ended());
    assert_eq!(gone(vec![ended]), [Step::Remove { container: id("c") }]);
    let running = gone(vec![container("c", 1, Phase::Running)]);
    assert_eq!(running, [Step::Stop { container: id("c") }]);
    let paused = gone(vec![container("c", 1, Phase::Paused)]);
    assert_eq!(paused, [Step::Unpause { container: id("c") }]);
}

#[test]
fn what_is_given_up_lost_busy_or_cleared_is_left() {
    let mut case = Case::new(vec![want("a", Target::Run, 2, &["g"])], vec![]);
    case.failed.insert("a".into(), 2);
    assert_eq!(case.steps(), []);
    case.failed.insert("a".into(), 1);
    assert_eq!(case.steps(), [Step::Create]);
    case.busy.insert("a".into());
    assert_eq!(case.steps(), []);
    case.busy.clear();
    // Its disk was lost: an empty one would pass for a resumption.
    case.journal
        .order_start(&container("c", 1, Phase::Created), 1);
    assert_eq!(case.steps(), []);
    case.desired = vec![want("a", Target::Gone, 2, &["g"])];
    assert_eq!(case.steps(), [Step::Clear]);
    case.cleared.insert("a".into());
    assert_eq!(case.steps(), []);
}

#[test]
fn other_gpus_mean_a_rebuild_and_the_old_container_goes_last() {
    let old = container("c", 1, ended());
    let mut case = Case::new(vec![want("a", Target::Run, 2, &["h"])], vec![old]);
    assert_eq!(case.steps(), [Step::Rebuild { old: id("c") }]);
    let mut new = container("d", 2, Phase::Created);
    new.gpus = vec!["h".into()];
    case.containers.push(new);
    assert_eq!(case.steps(), [Step::Remove { container: id("c") }]);
    case.containers.remove(0);
    assert_eq!(case.steps(), [Step::Start { container: id("d") }]);
}

#[test]
fn a_gpu_in_use_keeps_others_from_starting() {
    let mut stray = container("x", 1, Phase::Running);
    stray.lease = "stray".into();
    let mine = container("c", 1, Phase::Created);
    let mut case = Case::new(vec![want("a", Target::Run, 1, &["g"])], vec![stray, mine]);
    assert_eq!(case.steps(), []);
    case.containers[0].phase = ended();
    assert_eq!(case.steps(), [Step::Start { container: id("c") }]);
    // Two that want the same one: the first only.
    let mut other = container("d", 1, Phase::Created);
    other.lease = "b".into();
    case.containers.push(other);
    case.desired.push(want("b", Target::Run, 1, &["g"]));
    assert_eq!(case.steps(), [Step::Start { container: id("c") }]);
    case.busy.insert("a".into());
    assert_eq!(case.steps(), []);
}

#[test]
fn leases_that_are_not_desired_are_left_alone() {
    let all = vec![
        container("c", 1, Phase::Running),
        container("d", 2, ended()),
    ];
    assert_eq!(Case::new(vec![], all).steps(), []);
}
