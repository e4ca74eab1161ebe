//! Chance from a seed: the same seed, the same world.

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to choose faults.
#[derive(Clone, Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both contained.
    pub(super) fn from(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low).unwrap() + 1;
        low + i64::try_from(self.next() % span).unwrap()
    }

    /// One of `count` places.
    pub(super) fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(count).unwrap()).unwrap()
    }

    /// True in `per_mille` of a thousand cases.
    pub(super) fn hits(&mut self, per_mille: u64) -> bool {
        self.next() % 1_000 < per_mille
    }
}
