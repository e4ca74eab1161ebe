//! Laws of the lease's state machine, over all states and events.

use std::collections::BTreeSet;

use super::*;

const EVENTS: [LeaseEvent; 10] = [
    LeaseEvent::Placed,
    LeaseEvent::Started,
    LeaseEvent::InterruptNoticed,
    LeaseEvent::Displaced,
    LeaseEvent::StopRequested,
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
fn compute_is_billed_only_while_the_gpus_are_held() {
    for state in LeaseState::ALL {
        assert!(!state.billed().compute || state.holds_gpus(), "{state}");
        assert!(!state.is_final() || !state.billed().storage, "{state}");
    }
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
