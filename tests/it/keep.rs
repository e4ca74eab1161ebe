//! Stopped leases that keep their GPUs: what it costs, who else gets them, what a resume gets.

use app::lease::LeaseAct;
use app::offer::OfferPatch;
use billing::statement::{MeterLines, StatementBody, verify};
use domain::clock::Span;
use domain::id::{GpuId, LeaseId};
use domain::lease::{LeaseReason, LeaseState};
use domain::money::Micros;
use domain::refusal::Code;
use store::db::Ro;
use store::error::Error;
use tests::world::World;

const KEEP: LeaseAct = LeaseAct::Stop { keep_gpus: true };
const STOP: LeaseAct = LeaseAct::Stop { keep_gpus: false };
/// 0.001 USD a second.
const USE: i64 = 3_600_000;
/// A quarter of it.
const KEPT: i64 = 900_000;

/// A host of `gpus` GPUs that asks [`USE`] and [`KEPT`], and nothing for disks.
async fn keeping(world: &mut World, gpus: u16) -> usize {
    let host = world.host(gpus, (USE, 0)).await;
    world.change_offer(host, keep_at(KEPT)).await;
    host
}

fn keep_at(gpu_hour: i64) -> OfferPatch {
    OfferPatch {
        keep_gpu_hour: Some(Some(Micros::new(gpu_hour))),
        ..OfferPatch::default()
    }
}

async fn running(world: &mut World, renter: &app::Caller, host: usize) -> LeaseId {
    let lease = world.book(renter, host, 10).await.unwrap();
    world.step(Span::from_secs(1)).await;
    assert_eq!(world.lease(lease).await.state, LeaseState::Running);
    lease
}

async fn gpus_of(world: &World, lease: LeaseId) -> Vec<GpuId> {
    let held = world
        .cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| store::lease::gpus_of(ro, &[lease]).await);
    held.await.unwrap().into_iter().map(|(_, g)| g.id).collect()
}

