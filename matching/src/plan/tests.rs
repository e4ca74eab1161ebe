//! Search, placement and proposals by example; the properties are in `properties`.

use std::collections::BTreeSet;

use domain::id::PartyId;
use domain::money::Micros;
use uuid::Uuid;

use super::*;
use crate::book::Slot;
use crate::offer::{Offer, OfferTerms};
use crate::price::Fees;
use crate::request::{DISK_MAX_GIB, DURATION_MAX_MS, RequestFault, SortKey};

mod index;
mod properties;

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
                keep_gpu_hour: None,
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

/// The whole answer at once.
fn find(book: &Book, request: &Request) -> Result<Found, MoneyError> {
    search(book, request, &Part::first(usize::MAX))
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
    assert_eq!(find(&book, &with(65_536)).unwrap().matches.len(), 1);
    assert_eq!(find(&book, &with(65_537)).unwrap().matches.len(), 0);
}

#[test]
fn nothing_found_names_what_binds_and_what_would_do() {
    let book = Book::new([supply(1, &[(0, true), (0, true)])]);
    let dear = Request {
        max_gpu_hour: Some(Micros::new(1)),
        ..request()
    };
    let found = find(&book, &dear).unwrap();
    assert_eq!(found.excluded.binding(), Some(Constraint::Price));
    assert_eq!(found.relaxations[0].to, "2.000000");
    let many = find(
        &book,
        &Request {
            count: 4,
            ..request()
        },
    )
    .unwrap();
    let counts: Vec<_> = many
        .relaxations
        .iter()
        .map(|r| (r.from.as_str(), r.to.as_str(), r.offers))
        .collect();
    assert_eq!(counts, [("4", "2", 1)]);
}

#[test]
fn a_lease_below_the_smallest_size_is_told_the_smallest_size() {
    let mut s = supply(1, &[(0, true); 8]);
    s.offer.terms.min_gpus = 4;
    let found = find(&Book::new([s]), &request()).unwrap();
    assert_eq!(found.excluded.binding(), Some(Constraint::Chunk));
    assert_eq!(
        (
            found.relaxations[0].from.as_str(),
            found.relaxations[0].to.as_str()
        ),
        ("1", "4")
    );
}

#[test]
fn equal_prices_go_to_a_whole_island_then_to_the_smallest_leftover() {
    let two = Request {
        count: 2,
        ..request()
    };
    // 1: two GPUs on two islands. 2: four on one. 3: three on one.
    let split = supply(1, &[(0, true), (1, true)]);
    let (large, small) = (supply(2, &[(0, true); 4]), supply(3, &[(0, true); 3]));
    let best = place_best(
        &Book::new([split.clone(), large.clone(), small.clone()]),
        &two,
    )
    .unwrap();
    assert_eq!(
        (best.offer, best.explanation.runner_up.unwrap().0),
        (small.offer.id, large.offer.id)
    );
    assert!(best.explanation.to_string().contains("next best"));
    assert_eq!(
        place_best(&Book::new([split]), &two)
            .unwrap()
            .explanation
            .runner_up,
        None
    );
    assert!(matches!(
        place_best(&Book::default(), &two),
        Err(Refused::NoFit(_))
    ));
}

#[test]
fn a_request_is_checked_field_by_field() {
    let faulty = |change: fn(&mut Request)| {
        let mut r = request();
        change(&mut r);
        r.check()
    };
    assert_eq!(request().check(), Ok(()));
    for (got, fault) in [
        (faulty(|r| r.count = 0), RequestFault::Count),
        (
            faulty(|r| r.disk_gib = DISK_MAX_GIB + 1),
            RequestFault::Disk,
        ),
        (faulty(|r| r.duration_ms = 0), RequestFault::Duration),
        (
            faulty(|r| r.duration_ms = DURATION_MAX_MS + 1),
            RequestFault::Duration,
        ),
        (
            faulty(|r| r.countries = ["de".to_owned()].into()),
            RequestFault::Country,
        ),
        (
            faulty(|r| r.not_countries = ["DEU".to_owned()].into()),
            RequestFault::Country,
        ),
        (
            faulty(|r| r.max_gpu_hour = Some(Micros::ZERO)),
            RequestFault::Ceiling,
        ),
        (faulty(|r| r.fees.tax_bps = 10_001), RequestFault::Fees),
        (
            faulty(|r| r.sort = vec![SortKey::Price; 6]),
            RequestFault::Sort,
        ),
    ] {
        assert_eq!(got, Err(fault));
    }
}

