//! Properties over random books and requests, against a naive evaluator.

use proptest::prelude::*;

use super::*;

pub(super) fn any_supply() -> impl Strategy<Value = Supply> {
    let facts = (
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        0usize..3,
        1i64..5,
        0u64..6,
        0usize..3,
    );
    let size = (1u16..4, 1u32..4, 1u64..4);
    (
        1u128..1_000,
        prop::collection::vec((0u16..3, prop::bool::weighted(0.7)), 1..9),
        facts,
        size,
    )
        .prop_map(
            |(n, slots, (bookable, simulated, model, price, disk, country), (min, cores, ram))| {
                let mut s = supply(n, &slots);
                s.bookable = bookable;
                s.simulated = simulated;
                s.model = ["h100-sxm-80gb", "a100-sxm4-80gb", "l4"][model].to_owned();
                s.gpu_memory_mib = [81_920, 81_920, 24_576][model];
                s.offer.terms.gpu_hour = Micros::new(price * 1_000_000);
                s.offer.terms.min_gpus = min.min(s.offer.terms.max_gpus);
                s.cpu_cores = cores * 8;
                s.ram_mib = ram * 16_384;
                s.disk_free_gib = disk * 10;
                s.country = [None, Some("DE"), Some("US")][country].map(str::to_owned);
                s
            },
        )
}

/// Mostly little is asked, so that about half of the requests find something.
pub(super) fn any_request() -> impl Strategy<Value = Request> {
    let seldom = |n: usize| prop_oneof![3 => Just(0usize), 1 => 1..n];
    let wants = (
        seldom(3),
        prop_oneof![3 => 1u16..4, 1 => 4u16..9],
        prop::option::weighted(0.3, 20_000u32..90_000),
        prop::option::weighted(0.4, 1i64..5),
        prop::option::weighted(0.3, 1u32..30),
        prop::option::weighted(0.3, 10_000u64..60_000),
    );
    let place = (seldom(3), seldom(3), any::<bool>(), 0u32..60, 0usize..6);
    (wants, place).prop_map(
        |(
            (model, count, memory, price, cores, ram),
            (inside, outside, simulated, disk_gib, sort),
        )| {
            let set =
                |n: usize, all: [&str; 2]| all.iter().take(n).map(|s| (*s).to_owned()).collect();
            Request {
                models: set(model, ["h100-sxm-80gb", "l4"]),
                count,
                min_gpu_memory_mib: memory,
                min_cpu_cores: cores,
                min_ram_mib: ram,
                countries: set(inside, ["DE", "US"]),
                not_countries: set(outside.min(1), ["US", "DE"]),
                max_gpu_hour: price.map(|p| Micros::new(p * 1_000_000)),
                simulated,
                disk_gib,
                sort: [
                    vec![SortKey::Price],
                    vec![SortKey::PricePerGpuHour, SortKey::GpuMemory],
                    vec![SortKey::GpuMemory],
                    vec![SortKey::PricePerTflop, SortKey::Price],
                    vec![SortKey::PricePerGpuGib],
                    vec![],
                ][sort]
                    .clone(),
                ..request()
            }
        },
    )
}

/// Written from the docs of `Request`, field by field, without `constraint`.
pub(super) fn naive(s: &Supply, r: &Request) -> bool {
    let free = s.slots.iter().filter(|x| x.free).count();
    let country = s.country.clone().unwrap_or_default();
    s.bookable
        && (!s.simulated || r.simulated)
        && (r.models.is_empty() || r.models.iter().any(|m| *m == s.model))
        && free >= usize::from(r.count)
        && r.count >= s.offer.terms.min_gpus
        && r.count <= s.offer.terms.max_gpus
        && s.gpu_memory_mib >= r.min_gpu_memory_mib.unwrap_or(0)
        && s.cpu_cores >= r.min_cpu_cores.unwrap_or(0)
        && s.ram_mib >= r.min_ram_mib.unwrap_or(0)
        && (r.countries.is_empty() || r.countries.contains(&country))
        && (r.not_countries.is_empty()
            || (!country.is_empty() && !r.not_countries.contains(&country)))
        && s.offer.terms.gpu_hour.get() <= r.max_gpu_hour.map_or(i64::MAX, Micros::get)
        && s.disk_free_gib >= u64::from(r.disk_gib)
}

