//! What is told of each lease: a pure view of what was just seen and what is under way.
//!
//! Invariant: `running` and `stopped` are claims about money. A container is reported running only
//! if it was just inspected running, and stopped only if its run was ended by order.

use std::collections::BTreeMap;

use web_openapi::agent::{DesiredLease, LeaseReport, Observed, Target};

use crate::converge::{View, blocked_by, is_lost, own};
use crate::runner::{Container, Phase};

/// What goes on with a lease besides its container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Counts up with each sign of progress of this start.
    pub progress: u64,
    /// For people: the last progress, or what is being retried.
    pub detail: String,
    /// Why the start was given up.
    pub fault: Option<String>,
}

/// A report of every desired lease, and of every other one that has a container here.
pub fn reports(view: View<'_>, activity: &BTreeMap<String, Activity>) -> Vec<LeaseReport> {
    let none = Activity::default();
    let mut out: Vec<LeaseReport> = Vec::new();
    for want in view.desired {
        let doing = activity.get(&want.lease_id).unwrap_or(&none);
        let mut report = of_desired(&view, want, doing);
        report.progress = doing.progress;
        out.push(report);
    }
    for stray in view.containers {
        if !out.iter().any(|r| r.lease_id == stray.lease)
            && let Some(main) = own(view.containers, &stray.lease).first()
        {
            out.push(with_container(&view, main));
        }
    }
    out
}

fn of_desired(view: &View<'_>, want: &DesiredLease, doing: &Activity) -> LeaseReport {
    let all = own(view.containers, &want.lease_id);
    // An active container comes before a newer one that does not run yet.
    let main = all
        .iter()
        .find(|c| c.phase.is_active())
        .or_else(|| all.first())
        .copied();
    let Some(main) = main else {
        return without_container(view, want, doing);
    };
    let started_for = view.journal.started_for(main);
    let mut report = with_container(view, main);
    if want.target == Target::Stop && main.phase == Phase::Created {
        // It never ran, so nothing was ended by order; its disk is there.
        report.observed = Observed::Exited;
    }
    if want.target != Target::Run || main.phase == Phase::Running {
        return report;
    }
    if main.phase == Phase::Paused {
        report.detail = "the container was paused on the machine; it is being resumed".to_owned();
        return report;
    }
    if started_for >= want.start_no {
        return report;
    }
    report.start_no = want.start_no;
    report.container_started_at = None;
    let given_up = view
        .failed
        .get(&want.lease_id)
        .is_some_and(|n| *n >= want.start_no);
    if given_up {
        report.observed = Observed::Failed;
        report.detail = doing.fault.clone().unwrap_or_default();
    } else {
        report.observed = Observed::Preparing;
        report.detail = preparing(view, want, doing);
    }
    report
}

fn preparing(view: &View<'_>, want: &DesiredLease, doing: &Activity) -> String {
    blocked_by(view, want)
        .filter(|_| !view.busy.contains(&want.lease_id))
        .map_or_else(
            || doing.detail.clone(),
            |by| format!("waits for a GPU that {by} still uses"),
        )
}

fn without_container(view: &View<'_>, want: &DesiredLease, doing: &Activity) -> LeaseReport {
    let busy = view.busy.contains(&want.lease_id);
    let lost = is_lost(view.journal, view.containers, &want.lease_id);
    let ordered = view.journal.ordered(&want.lease_id);
    let given_up = view
        .failed
        .get(&want.lease_id)
        .is_some_and(|n| *n >= want.start_no);
    let missing = "its container is not on this machine any more";
    let (observed, detail) = match want.target {
        Target::Run if given_up => (Observed::Failed, doing.fault.clone().unwrap_or_default()),
        // What ran is gone: starting from an empty disk would pass for a resumption.
        Target::Run if lost && ordered >= want.start_no => (Observed::Gone, missing.to_owned()),
        Target::Run if lost => (Observed::Failed, format!("cannot start again: {missing}")),
        Target::Run => (Observed::Preparing, doing.detail.clone()),
        // Not while something may still make a container, or a network is left.
        Target::Gone if busy || !view.cleared.contains(&want.lease_id) => {
            (Observed::Preparing, "clearing up".to_owned())
        }
        Target::Stop if busy => (Observed::Preparing, doing.detail.clone()),
        Target::Gone => (Observed::Gone, String::new()),
        Target::Stop => (Observed::Gone, missing.to_owned()),
    };
    LeaseReport {
        lease_id: want.lease_id.clone(),
        observed,
        start_no: want.start_no,
        progress: 0,
        detail,
        container_id: None,
        container_started_at: None,
    }
}

fn with_container(view: &View<'_>, main: &Container) -> LeaseReport {
    let (observed, detail) = match &main.phase {
        Phase::Running => (Observed::Running, String::new()),
        Phase::Created | Phase::Paused => (Observed::Preparing, String::new()),
        Phase::Ended { .. } if view.journal.stopped_by_order(main) => {
            (Observed::Stopped, ended(&main.phase))
        }
        Phase::Ended { .. } => (Observed::Exited, ended(&main.phase)),
    };
    LeaseReport {
        lease_id: main.lease.clone(),
        observed,
        start_no: view.journal.started_for(main),
        progress: 0,
        detail,
        container_id: Some(main.id.clone()),
        container_started_at: main.started_at.clone(),
    }
}

/// For people: how a process ended.
fn ended(phase: &Phase) -> String {
    let Phase::Ended {
        exit_code,
        out_of_memory,
        fault,
    } = phase
    else {
        return String::new();
    };
    let code = exit_code.map_or_else(
        || "exit code unknown".to_owned(),
        |c| format!("exit code {c}"),
    );
    let memory = if *out_of_memory {
        ", out of memory"
    } else {
        ""
    };
    let fault = if fault.is_empty() {
        String::new()
    } else {
        format!(": {fault}")
    };
    format!("{code}{memory}{fault}")
}

#[cfg(test)]
mod tests;
