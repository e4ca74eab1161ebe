//! What the rest of a GPU is worth to requests for shares.
//!
//! Shares are cut from GPUs like pieces from stock. The fewest GPUs that all pieces can be cut from
//! are the value of a linear program over cutting patterns (Gilmore and Gomory, "A Linear
//! Programming Approach to the Cutting-Stock Problem", 1961); its dual gives each piece a worth, as
//! a share of the GPU that it uses up. Pieces that leave useless rests are worth more than their
//! size. A rest is worth the best set of pieces that can still be cut from it.

use super::mix::Mix;
use super::state::WHOLE;

/// Rests are told apart in steps of so many thousandths of a GPU.
const STEP: usize = 10;
/// Steps in a whole GPU.
const STEPS: usize = 100;
/// Rounds of the ascent to the dual; the mean of the second half is taken.
const ROUNDS: i64 = 4_000;
/// Worth is counted in millionths of a thousandth of a GPU.
const SCALE: i64 = 1_000_000;
/// The worth of a whole GPU.
const ONE: i64 = 1_000 * SCALE;
/// A first change of worth, for a piece too few or too many in each GPU.
const STRIDE: i64 = 100 * SCALE;

/// A size that is asked for.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// In steps.
    size: usize,
    /// How many are asked for.
    count: i64,
    worth: i64,
    /// The worths of the rounds that count, added up.
    sum: i64,
}

/// The worth of rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// By size in steps, in thousandths of a GPU.
    worth: Vec<i64>,
}

impl Residual {
    /// The worth of rests to the requests of `mix`; whole GPUs are pieces too.
    pub fn of(mix: &Mix) -> Self {
        let mut pieces = pieces(mix);
        for round in 1..=ROUNDS {
            let stride = STRIDE / (10 + round.isqrt());
            ascend(&mut pieces, stride);
            if round * 2 > ROUNDS {
                for piece in &mut pieces {
                    piece.sum += piece.worth;
                }
            }
        }
        for piece in &mut pieces {
            piece.worth = piece.sum * 2 / ROUNDS;
        }
        let worth = fill(&pieces).into_iter().map(|best| best.worth / SCALE);
        Self {
            worth: worth.collect(),
        }
    }

    /// The worth of a rest of `left` thousandths, in thousandths of a GPU: 0..=1000.
    pub fn worth(&self, left: u16) -> i64 {
        let steps = usize::from(left) / STEP;
        self.worth.get(steps).copied().unwrap_or(0)
    }
}

fn pieces(mix: &Mix) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (shape, count) in mix.shapes().filter(|(shape, _)| shape.gpus > 0) {
        let milli = shape.gpu_milli.clamp(1, WHOLE);
        let size = usize::from(milli).div_ceil(STEP);
        let count = count * i64::from(shape.gpus);
        match pieces.iter_mut().find(|piece| piece.size == size) {
            Some(piece) => piece.count += count,
            None => pieces.push(Piece {
                size,
                count,
                worth: i64::from(milli) * SCALE,
                sum: 0,
            }),
        }
    }
    pieces
}

/// One step: pieces that the best cut of a GPU has too few of for what is asked become worth more,
/// those that it has too many of less; then a whole GPU is made worth [`ONE`] again.
fn ascend(pieces: &mut [Piece], stride: i64) {
    let value: i128 = pieces
        .iter()
        .map(|piece| i128::from(piece.count) * i128::from(piece.worth))
        .sum();
    let cut = best_cut(pieces);
    for (piece, times) in pieces.iter_mut().zip(cut) {
        // Pieces for each GPU, in millionths, if all GPUs are cut alike.
        let asked = (i128::from(piece.count) * i128::from(ONE) * i128::from(SCALE))
            .checked_div(value)
            .and_then(|asked| i64::try_from(asked).ok())
            .unwrap_or(0);
        let lacking = asked - times * SCALE;
        piece.worth = (piece.worth + lacking * (stride / 1_000) / 1_000).max(0);
    }
    let whole = fill(pieces).last().map_or(ONE, |best| best.worth.max(1));
    for piece in pieces {
        let worth = i128::from(piece.worth) * i128::from(ONE) / i128::from(whole);
        piece.worth = i64::try_from(worth).unwrap_or(ONE);
    }
}

