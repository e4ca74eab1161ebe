//! Many at once: exactly one wins, the others learn why, and the ledger holds.

use billing::hold::{Burn, size};
use domain::money::{Micros, Period, Rate};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::market::{Market, lease_of, micros};
use tests::scripted_agent::ScriptedAgent;

/// 64 parallel bookings of the last GPU: one lease, 63 × 409 with a reason, one hold.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_gpu_has_one_winner() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "1000").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("one", 1), "2.10").await;
    let mut quotes = Vec::new();
    for _ in 0..64 {
        quotes.push(market.quote(&renter, &offer, 1).await);
    }
    agent.report(2_000, vec![]).await;
    let tries = quotes.iter().map(|q| {
        let (renter, body) = (renter.clone(), lease_of(q, &[]));
        async move { renter.post("/v1/leases", &body).await }
    });
    let replies = join_all(tries).await;
    let won = replies.iter().filter(|r| r.status.as_u16() == 201).count();
    assert_eq!(
        won,
        1,
        "{:?}",
        replies.iter().map(|r| r.status).collect::<Vec<_>>()
    );
    for reply in replies.iter().filter(|r| r.status.as_u16() != 201) {
        assert_eq!(reply.problem(409), "capacity_taken");
        assert!(reply.body["detail"].as_str().unwrap().len() > 10);
    }
    let wallet = renter.get("/v1/wallet").await.expect(200);
    let lease = replies.iter().find(|r| r.status.as_u16() == 201).unwrap();
    assert_eq!(micros(&wallet["held"]), micros(&lease.body["cost"]["held"]));
    market.prove();
}

/// Eight free GPUs and eight bookings at once: nobody is turned away by bad luck.
#[tokio::test(flavor = "multi_thread")]
async fn every_free_gpu_finds_its_renter() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "1000").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("eight", 8), "2.10").await;
    let mut quotes = Vec::new();
    for _ in 0..8 {
        quotes.push(market.quote(&renter, &offer, 1).await);
    }
    agent.report(2_000, vec![]).await;
    let tries = quotes.iter().map(|q| {
        let (renter, body) = (renter.clone(), lease_of(q, &[]));
        async move { renter.post("/v1/leases", &body).await.expect(201) }
    });
    let mut gpus: Vec<String> = join_all(tries)
        .await
        .iter()
        .map(|l| l["gpus"][0]["uuid"].as_str().unwrap().to_owned())
        .collect();
    gpus.sort();
    gpus.dedup();
    assert_eq!(gpus.len(), 8);
    market.prove();
}

/// What the holds of bookings one after another take out of a wallet, until it pays for no more.
fn holds(quote: &Value, mut available: Micros) -> Vec<Micros> {
    let rate = |price, per, count: &Value| {
        let unit = Rate {
            price: Micros::new(price),
            per,
        };
        unit.times(count.as_i64().unwrap()).unwrap()
    };
    let burn = Burn {
        compute: rate(2_100_000, Period::Hour, &quote["gpu_count"]),
        storage: rate(50_000, Period::Month, &quote["disk_gib"]),
        tax_bps: 0,
    };
    let mut taken = Vec::new();
    while let Ok(hold) = size(burn, available).unwrap() {
        available = available.minus(hold.amount).unwrap();
        taken.push(hold.amount);
    }
    taken
}

/// 64 parallel bookings on the last dollars: exactly as many as the wallet pays for.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_dollars_are_spent_once() {
    // Slow heartbeats: no link may end while the others are made.
    let market = Market::with_heartbeat(10_000).await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "7").await;
    let (mut agents, mut quotes) = (Vec::new(), Vec::new());
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let (agent, offer) = ScriptedAgent::listed(&market, &provider, (name, 8), "2.10").await;
        agents.push(agent);
        for _ in 0..8 {
            quotes.push(market.quote(&renter, &offer, 1).await);
        }
    }
    for agent in &mut agents {
        agent.report(2_000, vec![]).await;
    }
    let wanted = holds(&quotes[0], Micros::new(7_000_000));
    assert!((2..60).contains(&wanted.len()), "{wanted:?}");
    let tries = quotes.iter().map(|q| {
        let (renter, body) = (renter.clone(), lease_of(q, &[]));
        async move { renter.post("/v1/leases", &body).await }
    });
    let replies = join_all(tries).await;
    let won = replies.iter().filter(|r| r.status.as_u16() == 201).count();
    assert_eq!(won, wanted.len());
    for reply in replies.iter().filter(|r| r.status.as_u16() != 201) {
        assert_eq!(reply.problem(402), "insufficient_funds");
    }
    let wallet = renter.get("/v1/wallet").await.expect(200);
    let held: i64 = wanted.iter().map(|h| h.get()).sum();
    assert_eq!(micros(&wallet["held"]), held);
    assert_eq!(micros(&wallet["available"]), 7_000_000 - held);
    market.prove();
}

/// 50 parallel creates with one key: one lease, 50 identical replies, one hold.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_makes_one_lease() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "1000").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("eight", 8), "2.10").await;
    let quote = market.quote(&renter, &offer, 1).await;
    agent.report(2_000, vec![]).await;
    let body = lease_of(&quote, &[]);
    let tries = (0..50).map(|_| {
        let (renter, body) = (renter.clone(), body.clone());
        async move { renter.post_once("/v1/leases", "the-same-key", &body).await }
    });
    let replies = join_all(tries).await;
    for reply in &replies {
        assert_eq!(reply.status.as_u16(), 201, "{}", reply.body);
        assert_eq!(reply.bytes, replies[0].bytes);
    }
    let replayed = replies
        .iter()
        .filter(|r| r.headers.contains_key("idempotency-replayed"))
        .count();
    assert_eq!(replayed, 49);
    let leases = renter.get("/v1/leases").await.expect(200);
    assert_eq!(leases["data"].as_array().unwrap().len(), 1);
    let other = json!({"quote_id": quote["id"], "workload": {"image": "other:1"}});
    let mismatch = renter.post_once("/v1/leases", "the-same-key", &other).await;
    assert_eq!(mismatch.problem(409), "idempotency_mismatch");
    market.prove();
}

/// 20 top-ups with 10 keys at once: each key counts once.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_top_up_counts_once() {
    let market = Market::start().await;
    let renter = market.person("renter").await;
    let body = json!({"amount": {"amount": "3.50", "currency": "USD"}});
    let tries = (0..20).map(|n| {
        let (renter, body) = (renter.clone(), body.clone());
        async move {
            renter
                .post_once("/v1/wallet/top-ups", &format!("key-{}", n % 10), &body)
                .await
        }
    });
    for reply in join_all(tries).await {
        reply.expect(201);
    }
    let wallet = renter.get("/v1/wallet").await.expect(200);
    assert_eq!(micros(&wallet["posted"]), 35_000_000);
    market.prove();
}
