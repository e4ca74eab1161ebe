//! Laws of the lease's state machine, over all states and events.

use std::collections::BTreeSet;

use super::*;

const EVENTS: [LeaseEvent; 12] = [
    LeaseEvent::Placed,
    LeaseEvent::Started,
    LeaseEvent::InterruptNoticed,
    LeaseEvent::Displaced,
    LeaseEvent::StopRequested,
    LeaseEvent::KeepRequested,
    LeaseEvent::GpusReleased,
    LeaseEvent::StopSeen,
    LeaseEvent::ResumeRequested,
    LeaseEvent::EndRequested,
    LeaseEvent::EndSeen,
    LeaseEvent::StartFailed,
];

fn reachable(from: LeaseState) -> BTreeSet<LeaseState> {
    let mut seen = BTreeSet::from([from]);
    let mut todo = vec![from];
    while let Some(state) = todo.pop() {
        for next in EVENTS.iter().filter_map(|e| state.after(*e).ok()) {
            if seen.insert(next) {
                todo.push(next);
            }
        }
    }
    seen
}

#[test]
fn every_state_is_reached_from_a_booking() {
    assert_eq!(
        reachable(LeaseState::Placing),
        LeaseState::ALL.into_iter().collect()
    );
}

#[test]
fn final_states_stay() {
    for state in LeaseState::ALL.into_iter().filter(|s| s.is_final()) {
        assert_eq!(reachable(state), BTreeSet::from([state]));
    }
}

#[test]
fn every_live_state_can_end_and_leads_to_an_end() {
    for state in LeaseState::ALL.into_iter().filter(|s| !s.is_final()) {
        assert_eq!(
            state.after(LeaseEvent::EndRequested),
            Ok(LeaseState::Ending),
            "{state}"
        );
        assert!(reachable(state).contains(&LeaseState::Ended), "{state}");
    }
}

#[test]
fn every_bounded_stay_has_an_exit_that_leads_elsewhere() {
    for state in LeaseState::ALL {
        assert_eq!(
            state.limit().is_some(),
            state.overdue().is_some(),
            "{state}"
        );
        if let Some(event) = state.overdue() {
            assert_ne!(state.after(event), Ok(state), "{state} would stay for ever");
        }
    }
}

#[test]
fn gpu_time_is_billed_only_while_the_gpus_are_held() {
    for (state, kept) in LeaseState::ALL
        .into_iter()
        .flat_map(|s| [(s, false), (s, true)])
    {
        let billed = state.billed(kept);
        let free = billed.compute == GpuTime::Free;
        assert!(free || state.holds_gpus(kept), "{state}");
        assert!(billed.compute != GpuTime::Kept || kept, "{state}");
        assert!(!state.is_final() || (free && !billed.storage), "{state}");
    }
}

#[test]
fn gpus_are_kept_only_between_a_stop_and_what_follows_it() {
    use LeaseEvent as E;
    use LeaseState as S;
    // Whatever happens: kept GPUs are those of a lease that is stopped, or comes back from it.
    for (state, event) in LeaseState::ALL
        .into_iter()
        .flat_map(|s| EVENTS.map(|e| (s, e)))
    {
        let Ok(to) = state.after(event) else { continue };
        for kept in [false, true] {
            let keeps = to.keeps_gpus(event, kept);
            assert!(!keeps || matches!(to, S::Stopping | S::Stopped | S::Resuming));
            assert!(!keeps || kept || event == E::KeepRequested);
            assert!(!keeps || event != E::GpusReleased);
        }
    }
    assert!(S::Stopping.keeps_gpus(E::KeepRequested, false));
    assert!(S::Stopped.keeps_gpus(E::StopSeen, true));
    assert!(S::Resuming.keeps_gpus(E::ResumeRequested, true));
    assert!(S::Stopped.keeps_gpus(E::StartFailed, true));
    assert!(!S::Running.keeps_gpus(E::Started, true));
}

#[test]
fn names_round_trip() {
    for state in LeaseState::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
    }
    for reason in LeaseReason::ALL {
        assert_eq!(reason.as_str().parse(), Ok(reason));
    }
}

#[test]
fn requests_may_be_repeated() {
    for (event, settled) in [
        (LeaseEvent::StopRequested, LeaseState::Stopping),
        (LeaseEvent::EndRequested, LeaseState::Ending),
        (LeaseEvent::EndSeen, LeaseState::Ended),
    ] {
        assert_eq!(settled.after(event), Ok(settled));
    }
}
