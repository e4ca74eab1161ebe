//! What is claimed of a lease, by table.

use std::collections::BTreeSet;

use web_openapi::lease::Workload;

use super::*;
use crate::journal::Journal;

fn want(target: Target, start_no: i64) -> DesiredLease {
    DesiredLease {
        lease_id: "a".into(),
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
    }
}

fn container(phase: Phase) -> Container {
    Container {
        id: "c".into(),
        lease: "a".into(),
        made_for: 1,
        gpus: vec!["g".into()],
        started_at: (phase != Phase::Created).then(|| "t1".into()),
        phase,
    }
}

fn ended() -> Phase {
    Phase::Ended {
        exit_code: Some(137),
        out_of_memory: true,
        fault: String::new(),
    }
}

#[derive(Default)]
struct Case {
    journal: Journal,
    failed: BTreeMap<String, i64>,
    busy: bool,
    cleared: bool,
    activity: Activity,
}

impl Case {
    fn report(&self, want: Option<DesiredLease>, containers: &[Container]) -> LeaseReport {
        let one = |yes: bool| {
            yes.then(|| "a".to_owned())
                .into_iter()
                .collect::<BTreeSet<_>>()
        };
        let (busy, cleared) = (one(self.busy), one(self.cleared));
        let desired: Vec<DesiredLease> = want.into_iter().collect();
        let view = View {
            desired: &desired,
            containers,
            journal: &self.journal,
            failed: &self.failed,
            busy: &busy,
            cleared: &cleared,
        };
        let activity = BTreeMap::from([("a".to_owned(), self.activity.clone())]);
        let mut all = reports(view, &activity);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn observed(&self, want: DesiredLease, containers: &[Container]) -> (Observed, i64) {
        let report = self.report(Some(want), containers);
        (report.observed, report.start_no)
    }
}

#[test]
fn a_running_container_is_reported_with_its_run() {
    let report = Case::default().report(Some(want(Target::Run, 1)), &[container(Phase::Running)]);
    assert_eq!((report.observed, report.start_no), (Observed::Running, 1));
    assert_eq!(report.container_id.as_deref(), Some("c"));
    assert_eq!(report.container_started_at.as_deref(), Some("t1"));
}

#[test]
fn only_an_ordered_end_is_stopped() {
    let mut case = Case::default();
    let all = [container(ended())];
    assert_eq!(
        case.observed(want(Target::Stop, 1), &all),
        (Observed::Exited, 1)
    );
    assert_eq!(
        case.observed(want(Target::Run, 1), &all),
        (Observed::Exited, 1)
    );
    case.journal.order_stop(&container(Phase::Running));
    assert_eq!(
        case.observed(want(Target::Stop, 1), &all),
        (Observed::Stopped, 1)
    );
    let detail = case.report(Some(want(Target::Stop, 1)), &all).detail;
    assert_eq!(detail, "exit code 137, out of memory");
    // What never ran was not ended by order.
    let made = [container(Phase::Created)];
    assert_eq!(
        case.observed(want(Target::Stop, 1), &made).0,
        Observed::Exited
    );
}

#[test]
fn while_it_is_prepared_the_wanted_start_and_progress_are_told() {
    let activity = Activity {
        progress: 7,
        detail: "pulling".into(),
        fault: None,
    };
    let case = Case {
        activity,
        ..Case::default()
    };
    let report = case.report(Some(want(Target::Run, 1)), &[]);
    assert_eq!(
        (report.observed, report.start_no, report.progress),
        (Observed::Preparing, 1, 7)
    );
    assert_eq!(report.detail, "pulling");
    // The run before must not prove anything for the next one.
    let report = case.report(Some(want(Target::Run, 2)), &[container(ended())]);
    assert_eq!((report.observed, report.start_no), (Observed::Preparing, 2));
    assert_eq!(report.container_started_at, None);
}

#[test]
fn a_paused_container_is_not_running() {
    let all = [container(Phase::Paused)];
    assert_eq!(
        Case::default().observed(want(Target::Run, 1), &all).0,
        Observed::Preparing
    );
}

#[test]
fn a_given_up_start_tells_why_until_the_next() {
    let mut case = Case::default();
    case.failed.insert("a".into(), 1);
    case.activity.fault = Some("no such image".into());
    let report = case.report(Some(want(Target::Run, 1)), &[]);
    assert_eq!(
        (report.observed, report.detail.as_str()),
        (Observed::Failed, "no such image")
    );
    assert_eq!(
        case.observed(want(Target::Run, 1), &[container(Phase::Created)]),
        (Observed::Failed, 1)
    );
    assert_eq!(
        case.observed(want(Target::Run, 2), &[]),
        (Observed::Preparing, 2)
    );
}

#[test]
fn gone_is_said_only_when_nothing_is_left_and_nothing_can_appear() {
    let mut case = Case::default();
    assert_eq!(
        case.observed(want(Target::Gone, 1), &[]).0,
        Observed::Preparing
    );
    case.cleared = true;
    case.busy = true;
    assert_eq!(
        case.observed(want(Target::Gone, 1), &[]).0,
        Observed::Preparing
    );
    case.busy = false;
    assert_eq!(
        case.observed(want(Target::Gone, 1), &[]),
        (Observed::Gone, 1)
    );
    assert_eq!(
        case.observed(want(Target::Gone, 1), &[container(Phase::Running)])
            .0,
        Observed::Running
    );
}

#[test]
fn a_lost_container_is_told_and_not_replaced() {
    let mut case = Case::default();
    case.journal.order_start(&container(Phase::Created), 1);
    assert_eq!(
        case.observed(want(Target::Run, 1), &[]),
        (Observed::Gone, 1)
    );
    assert_eq!(
        case.observed(want(Target::Stop, 1), &[]),
        (Observed::Gone, 1)
    );
    assert_eq!(
        case.observed(want(Target::Run, 2), &[]),
        (Observed::Failed, 2)
    );
}

#[test]
fn strays_are_reported_as_they_are() {
    let report = Case::default().report(None, &[container(Phase::Running)]);
    assert_eq!(
        (report.observed, report.lease_id.as_str()),
        (Observed::Running, "a")
    );
}
