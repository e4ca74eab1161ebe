//! A market's weeks by seed, over PostgreSQL: renters who book, stop, resume, end and pay; hosts
//! that fall silent and come back; a clock that jumps between rounds. The proof is the oracle.
//!
//! `GPUMARKET_WORLD_SEEDS=N` runs more seeds than the short form; a failure names its seed.

use app::lease::LeaseAct;
use domain::clock::Span;
use domain::id::LeaseId;
use domain::lease::LeaseState;
use tests::world::World;

/// Random choices that a seed repeats: SplitMix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).unwrap() % end
    }
}

struct Booked {
    lease: LeaseId,
    renter: usize,
}

async fn live(seed: u64) {
    let mut dice = Dice(seed);
    let mut world = World::create().await;
    let mut hosts = Vec::new();
    for (gpus, gpu_hour, gib_month) in [
        (2, 2_100_003, 73_000_001),
        (3, 700_001, 0),
        (1, 9_000_007, 1),
    ] {
        hosts.push(world.host(gpus, (gpu_hour, gib_month)).await);
    }
    let renters = [
        world.renter("rich", 5_000).await,
        world.renter("poor", 3).await,
        world.renter("middling", 40).await,
    ];
    let mut booked: Vec<Booked> = Vec::new();
    for _ in 0..120 {
        let renter = dice.below(3);
        match dice.below(12) {
            0..=3 => {
                let host = hosts[dice.below(3)];
                let disk = 1 + u32::try_from(dice.below(3)).unwrap();
                if let Ok(lease) = world.book(&renters[renter], host, disk).await {
                    booked.push(Booked { lease, renter });
                }
            }
            4..=6 if !booked.is_empty() => {
                let one = &booked[dice.below(booked.len())];
                let act = [
                    LeaseAct::Stop { keep_gpus: false },
                    LeaseAct::Stop { keep_gpus: true },
                    LeaseAct::Resume,
                    LeaseAct::End,
                ][dice.below(4)];
                world.try_act(&renters[one.renter], one.lease, act).await;
            }
            7 => {
                world
                    .top_up(&renters[renter], 1 + i64::try_from(dice.below(20)).unwrap())
                    .await
            }
            8 => {
                let host = hosts[dice.below(3)];
                world.hosts[host].online = !world.hosts[host].online;
            }
            _ => {}
        }
        // Mostly seconds, sometimes hours at once.
        let secs = [1, 7, 30, 120, 600, 7_200][dice.below(6)];
        world.step(Span::from_secs(secs)).await;
        for renter in &renters {
            let wallet = app::wallet::get(&world.cx, renter).await.unwrap();
            assert!(wallet.available.get() >= 0, "{wallet:?}");
        }
    }
    world.prove().await;
    for host in &mut world.hosts {
        host.online = true;
    }
    for one in &booked {
        world
            .try_act(&renters[one.renter], one.lease, LeaseAct::End)
            .await;
    }
    world.pass(Span::from_mins(2)).await;
    for one in &booked {
        let lease = world.lease(one.lease).await;
        assert!(
            matches!(lease.state, LeaseState::Ended | LeaseState::Failed),
            "{:?}",
            lease.state
        );
    }
    for renter in &renters {
        let wallet = app::wallet::get(&world.cx, renter).await.unwrap();
        assert_eq!(
            wallet.held.get(),
            0,
            "nothing lives, nothing is held: {wallet:?}"
        );
    }
    world.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weeks_of_a_market_stay_proven() {
    let seeds = std::env::var("GPUMARKET_WORLD_SEEDS").map_or(2, |n| n.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        live(seed).await;
    }
}
