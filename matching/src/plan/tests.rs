//! Search and placement against a naive evaluator that is written from the request's documentation.

use domain::id::PartyId;
use domain::money::Micros;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::book::Slot;
use crate::offer::{Offer, OfferTerms};
use crate::price::Fees;
use crate::request::SortKey;

const FEES: Fees = Fees {
    fee_bps: 500,
    tax_bps: 0,
};

fn supply(n: u128, free: &[(u16, bool)]) -> Supply {
    let slots = free.iter().enumerate().map(|(i, (island, free))| Slot {
        gpu: GpuId::from_uuid(Uuid::from_u128(n * 100 + u128::try_from(i).unwrap())),
        index: u16::try_from(i).unwrap(),
        island: *island,
        free: *free,
    });
    Supply {
        offer: Offer {
            id: OfferId::from_uuid(Uuid::from_u128(n)),
            version: 1,
            provider: PartyId::from_uuid(Uuid::from_u128(1)),
            machine: MachineId::from_uuid(Uuid::from_u128(n)),
            terms: OfferTerms {
                gpu_hour: Micros::new(2_000_000),
                bid_floor: None,
                storage_gib_month: Micros::new(50_000),
                min_gpus: 1,
                max_gpus: u16::try_from(free.len()).unwrap(),
            },
        },
        bookable: true,
        simulated: false,
        model: "h100-sxm-80gb".to_owned(),
        gpu_memory_mib: 81_920,
        cpu_cores: 64,
        ram_mib: 524_288,
        disk_free_gib: 1_000,
        country: Some("DE".to_owned()),
        slots: slots.collect(),
    }
}

fn request() -> Request {
    Request::any(FEES)
}

#[test]
fn takes_the_smallest_island_that_holds_the_lease() {
    let s = supply(
        1,
        &[
            (0, true),
            (0, true),
            (0, true),
            (0, true),
            (1, false),
            (1, true),
            (1, true),
            (2, true),
        ],
    );
    let placed = |count| {
        place(Some(&s), &Request { count, ..request() }, 1)
            .unwrap()
            .gpus
    };
    let gpu = |i: u128| GpuId::from_uuid(Uuid::from_u128(100 + i));
    assert_eq!(placed(1), [gpu(7)]);
    assert_eq!(placed(2), [gpu(5), gpu(6)]);
    assert_eq!(placed(3), [gpu(0), gpu(1), gpu(2)]);
    assert_eq!(placed(7).len(), 7);
}

#[test]
fn a_changed_gone_or_full_offer_is_a_miss_with_a_reason() {
    let s = supply(1, &[(0, true), (0, false)]);
    assert_eq!(place(None, &request(), 1), Err(Miss::OfferGone));
    assert_eq!(
        place(Some(&s), &request(), 2),
        Err(Miss::OfferChanged { now: 1 })
    );
    let two = Request {
        count: 2,
        ..request()
    };
    assert_eq!(
        place(Some(&s), &two, 1),
        Err(Miss::Broken(vec![Constraint::FreeGpus]))
    );
}

#[test]
fn exactly_64_gib_is_at_least_64_gib_and_not_more() {
    let mut s = supply(1, &[(0, true)]);
    s.ram_mib = 65_536;
    let book = Book::new([s]);
    let with = |mib| Request {
        min_ram_mib: Some(mib),
        ..request()
    };
    assert_eq!(search(&book, &with(65_536)).unwrap().matches.len(), 1);
    assert_eq!(search(&book, &with(65_537)).unwrap().matches.len(), 0);
}

#[test]
fn nothing_found_names_what_binds_and_what_would_do() {
    let book = Book::new([supply(1, &[(0, true), (0, true)])]);
    let dear = Request {
        max_gpu_hour: Some(Micros::new(1)),
        ..request()
    };
    let found = search(&book, &dear).unwrap();
    assert_eq!(found.excluded.binding(), Some(Constraint::Price));
    assert_eq!(found.relaxations[0].to, "2.000000");
    let many = search(
        &book,
        &Request {
            count: 4,
            ..request()
        },
    )
    .unwrap();
    assert!(many.relaxations.is_empty() || many.relaxations.iter().all(|r| r.offers > 0));
}

