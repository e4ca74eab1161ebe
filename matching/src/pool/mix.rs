//! Which requests are usual: what fragments are judged by.

use std::collections::BTreeMap;

use super::state::{Shape, State, WHOLE};

/// One usual request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usual {
    shape: Shape,
    count: i64,
}

/// The most frequent requests with their counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    usual: Vec<Usual>,
    total: i64,
}

impl Mix {
    /// The most frequent of `shapes` that together are `cover_percent` of all; memory is not told
    /// apart. (Weng et al., USENIX ATC 2023, "target workload"; there 95 %.)
    pub fn of(shapes: &[Shape], cover_percent: u32) -> Self {
        let mut counts: BTreeMap<Shape, i64> = BTreeMap::new();
        let mut all = 0_i64;
        for shape in shapes {
            let key = Shape {
                memory_mib: 0,
                ..*shape
            };
            let count = counts.entry(key).or_default();
            *count = count.saturating_add(1);
            all = all.saturating_add(1);
        }
        let mut sorted: Vec<Usual> = counts
            .into_iter()
            .map(|(shape, count)| Usual { shape, count })
            .collect();
        // As published: of equally frequent ones the larger first.
        sorted.sort_by_key(|Usual { shape, count }| {
            let by_size = (shape.cpu_milli, shape.gpu_milli, shape.gpus);
            std::cmp::Reverse((*count, by_size, shape.models.order()))
        });
        let enough = all.saturating_mul(i64::from(cover_percent));
        let mut mix = Self {
            usual: Vec::new(),
            total: 0,
        };
        for usual in sorted {
            if mix.total.saturating_mul(100) >= enough {
                break;
            }
            mix.total = mix.total.saturating_add(usual.count);
            mix.usual.push(usual);
        }
        mix
    }

    /// How many requests it was made of; at least 1.
    pub fn total(&self) -> i64 {
        self.total.max(1)
    }

    /// The usual shapes with their counts.
    pub fn shapes(&self) -> impl Iterator<Item = (&Shape, i64)> {
        self.usual.iter().map(|usual| (&usual.shape, usual.count))
    }

    /// How much of a node's idle GPU time usual requests cannot use: thousandths of a GPU, summed
    /// over the requests; divide by [`Mix::total`] for the mean. (Weng et al., equation 2.)
    pub fn fragment(&self, state: &State) -> i64 {
        let idle = i64::from(state.idle());
        if idle == 0 {
            return 0;
        }
        let whole = state.whole();
        let mut sum = 0_i64;
        for Usual { shape, count } in &self.usual {
            let lacks = shape.gpus == 0
                || state.cpu_milli < shape.cpu_milli
                || !shape.models.has(state.model)
                || (!shape.is_share() && whole < shape.gpus);
            let lost = if lacks {
                idle
            } else if shape.is_share() {
                below(state, shape.gpu_milli)
            } else {
                below(state, WHOLE)
            };
            sum = sum.saturating_add(lost.saturating_mul(*count));
        }
        sum
    }
}

/// What is left on GPUs that have less than `milli` left.
fn below(state: &State, milli: u16) -> i64 {
    let small = state.left().iter().filter(|left| **left < milli);
    small.map(|left| i64::from(*left)).sum()
}
