//! A trace of requests, played against an empty pool: how much of it a policy can place.
//!
//! The protocol of Weng et al. (USENIX ATC 2023): requests come one by one and never leave; one
//! that fits nowhere is dropped for good. After each arrival, *arrived* is what was asked for so
//! far and *allocated* what was placed, both in GPU time as a share of the pool's.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    reason = "sums of a trace's GPU time in thousandths lie far from the ends of their types"
)]

use crate::pool::mix::Mix;
use crate::pool::policy::Policy;
use crate::pool::state::{Shape, State};
use crate::pool::{Placement, Pool};

pub mod arrival;
mod curve;

pub use curve::{Curve, Point};

/// What is played.
#[derive(Clone, Debug)]
pub struct Play<'a> {
    /// Empty nodes, in the order of their names.
    pub nodes: &'a [State],
    /// Their ranks: of equally good ones the lowest is taken.
    pub ranks: &'a [u32],
    /// Requests that may arrive.
    pub pods: &'a [Shape],
    /// Which arrive, in order; one may arrive more than once.
    pub order: &'a [usize],
    /// The usual requests that fragments are measured by.
    pub mix: &'a Mix,
    /// What lots are drawn from.
    pub seed: u64,
}

/// What came of a play.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The state after each arrival, by per cent of arrived load.
    pub curve: Curve,
    /// Arrivals.
    pub arrivals: usize,
    /// Of these, dropped.
    pub rejected: usize,
    /// GPU time of the dropped, in thousandths of a GPU.
    pub rejected_milli: u64,
    /// Arrived load at the first one that was dropped, in millionths of the pool.
    pub first_rejected_ppm: Option<u64>,
    /// States of nodes in the pool at the end.
    pub states: usize,
    /// GPU time of the pool, in thousandths of a GPU.
    pub capacity_milli: u64,
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its number, from 0.
    pub arrival: usize,
    /// Which of the pods it was.
    pub pod: usize,
    /// Where it went.
    pub placement: Option<Placement>,
}

/// Plays. `watch` sees each decision; it may note the time.
pub fn play(play: &Play<'_>, policy: Box<dyn Policy>, mut watch: impl FnMut(Decision)) -> Outcome {
    let mut pool = Pool::new(policy);
    for (place, state) in play.nodes.iter().enumerate() {
        let rank = play.ranks.get(place).copied();
        pool.add(*state, rank.unwrap_or(u32::try_from(place).unwrap_or(0)));
    }
    let capacity_milli: u64 = play.nodes.iter().map(|n| u64::from(n.idle())).sum();
    let fragment = |state: &State| play.mix.fragment(state);
    let mut lost: i64 = play.nodes.iter().map(fragment).sum();
    let mut dice = arrival::Dice::new(play.seed);
    let mut outcome = Outcome {
        curve: Curve::default(),
        arrivals: 0,
        rejected: 0,
        rejected_milli: 0,
        first_rejected_ppm: None,
        states: 0,
        capacity_milli,
    };
    let (mut arrived, mut allocated) = (0_u64, 0_u64);
    for (arrival, pod) in play.order.iter().enumerate() {
        let Some(shape) = play.pods.get(*pod) else {
            continue;
        };
        let placement = pool.place(shape, dice.next());
        watch(Decision {
            arrival,
            pod: *pod,
            placement,
        });
        outcome.arrivals += 1;
        arrived += shape.milli();
        let ppm = |milli: u64| (milli * 1_000_000).checked_div(capacity_milli).unwrap_or(0);
        if let Some(place) = placement {
            allocated += shape.milli();
            if let Some(after) = pool.state(place.node) {
                lost += fragment(after) - fragment(&after.giving(shape, place.slots));
            }
        } else {
            outcome.rejected += 1;
            outcome.rejected_milli += shape.milli();
            outcome.first_rejected_ppm.get_or_insert(ppm(arrived));
        }
        outcome.curve.note(Point {
            arrived,
            allocated,
            lost: u64::try_from(lost.div_euclid(play.mix.total())).unwrap_or(0),
            capacity: capacity_milli,
        });
    }
    outcome.states = pool.states();
    outcome
}