/// The best that can be cut from a rest.
#[derive(Clone, Copy, Debug)]
struct Best {
    worth: i64,
    /// The last piece; `None`: a step of waste.
    last: Option<usize>,
}

/// The best cuts of rests by size in steps, 0..=[`STEPS`]: an unbounded knapsack.
fn fill(pieces: &[Piece]) -> Vec<Best> {
    let mut all: Vec<Best> = Vec::with_capacity(STEPS + 1);
    for size in 0..=STEPS {
        let waste = size.checked_sub(1).and_then(|rest| all.get(rest));
        let mut best = Best {
            worth: waste.map_or(0, |best| best.worth),
            last: None,
        };
        for (number, piece) in pieces.iter().enumerate() {
            let rest = size.checked_sub(piece.size).and_then(|rest| all.get(rest));
            let worth = rest.map_or(0, |rest| rest.worth + piece.worth);
            if worth > best.worth {
                best = Best {
                    worth,
                    last: Some(number),
                };
            }
        }
        all.push(best);
    }
    all
}

/// How often each piece is in the best cut of a whole GPU.
fn best_cut(pieces: &[Piece]) -> Vec<i64> {
    let all = fill(pieces);
    let mut times = vec![0; pieces.len()];
    let mut size = STEPS;
    while size > 0 {
        let last = all.get(size).and_then(|best| best.last);
        let piece = last.and_then(|number| pieces.get(number));
        if let Some(count) = last.and_then(|number| times.get_mut(number)) {
            *count += 1;
        }
        size -= piece.map_or(1, |piece| piece.size.max(1));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::super::state::{Models, Shape};
    use super::*;

    fn shapes(sizes: &[(u16, usize)]) -> Vec<Shape> {
        let one = |milli| Shape {
            cpu_milli: 1,
            memory_mib: 1,
            gpus: 1,
            gpu_milli: milli,
            models: Models::ANY,
        };
        let many = sizes.iter().map(|(milli, times)| vec![one(*milli); *times]);
        many.flatten().collect()
    }

    fn of(sizes: &[(u16, usize)]) -> Residual {
        Residual::of(&Mix::of(&shapes(sizes), 100))
    }

    #[test]
    fn pieces_that_fill_a_gpu_are_worth_their_size() {
        let halves = of(&[(500, 10)]);
        assert_eq!(
            [499, 500, 999, 1_000].map(|l| halves.worth(l)),
            [0, 500, 500, 1_000]
        );
    }

    /// 600 fits once and leaves a rest that nothing fits: it uses up the GPU.
    #[test]
    fn a_piece_that_spoils_the_rest_is_worth_the_whole() {
        let spoilt = of(&[(600, 10)]);
        assert_eq!(
            [590, 600, 1_000].map(|l| spoilt.worth(l)),
            [0, 1_000, 1_000]
        );
    }

    /// As many 400 as 600: together they fill a GPU, and the dual is theirs to share; with far more
    /// 600, the rests of 400 are plenty and worth nothing.
    #[test]
    fn rests_that_are_plenty_are_worth_little() {
        let even = of(&[(600, 100), (400, 100)]);
        assert!(even.worth(400) + even.worth(600) <= 1_000);
        let plenty = of(&[(600, 1_000), (400, 10)]);
        assert!(plenty.worth(400) <= 20, "{}", plenty.worth(400));
        assert!(plenty.worth(600) >= 980, "{}", plenty.worth(600));
    }

    #[test]
    fn more_left_is_never_worth_less() {
        let mixed = of(&[(810, 24), (470, 17), (320, 8), (650, 6), (230, 3), (160, 2)]);
        let all: Vec<i64> = (0..=1_000).map(|left| mixed.worth(left)).collect();
        assert!(all.is_sorted(), "{all:?}");
        assert!((990..=1_010).contains(&mixed.worth(1_000)));
    }

    #[test]
    fn without_requests_a_rest_is_worth_nothing() {
        assert_eq!(of(&[]).worth(1_000), 0);
    }
}
