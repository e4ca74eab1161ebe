//! What a placement policy decides.

use super::state::{Shape, State, Take};

/// Which of several equally good nodes is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one with the lowest rank: a fixed order of all nodes.
    Rank,
    /// The lowest rank in the state that was seen last: cheaper where there are many states.
    LatestState,
    /// One drawn by lot.
    Lot,
}

/// A way to choose where a request goes. Pure: the same state, shape and draw, the same answer.
pub trait Policy: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// How equally good nodes are told apart.
    fn ties(&self) -> Ties;

    /// Does it matter which GPU of a node is which?
    fn is_ordered(&self) -> bool;

    /// A figure of the state that [`Policy::score`] needs for every shape, worked out once.
    fn burden(&self, _state: &State) -> i64 {
        0
    }

    /// How good `state` is for `shape`, which fits; more is better. `burden`: of the state.
    fn score(&self, state: &State, burden: i64, shape: &Shape) -> i64;

    /// Which GPUs of `state` are taken for `shape`, which fits. `draw`: a random number.
    fn take(&self, state: &State, burden: i64, shape: &Shape, draw: u64) -> Take;
}

/// The fullest GPU that has room, or the first whole ones.
pub(crate) fn best_fit(state: &State, shape: &Shape) -> Take {
    if shape.gpus == 0 {
        return Take::Nothing;
    }
    if !shape.is_share() {
        return Take::Whole(shape.gpus);
    }
    let room = state.left().iter().filter(|left| **left >= shape.gpu_milli);
    room.min().map_or(Take::Nothing, |left| Take::PartOf(*left))
}
