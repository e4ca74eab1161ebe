//! The keeper: the one task that knows what is desired and seen, takes the next steps, and says what
//! it sees.
//!
//! Invariants: desired state and orders are durable before they are acted on; one step per lease at
//! a time; without a look at the engine nothing is reported; a lost server changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use web_openapi::agent::{DesiredLease, Target};

use crate::converge::{Step, View, converge};
use crate::journal::Journal;
use crate::meter;
use crate::report::{Activity, reports};
use crate::runner::{Container, Runner, RunnerError};
use crate::state_dir::{StateDir, StateError};
use handle::Ask;
use pauses::Pauses;
use step::{Done, Note, Work, perform};

mod handle;
mod pauses;
mod step;

pub use handle::{KeeperHandle, Sighting};

/// How often the engine is looked at without any reason.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A network that cannot be removed after so many tries does not keep a lease from ending.
const CLEAR_TRIES: u32 = 3;
const ASKS: usize = 64;
const NOTES: usize = 256;
const DESIRED_FILE: &str = "desired.json";
const JOURNAL_FILE: &str = "journal.json";

/// A step under way.
struct Busy {
    step: Step,
    start_no: i64,
    cancel: watch::Sender<bool>,
    task: tokio::task::Id,
}

/// The task's state. Dropping it abandons steps under way; containers go on.
pub struct Keeper<R> {
    runner: Arc<R>,
    state: Arc<StateDir>,
    asks: mpsc::Receiver<Ask>,
    changes: watch::Sender<Option<Sighting>>,
    note: mpsc::Sender<Note>,
    notes: mpsc::Receiver<Note>,
    desired: Vec<DesiredLease>,
    journal: Journal,
    seen: Option<(u64, Vec<Container>)>,
    busy: BTreeMap<String, Busy>,
    tasks: JoinSet<Done>,
    activity: BTreeMap<String, Activity>,
    failed: BTreeMap<String, i64>,
    cleared: BTreeSet<String>,
    pauses: Pauses,
    silent: bool,
}

impl<R> std::fmt::Debug for Keeper<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Keeper({} leases, {} steps under way)",
            self.desired.len(),
            self.busy.len()
        )
    }
}

impl<R: Runner> Keeper<R> {
    /// Takes up what the state directory holds.
    pub fn new(runner: Arc<R>, state: Arc<StateDir>) -> Result<(Self, KeeperHandle), StateError> {
        let desired: Vec<DesiredLease> = state.read_json(DESIRED_FILE)?.unwrap_or_default();
        let journal: Journal = state.read_json(JOURNAL_FILE)?.unwrap_or_default();
        let (ask, asks) = mpsc::channel(ASKS);
        let (changes, watched) = watch::channel(None);
        let (note, notes) = mpsc::channel(NOTES);
        let keeper = Self {
            runner,
            state,
            asks,
            changes,
            note,
            notes,
            desired,
            journal,
            seen: None,
            busy: BTreeMap::new(),
            tasks: JoinSet::new(),
            activity: BTreeMap::new(),
            failed: BTreeMap::new(),
            cleared: BTreeSet::new(),
            pauses: Pauses::default(),
            silent: false,
        };
        Ok((keeper, KeeperHandle::new(ask, watched)))
    }

