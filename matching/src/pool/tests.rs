//! The pool against a linear search over its nodes, under random bookings and releases.

use proptest::prelude::*;

use super::fragment::{Fragment, grade};
use super::mix::Mix;
use super::policy::{Policy, Ties};
use super::published::{BestFit, DotProduct, Packing, Random};
use super::state::{Models, Shape, State, Take, WHOLE};
use super::worth::Worth;
use super::{Placement, Pool};
use crate::replay::arrival::Dice;

fn shape() -> impl Strategy<Value = Shape> {
    let models = prop_oneof![
        3 => Just(Models::ANY),
        1 => Just(Models::NONE.with(0)),
        1 => Just(Models::NONE.with(1).with(2)),
    ];
    let gpus = prop_oneof![
        1 => Just((0, 0)),
        4 => (1..=9_u16).prop_map(|tenth| (1, tenth * 100)),
        3 => Just((1, WHOLE)),
        1 => Just((2, WHOLE)),
        1 => Just((4, WHOLE)),
    ];
    (0..=9_u32, 0..=4_u32, gpus, models).prop_map(|(cpu, memory, (gpus, gpu_milli), models)| {
        Shape {
            cpu_milli: cpu * 1_000,
            memory_mib: memory * 1_024,
            gpus,
            gpu_milli,
            models,
        }
    })
}

fn node() -> impl Strategy<Value = State> {
    (4..=32_u32, 4..=16_u32, 0..=4_u16, 0..=2_u8).prop_map(|(cpu, memory, gpus, model)| {
        State::empty((cpu * 1_000, memory * 1_024), gpus, model)
    })
}

/// What happens: a request of some shape, or the release of one of those that live.
#[derive(Clone, Debug)]
enum Step {
    Place(usize),
    Release(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any::<usize>().prop_map(Step::Place),
        1 => any::<usize>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..200)
}

fn policy(number: usize, shapes: &[Shape], nodes: &[State]) -> Box<dyn Policy> {
    match number {
        0 => Box::new(Random),
        1 => Box::new(BestFit),
        2 => Box::new(DotProduct),
        3 => Box::new(Packing),
        4 => Box::new(Fragment::new(Mix::of(shapes, 95))),
        _ => Box::new(Worth::learn(shapes, nodes)),
    }
}