/// The GPU time of the statement that both sides can verify.
async fn gpu_time(world: &World, party: &app::Caller, lease: LeaseId) -> MeterLines {
    let bytes = app::lease::statement(&world.cx, party, lease)
        .await
        .unwrap();
    let meters = verify::<StatementBody>(&bytes, None)
        .unwrap()
        .statement
        .body
        .meters;
    meters
        .into_iter()
        .find(|m| m.resource == "compute")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn used_and_kept_seconds_have_their_own_prices() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    let lease = running(&mut world, &renter, host).await;
    let first = gpus_of(&world, lease).await;
    world.pass(Span::from_secs(100)).await;
    world.act(&renter, lease, KEEP).await;
    world.pass(Span::from_secs(200)).await;
    let kept = world.view(&renter, lease).await;
    assert_eq!(kept.lease.state, LeaseState::Stopped);
    // With 19 % tax.
    assert_eq!(kept.cost.rate_per_hour.get(), 1_071_000);
    assert_eq!(kept.after_stop.unwrap().per_day.get(), 24 * 1_071_000);
    assert_eq!(gpus_of(&world, lease).await, first);
    world.act(&renter, lease, LeaseAct::Resume).await;
    world.step(Span::from_secs(1)).await;
    let again = world.view(&renter, lease).await;
    assert_eq!(again.lease.state, LeaseState::Running);
    assert_eq!(again.cost.rate_per_hour.get(), 4_284_000);
    assert_eq!(gpus_of(&world, lease).await, first);
    world.pass(Span::from_secs(50)).await;
    world.act(&renter, lease, LeaseAct::End).await;
    world.pass(Span::from_secs(20)).await;
    let bill = gpu_time(&world, &renter, lease).await;
    let prices: Vec<i64> = bill.segments.iter().map(|s| s.price_micros).collect();
    assert_eq!(prices, [USE, KEPT, USE]);
    let of_segment = |no: i64| {
        let charges = bill.charges.iter().filter(|c| c.segment == Some(no));
        charges.fold((0, 0), |(ms, gross), c| {
            (ms + c.billable_ms, gross + c.gross_micros)
        })
    };
    assert_eq!(of_segment(1), (100_000, 100_000));
    assert_eq!(of_segment(2), (200_000, 50_000));
    assert_eq!(of_segment(3), (50_000, 50_000));
    let provider = &world.hosts[host].provider;
    let theirs = gpu_time(&world, provider, lease).await;
    assert_eq!(
        serde_json::to_value(theirs).unwrap(),
        serde_json::to_value(bill).unwrap()
    );
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_without_a_keep_price_asks_that_of_use() {
    let mut world = World::create().await;
    let host = world.host(1, (USE, 0)).await;
    let renter = world.renter("ann", 50).await;
    let lease = running(&mut world, &renter, host).await;
    world.act(&renter, lease, KEEP).await;
    world.pass(Span::from_secs(20)).await;
    let kept = world.view(&renter, lease).await;
    assert_eq!(kept.cost.rate_per_hour.get(), 4_284_000);
    // The price of a quote is firm: a later keep price is not this lease's.
    world.change_offer(host, keep_at(0)).await;
    world.pass(Span::from_secs(20)).await;
    let kept = world.view(&renter, lease).await;
    assert_eq!(kept.cost.rate_per_hour.get(), 4_284_000);
    world.prove().await;
}

/// The market is full and others want in: whoever keeps gets the same GPUs, each time.
///
/// `GPUMARKET_KEEP_CYCLES=N` runs so many cycles.
#[tokio::test(flavor = "multi_thread")]
async fn under_full_load_every_resume_gets_the_same_gpus() {
    let cycles = std::env::var("GPUMARKET_KEEP_CYCLES").map_or(40, |n| n.parse().unwrap());
    let mut world = World::create().await;
    let host = keeping(&mut world, 4).await;
    let renter = world.renter("ann", 10_000).await;
    let other = world.renter("bob", 10_000).await;
    let mut mine = Vec::new();
    for _ in 0..2 {
        let lease = running(&mut world, &renter, host).await;
        mine.push((lease, gpus_of(&world, lease).await));
    }
    for _ in 0..2 {
        running(&mut world, &other, host).await;
    }
    let mut same = 0;
    for cycle in 0..cycles {
        let (lease, gpus) = &mine[cycle % 2];
        world.act(&renter, *lease, KEEP).await;
        // Someone wants it while it stops, and once it is stopped.
        let early = world.book(&other, host, 10).await.unwrap_err();
        world.step(Span::from_secs(1)).await;
        assert_eq!(world.lease(*lease).await.state, LeaseState::Stopped);
        let late = world.book(&other, host, 10).await.unwrap_err();
        for refusal in [early, late] {
            assert!(
                matches!(&refusal, app::Error::Refused(r) if r.code == Code::CapacityTaken),
                "{refusal:?}"
            );
        }
        world.act(&renter, *lease, LeaseAct::Resume).await;
        world.step(Span::from_secs(1)).await;
        assert_eq!(world.lease(*lease).await.state, LeaseState::Running);
        same += usize::from(gpus_of(&world, *lease).await == *gpus);
    }
    assert_eq!(same, cycles);
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keeping_a_taken_gpu_is_refused_with_an_offer_to_move_to() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    let other = world.renter("bob", 50).await;
    let lease = running(&mut world, &renter, host).await;
    world.act(&renter, lease, STOP).await;
    world.step(Span::from_secs(1)).await;
    let others = running(&mut world, &other, host).await;
    let alone = world
        .refusal(&renter, lease, LeaseAct::Resume)
        .await
        .unwrap();
    assert_eq!(alone.code, Code::CapacityTaken);
    assert!(!alone.suggestion.unwrap().contains("ofr_"));
    let dear = world.host(1, (2 * USE, 0)).await;
    let cheap = world.host(1, (USE, 0)).await;
    let refusal = world
        .refusal(&renter, lease, LeaseAct::Resume)
        .await
        .unwrap();
    assert_eq!(refusal.code, Code::CapacityTaken);
    let text = refusal.suggestion.unwrap();
    assert!(
        text.contains(&world.hosts[cheap].offer.to_string()),
        "{text}"
    );
    assert!(
        !text.contains(&world.hosts[dear].offer.to_string()),
        "{text}"
    );
    // The refusal changed nothing, and once the GPU is free the resume gets it.
    assert_eq!(world.lease(lease).await.state, LeaseState::Stopped);
    world.act(&other, others, LeaseAct::End).await;
    world.pass(Span::from_secs(20)).await;
    world.act(&renter, lease, LeaseAct::Resume).await;
    world.step(Span::from_secs(1)).await;
    assert_eq!(world.lease(lease).await.state, LeaseState::Running);
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_stop_gives_kept_gpus_back_and_none_takes_them_again() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    let other = world.renter("bob", 50).await;
    let lease = running(&mut world, &renter, host).await;
    world.act(&renter, lease, KEEP).await;
    // The same again changes nothing.
    world.act(&renter, lease, KEEP).await;
    world.pass(Span::from_secs(30)).await;
    world.act(&renter, lease, KEEP).await;
    assert!(world.lease(lease).await.keeps_gpus);
    world.act(&renter, lease, STOP).await;
    let freed = world.lease(lease).await;
    assert_eq!(
        (freed.state, freed.keeps_gpus),
        (LeaseState::Stopped, false)
    );
    assert!(gpus_of(&world, lease).await.is_empty());
    let before = gpu_time(&world, &renter, lease).await;
    world.pass(Span::from_secs(60)).await;
    let after = gpu_time(&world, &renter, lease).await;
    assert_eq!(
        serde_json::to_value(before).unwrap(),
        serde_json::to_value(after).unwrap(),
        "nothing is billed once they are given back"
    );
    let refusal = world.refusal(&renter, lease, KEEP).await.unwrap();
    assert_eq!(refusal.code, Code::LeaseState);
    assert!(refusal.suggestion.unwrap().contains("keep_gpus"));
    running(&mut world, &other, host).await;
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_machine_earns_nothing_for_what_it_keeps() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    let lease = running(&mut world, &renter, host).await;
    world.act(&renter, lease, KEEP).await;
    world.pass(Span::from_secs(30)).await;
    let before = world.view(&renter, lease).await.cost;
    world.hosts[host].online = false;
    world.pass(Span::from_mins(30)).await;
    let silent = world.view(&renter, lease).await;
    assert_eq!(silent.cost.billable_ms, before.billable_ms);
    assert_eq!(
        world
            .refusal(&renter, lease, LeaseAct::Resume)
            .await
            .unwrap()
            .code,
        Code::MachineUnreachable
    );
    // It boots anew: what lay between is proven by nothing.
    world.reboot(host);
    world.pass(Span::from_secs(30)).await;
    let back = world.view(&renter, lease).await;
    let more = back.cost.billable_ms - before.billable_ms;
    assert!((1..=30_000).contains(&more), "{more}");
    assert!(back.lease.keeps_gpus);
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_money_frees_what_is_kept_before_it_stops_what_runs() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 2).await;
    let renter = world.renter("ann", 3).await;
    let kept = running(&mut world, &renter, host).await;
    let works = running(&mut world, &renter, host).await;
    world.act(&renter, kept, KEEP).await;
    world.step(Span::from_secs(1)).await;
    let mut freed = None;
    for round in 0..600 {
        world.step(Span::from_secs(10)).await;
        if freed.is_none() && !world.lease(kept).await.keeps_gpus {
            assert_eq!(world.lease(works).await.state, LeaseState::Running);
            freed = Some(round);
        }
        if world.lease(works).await.state != LeaseState::Running {
            break;
        }
    }
    world.pass(Span::from_secs(20)).await;
    assert!(freed.is_some_and(|round| round > 10), "{freed:?}");
    let idle = world.lease(kept).await;
    assert_eq!(
        (idle.state, idle.reason),
        (LeaseState::Stopped, LeaseReason::WalletExhausted)
    );
    let stopped = world.lease(works).await;
    assert_eq!(stopped.reason, LeaseReason::WalletExhausted);
    let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
    assert!((0..60_000).contains(&wallet.posted.get()), "{wallet:?}");
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_resume_keeps_what_was_kept() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    let lease = running(&mut world, &renter, host).await;
    let first = gpus_of(&world, lease).await;
    world.act(&renter, lease, KEEP).await;
    world.pass(Span::from_secs(20)).await;
    world.act(&renter, lease, LeaseAct::Resume).await;
    world.hosts[host].online = false;
    // Beyond the limit of `resuming`, without a sign of progress.
    world.pass(Span::from_mins(11)).await;
    let back = world.lease(lease).await;
    assert_eq!(
        (back.state, back.reason, back.keeps_gpus),
        (LeaseState::Stopped, LeaseReason::TimedOut, true)
    );
    assert_eq!(gpus_of(&world, lease).await, first);
    world.hosts[host].online = true;
    world.pass(Span::from_secs(20)).await;
    world.act(&renter, lease, LeaseAct::Resume).await;
    world.pass(Span::from_secs(20)).await;
    assert_eq!(world.lease(lease).await.state, LeaseState::Running);
    assert_eq!(gpus_of(&world, lease).await, first);
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_the_booking_bounds_what_is_kept_too() {
    let mut world = World::create().await;
    // A disk of 10 GiB at 0.01 an hour.
    let host = world.host(1, (USE, 730_000)).await;
    let renter = world.renter("ann", 50).await;
    let cap = Micros::new(1_000_000);
    let lease = world
        .book_capped(&renter, host, (10, Some(cap)))
        .await
        .unwrap();
    world.step(Span::from_secs(1)).await;
    world.act(&renter, lease, KEEP).await;
    for _ in 0..200 {
        world.step(Span::from_secs(10)).await;
        let cost = world.view(&renter, lease).await.cost;
        assert!(cost.accrued <= cap, "{cost:?}");
        if !world.lease(lease).await.keeps_gpus {
            break;
        }
    }
    let freed = world.lease(lease).await;
    assert_eq!(
        (freed.state, freed.reason, freed.keeps_gpus),
        (LeaseState::Ending, LeaseReason::MaxSpend, false)
    );
    let spent = world.view(&renter, lease).await.cost.accrued;
    // Nothing but a last round's worth is left of it.
    assert!(cap.get() - spent.get() < 15_000, "{spent:?}");
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_a_machine_does_not_answer_keeps_the_disk() {
    let mut world = World::create().await;
    let host = keeping(&mut world, 1).await;
    let renter = world.renter("ann", 50).await;
    for act in [STOP, KEEP] {
        let lease = running(&mut world, &renter, host).await;
        world.hosts[host].online = false;
        world.act(&renter, lease, act).await;
        world.pass(Span::from_mins(15)).await;
        let stopped = world.lease(lease).await;
        assert_eq!(
            (stopped.state, stopped.reason),
            (LeaseState::Stopped, LeaseReason::TimedOut)
        );
        world.hosts[host].online = true;
        world.pass(Span::from_secs(20)).await;
        world.act(&renter, lease, LeaseAct::Resume).await;
        world.step(Span::from_secs(1)).await;
        assert_eq!(world.lease(lease).await.state, LeaseState::Running);
        world.act(&renter, lease, LeaseAct::End).await;
        world.pass(Span::from_secs(20)).await;
    }
    world.prove().await;
}
