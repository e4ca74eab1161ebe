//! Which requests are usual: what fragments are judged by.

use std::collections::BTreeMap;

use super::state::{Models, Shape, State, WHOLE};

/// One usual request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usual {
    shape: Shape,
    count: i64,
}

/// Usual requests that differ in their cores only.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    gpus: u16,
    gpu_milli: u16,
    models: Models,
    all: i64,
    /// By cores, rising: how many want at most so many.
    at_most: Vec<(u32, i64)>,
}

impl Kind {
    /// How many of them `cpu_milli` is enough for.
    fn content(&self, cpu_milli: u32) -> i64 {
        let enough = |(cpu, _): &&(u32, i64)| *cpu <= cpu_milli;
        let last = self.at_most.iter().take_while(enough).last();
        last.map_or(0, |(_, count)| *count)
    }
}

/// The most frequent requests with their counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    usual: Vec<Usual>,
    kinds: Vec<Kind>,
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
            kinds: Vec::new(),
            total: 0,
        };
        for usual in sorted {
            if mix.total.saturating_mul(100) >= enough {
                break;
            }
            mix.total = mix.total.saturating_add(usual.count);
            mix.usual.push(usual);
        }
        mix.kinds = kinds(&mix.usual);
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
        let mut sum = 0;
        for kind in &self.kinds {
            let suits = kind.gpus > 0
                && kind.models.has(state.model)
                && (kind.gpus == 1 || whole >= kind.gpus);
            let content = if suits {
                kind.content(state.cpu_milli)
            } else {
                0
            };
            let lost = if content > 0 {
                i64::from(state.below(kind.gpu_milli))
            } else {
                0
            };
            sum += content * lost + (kind.all - content) * idle;
        }
        sum
    }
}

fn kinds(usual: &[Usual]) -> Vec<Kind> {
    let mut sorted = usual.to_vec();
    sorted.sort_by_key(|usual| usual.shape.cpu_milli);
    let mut kinds: Vec<Kind> = Vec::new();
    for Usual { shape, count } in sorted {
        let gpu_milli = if shape.is_share() {
            shape.gpu_milli
        } else {
            WHOLE
        };
        let same = |kind: &&mut Kind| {
            (kind.gpus, kind.gpu_milli, kind.models) == (shape.gpus, gpu_milli, shape.models)
        };
        if let Some(kind) = kinds.iter_mut().find(same) {
            kind.all += count;
            kind.at_most.push((shape.cpu_milli, kind.all));
        } else {
            kinds.push(Kind {
                gpus: shape.gpus,
                gpu_milli,
                models: shape.models,
                all: count,
                at_most: vec![(shape.cpu_milli, count)],
            });
        }
    }
    kinds
}
