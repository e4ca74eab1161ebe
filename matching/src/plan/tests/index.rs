//! The index against a naive evaluator that looks at each supply alone, also after changes and over
//! pages of a market that goes on.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::properties::{any_request, any_supply, naive};
use super::*;

const RATES: [(&str, u64); 2] = [("h100-sxm-80gb", 989_000), ("l4", 121_000)];

fn rates() -> BTreeMap<String, u64> {
    RATES.map(|(m, r)| (m.to_owned(), r)).into()
}

/// Free GPUs on the best island.
fn island(s: &Supply) -> usize {
    let on = |i: u16| s.slots.iter().filter(|x| x.free && x.island == i).count();
    (0..3).map(on).max().unwrap()
}

/// One key of an order, by cross-multiplication instead of quotients. Ratios that differ by less
/// than the millionth that the book keeps do not come up with these numbers.
fn by_key(key: SortKey, one: (&Supply, i64), two: (&Supply, i64)) -> Ordering {
    let ratio = |over: [Option<u64>; 2]| match over {
        [Some(first), Some(second)] => {
            (i128::from(one.1) * i128::from(second)).cmp(&(i128::from(two.1) * i128::from(first)))
        }
        [first, second] => first.is_none().cmp(&second.is_none()),
    };
    let rate = |s: &Supply| RATES.into_iter().find(|r| r.0 == s.model).map(|r| r.1);
    let memory = |s: &Supply| Some(u64::from(s.gpu_memory_mib));
    match key {
        SortKey::Price => one.1.cmp(&two.1),
        SortKey::PricePerGpuHour => (one.0.offer.terms.gpu_hour).cmp(&two.0.offer.terms.gpu_hour),
        SortKey::GpuMemory => two.0.gpu_memory_mib.cmp(&one.0.gpu_memory_mib),
        SortKey::PricePerTflop => ratio([rate(one.0), rate(two.0)]),
        SortKey::PricePerGpuGib => ratio([memory(one.0), memory(two.0)]),
    }
}

/// Everything that fits, in order, as the documents say.
fn scan(supplies: &BTreeMap<OfferId, Supply>, r: &Request) -> Vec<Supply> {
    let mut hits: Vec<Supply> = supplies.values().filter(|s| naive(s, r)).cloned().collect();
    let total = |s: &Supply| all_in(&s.offer.terms, size(r), r.fees).unwrap().total.get();
    let sort = if r.sort.is_empty() {
        vec![SortKey::Price]
    } else {
        r.sort.clone()
    };
    hits.sort_by(|a, b| {
        let (x, y) = (total(a), total(b));
        let keys = sort.iter().map(|key| by_key(*key, (a, x), (b, y)));
        let split = |s: &Supply| island(s) < usize::from(r.count);
        keys.fold(Ordering::Equal, Ordering::then)
            .then(split(a).cmp(&split(b)))
            .then(a.free().cmp(&b.free()))
            .then(a.offer.id.cmp(&b.offer.id))
    });
    hits
}

fn excluded(supplies: &BTreeMap<OfferId, Supply>, r: &Request) -> Exclusions {
    let mut all = Exclusions::default();
    for supply in supplies.values() {
        all.add(&broken(supply, r));
    }
    all
}

#[test]
fn a_change_that_ends_late_is_no_known_one() {
    let seen = Seen {
        end: 9,
        open: vec![4, 7],
    };
    let known: Vec<u64> = (0..12).filter(|n| seen.has(*n)).collect();
    assert_eq!(known, [0, 1, 2, 3, 5, 6, 8]);
    assert_eq!(seen.begin(), 4);
    // Two pages of one each: the second offer changes between them, by change 4 that began earlier.
    let [first, second, third] = [1, 2, 3].map(|n| supply(n, &[(0, true)]));
    let mut book = Book::new([first.clone(), second.clone(), third.clone()]);
    book.catch_up(seen);
    let page = |book: &Book, after| search(book, &request(), &Part { limit: 1, after }).unwrap();
    let one = page(&book, None);
    assert_eq!(one.matches[0].supply.offer.id, first.offer.id);
    let mut moved = second;
    moved.cpu_cores += 1;
    book.put(moved, 4);
    let two = page(&book, one.next);
    assert_eq!(two.matches[0].supply.offer.id, third.offer.id);
    assert_eq!((two.changed, two.next), (1, None));
}

#[derive(Clone, Debug)]
enum Step {
    Put(Supply),
    Remove(usize),
    Take(usize),
    Ask(Request),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any_supply().prop_map(Step::Put),
        1 => any::<usize>().prop_map(Step::Remove),
        2 => any::<usize>().prop_map(Step::Take),
        2 => any_request().prop_map(Step::Ask),
    ]
}

