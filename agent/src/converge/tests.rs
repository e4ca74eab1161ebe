//! The reducer by table, and against a model world that crashes, repeats and forgets.

use proptest::prelude::*;
use web_openapi::lease::Workload;

use super::*;

fn want(lease: &str, target: Target, start_no: i64, gpus: &[&str]) -> DesiredLease {
    DesiredLease {
        lease_id: lease.into(),
        target,
        start_no,
        workload: Workload { image: "i:1".into(), command: vec![], env: BTreeMap::new() },
        gpu_uuids: gpus.iter().map(|g| (*g).to_owned()).collect(),
        simulated: true,
        cpu_millis: 1_000,
        ram_mib: 64,
        disk_gib: 1,
    }
}

fn ended() -> Phase {
    Phase::Ended { exit_code: Some(0), out_of_memory: false, fault: String::new() }
}

/// A container of lease `a` with GPU `g`, whose runs are named by its id.
fn container(id: &str, made_for: i64, phase: Phase) -> Container {
    let started_at = (phase != Phase::Created).then(|| format!("{id} ran"));
    let (lease, gpus) = ("a".into(), vec!["g".into()]);
    Container { id: id.into(), lease, made_for, gpus, phase, started_at }
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
    case.journal.order_start(&container("c", 1, Phase::Created), 1);
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
    let all = vec![container("c", 1, Phase::Running), container("d", 2, ended())];
    assert_eq!(Case::new(vec![], all).steps(), []);
}

/// The engine of the model world.
#[derive(Clone, Debug, Default)]
struct World {
    containers: Vec<Container>,
    journal: Journal,
    cleared: BTreeSet<String>,
    made: u32,
    runs: u32,
    starts: Vec<(String, i64)>,
}

/// How a step goes.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Done,
    Twice,
    /// The agent dies after the order was written, before the engine did anything.
    LostBefore,
    /// It dies after the engine did it.
    LostAfter,
}

impl World {
    fn take(&mut self, want: &DesiredLease, step: &Step, luck: Luck) {
        self.order(want, step);
        if matches!(luck, Luck::LostBefore) {
            self.cleared.clear();
            return;
        }
        self.perform(want, step);
        if matches!(luck, Luck::Twice) {
            self.perform(want, step);
        }
        if matches!(luck, Luck::LostAfter) {
            self.cleared.clear();
        }
    }

    fn order(&mut self, want: &DesiredLease, step: &Step) {
        match step {
            Step::Start { container } => {
                let c = self.at(container).unwrap().clone();
                assert!(!c.phase.is_active());
                assert!(self.journal.started_for(&c) < want.start_no, "twice for one start");
                self.journal.order_start(&c, want.start_no);
            }
            Step::Stop { container } => {
                let c = self.at(container).unwrap().clone();
                let kept = want.target == Target::Run
                    && self.journal.started_for(&c) >= want.start_no;
                assert!(!kept, "a container that is wanted was stopped");
                self.journal.order_stop(&c);
            }
            Step::Create | Step::Rebuild { .. } | Step::Unpause { .. } => {}
            Step::Remove { .. } | Step::Clear => {}
        }
    }

    fn perform(&mut self, want: &DesiredLease, step: &Step) {
        match step {
            Step::Create | Step::Rebuild { .. } => self.make(want),
            Step::Start { container } => {
                self.runs += 1;
                let at = format!("run {}", self.runs);
                if let Some(c) = self.at(container).filter(|c| !c.phase.is_active()) {
                    (c.phase, c.started_at) = (Phase::Running, Some(at));
                    self.starts.push((want.lease_id.clone(), want.start_no));
                }
            }
            Step::Stop { container } => {
                if let Some(c) = self.at(container).filter(|c| c.phase.is_active()) {
                    c.phase = ended();
                }
            }
            Step::Unpause { container } => {
                if let Some(c) = self.at(container).filter(|c| c.phase == Phase::Paused) {
                    c.phase = Phase::Running;
                }
            }
            Step::Remove { container } => {
                self.containers.retain(|c| c.id != *container || c.phase.is_active());
            }
            Step::Clear => {
                self.cleared.insert(want.lease_id.clone());
            }
        }
    }

    fn make(&mut self, want: &DesiredLease) {
        let same = |c: &Container| c.lease == want.lease_id && c.made_for == want.start_no;
        if self.containers.iter().any(same) {
            return;
        }
        self.made += 1;
        self.containers.push(Container {
            id: format!("c{}", self.made),
            lease: want.lease_id.clone(),
            made_for: want.start_no,
            gpus: want.gpu_uuids.clone(),
            phase: Phase::Created,
            started_at: None,
        });
    }

    fn at(&mut self, id: &str) -> Option<&mut Container> {
        self.containers.iter_mut().find(|c| c.id == id)
    }

    fn steps(&self, desired: &[DesiredLease]) -> Vec<(String, Step)> {
        converge(View {
            desired,
            containers: &self.containers,
            journal: &self.journal,
            failed: &BTreeMap::new(),
            busy: &BTreeSet::new(),
            cleared: &self.cleared,
        })
    }

    fn check(&self) {
        let mut held = BTreeSet::new();
        for c in self.containers.iter().filter(|c| c.phase.is_active()) {
            for gpu in &c.gpus {
                assert!(held.insert(gpu.clone()), "two containers run on {gpu}");
            }
        }
        let unique: BTreeSet<&(String, i64)> = self.starts.iter().collect();
        assert_eq!(unique.len(), self.starts.len(), "started twice for one start");
    }