fn any_supply() -> impl Strategy<Value = Supply> {
    let facts = (
        any::<bool>(),
        any::<bool>(),
        0usize..3,
        1i64..5,
        0u64..4,
        0usize..3,
    );
    (
        1u128..1_000,
        prop::collection::vec((0u16..3, any::<bool>()), 1..9),
        facts,
    )
        .prop_map(
            |(n, slots, (bookable, simulated, model, price, disk, country))| {
                let mut s = supply(n, &slots);
                s.bookable = bookable;
                s.simulated = simulated;
                s.model = ["h100-sxm-80gb", "a100-sxm4-80gb", "l4"][model].to_owned();
                s.gpu_memory_mib = [81_920, 81_920, 24_576][model];
                s.offer.terms.gpu_hour = Micros::new(price * 1_000_000);
                s.disk_free_gib = disk * 10;
                s.country = [None, Some("DE"), Some("US")][country].map(str::to_owned);
                s
            },
        )
}

fn any_request() -> impl Strategy<Value = Request> {
    let wants = (
        0usize..4,
        1u16..9,
        prop::option::of(20_000u32..90_000),
        prop::option::of(1i64..5),
    );
    let place = (0usize..3, 0usize..3, any::<bool>(), 1u32..40, 0usize..3);
    (wants, place).prop_map(
        |((model, count, memory, price), (inside, outside, simulated, disk_gib, sort))| {
            let set =
                |n: usize, all: [&str; 2]| all.iter().take(n).map(|s| (*s).to_owned()).collect();
            Request {
                models: set(model.min(2), ["h100-sxm-80gb", "l4"]),
                count,
                min_gpu_memory_mib: memory,
                countries: set(inside, ["DE", "US"]),
                not_countries: set(outside.min(1), ["US", "DE"]),
                max_gpu_hour: price.map(|p| Micros::new(p * 1_000_000)),
                simulated,
                disk_gib,
                sort: vec![[SortKey::Price, SortKey::PricePerGpuHour, SortKey::GpuMemory][sort]],
                ..request()
            }
        },
    )
}

/// Written from the docs of `Request`, field by field, without `constraint`.
fn naive(s: &Supply, r: &Request) -> bool {
    let free = s.slots.iter().filter(|x| x.free).count();
    let country = s.country.clone().unwrap_or_default();
    s.bookable
        && (!s.simulated || r.simulated)
        && (r.models.is_empty() || r.models.iter().any(|m| *m == s.model))
        && free >= usize::from(r.count)
        && r.count >= s.offer.terms.min_gpus
        && r.count <= s.offer.terms.max_gpus
        && s.gpu_memory_mib >= r.min_gpu_memory_mib.unwrap_or(0)
        && (r.countries.is_empty() || r.countries.contains(&country))
        && (r.not_countries.is_empty()
            || (!country.is_empty() && !r.not_countries.contains(&country)))
        && s.offer.terms.gpu_hour.get() <= r.max_gpu_hour.map_or(i64::MAX, Micros::get)
        && s.disk_free_gib >= u64::from(r.disk_gib)
}

proptest! {
    #[test]
    fn search_is_sound_and_complete(
        supplies in prop::collection::vec(any_supply(), 0..20),
        r in any_request(),
    ) {
        let book = Book::new(supplies);
        let found = search(&book, &r).unwrap();
        prop_assert_eq!(&found, &search(&book, &r).unwrap());
        let ids: BTreeSet<OfferId> = found.matches.iter().map(|m| m.supply.offer.id).collect();
        let expected: BTreeSet<OfferId> = book.iter().filter(|s| naive(s, &r)).map(|s| s.offer.id).collect();
        prop_assert_eq!(ids, expected);
        prop_assert_eq!(found.considered, book.len());
        if found.matches.is_empty() && !book.is_empty() {
            prop_assert!(found.excluded.binding().is_some());
        }
        if r.sort == [SortKey::Price] {
            prop_assert!(found.matches.windows(2).all(|w| w[0].price.total <= w[1].price.total));
        }
    }

    #[test]
    fn placement_takes_free_gpus_of_one_machine(s in any_supply(), r in any_request()) {
        match place(Some(&s), &r, 1) {
            Ok(p) => {
                prop_assert!(naive(&s, &r));
                let distinct: BTreeSet<_> = p.gpus.iter().collect();
                prop_assert_eq!(distinct.len(), usize::from(r.count));
                for gpu in &p.gpus {
                    prop_assert!(s.slots.iter().any(|x| x.gpu == *gpu && x.free));
                }
                // If one island can hold it, it is not spread over two.
                let island = |g: &GpuId| s.slots.iter().find(|x| x.gpu == *g).unwrap().island;
                let used: BTreeSet<u16> = p.gpus.iter().map(island).collect();
                let holds = (0..3u16).any(|i| {
                    s.slots.iter().filter(|x| x.free && x.island == i).count() >= usize::from(r.count)
                });
                prop_assert!(!holds || used.len() == 1);
            }
            Err(Miss::Broken(faults)) => {
                prop_assert!(!faults.is_empty() && !naive(&s, &r));
            }
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}
