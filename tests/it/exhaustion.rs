//! Wallets that run dry: told in time, drained in order, never below zero.

use app::lease::LeaseAct;
use domain::clock::Span;
use domain::id::LeaseId;
use domain::lease::{LeaseReason, LeaseState};
use tests::world::World;

const HOUR: i64 = 3_600;

async fn told(world: &World, renter: &app::Caller, kind: &str) -> Vec<String> {
    let page = store::page::Page {
        limit: 200,
        after: None,
    };
    let all = app::event::list(&world.cx, renter, page).await.unwrap();
    let mut details: Vec<String> = all
        .rows
        .into_iter()
        .filter(|e| e.kind == kind)
        .map(|e| e.detail)
        .collect();
    details.reverse();
    details
}

async fn states(world: &World, leases: &[LeaseId]) -> Vec<LeaseState> {
    let mut states = Vec::new();
    for id in leases {
        states.push(world.lease(*id).await.state);
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_told_a_day_an_hour_and_ten_minutes_before_and_stopped_when_it_said() {
    let mut world = World::create().await;
    // 19 % tax on 1.00 an hour: 50 dollars last about 42 hours. No disk price.
    let host = world.host(1, (1_000_000, 0)).await;
    let renter = world.renter("ann", 50).await;
    let lease = world.book(&renter, host, 10).await.unwrap();
    world.step(Span::from_secs(1)).await;
    world.step(Span::from_secs(1)).await;
    let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
    let out = wallet.runs_out_at.unwrap();
    let hours = out.since(world.now()).secs() / HOUR;
    assert_eq!(hours, 42);
    assert!(told(&world, &renter, "wallet.low").await.is_empty());
    world.step(Span::from_secs(17 * HOUR)).await;
    assert!(told(&world, &renter, "wallet.low").await.is_empty());
    // The host was silent for long, but its clock proves the time: as far as the hold goes.
    world.pass(Span::from_mins(10)).await;
    world.prove().await;
    for _ in 0..30 {
        if world.lease(lease).await.state != LeaseState::Running {
            break;
        }
        let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
        assert!(
            wallet.available.get() >= 0
                && wallet.posted == wallet.held.plus(wallet.available).unwrap()
        );
        // In steps that a hold survives.
        for _ in 0..24 {
            world.step(Span::from_mins(4)).await;
        }
    }
    let ended = world.lease(lease).await;
    assert_eq!(ended.reason, LeaseReason::WalletExhausted);
    let warnings = told(&world, &renter, "wallet.low").await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
    assert!(wallet.posted.get() >= 0);
    // What was left at the stop is less than half a minute's worth and the disk's nothing.
    assert!(wallet.posted.get() < 60_000, "{wallet:?}");
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_youngest_is_stopped_first_and_its_money_serves_the_older() {
    let mut world = World::create().await;
    let host = world.host(3, (10_000_000, 0)).await;
    let renter = world.renter("ann", 8).await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(world.book(&renter, host, 10).await.unwrap());
        world.step(Span::from_secs(1)).await;
        world.step(Span::from_secs(1)).await;
    }
    assert_eq!(states(&world, &leases).await, [LeaseState::Running; 3]);
    let mut stops = Vec::new();
    for _ in 0..600 {
        world.step(Span::from_secs(10)).await;
        for (n, state) in states(&world, &leases).await.into_iter().enumerate() {
            if state != LeaseState::Running && !stops.contains(&n) {
                stops.push(n);
            }
        }
        if stops.len() == 3 {
            break;
        }
    }
    assert_eq!(stops, [2, 1, 0], "the youngest first");
    for id in &leases {
        let lease = world.lease(*id).await;
        assert_eq!(lease.reason, LeaseReason::WalletExhausted);
    }
    world.pass(Span::from_secs(20)).await;
    let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
    // All but crumbs was used: nothing lay idle in a hold while an older lease was stopped.
    assert!(wallet.posted.get() < 300_000, "{wallet:?}");
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_fills_the_holds_and_takes_the_warnings_back() {
    let mut world = World::create().await;
    let host = world.host(1, (20_000_000, 0)).await;
    let renter = world.renter("ann", 2).await;
    let lease = world.book(&renter, host, 10).await.unwrap();
    world.step(Span::from_secs(1)).await;
    world.pass(Span::from_secs(60)).await;
    assert_eq!(
        told(&world, &renter, "wallet.low").await.len(),
        1,
        "ten minutes and less at once"
    );
    world.top_up(&renter, 1).await;
    world.pass(Span::from_secs(20)).await;
    let held = app::wallet::get(&world.cx, &renter).await.unwrap();
    assert_eq!(
        held.available.get(),
        0,
        "what came is held at once: {held:?}"
    );
    world.top_up(&renter, 1_000).await;
    world.pass(Span::from_secs(20)).await;
    assert_eq!(world.lease(lease).await.state, LeaseState::Running);
    let rich = app::wallet::get(&world.cx, &renter).await.unwrap();
    assert!(rich.runs_out_at.unwrap().since(world.now()) > Span::from_hours(24));
    assert_eq!(told(&world, &renter, "wallet.low").await.len(), 1);
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_lease_s_disk_lives_as_long_as_it_is_paid_and_its_owner_is_told() {
    let mut world = World::create().await;
    // 73 dollars for a GiB-month are 0.10 an hour: with tax 2.856 a day.
    let host = world.host(1, (1_000_000, 73_000_000)).await;
    let renter = world.renter("ann", 4).await;
    let lease = world.book(&renter, host, 1).await.unwrap();
    world.step(Span::from_secs(1)).await;
    world.pass(Span::from_secs(30)).await;
    world
        .act(&renter, lease, LeaseAct::Stop { keep_gpus: false })
        .await;
    world.pass(Span::from_secs(30)).await;
    assert_eq!(world.lease(lease).await.state, LeaseState::Stopped);
    let wallet = app::wallet::get(&world.cx, &renter).await.unwrap();
    // Nothing of the running's window is kept back: the retention of a day is.
    assert!(
        (2_850_000..2_870_000).contains(&wallet.held.get()),
        "{wallet:?}"
    );
    let mut hours = 0;
    while world.lease(lease).await.state == LeaseState::Stopped {
        for _ in 0..6 {
            world.step(Span::from_mins(10)).await;
        }
        hours += 1;
        assert!(hours < 60);
    }
    world.pass(Span::from_secs(30)).await;
    let ended = world.lease(lease).await;
    assert_eq!(
        (ended.state, ended.reason),
        (LeaseState::Ended, LeaseReason::WalletExhausted)
    );
    // Four dollars pay 33 hours of disk.
    assert!((32..=35).contains(&hours), "{hours}");
    let warnings = told(&world, &renter, "lease.disk_ends").await;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    world.prove().await;
}
