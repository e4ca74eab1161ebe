//! Placement over a pool of the openb trace's nodes, many times over: how many decisions one thread
//! takes in a second while requests come and go, against a scan of all nodes for each.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use matching::pool::policy::Policy;
use matching::pool::state::{Shape, State};
use matching::pool::worth::Worth;
use matching::pool::{Placement, Pool};
use matching::replay::arrival::Dice;

use crate::Asked;
use crate::report::{Report, Row};

/// So often the 6,212 GPUs of the trace: 1,000,132.
const COPIES: [usize; 4] = [1, 10, 33, 161];
/// Filled until so much per cent of the GPUs was asked for.
const LOAD: u64 = 95;

/// A pool under load, and what lives on it.
struct Busy {
    pool: Pool,
    policy: Worth,
    pods: Vec<Shape>,
    live: Vec<(Shape, Placement)>,
    dice: Dice,
    gpus: u64,
}

impl Busy {
    /// Filled until so much per cent of the GPUs was asked for.
    fn fill(copies: usize) -> Self {
        let (nodes, pods) = (tests::openb::nodes(), tests::openb::pods("default"));
        let policy = Worth::learn(&pods, &nodes);
        let mut pool = Pool::new(Box::new(policy.clone()));
        for node in nodes.iter().cycle().take(nodes.len() * copies) {
            pool.add(*node, 0);
        }
        let copies = u64::try_from(copies).unwrap();
        let capacity = nodes.iter().map(|n| u64::from(n.idle())).sum::<u64>() * copies;
        let mut busy = Self {
            pool,
            policy,
            pods,
            live: Vec::new(),
            dice: Dice::new(1),
            gpus: capacity / 1_000,
        };
        let mut asked = 0;
        while asked * 100 < capacity * LOAD {
            asked += busy.arrive().0.milli();
        }
        busy
    }

    fn next(&mut self) -> Shape {
        self.pods[self.dice.below(self.pods.len())]
    }

    /// One request comes; how long its decision took.
    fn arrive(&mut self) -> (Shape, Duration) {
        let (shape, draw) = (self.next(), self.dice.next());
        let begin = Instant::now();
        let placed = self.pool.place(&shape, draw);
        let took = begin.elapsed();
        self.live.extend(placed.map(|placed| (shape, placed)));
        (shape, took)
    }

    /// One of those that live leaves.
    fn leave(&mut self) {
        if !self.live.is_empty() {
            let place = self.dice.below(self.live.len());
            let (shape, placed) = self.live.swap_remove(place);
            self.pool.release(&shape, placed);
        }
    }

    /// Arrivals and departures in turns: decisions per second, and each one's time. The departures
    /// count as time, not as decisions.
    fn churn(&mut self, time: Duration) -> (f64, Vec<Duration>) {
        let mut each = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < time {
            for _ in 0..100 {
                self.leave();
                each.push(self.arrive().1);
            }
        }
        let rate = count(each.len()) / begin.elapsed().as_secs_f64();
        (rate, each)
    }

    /// The same decisions by a scan of all nodes.
    fn scan(&mut self, time: Duration) -> f64 {
        let mut states: Vec<State> = (0..self.pool.nodes())
            .map(|n| *self.pool.state(u32::try_from(n).unwrap()).unwrap())
            .collect();
        let (mut done, begin) = (0, Instant::now());
        while done == 0 || begin.elapsed() < time {
            let shape = self.next();
            let score = |state: &State| {
                let burden = self.policy.burden(state);
                self.policy.score(state, burden, &shape)
            };
            let best = (0..states.len())
                .filter(|n| states[*n].fits(&shape))
                .max_by_key(|n| score(&states[*n]));
            if let Some(best) = best {
                let state = states[best];
                let take = self
                    .policy
                    .take(&state, self.policy.burden(&state), &shape, 0);
                states[best] = state.taking(&shape, take).unwrap().0;
            }
            done += 1;
        }
        count(done) / begin.elapsed().as_secs_f64()
    }

    /// The first decision for each shape over a pool in this state.
    fn cold(&self) -> Vec<Duration> {
        let mut pool = Pool::new(Box::new(self.policy.clone()));
        for node in 0..self.pool.nodes() {
            let state = self.pool.state(u32::try_from(node).unwrap()).unwrap();
            pool.add(*state, 0);
        }
        let shapes: BTreeSet<Shape> = self.pods.iter().copied().collect();
        let first = |shape: &Shape| {
            let begin = Instant::now();
            pool.place(shape, 0);
            begin.elapsed()
        };
        shapes.iter().map(first).collect()
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

/// Microseconds that so many per mille of the decisions stay below.
fn quantile(each: &mut [Duration], per_mille: usize) -> f64 {
    each.sort_unstable();
    let place = (each.len() - 1) * per_mille / 1_000;
    each[place].as_secs_f64() * 1e6
}

/// The row, and figures for smaller pools.
pub fn measure(asked: &Asked, report: &mut Report) {
    for copies in COPIES {
        let mut busy = Busy::fill(copies);
        let largest = Some(&copies) == COPIES.last();
        let rounds = if largest { asked.rounds } else { 1 };
        let (mut values, mut scanned, mut each) = (Vec::new(), Vec::new(), Vec::new());
        busy.churn(asked.time / 2);
        for _ in 0..rounds {
            scanned.push(busy.scan(asked.time / 2));
            let (rate, times) = busy.churn(asked.time);
            values.push(rate);
            each.extend(times);
        }
        let gpus = busy.gpus;
        let mut figure = |name: &str, value, unit| {
            report.figure(format!("placement, {gpus} GPUs: {name}"), value, unit);
        };
        figure("decisions", crate::report::median(&values), "per second");
        figure(
            "half of the decisions below",
            quantile(&mut each, 500),
            "µs",
        );
        figure("99 % below", quantile(&mut each, 990), "µs");
        figure("99.9 % below", quantile(&mut each, 999), "µs");
        figure(
            "first sight of a shape, half below",
            quantile(&mut busy.cold(), 500),
            "µs",
        );
        figure("states of nodes", count(busy.pool.states()), "");
        if largest {
            report.row(Row {
                name: "placement",
                values,
                unit: "decisions/s",
                yardstick: "a scan of 195,293 nodes for each, one thread",
                yardstick_values: scanned,
                goal: 1_000.0,
            });
        }
    }
}
