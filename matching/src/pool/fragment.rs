//! Fragmentation gradient descent: a request goes where it makes the least idle GPU time useless.
//!
//! Weng et al., "Beware of Fragmentation", USENIX ATC 2023, algorithm 1. As published, the score is
//! `trunc(100 / (1 + exp(-d / 1000)))`, `d` being the fragment before less that after, in
//! thousandths of a GPU, and the node with the lowest rank wins a tie. Here the steps of that curve
//! are a table, so that all is in whole numbers.

use super::mix::Mix;
use super::policy::{Policy, Ties};
use super::state::{Shape, State, Take};

/// `ln(k / (100 - k))` for k = 1..99, in billionths: where the curve reaches k.
const STEPS: [i64; 99] = [
    -4_595_119_850,
    -3_891_820_298,
    -3_476_098_690,
    -3_178_053_830,
    -2_944_438_979,
    -2_751_535_313,
    -2_586_689_344,
    -2_442_347_035,
    -2_313_634_929,
    -2_197_224_577,
    -2_090_741_097,
    -1_992_430_165,
    -1_900_958_761,
    -1_815_289_967,
    -1_734_601_055,
    -1_658_228_077,
    -1_585_627_264,
    -1_516_347_489,
    -1_450_010_176,
    -1_386_294_361,
    -1_324_925_415,
    -1_265_666_373,
    -1_208_311_206,
    -1_152_679_510,
    -1_098_612_289,
    -1_045_968_555,
    -994_622_575,
    -944_461_609,
    -895_384_047,
    -847_297_860,
    -800_119_300,
    -753_771_802,
    -708_185_058,
    -663_294_217,
    -619_039_208,
    -575_364_145,
    -532_216_814,
    -489_548_225,
    -447_312_218,
    -405_465_108,
    -363_965_377,
    -322_773_392,
    -281_851_152,
    -241_162_057,
    -200_670_695,
    -160_342_650,
    -120_144_312,
    -80_042_708,
    -40_005_335,
    0,
    40_005_335,
    80_042_708,
    120_144_312,
    160_342_650,
    200_670_695,
    241_162_057,
    281_851_152,
    322_773_392,
    363_965_377,
    405_465_108,
    447_312_218,
    489_548_225,
    532_216_814,
    575_364_145,
    619_039_208,
    663_294_217,
    708_185_058,
    753_771_802,
    800_119_300,
    847_297_860,
    895_384_047,
    944_461_609,
    994_622_575,
    1_045_968_555,
    1_098_612_289,
    1_152_679_510,
    1_208_311_206,
    1_265_666_373,
    1_324_925_415,
    1_386_294_361,
    1_450_010_176,
    1_516_347_489,
    1_585_627_264,
    1_658_228_077,
    1_734_601_055,
    1_815_289_967,
    1_900_958_761,
    1_992_430_165,
    2_090_741_097,
    2_197_224_577,
    2_313_634_929,
    2_442_347_035,
    2_586_689_344,
    2_751_535_313,
    2_944_438_979,
    3_178_053_830,
    3_476_098_690,
    3_891_820_298,
    4_595_119_850,
];

/// The published score of a fall of the fragment by `fall` thousandths of a GPU, a sum over
/// `total` requests: 0..=99.
pub fn grade(fall: i64, total: i64) -> i64 {
    let billionths = fall.saturating_mul(1_000_000).div_euclid(total.max(1));
    i64::try_from(STEPS.partition_point(|step| *step <= billionths)).unwrap_or(0)
}

/// The policy as published.
#[derive(Clone, Debug)]
pub struct Fragment {
    mix: Mix,
}

impl Fragment {
    /// Judges by the usual requests `mix`.
    pub const fn new(mix: Mix) -> Self {
        Self { mix }
    }

    fn best(&self, state: &State, burden: i64, shape: &Shape) -> (i64, Take) {
        best_take(state, shape, |take| {
            let after = state.taking(shape, take);
            after.map_or(i64::MIN, |(after, _)| {
                grade(burden - self.mix.fragment(&after), self.mix.total())
            })
        })
    }
}

/// The best way to take `shape`, which fits, by `value`; of equal ones the first.
pub(crate) fn best_take(state: &State, shape: &Shape, value: impl Fn(Take) -> i64) -> (i64, Take) {
    let mut best = (i64::MIN, Take::Nothing);
    for take in takes(state, shape) {
        let worth = value(take);
        if worth > best.0 {
            best = (worth, take);
        }
    }
    best
}

/// Every way to take `shape`, which fits, in the order of the GPUs.
fn takes(state: &State, shape: &Shape) -> impl Iterator<Item = Take> {
    let share = shape.is_share();
    let plain = match (shape.gpus, share) {
        (0, _) => Some(Take::Nothing),
        (_, true) => None,
        (count, false) => Some(Take::Whole(count)),
    };
    let gpus = if share { state.left() } else { &[] };
    let milli = shape.gpu_milli;
    let mut last = 0;
    let parts = gpus.iter().filter_map(move |left| {
        let fits = *left >= milli && *left != last;
        last = *left;
        fits.then_some(Take::PartOf(*left))
    });
    plain.into_iter().chain(parts)
}

impl Policy for Fragment {
    fn name(&self) -> &'static str {
        "fgd"
    }

    fn ties(&self) -> Ties {
        Ties::Rank
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn burden(&self, state: &State) -> i64 {
        self.mix.fragment(state)
    }

    fn score(&self, state: &State, burden: i64, shape: &Shape) -> i64 {
        self.best(state, burden, shape).0
    }

    fn take(&self, state: &State, burden: i64, shape: &Shape, _draw: u64) -> Take {
        self.best(state, burden, shape).1
    }
}
