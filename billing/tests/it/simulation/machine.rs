//! Machines with clocks of their own, what they send, what renters ask for, and which seeds to run.

/// Seeds of a normal run.
const SEEDS: std::ops::Range<u64> = 0..6;

/// A machine: its clock runs a little wrong, and starts anew with each boot.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) boot: i64,
    pub(super) booted_at: i64,
    pub(super) drift_ppm: i64,
    pub(super) next_report_at: i64,
    pub(super) silent_until: i64,
}

impl Machine {
    pub(super) fn mono_ms(&self, now: i64) -> i64 {
        let age = now - self.booted_at;
        age + age * self.drift_ppm / 1_000_000
    }
}

/// A report on its way: what the machine runs, and its clock.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) machine: usize,
    pub(super) boot: i64,
    pub(super) mono_ms: i64,
    /// Lease and run.
    pub(super) runs: Vec<(u128, i64)>,
}

#[derive(Clone, Debug)]
pub(super) enum Command {
    TopUp(usize, i64),
    Book((usize, usize), (i64, i64)),
    Stop(u128),
    Resume(u128),
    End(u128),
    Resize(u128, i64),
}

#[expect(
    clippy::disallowed_methods,
    reason = "the long form is asked for from outside"
)]
pub(super) fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("GPUMARKET_SIMULATION_SEEDS").ok();
    let range = |text: String| -> Option<std::ops::Range<u64>> {
        match text.split_once("..") {
            Some((first, last)) => Some(first.parse().ok()?..last.parse().ok()?),
            None => Some(0..text.parse().ok()?),
        }
    };
    asked.and_then(range).unwrap_or(SEEDS)
}
