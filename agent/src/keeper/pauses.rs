//! Waits between tries, longer each time.
//!
//! Invariant: no step is repeated in a tight loop, neither after a fault nor when the engine says
//! "done" and nothing changes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::converge::Step;

/// Longest wait.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Pause {
    tries: u32,
    until: Option<Instant>,
    /// The step that went well last.
    last: Option<Step>,
}

/// Waits by lease.
#[derive(Default)]
pub(super) struct Pauses(BTreeMap<String, Pause>);

impl Pauses {
    /// Makes the lease wait. Gives the number of waits in a row.
    pub(super) fn wait(&mut self, lease: &str, now: Instant) -> u32 {
        let pause = self.0.entry(lease.to_owned()).or_default();
        pause.tries = pause.tries.saturating_add(1);
        pause.until = Some(now + Duration::from_secs(1 << pause.tries.min(5)).min(LONGEST));
        pause.tries
    }

    /// Ends the waiting, unless this very step went well just before and is needed again.
    pub(super) fn take_success(&mut self, lease: &str, step: &Step, now: Instant) {
        let pause = self.0.entry(lease.to_owned()).or_default();
        if pause.last.as_ref() == Some(step) {
            self.wait(lease, now);
        } else {
            *pause = Pause {
                last: Some(step.clone()),
                ..Pause::default()
            };
        }
    }

    /// Leases that wait.
    pub(super) fn waiting(&self, now: Instant) -> impl Iterator<Item = &String> {
        let late = move |pause: &Pause| pause.until.is_some_and(|until| until > now);
        self.0
            .iter()
            .filter(move |(_, pause)| late(pause))
            .map(|(lease, _)| lease)
    }

    /// Drops the leases for which `keep` says no.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|lease, _| keep(lease));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_end_with_another_step() {
        let (mut pauses, now) = (Pauses::default(), Instant::now());
        let step = Step::Start {
            container: "c".into(),
        };
        assert_eq!(pauses.wait("a", now), 1);
        assert_eq!(pauses.wait("a", now), 2);
        assert_eq!(pauses.waiting(now + Duration::from_secs(3)).count(), 1);
        assert_eq!(pauses.waiting(now + Duration::from_secs(4)).count(), 0);
        pauses.take_success("a", &step, now);
        assert_eq!(pauses.waiting(now).count(), 0);
        // Done again without any effect.
        pauses.take_success("a", &step, now);
        assert_eq!(pauses.waiting(now).count(), 1);
        pauses.take_success("a", &Step::Clear, now);
        assert_eq!(pauses.waiting(now).count(), 0);
        for _ in 0..40 {
            pauses.wait("a", now);
        }
        assert_eq!(pauses.waiting(now + LONGEST).count(), 0);
    }
}