    /// Runs until every handle is dropped.
    pub async fn run(mut self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.answer(ask).await,
                    None => return,
                },
                Some(done) = self.tasks.join_next() => {
                    match done {
                        Ok(done) => self.conclude(done),
                        Err(fault) => self.break_off(&fault),
                    }
                    self.turn().await;
                }
                Some(Note { lease, detail }) = self.notes.recv() => {
                    self.progress(&lease, detail);
                    self.publish();
                }
                _ = ticks.tick() => self.turn().await,
            }
        }
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Desire(leases) => {
                self.take_desired(leases);
                self.turn().await;
            }
            Ask::Look(answer) => {
                self.turn().await;
                let seen = self.sighting();
                if answer.send(seen).is_err() {
                    tracing::debug!("nobody waits for the look any more");
                }
            }
            Ask::Containers(answer) => {
                let seen = self
                    .seen
                    .as_ref()
                    .map(|(_, all)| all.clone())
                    .unwrap_or_default();
                if answer.send(seen).is_err() {
                    tracing::debug!("nobody waits for the containers any more");
                }
            }
        }
    }

    /// Look, step, say.
    async fn turn(&mut self) {
        let mono_ms = meter::mono_ms();
        match self.runner.list().await {
            Ok(containers) => {
                if self.silent {
                    tracing::info!("the container engine answers again");
                }
                self.silent = false;
                self.seen = Some((mono_ms, containers));
                self.forget();
                self.step();
            }
            Err(why) => {
                if !self.silent {
                    tracing::warn!(%why, "cannot look at the containers; nothing is reported until then");
                }
                self.silent = true;
                self.seen = None;
            }
        }
        self.publish();
    }

    fn take_desired(&mut self, leases: Vec<DesiredLease>) {
        if leases == self.desired {
            return;
        }
        if let Err(why) = self.state.write_json(DESIRED_FILE, &leases) {
            tracing::error!(%why, "the desired state is not durable; it is acted on all the same");
        }
        self.desired = leases;
        for want in &self.desired {
            let given_up = self.failed.get(&want.lease_id).copied();
            if given_up.is_some_and(|n| n < want.start_no) || want.target != Target::Run {
                self.failed.remove(&want.lease_id);
            }
            if given_up.is_some_and(|n| n < want.start_no) {
                self.activity.remove(&want.lease_id);
            }
        }
        for (lease, busy) in &self.busy {
            let want = self.desired.iter().find(|d| d.lease_id == *lease);
            let wanted =
                want.is_some_and(|d| d.target == Target::Run && d.start_no == busy.start_no);
            let makes = matches!(busy.step, Step::Create | Step::Rebuild { .. });
            if makes && !wanted && busy.cancel.send(true).is_err() {
                tracing::debug!(lease, "the step to cancel is over");
            }
        }
    }

    /// Drops what is known of leases that are over.
    fn forget(&mut self) {
        let Some((_, containers)) = &self.seen else {
            return;
        };
        let wanted: BTreeSet<&str> = self.desired.iter().map(|d| d.lease_id.as_str()).collect();
        let here: BTreeSet<&str> = containers.iter().map(|c| c.lease.as_str()).collect();
        let alive = |lease: &str| wanted.contains(lease) || here.contains(lease);
        self.activity.retain(|lease, _| alive(lease));
        self.failed
            .retain(|lease, _| wanted.contains(lease.as_str()));
        self.cleared.retain(|lease| wanted.contains(lease.as_str()));
        self.pauses.retain(alive);
        if self.journal.retain(alive)
            && let Err(why) = self.state.write_json(JOURNAL_FILE, &self.journal)
        {
            tracing::warn!(%why, "the journal keeps leases that are over");
        }
    }

    fn step(&mut self) {
        let now = Instant::now();
        let busy = self.held_up(now);
        let Some(view) = self.view(&busy) else { return };
        for (lease, step) in converge(view) {
            let Some(want) = self.desired.iter().find(|d| d.lease_id == lease).cloned() else {
                continue;
            };
            if let Err(why) = self.order(&step, &want) {
                tracing::error!(lease, %why, "the order is not durable; trying again");
                self.pauses.wait(&lease, Instant::now());
                continue;
            }
            tracing::info!(lease, ?step, "next step");
            let (cancel, cancelled) = watch::channel(false);
            let start_no = want.start_no;
            let notes = self.note.clone();
            let work = Work {
                step: step.clone(),
                want,
                cancelled,
                notes,
            };
            let task = self
                .tasks
                .spawn(perform(Arc::clone(&self.runner), work))
                .id();
            self.progress(&lease, step.describe().to_owned());
            self.busy.insert(
                lease,
                Busy {
                    step,
                    start_no,
                    cancel,
                    task,
                },
            );
        }
    }

    /// Leases with a step under way or waiting for another try.
    fn held_up(&self, now: Instant) -> BTreeSet<String> {
        let waiting = self.pauses.waiting(now);
        self.busy.keys().chain(waiting).cloned().collect()
    }

    fn view<'a>(&'a self, busy: &'a BTreeSet<String>) -> Option<View<'a>> {
        let (_, containers) = self.seen.as_ref()?;
        Some(View {
            desired: &self.desired,
            containers,
            journal: &self.journal,
            failed: &self.failed,
            busy,
            cleared: &self.cleared,
        })
    }

    /// Writes the order down, where it must be known after a crash.
    fn order(&mut self, step: &Step, want: &DesiredLease) -> Result<(), StateError> {
        let found = |id: &str| {
            let (_, all) = self.seen.as_ref()?;
            all.iter().find(|c| c.id == id).cloned()
        };
        let mut journal = self.journal.clone();
        match step {
            Step::Start { container } => {
                if let Some(container) = found(container) {
                    journal.order_start(&container, want.start_no);
                }
            }
            Step::Stop { container } => {
                if let Some(container) = found(container) {
                    journal.order_stop(&container);
                }
            }
            Step::Create | Step::Rebuild { .. } | Step::Unpause { .. } => {}
            Step::Remove { .. } | Step::Clear => {}
        }
        if journal != self.journal {
            self.state.write_json(JOURNAL_FILE, &journal)?;
            self.journal = journal;
        }
        Ok(())
    }

    fn conclude(&mut self, done: Done) {
        let Some(Busy { step, start_no, .. }) = self.busy.remove(&done.lease) else {
            return;
        };
        let lease = done.lease;
        match done.result {
            Ok(()) => {
                self.pauses.take_success(&lease, &step, Instant::now());
                if step == Step::Clear {
                    self.cleared.insert(lease);
                } else {
                    self.progress(&lease, String::new());
                }
            }
            Err(RunnerError::Refused(why) | RunnerError::NotFound(why))
                if matches!(
                    step,
                    Step::Create | Step::Rebuild { .. } | Step::Start { .. }
                ) =>
            {
                tracing::warn!(lease, start_no, why, "the start is given up");
                self.activity.entry(lease.clone()).or_default().fault = Some(why);
                self.failed.insert(lease, start_no);
            }
            Err(RunnerError::NotFound(_)) => {}
            Err(why) => {
                tracing::warn!(lease, ?step, %why, "trying again");
                self.progress(&lease, why.to_string());
                let tries = self.pauses.wait(&lease, Instant::now());
                if step == Step::Clear && tries >= CLEAR_TRIES {
                    self.cleared.insert(lease);
                }
            }
        }
    }

    /// A step whose task panicked: tried again after a pause.
    fn break_off(&mut self, fault: &tokio::task::JoinError) {
        let lost = self
            .busy
            .iter()
            .find(|(_, b)| b.task == fault.id())
            .map(|(l, _)| l.clone());
        tracing::error!(%fault, ?lost, "a step broke off");
        if let Some(lease) = lost {
            self.busy.remove(&lease);
            self.pauses.wait(&lease, Instant::now());
        }
    }

    fn progress(&mut self, lease: &str, detail: String) {
        let activity = self.activity.entry(lease.to_owned()).or_default();
        activity.progress = activity.progress.saturating_add(1);
        if !detail.is_empty() {
            activity.detail = detail;
        }
    }

    fn sighting(&self) -> Option<Sighting> {
        let busy = self.busy.keys().cloned().collect();
        let (mono_ms, _) = self.seen.as_ref()?;
        Some(Sighting {
            mono_ms: *mono_ms,
            leases: reports(self.view(&busy)?, &self.activity),
        })
    }

    fn publish(&self) {
        let Some(new) = self.sighting() else { return };
        self.changes.send_if_modified(|old| {
            let changed = old.as_ref().is_none_or(|o| o.leases != new.leases);
            if changed {
                *old = Some(new);
            }
            changed
        });
    }
}

#[cfg(test)]
mod tests;
