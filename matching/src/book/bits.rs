//! Sets of class numbers as words, and numbers of classes as planes of bits.
//!
//! Class numbers are dense and used again, so a plain word array is as small as a compressed set and
//! faster. A column keeps bit `k` of each class's number in plane `k`; a comparison with a constant
//! is a few set operations, however many different numbers there are (P. O'Neil and D. Quass,
//! "Improved query performance with variant indexes", SIGMOD 1997).

/// A set of class numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

/// The word of a number and its bit there.
fn place(id: u32) -> (usize, u64) {
    let word = usize::try_from(id.wrapping_shr(6)).unwrap_or(usize::MAX);
    (word, 1u64.wrapping_shl(id))
}

impl Bits {
    /// Puts a number in or takes it out.
    pub(crate) fn set(&mut self, id: u32, on: bool) {
        let (word, bit) = place(id);
        if on && self.words.len() <= word {
            self.words.resize(word.saturating_add(1), 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    /// Keeps what is in `other` too.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.words.truncate(other.words.len());
        for (mine, other) in self.words.iter_mut().zip(&other.words) {
            *mine &= other;
        }
        self
    }

    /// Adds what is in `other`.
    pub(crate) fn or(mut self, other: &Self) -> Self {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, other) in self.words.iter_mut().zip(&other.words) {
            *mine |= other;
        }
        self
    }

    /// Takes out what is in `other`.
    pub(crate) fn minus(mut self, other: &Self) -> Self {
        for (mine, other) in self.words.iter_mut().zip(&other.words) {
            *mine &= !other;
        }
        self
    }

    /// Nothing in it?
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    fn count_with(&self, other: &Self) -> u64 {
        let both = self.words.iter().zip(&other.words);
        both.map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }

    /// The numbers, from the smallest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let bases = (0u32..).step_by(64);
        self.words.iter().zip(bases).flat_map(|(word, base)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(base | bit)
            })
        })
    }
}

/// A number of each class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    planes: Vec<Bits>,
}

impl Column {
    /// Sets the number of a class; 0 forgets it.
    pub(crate) fn set(&mut self, id: u32, number: u64) {
        let needed = usize::try_from(64u32.saturating_sub(number.leading_zeros())).unwrap_or(64);
        if self.planes.len() < needed {
            self.planes.resize_with(needed, Bits::default);
        }
        for (plane, shift) in self.planes.iter_mut().zip(0u32..) {
            plane.set(id, number.wrapping_shr(shift) & 1 == 1);
        }
    }

    /// The classes among `all` with at least this number.
    pub(crate) fn at_least(&self, number: u64, all: &Bits) -> Bits {
        let known = u32::try_from(self.planes.len()).unwrap_or(64);
        if 64u32.saturating_sub(number.leading_zeros()) > known {
            return Bits::default();
        }
        let (mut above, mut equal) = (Bits::default(), all.clone());
        for (plane, shift) in self.planes.iter().zip(0u32..64).rev() {
            if number.wrapping_shr(shift) & 1 == 1 {
                equal = equal.and(plane);
            } else {
                above = above.or(&equal.clone().and(plane));
                equal = equal.minus(plane);
            }
        }
        above.or(&equal)
    }

    /// The classes among `all` with at most this number.
    pub(crate) fn at_most(&self, number: u64, all: &Bits) -> Bits {
        match number.checked_add(1) {
            Some(next) => all.clone().minus(&self.at_least(next, all)),
            None => all.clone(),
        }
    }

    /// The sum over the classes of a set.
    pub(crate) fn sum(&self, set: &Bits) -> u64 {
        let parts = self.planes.iter().zip(0u32..);
        parts
            .map(|(plane, shift)| plane.count_with(set).wrapping_shl(shift))
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_column_compares_and_adds_as_numbers_do(
            steps in prop::collection::vec((0u32..200, prop_oneof![0u64..9, any::<u32>().prop_map(u64::from)]), 0..120),
            bound in prop_oneof![0u64..9, any::<u64>()],
        ) {
            let (mut column, mut all, mut plain) = (Column::default(), Bits::default(), BTreeMap::new());
            for (id, number) in steps {
                column.set(id, number);
                all.set(id, true);
                plain.insert(id, number);
            }
            let of = |test: &dyn Fn(u64) -> bool| -> Vec<u32> {
                plain.iter().filter(|(_, n)| test(**n)).map(|(id, _)| *id).collect()
            };
            prop_assert_eq!(column.at_least(bound, &all).iter().collect::<Vec<_>>(), of(&|n| n >= bound));
            prop_assert_eq!(column.at_most(bound, &all).iter().collect::<Vec<_>>(), of(&|n| n <= bound));
            prop_assert_eq!(column.sum(&all), plain.values().sum::<u64>());
        }
    }
}