/// Does a step to the book and to a plain list.
fn change(book: &mut Book, plain: &mut BTreeMap<OfferId, Supply>, (step, at): (Step, u64)) {
    let nth = |plain: &BTreeMap<OfferId, Supply>, n: usize| {
        plain.keys().nth(n % plain.len().max(1)).copied()
    };
    match step {
        Step::Put(supply) => {
            plain.insert(supply.offer.id, supply.clone());
            book.put(supply, at);
        }
        Step::Remove(n) => {
            if let Some(id) = nth(plain, n) {
                plain.remove(&id);
                book.remove(id);
            }
        }
        Step::Take(n) => {
            if let Some(id) = nth(plain, n) {
                let supply = plain.get_mut(&id).unwrap();
                for slot in &mut supply.slots {
                    slot.free = !slot.free;
                }
                book.put(supply.clone(), at);
            }
        }
        Step::Ask(_) => {}
    }
    book.catch_up(Seen {
        end: at + 1,
        open: Vec::new(),
    });
}

proptest! {
    #[test]
    fn the_index_answers_as_a_scan_does_between_changes(
        steps in prop::collection::vec(any_step(), 0..60),
        last in any_request(),
    ) {
        let (mut book, mut plain) = (Book::default().with_rates(rates()), BTreeMap::new());
        for (step, at) in steps.into_iter().chain([Step::Ask(last)]).zip(1u64..) {
            if let Step::Ask(r) = &step {
                let found = find(&book, r).unwrap();
                let hits: Vec<&Supply> = found.matches.iter().map(|m| &*m.supply).collect();
                let wanted = scan(&plain, r);
                prop_assert_eq!(hits, wanted.iter().collect::<Vec<_>>());
                prop_assert_eq!(usize::try_from(found.fitting).unwrap(), wanted.len());
                prop_assert_eq!(found.excluded, excluded(&plain, r));
                let sum = |counts: &BTreeMap<String, u32>| counts.values().sum::<u32>();
                prop_assert_eq!(sum(&found.facets.models), found.fitting);
                prop_assert_eq!(sum(&found.facets.countries), found.fitting);
                prop_assert_eq!(found.facets.prices.values().sum::<u32>(), found.fitting);
                for (model, count) in &found.facets.models {
                    prop_assert_eq!(wanted.iter().filter(|s| s.model == *model).count(), usize::try_from(*count).unwrap());
                }
                for (country, count) in &found.facets.countries {
                    let there = |s: &&Supply| s.country.as_deref().unwrap_or("") == country;
                    prop_assert_eq!(wanted.iter().filter(there).count(), usize::try_from(*count).unwrap());
                }
            }
            change(&mut book, &mut plain, (step, at));
            prop_assert_eq!(book.len(), plain.len());
            prop_assert!(book.iter().eq(plain.values()));
            prop_assert!(book.classes() <= plain.len());
        }
        // What was changed in steps is as if it had been read at once.
        prop_assert_eq!(&book, &Book::new(plain.into_values()));
    }

    #[test]
    fn pages_of_a_moving_market_repeat_nothing_and_miss_nothing_that_stayed(
        supplies in prop::collection::vec(any_supply(), 0..30),
        (r, limit) in (any_request(), 1usize..5),
        moves in prop::collection::vec(prop::collection::vec(any_step(), 0..3), 30),
    ) {
        let mut plain: BTreeMap<OfferId, Supply> = supplies.into_iter().map(|s| (s.offer.id, s)).collect();
        let mut book = Book::new(plain.values().cloned()).with_rates(rates());
        book.catch_up(Seen { end: 1, open: vec![] });
        let before = scan(&plain, &r);
        let (mut told, mut part, mut at) = (Vec::new(), Part::first(limit), 0u64);
        for steps in moves {
            let found = search(&book, &r, &part).unwrap();
            prop_assert!(found.matches.len() <= limit);
            // Each page is right when it is given.
            prop_assert!(found.matches.iter().all(|m| naive(&m.supply, &r) && plain.get(&m.supply.offer.id) == Some(&*m.supply)));
            told.extend(found.matches.iter().map(|m| m.supply.offer.id));
            let Some(next) = found.next else { break };
            prop_assert_eq!(found.matches.len(), limit);
            part.after = Some(next);
            for step in steps {
                at += 1;
                change(&mut book, &mut plain, (step, at));
            }
        }
        let distinct: BTreeSet<OfferId> = told.iter().copied().collect();
        prop_assert_eq!(distinct.len(), told.len());
        // What never changed comes, in its order; and nothing that did not fit at the beginning.
        let stayed: Vec<OfferId> = before.iter().filter(|s| plain.get(&s.offer.id) == Some(*s)).map(|s| s.offer.id).collect();
        let of_those: Vec<OfferId> = told.iter().copied().filter(|id| stayed.contains(id)).collect();
        let touched = |id: &OfferId| book.at(*id, Some(&Seen::default())).is_none();
        let sure: Vec<OfferId> = stayed.iter().copied().filter(|id| !touched(id)).collect();
        let told_sure: Vec<OfferId> = of_those.into_iter().filter(|id| !touched(id)).collect();
        prop_assert_eq!(told_sure, sure);
        prop_assert!(told.iter().all(|id| before.iter().any(|s| s.offer.id == *id)));
    }
}