    fn is_reached(&self, want: &DesiredLease) -> bool {
        let own = own(&self.containers, &want.lease_id);
        let active = own.iter().filter(|c| c.phase.is_active()).count();
        match want.target {
            Target::Stop => active == 0,
            Target::Gone => own.is_empty() && self.cleared.contains(&want.lease_id),
            // It ran for this start, and runs unless it ended by itself.
            Target::Run => {
                active <= 1
                    && (is_lost(&self.journal, &self.containers, &want.lease_id)
                        || own.first().is_some_and(|c| {
                            self.journal.started_for(c) >= want.start_no
                                && (active == 1 || !c.phase.is_active())
                        }))
            }
        }
    }
}

/// What happens in the world.
#[derive(Clone, Debug)]
enum Event {
    /// The market wants something else of lease n: target, whether to start anew, and its GPU.
    Want(usize, Target, bool, usize),
    /// Take one of the next steps.
    Step(usize, Luck),
    /// A process ends by itself.
    Exit(usize),
    /// Somebody pauses a container.
    Pause(usize),
    /// Somebody removes a container that does not run.
    Vanish(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let target = prop_oneof![
        3 => Just(Target::Run),
        2 => Just(Target::Stop),
        1 => Just(Target::Gone)
    ];
    let luck = prop_oneof![
        4 => Just(Luck::Done),
        1 => Just(Luck::Twice),
        1 => Just(Luck::LostBefore),
        1 => Just(Luck::LostAfter)
    ];
    let event = prop_oneof![
        3 => (0..3_usize, target, any::<bool>(), 0..2_usize)
            .prop_map(|(n, t, again, gpu)| Event::Want(n, t, again, gpu)),
        8 => (any::<usize>(), luck).prop_map(|(n, luck)| Event::Step(n, luck)),
        1 => any::<usize>().prop_map(Event::Exit),
        1 => any::<usize>().prop_map(Event::Pause),
        1 => any::<usize>().prop_map(Event::Vanish),
    ];
    proptest::collection::vec(event, 0..80)
}

fn change(desired: &mut [DesiredLease], (n, target, again, gpu): (usize, Target, bool, usize)) {
    let want = &mut desired[n];
    if want.target == Target::Gone {
        return;
    }
    // As the market does it: GPUs change and numbers grow only when a stopped lease starts anew.
    if target == Target::Run && want.target == Target::Stop && again {
        want.start_no += 1;
        want.gpu_uuids = vec![format!("gpu {n} {gpu}"), "shared".into()];
    }
    want.target = target;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 600 }))]

    #[test]
    fn any_order_repetition_and_crash_converges(events in events()) {
        let names = ["a", "b", "c"];
        let mut desired: Vec<DesiredLease> = names
            .iter()
            .enumerate()
            .map(|(n, lease)| {
                let own = format!("gpu {n} 0");
                let gpus: &[&str] = if n < 2 { &[&own, "shared"] } else { &[&own] };
                want(lease, Target::Run, 1, gpus)
            })
            .collect();
        let mut stray = container("stray", 1, Phase::Running);
        stray.lease = "stray".into();
        stray.gpus = vec!["other".into()];
        let mut world = World { containers: vec![stray.clone()], ..World::default() };
        for event in events {
            let count = world.containers.len();
            match event {
                Event::Want(n, target, again, gpu) => {
                    change(&mut desired, (n, target, again, gpu));
                }
                Event::Step(n, luck) => {
                    let steps = world.steps(&desired);
                    if !steps.is_empty() {
                        let (lease, step) = &steps[n % steps.len()];
                        let want = desired.iter().find(|d| d.lease_id == *lease).unwrap().clone();
                        world.take(&want, step, luck);
                    }
                }
                Event::Exit(n) if count > 1 => {
                    let c = &mut world.containers[1 + n % (count - 1)];
                    if c.phase == Phase::Running { c.phase = ended(); }
                }
                Event::Pause(n) if count > 1 => {
                    let c = &mut world.containers[1 + n % (count - 1)];
                    if c.phase == Phase::Running { c.phase = Phase::Paused; }
                }
                Event::Vanish(n) if count > 1 => {
                    let at = 1 + n % (count - 1);
                    if !world.containers[at].phase.is_active() { world.containers.remove(at); }
                }
                Event::Exit(_) | Event::Pause(_) | Event::Vanish(_) => {}
            }
            world.check();
        }
        // Calm: every step goes well, and there is an end to them.
        for _ in 0..60 {
            let steps = world.steps(&desired);
            let Some((lease, step)) = steps.first() else { break };
            let want = desired.iter().find(|d| d.lease_id == *lease).unwrap().clone();
            world.take(&want, step, Luck::Done);
            world.check();
        }
        prop_assert_eq!(world.steps(&desired), vec![]);
        for want in &desired {
            let view = View {
                desired: &desired,
                containers: &world.containers,
                journal: &world.journal,
                failed: &BTreeMap::new(),
                busy: &BTreeSet::new(),
                cleared: &world.cleared,
            };
            prop_assert!(world.is_reached(want) || blocked_by(&view, want).is_some(), "{want:?}");
        }
        prop_assert_eq!(&world.containers[0], &stray);
    }
}