#[test]
fn each_sort_key_orders_as_documented() {
    let mut cheap = supply(1, &[(0, true)]);
    cheap.offer.terms.gpu_hour = Micros::new(1_000_000);
    cheap.offer.terms.storage_gib_month = Micros::new(100_000_000);
    cheap.gpu_memory_mib = 24_576;
    let dear = supply(2, &[(0, true)]);
    let book = Book::new([cheap.clone(), dear.clone()]);
    let first = |sort: Vec<SortKey>| {
        let asked = Request {
            sort,
            disk_gib: 100,
            ..request()
        };
        find(&book, &asked).unwrap().matches[0].supply.offer.id
    };
    // The dear disk makes the cheap GPU the dearer lease.
    assert_eq!(first(vec![]), dear.offer.id);
    assert_eq!(first(vec![SortKey::Price]), dear.offer.id);
    assert_eq!(first(vec![SortKey::PricePerGpuHour]), cheap.offer.id);
    assert_eq!(first(vec![SortKey::GpuMemory]), dear.offer.id);
    assert_eq!(
        first(vec![SortKey::GpuMemory, SortKey::PricePerGpuHour]),
        dear.offer.id
    );
    assert_eq!(first(vec![SortKey::PricePerGpuGib]), dear.offer.id);
}

#[test]
fn price_by_rate_wants_a_published_rate() {
    let mut fast = supply(1, &[(0, true)]);
    fast.offer.terms.gpu_hour = Micros::new(3_000_000);
    let mut slow = supply(2, &[(0, true)]);
    slow.model = "l4".to_owned();
    let mut unknown = supply(3, &[(0, true)]);
    unknown.model = "p40-24gb".to_owned();
    unknown.offer.terms.gpu_hour = Micros::new(1);
    let rates = [("h100-sxm-80gb", 989_000), ("l4", 121_000)];
    let book = Book::new([unknown.clone(), slow.clone(), fast.clone()])
        .with_rates(rates.map(|(m, r)| (m.to_owned(), r)).into());
    let by = |sort| {
        let asked = Request {
            sort: vec![sort],
            ..request()
        };
        let found = find(&book, &asked).unwrap().matches;
        found.iter().map(|m| m.supply.offer.id).collect::<Vec<_>>()
    };
    let (fast, slow, unknown) = (fast.offer.id, slow.offer.id, unknown.offer.id);
    assert_eq!(by(SortKey::PricePerTflop), [fast, slow, unknown]);
    assert_eq!(by(SortKey::Price), [unknown, slow, fast]);
}

#[test]
fn the_nearest_offer_is_proposed_and_only_if_one_change_is_enough() {
    let priced = |n, dollars: i64, country: &str| {
        let mut s = supply(n, &[(0, true)]);
        s.offer.terms.gpu_hour = Micros::new(dollars * 1_000_000);
        s.country = Some(country.to_owned());
        s
    };
    // The cheapest is in a country to avoid: no price alone wins it.
    let book = Book::new([priced(1, 2, "US"), priced(2, 3, "DE"), priced(3, 4, "DE")]);
    let asked = Request {
        max_gpu_hour: Some(Micros::new(1_000_000)),
        not_countries: ["US".to_owned()].into(),
        ..request()
    };
    let found = find(&book, &asked).unwrap();
    let told: Vec<_> = found
        .relaxations
        .iter()
        .map(|r| (r.constraint, r.to.as_str(), r.offers))
        .collect();
    assert_eq!(told, [(Constraint::Price, "3.000000", 1)]);
}

#[test]
fn what_excludes_alone_binds_before_what_excludes_often() {
    let mut excluded = Exclusions::default();
    for _ in 0..3 {
        excluded.add(&[Constraint::Model, Constraint::Price]);
    }
    assert_eq!(excluded.binding(), Some(Constraint::Model));
    excluded.add(&[Constraint::Disk]);
    assert_eq!(excluded.binding(), Some(Constraint::Disk));
    assert_eq!(
        excluded.counts().map(|(_, n)| n).collect::<Vec<_>>(),
        [3, 3, 1]
    );
}
