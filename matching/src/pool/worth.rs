//! The market's own policy: a request goes where what is left of the pool stays worth most.
//!
//! Three things are weighed, all learnt from the requests seen so far: what the cut takes from the
//! worth of a rest ([`Residual`]), how much idle GPU time it makes useless to usual requests
//! (the fragment of [`Mix`]), and whether the GPU's model is scarce among requests that name models.
//! Equal nodes are told apart by what they have left, least first. The weights were chosen on seeds
//! of their own (docs/adr/0014).

use super::fragment::{best_take, grade};
use super::mix::Mix;
use super::policy::{Policy, Ties};
use super::residual::Residual;
use super::state::{Shape, State, Take};

/// A thousandth of a GPU of lost worth counts as so many thousandths made useless.
const RESIDUAL_WEIGHT: i64 = 30;
/// Points of [`grade`] that a GPU costs whose model is asked for by name as much as there is.
const SCARCITY: u64 = 15;
/// Per cent of requests that the fragment looks at; rare ones only blur it.
const USUAL: u32 = 95;
/// Equal grades are told apart below this.
const TIE: i64 = 1_000_000;

/// The policy.
#[derive(Clone, Debug)]
pub struct Worth {
    usual: Mix,
    residual: Residual,
    /// By model, in points.
    scarcity: Vec<i64>,
}

impl Worth {
    /// Learns from requests `seen` of a pool of `nodes`, as they are empty.
    pub fn learn(seen: &[Shape], nodes: &[State]) -> Self {
        Self {
            usual: Mix::of(seen, USUAL),
            residual: Residual::of(&Mix::of(seen, 100)),
            scarcity: scarcity(seen, nodes),
        }
    }

    fn value(&self, state: &State, burden: i64, shape: &Shape, take: Take) -> i64 {
        let Some((after, _)) = state.taking(shape, take) else {
            return i64::MIN;
        };
        let useless = self.usual.fragment(&after) - burden;
        let lost = match take {
            Take::PartOf(left) => {
                let rest = left.saturating_sub(shape.gpu_milli);
                let used = self.residual.worth(left) - self.residual.worth(rest);
                used - i64::from(shape.gpu_milli)
            }
            Take::Nothing | Take::Whole(_) => 0,
        };
        let lost = lost * RESIDUAL_WEIGHT * self.usual.total();
        grade(-useless - lost, self.usual.total())
    }
}

impl Policy for Worth {
    fn name(&self) -> &'static str {
        "worth"
    }

    fn ties(&self) -> Ties {
        Ties::LatestState
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn burden(&self, state: &State) -> i64 {
        self.usual.fragment(state)
    }

    fn score(&self, state: &State, burden: i64, shape: &Shape) -> i64 {
        let best = best_take(state, shape, |take| self.value(state, burden, shape, take));
        let scarce = match shape.gpus {
            0 => 0,
            _ => self
                .scarcity
                .get(usize::from(state.model))
                .copied()
                .unwrap_or(0),
        };
        // A core counts as a sixteenth of a GPU.
        let left = i64::from(state.cpu_milli) + 16 * i64::from(state.idle());
        (best.0 - scarce) * TIE - left.min(TIE - 1)
    }

    fn take(&self, state: &State, burden: i64, shape: &Shape, _draw: u64) -> Take {
        let best = best_take(state, shape, |take| self.value(state, burden, shape, take));
        best.1
    }
}

/// For each model the GPU time that is asked for by requests which not every model of the pool
/// suits, spread over the models that suit, as a share of what there is, if as much is asked for as
/// the pool has. In points: 0..=[`SCARCITY`].
fn scarcity(seen: &[Shape], nodes: &[State]) -> Vec<i64> {
    let models = nodes.iter().map(|node| usize::from(node.model) + 1).max();
    let mut there = vec![0_u64; models.unwrap_or(0)];
    for node in nodes {
        if let Some(sum) = there.get_mut(usize::from(node.model)) {
            *sum += u64::from(node.idle());
        }
    }
    let has = |shape: &Shape, model: usize| u8::try_from(model).is_ok_and(|m| shape.models.has(m));
    let all: u64 = there.iter().sum();
    let asked: u64 = seen.iter().map(Shape::milli).sum();
    let mut named = vec![0_u128; there.len()];
    for shape in seen {
        let suits: u64 = there
            .iter()
            .enumerate()
            .filter(|(model, _)| has(shape, *model))
            .map(|(_, milli)| milli)
            .sum();
        if suits == 0 || suits == all {
            continue;
        }
        for (model, sum) in named.iter_mut().enumerate().filter(|(m, _)| has(shape, *m)) {
            let here = u128::from(there.get(model).copied().unwrap_or(0));
            *sum += u128::from(shape.milli()) * here / u128::from(suits);
        }
    }
    let points = named.iter().zip(&there).map(|(named, there)| {
        let whole = u128::from(asked) * u128::from(*there);
        let share = named * u128::from(all) * u128::from(SCARCITY);
        let points = share.checked_div(whole).unwrap_or(0);
        i64::try_from(points.min(u128::from(SCARCITY))).unwrap_or(0)
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::super::state::Models;
    use super::*;

    #[test]
    fn what_is_asked_for_by_name_is_scarce() {
        let nodes = [
            State::empty((8_000, 8_000), 8, 0),
            State::empty((8_000, 8_000), 2, 1),
        ];
        let any = Shape {
            cpu_milli: 1,
            memory_mib: 1,
            gpus: 1,
            gpu_milli: 1_000,
            models: Models::ANY,
        };
        let second = Shape {
            models: Models::NONE.with(1),
            ..any
        };
        assert_eq!(scarcity(&[any; 4], &nodes), [0, 0]);
        // Two of ten want the second model, which two of ten GPUs are.
        let mut seen = vec![any; 8];
        seen.extend([second; 2]);
        assert_eq!(scarcity(&seen, &nodes), [0, 15]);
        let mut fewer = vec![any; 18];
        fewer.extend([second; 2]);
        assert_eq!(scarcity(&fewer, &nodes), [0, 7]);
        // One that every model of the pool suits names none.
        let both = Shape {
            models: Models::NONE.with(0).with(1),
            ..any
        };
        assert_eq!(scarcity(&[both; 4], &nodes), [0, 0]);
        assert!(scarcity(&[], &nodes).iter().all(|points| *points == 0));
        assert!(scarcity(&seen, &[]).is_empty());
    }
}
