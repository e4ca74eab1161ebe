//! Simple policies that others publish figures of; by these ours is measured.
//!
//! As in the simulator of Weng et al. (hkust-adsl/kubernetes-scheduler-simulator), in whole numbers.

use super::policy::{Policy, Ties, best_fit};
use super::state::{Shape, State, Take, WHOLE};

/// The largest CPU and GPU of a node that scores are scaled by, in thousandths.
const MOST_CPU: i64 = 128_000;
const MOST_GPU: i64 = 8_000;

/// Any node, any GPU.
#[derive(Clone, Copy, Debug)]
pub struct Random;

impl Policy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn ties(&self) -> Ties {
        Ties::Lot
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn score(&self, _state: &State, _burden: i64, _shape: &Shape) -> i64 {
        0
    }

    fn take(&self, state: &State, _burden: i64, shape: &Shape, draw: u64) -> Take {
        if !shape.is_share() {
            return best_fit(state, shape);
        }
        let room = || state.left().iter().filter(|left| **left >= shape.gpu_milli);
        let count = u64::try_from(room().count()).unwrap_or(1).max(1);
        // The lot that chose the node leaves no trace in the upper half.
        let place = usize::try_from((draw >> 32) % count).unwrap_or(0);
        room()
            .nth(place)
            .map_or(Take::Nothing, |left| Take::PartOf(*left))
    }
}

/// The node that is left with least.
#[derive(Clone, Copy, Debug)]
pub struct BestFit;

impl Policy for BestFit {
    fn name(&self) -> &'static str {
        "bestfit"
    }

    fn ties(&self) -> Ties {
        Ties::Rank
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn score(&self, state: &State, _burden: i64, shape: &Shape) -> i64 {
        let cpu = i64::from(state.cpu_milli) - i64::from(shape.cpu_milli);
        let gpu = i64::from(state.idle()) - i64::try_from(shape.milli()).unwrap_or(0);
        // 100 (1 - cpu / 2 most cpu - gpu / 2 most gpu), rounded down.
        let scale = 2 * MOST_CPU;
        (100 * (scale - cpu - gpu * (MOST_CPU / MOST_GPU))).div_euclid(scale)
    }

    fn take(&self, state: &State, _burden: i64, shape: &Shape, _draw: u64) -> Take {
        best_fit(state, shape)
    }
}

/// The node whose rest is least like the request.
#[derive(Clone, Copy, Debug)]
pub struct DotProduct;

impl Policy for DotProduct {
    fn name(&self) -> &'static str {
        "dotprod"
    }

    fn ties(&self) -> Ties {
        Ties::Rank
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn score(&self, state: &State, _burden: i64, shape: &Shape) -> i64 {
        let cpu = i64::from(state.cpu_milli) * i64::from(shape.cpu_milli);
        let gpu = i64::from(state.idle()) * i64::try_from(shape.milli()).unwrap_or(0);
        let scale = MOST_CPU * MOST_CPU;
        let gpu = gpu * (MOST_CPU / MOST_GPU) * (MOST_CPU / MOST_GPU);
        (50 * (2 * scale - cpu - gpu)).div_euclid(scale)
    }

    fn take(&self, state: &State, _burden: i64, shape: &Shape, _draw: u64) -> Take {
        best_fit(state, shape)
    }
}

/// GPUs that are shared already, then free ones of used nodes, then free nodes.
#[derive(Clone, Copy, Debug)]
pub struct Packing;

impl Policy for Packing {
    fn name(&self) -> &'static str {
        "packing"
    }

    fn ties(&self) -> Ties {
        Ties::Rank
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn score(&self, state: &State, _burden: i64, shape: &Shape) -> i64 {
        if shape.gpus == 0 {
            return 0;
        }
        let whole = i64::from(state.whole());
        if usize::try_from(whole) == Ok(state.left().len()) {
            return (33 - whole).max(whole);
        }
        match best_fit(state, shape) {
            Take::PartOf(left) if left < WHOLE => {
                100 - (i64::from(left).div_euclid(10)).div_euclid(10)
            }
            Take::PartOf(_) => 49,
            Take::Whole(count) => (50 - i64::from(count)).max(33),
            Take::Nothing => 0,
        }
    }

    fn take(&self, state: &State, _burden: i64, shape: &Shape, _draw: u64) -> Take {
        best_fit(state, shape)
    }
}
