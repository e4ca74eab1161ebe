//! In which order requests arrive, by a seed.

use crate::pool::state::Shape;

/// Random numbers that a seed repeats: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Begins at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "there is no end that an iterator would tell"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        let drawn = (u128::from(self.next()) * u128::from(end)) >> 64;
        usize::try_from(drawn).unwrap_or(0)
    }
}

/// An order of all `pods`, shuffled; then pods are drawn again, or dropped by lot, until what
/// arrives is `percent` of `capacity_milli`. An added pod counts with the thousandths of one of its
/// GPUs, as in the published experiment.
pub fn shuffled(pods: &[Shape], capacity_milli: u64, percent: u64, seed: u64) -> Vec<usize> {
    let mut dice = Dice::new(seed);
    let mut order: Vec<usize> = (0..pods.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, dice.below(last + 1));
    }
    let wanted = capacity_milli * percent / 100;
    let milli = |pod: usize| pods.get(pod).map_or(0, Shape::milli);
    let mut all: u64 = order.iter().map(|pod| milli(*pod)).sum();
    while all > wanted {
        let pod = order.swap_remove(dice.below(order.len()));
        all -= milli(pod);
    }
    while !pods.is_empty() {
        let pod = dice.below(pods.len());
        let one = pods.get(pod).map_or(0, |shape| u64::from(shape.gpu_milli));
        if all + one > wanted {
            break;
        }
        all += one;
        order.push(pod);
    }
    order
}