/// The request that a proposal's words describe, read back from the words.
fn apply(r: &Request, p: &Relaxation) -> Request {
    let mut r = r.clone();
    match p.constraint {
        Constraint::Price => r.max_gpu_hour = Some(p.to.parse().unwrap()),
        Constraint::Model => r.models = p.to.split(", ").map(str::to_owned).collect(),
        Constraint::FreeGpus | Constraint::Chunk => r.count = p.to.parse().unwrap(),
        Constraint::Disk => r.disk_gib = p.to.parse().unwrap(),
        Constraint::Simulated => r.simulated = p.to.parse().unwrap(),
        Constraint::Country => r.countries.clear(),
        Constraint::NotCountry => r.not_countries.clear(),
        Constraint::GpuMemory => r.min_gpu_memory_mib = Some(p.to.parse().unwrap()),
        Constraint::CpuCores => r.min_cpu_cores = Some(p.to.parse().unwrap()),
        Constraint::Ram => r.min_ram_mib = Some(p.to.parse().unwrap()),
        Constraint::Bookable => panic!("nobody can ask for that"),
    }
    r
}

proptest! {
    #[test]
    fn search_is_sound_and_complete(
        supplies in prop::collection::vec(any_supply(), 0..20),
        r in any_request(),
    ) {
        let book = Book::new(supplies);
        let found = find(&book, &r).unwrap();
        prop_assert_eq!(&found, &find(&book, &r).unwrap());
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

    #[test]
    fn a_proposal_leads_to_offers_and_a_refusal_has_a_reason(
        supplies in prop::collection::vec(any_supply(), 1..12),
        r in any_request(),
    ) {
        let book = Book::new(supplies);
        match place_best(&book, &r) {
            Ok(placed) => {
                let supply = book.get(placed.offer).unwrap();
                prop_assert!(naive(supply, &r));
                let mut after = book.clone();
                prop_assert!(after.take(placed.offer, &placed.gpus));
                prop_assert!(!after.take(placed.offer, &placed.gpus[..1]));
                prop_assert_eq!(after.get(placed.offer).unwrap().free() + r.count, supply.free());
                prop_assert!(after.release(placed.offer, &placed.gpus));
                prop_assert_eq!(after, book);
            }
            Err(Refused::NoFit(found)) => {
                prop_assert!(found.excluded.binding().is_some());
                for p in found.relaxations {
                    prop_assert_eq!(book.iter().filter(|s| naive(s, &apply(&r, &p))).count(), usize::try_from(p.offers).unwrap());
                    prop_assert!(p.offers > 0);
                }
            }
            Err(Refused::Price) => prop_assert!(false),
        }
    }

    #[test]
    fn checked_requests_at_checked_terms_always_have_a_price(
        (gpu_hour, gib_month) in (1i64..=1_000_000_000, 0i64..=100_000_000),
        (count, disk_gib, duration_ms) in (1u16.., 0..=DISK_MAX_GIB, 1..=DURATION_MAX_MS),
        (fee_bps, tax_bps) in (0u32..=10_000, 0u32..=10_000),
    ) {
        let terms = OfferTerms { gpu_hour: Micros::new(gpu_hour), bid_floor: None, keep_gpu_hour: None,
            storage_gib_month: Micros::new(gib_month), min_gpus: 1, max_gpus: u16::MAX };
        let fees = Fees { fee_bps, tax_bps };
        let r = Request { count, disk_gib, duration_ms, ..Request::any(fees) };
        prop_assert!(r.check().is_ok() && terms.check(u16::MAX).is_ok());
        let p = all_in(&terms, size(&r), fees).unwrap();
        let floor = |a: i128, b: i128, by: i128| i64::try_from(a * b / by).unwrap();
        let compute = floor(i128::from(gpu_hour) * i128::from(count), i128::from(duration_ms), 3_600_000);
        let storage = floor(i128::from(gib_month) * i128::from(disk_gib), i128::from(duration_ms), 2_628_000_000);
        let part = |bps: u32| floor(compute.into(), bps.into(), 10_000) + floor(storage.into(), bps.into(), 10_000);
        prop_assert_eq!((p.compute.get(), p.storage.get()), (compute, storage));
        prop_assert_eq!((p.fee_included.get(), p.tax.get()), (part(fee_bps), part(tax_bps)));
        prop_assert_eq!(p.total.get(), compute + storage + part(tax_bps));
    }
}
