//! A model world that crashes, repeats and forgets: whatever happens, it converges.

use proptest::prelude::*;

use super::*;

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
                assert!(
                    self.journal.started_for(&c) < want.start_no,
                    "twice for one start"
                );
                self.journal.order_start(&c, want.start_no);
            }
            Step::Stop { container } => {
                let c = self.at(container).unwrap().clone();
                let kept =
                    want.target == Target::Run && self.journal.started_for(&c) >= want.start_no;
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
                self.containers
                    .retain(|c| c.id != *container || c.phase.is_active());
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
        assert_eq!(
            unique.len(),
            self.starts.len(),
            "started twice for one start"
        );
    }

    fn is_reached(&self, want: &DesiredLease) -> bool {
        let own = own(&self.containers, &want.lease_id);
        let active = own.iter().filter(|c| c.phase.is_active()).count();
        match want.target {
            Target::Stop => active == 0,
            Target::Gone => own.is_empty() && self.cleared.contains(&want.lease_id),
            // It was started for this start, and runs unless it ended by itself; or its disk is lost.
            Target::Run => {
                let started =
                    |(lease, n): &(String, i64)| *lease == want.lease_id && *n >= want.start_no;
                let lost = is_lost(&self.journal, &self.containers, &want.lease_id);
                let started = self.starts.iter().any(started);
                active <= 1 && (lost || started && !own.is_empty())
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
