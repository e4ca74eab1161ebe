//! The reducer: from what is desired and what is seen to the next step of each lease.
//!
//! Invariants: at most one step per lease, and each may be repeated, lost or cut short; containers
//! of leases that are not desired are left alone; a container that runs for the wanted start is
//! never restarted; nothing is started that is to be stopped, nor twice for one start; two
//! containers with a GPU in common never run together.

use std::collections::{BTreeMap, BTreeSet};

use web_openapi::agent::{DesiredLease, Target};

use crate::journal::Journal;
use crate::runner::{Container, Phase};

/// One step of one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the image present and the container; it does not run yet.
    Create,
    /// Make a container for other GPUs with the disk of this one.
    Rebuild {
        /// The container whose disk is taken.
        old: String,
    },
    /// Start this container for the wanted start.
    Start {
        /// Its id.
        container: String,
    },
    /// Stop it.
    Stop {
        /// Its id.
        container: String,
    },
    /// End a pause, so that it can run or be stopped.
    Unpause {
        /// Its id.
        container: String,
    },
    /// Remove it: nothing of the lease is to be left, or a newer one has its disk.
    Remove {
        /// Its id.
        container: String,
    },
    /// Remove the network and what else is left.
    Clear,
}

impl Step {
    /// For people: what is being done.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Create => "looking for the image",
            Self::Rebuild { .. } => "moving the disk to other GPUs",
            Self::Start { .. } => "starting the container",
            Self::Stop { .. } => "stopping the container",
            Self::Unpause { .. } => "ending a pause",
            Self::Remove { .. } => "removing the container",
            Self::Clear => "clearing up",
        }
    }
}

/// All that the reducer looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What the market wants.
    pub desired: &'a [DesiredLease],
    /// What was just seen.
    pub containers: &'a [Container],
    /// What was ordered before.
    pub journal: &'a Journal,
    /// Starts that were given up, by lease.
    pub failed: &'a BTreeMap<String, i64>,
    /// Leases with a step under way.
    pub busy: &'a BTreeSet<String>,
    /// Leases of which everything was removed.
    pub cleared: &'a BTreeSet<String>,
}

/// The containers of a lease: the one that counts first.
pub fn own<'a>(containers: &'a [Container], lease: &str) -> Vec<&'a Container> {
    let mut own: Vec<&Container> = containers.iter().filter(|c| c.lease == lease).collect();
    own.sort_by(|a, b| b.made_for.cmp(&a.made_for).then_with(|| a.id.cmp(&b.id)));
    own
}

/// A lease whose container was started once and is not there any more: its disk is lost.
pub fn is_lost(journal: &Journal, containers: &[Container], lease: &str) -> bool {
    journal.knows(lease) && !containers.iter().any(|c| c.lease == lease)
}

/// The next step of each lease that needs one, in the order of `desired`.
pub fn converge(view: View<'_>) -> Vec<(String, Step)> {
    let mut held = held_gpus(&view);
    let mut steps = Vec::new();
    for want in view.desired {
        if view.busy.contains(&want.lease_id) {
            continue;
        }
        let own = own(view.containers, &want.lease_id);
        let step = match want.target {
            Target::Run => run(&view, want, &own, &held),
            Target::Stop => quiet(&own),
            Target::Gone => gone(&view, want, &own),
        };
        let Some(step) = step else { continue };
        if matches!(step, Step::Start { .. }) {
            held.extend(
                want.gpu_uuids
                    .iter()
                    .map(|g| (g.clone(), want.lease_id.clone())),
            );
        }
        steps.push((want.lease_id.clone(), step));
    }
    steps
}

/// The lease that keeps `want` from starting by holding one of its GPUs.
pub fn blocked_by(view: &View<'_>, want: &DesiredLease) -> Option<String> {
    blocker(&held_gpus(view), want)
}

fn blocker(held: &[(String, String)], want: &DesiredLease) -> Option<String> {
    held.iter()
        .find(|(gpu, by)| *by != want.lease_id && want.gpu_uuids.contains(gpu))
        .map(|(_, by)| by.clone())
}

/// GPUs in use, each with its lease: by running containers, and by starts under way.
fn held_gpus(view: &View<'_>) -> Vec<(String, String)> {
    let active = view.containers.iter().filter(|c| c.phase.is_active());
    let running = active.flat_map(|c| c.gpus.iter().map(|g| (g.clone(), c.lease.clone())));
    let starting = view
        .desired
        .iter()
        .filter(|d| d.target == Target::Run && view.busy.contains(&d.lease_id))
        .flat_map(|d| d.gpu_uuids.iter().map(|g| (g.clone(), d.lease_id.clone())));
    running.chain(starting).collect()
}

fn run(
    view: &View<'_>,
    want: &DesiredLease,
    own: &[&Container],
    held: &[(String, String)],
) -> Option<Step> {
    let given_up = view
        .failed
        .get(&want.lease_id)
        .is_some_and(|n| *n >= want.start_no);
    let Some((main, older)) = own.split_first() else {
        let lost = is_lost(view.journal, view.containers, &want.lease_id);
        return (!given_up && !lost).then_some(Step::Create);
    };
    if let Some(step) = quiet(older) {
        return Some(step);
    }
    // A rebuild that is complete leaves the container that it was made of.
    if let Some(spent) = older.iter().find(|c| c.made_for < main.made_for) {
        return Some(Step::Remove {
            container: spent.id.clone(),
        });
    }
    let container = main.id.clone();
    let started_for = view.journal.started_for(main);
    match main.phase {
        Phase::Paused => Some(Step::Unpause { container }),
        Phase::Running => (started_for < want.start_no).then_some(Step::Stop { container }),
        Phase::Created | Phase::Ended { .. } => {
            if started_for >= want.start_no || given_up || blocker(held, want).is_some() {
                None
            } else if same_gpus(main, want) {
                Some(Step::Start { container })
            } else {
                Some(Step::Rebuild { old: container })
            }
        }
    }
}

fn same_gpus(container: &Container, want: &DesiredLease) -> bool {
    let given: BTreeSet<&String> = container.gpus.iter().collect();
    given == want.gpu_uuids.iter().collect()
}

/// What makes the first of them that is active stop.
fn quiet(own: &[&Container]) -> Option<Step> {
    let active = own.iter().find(|c| c.phase.is_active())?;
    let container = active.id.clone();
    if active.phase == Phase::Paused {
        Some(Step::Unpause { container })
    } else {
        Some(Step::Stop { container })
    }
}

fn gone(view: &View<'_>, want: &DesiredLease, own: &[&Container]) -> Option<Step> {
    quiet(own).or_else(|| match own.first() {
        Some(left) => Some(Step::Remove {
            container: left.id.clone(),
        }),
        None => (!view.cleared.contains(&want.lease_id)).then_some(Step::Clear),
    })
}

#[cfg(test)]
mod tests;