/// GPU time that is left, worked out by hand from what was taken.
fn left_by_hand(node: &State, taken: &[(Shape, Placement)], number: u32) -> Vec<i64> {
    let mut left = vec![i64::from(WHOLE); node.left().len()];
    for (shape, placement) in taken.iter().filter(|(_, p)| p.node == number) {
        for (slot, left) in left.iter_mut().enumerate() {
            if placement.slots & (1 << slot) != 0 {
                *left -= i64::from(shape.gpu_milli);
            }
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_pool_decides_as_a_linear_search_does(
        nodes in prop::collection::vec(node(), 1..12),
        shapes in prop::collection::vec(shape(), 1..6),
        steps in steps(),
        number in 0..6_usize,
        seed in any::<u64>(),
    ) {
        let judge = policy(number, &shapes, &nodes);
        let mut pool = Pool::new(policy(number, &shapes, &nodes));
        let ranks: Vec<u32> = (0..nodes.len()).map(|n| u32::try_from(n * 7 % nodes.len()).unwrap()).collect();
        for (node, rank) in nodes.iter().zip(&ranks) {
            pool.add(*node, *rank);
        }
        let mut naive = nodes.clone();
        let mut taken: Vec<(Shape, Placement)> = Vec::new();
        let mut dice = Dice::new(seed);
        for step in steps {
            match step {
                Step::Place(pick) => {
                    let shape = shapes[pick % shapes.len()];
                    let scores: Vec<Option<i64>> = naive
                        .iter()
                        .map(|state| {
                            let key = if judge.is_ordered() { *state } else { state.sorted() };
                            key.fits(&shape).then(|| judge.score(&key, judge.burden(&key), &shape))
                        })
                        .collect();
                    let best = scores.iter().flatten().max();
                    let placed = pool.place(&shape, dice.next());
                    prop_assert_eq!(placed.is_some(), best.is_some());
                    let Some(placed) = placed else { continue };
                    let place = usize::try_from(placed.node).unwrap();
                    prop_assert_eq!(scores[place].as_ref(), best);
                    if judge.ties() == Ties::Rank {
                        let equal = (0..naive.len()).filter(|n| scores[*n].as_ref() == best);
                        prop_assert_eq!(equal.min_by_key(|n| ranks[*n]), Some(place));
                    }
                    prop_assert_eq!(placed.slots.count_ones(), u32::from(shape.gpus));
                    taken.push((shape, placed));
                    naive[place] = *pool.state(placed.node).unwrap();
                }
                Step::Release(pick) => {
                    if taken.is_empty() { continue }
                    let (shape, placed) = taken.swap_remove(pick % taken.len());
                    pool.release(&shape, placed);
                    naive[usize::try_from(placed.node).unwrap()] = *pool.state(placed.node).unwrap();
                }
            }
            for (place, node) in nodes.iter().enumerate() {
                let no = u32::try_from(place).unwrap();
                let state = pool.state(no).unwrap();
                let here = || taken.iter().filter(|(_, p)| p.node == no);
                let left: Vec<i64> = state.left().iter().map(|l| i64::from(*l)).collect();
                prop_assert_eq!(&left, &left_by_hand(node, &taken, no));
                prop_assert!(left.iter().all(|l| *l >= 0));
                let cpu: u32 = here().map(|(s, _)| s.cpu_milli).sum();
                let memory: u32 = here().map(|(s, _)| s.memory_mib).sum();
                prop_assert_eq!(state.cpu_milli + cpu, node.cpu_milli);
                prop_assert_eq!(state.memory_mib + memory, node.memory_mib);
                prop_assert!(here().all(|(s, _)| s.gpus == 0 || s.models.has(node.model)));
            }
        }
        for (shape, placed) in taken.drain(..) {
            pool.release(&shape, placed);
        }
        for (place, node) in nodes.iter().enumerate() {
            prop_assert_eq!(pool.state(u32::try_from(place).unwrap()), Some(node));
        }
    }

    /// Whatever the GPUs' order, a sorted state is as good and takes as much.
    #[test]
    fn the_order_of_gpus_makes_no_difference_to_what_fits(node in node(), taken in prop::collection::vec(shape(), 0..6), shape in shape()) {
        let mut state = node;
        for one in taken {
            let take = super::policy::best_fit(&state, &one);
            if state.fits(&one) { state = state.taking(&one, take).unwrap().0; }
        }
        prop_assert_eq!(state.fits(&shape), state.sorted().fits(&shape));
        prop_assert_eq!(state.idle(), state.sorted().idle());
        let mix = Mix::of(&[shape], 100);
        prop_assert_eq!(mix.fragment(&state), mix.fragment(&state.sorted()));
    }
}

#[test]
fn grades_are_the_published_curve() {
    for fall in -6_000..=6_000_i64 {
        let x = f64::from(i32::try_from(fall).unwrap()) / 1_000.0;
        let exact = 100.0 / (1.0 + (-x).exp());
        let step = exact - exact.round();
        // On a step the last bit of a float decides.
        if step.abs() > 1e-6 {
            let grade = f64::from(i32::try_from(grade(fall * 7, 7)).unwrap());
            assert!((grade - exact.trunc()).abs() < 0.5, "{fall}");
        }
    }
    assert_eq!(grade(0, 1), 50);
    assert_eq!((grade(i64::MIN, 1), grade(i64::MAX, 1)), (0, 99));
}

/// A worked example: two GPUs, one half used, and requests for whole ones.
#[test]
fn the_fragment_is_what_usual_requests_cannot_use() {
    let whole = Shape {
        cpu_milli: 4_000,
        memory_mib: 0,
        gpus: 1,
        gpu_milli: WHOLE,
        models: Models::ANY,
    };
    let half = Shape {
        gpu_milli: 500,
        ..whole
    };
    let node = State::empty((8_000, 1), 2, 0);
    let (used, slots) = node.taking(&half, Take::PartOf(WHOLE)).unwrap();
    assert_eq!((used.left(), slots), (&[500, 1_000][..], 1));
    // Three of four want whole GPUs: to them the half is lost; to the fourth nothing is.
    let mix = Mix::of(&[whole, whole, whole, half], 100);
    assert_eq!((mix.fragment(&used), mix.total()), (3 * 500, 4));
    // Without the cores that all of them want, all is lost.
    let (full, _) = used
        .taking(
            &Shape {
                gpu_milli: 100,
                ..half
            },
            Take::PartOf(500),
        )
        .unwrap();
    assert_eq!((full.cpu_milli, mix.fragment(&full)), (0, 4 * 1_400));
}

#[test]
fn a_log_of_what_is_gone_is_forgotten() {
    let mut pool = Pool::new(Box::new(BestFit));
    pool.add(State::empty((64_000, 64_000), 8, 0), 0);
    let shape = Shape {
        cpu_milli: 1_000,
        memory_mib: 1,
        gpus: 1,
        gpu_milli: 100,
        models: Models::ANY,
    };
    let other = Shape {
        gpu_milli: 200,
        ..shape
    };
    pool.place(&other, 0).unwrap();
    for _ in 0..10_000 {
        let placed = pool.place(&shape, 0).unwrap();
        pool.release(&shape, placed);
    }
    assert!(pool.log.len() < 2_000, "{}", pool.log.len());
    assert!(
        !pool.views.contains_key(&other),
        "what nobody asks for is kept"
    );
    assert!(pool.classes.len() < 4, "{}", pool.classes.len());
    let kept: usize = pool.views.values().map(|v| v.by_score.len()).sum();
    assert!(kept < 4_000, "{kept}");
}
