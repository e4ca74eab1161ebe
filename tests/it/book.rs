//! The book of each node: nothing committed is missed, nodes agree, and what happens when the
//! database or the feed is not there.

use std::collections::BTreeSet;

use app::Cx;
use app::book::{compare_book, follow_book, sweep_book};
use app::lease::LeaseAct;
use app::offer::{OfferPatch, SearchAsk, SearchView, search};
use billing::tax_rule::TaxTable;
use domain::clock::Span;
use domain::id::OfferId;
use domain::money::Micros;
use serde_json::json;
use tests::market::Market;
use tests::node::{StandingClock, context};
use tests::proxy::{Proxy, Stop};
use tests::scripted_agent::ScriptedAgent;
use tests::world::World;

fn ask() -> SearchAsk {
    SearchAsk {
        models: Vec::new(),
        count: 1,
        min_gpu_memory_mib: None,
        min_cpu_cores: None,
        min_ram_mib: None,
        disk_gib: 10,
        duration: Span::from_hours(1),
        countries: BTreeSet::new(),
        not_countries: BTreeSet::new(),
        max_gpu_hour: None,
        simulated: true,
        sort: Vec::new(),
        limit: 200,
        after: None,
    }
}

async fn find(cx: &Cx) -> SearchView {
    search(cx, ask()).await.unwrap()
}

/// The price of an offer as a node's search tells it.
async fn price(cx: &Cx, offer: OfferId) -> Option<i64> {
    let found = find(cx).await.found.matches;
    let hit = found.iter().find(|m| m.supply.offer.id == offer)?;
    Some(hit.supply.offer.terms.gpu_hour.get())
}

/// Another node on the same database, and its clock.
fn second(world: &World, url: &str) -> (Cx, StandingClock) {
    let clock = StandingClock::at(world.now());
    let cx = context(url, Box::new(clock.clone()), TaxTable::flat(1_900));
    (cx, clock)
}

fn at(gpu_hour: i64) -> OfferPatch {
    OfferPatch {
        gpu_hour: Some(Micros::new(gpu_hour)),
        ..OfferPatch::default()
    }
}

/// Both nodes show each change at once, while others change, book, end and search; at the end both
/// books are what the database says.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_see_every_change_at_once_and_agree_at_the_end() {
    let mut world = World::create().await;
    for _ in 0..6 {
        world.host(4, (1_000_000, 50_000)).await;
    }
    let renter = world.renter("ann", 10_000).await;
    let (other, _clock) = second(&world, &world.database.url);
    let changes = |host: usize| {
        let (world, other) = (&world, &other);
        async move {
            for round in 1..=12 {
                let wanted = 1_000_000 + i64::try_from(host).unwrap() * 1_000 + round;
                world.change_offer(host, at(wanted)).await;
                let offer = world.hosts[host].offer;
                assert_eq!(price(other, offer).await, Some(wanted));
                assert_eq!(price(&world.cx, offer).await, Some(wanted));
            }
        }
    };
    let bookings = |host: usize| {
        let (world, other, renter) = (&world, &other, &renter);
        async move {
            for _ in 0..3 {
                let lease = world.book(renter, host, 10).await.unwrap();
                let seen = find(other).await.found.matches;
                let machine = world.hosts[host].id;
                let supply = seen
                    .iter()
                    .find(|m| m.supply.offer.machine == machine)
                    .unwrap();
                assert!(supply.supply.free() < 4);
                assert!(world.try_act(renter, lease, LeaseAct::End).await);
            }
        }
    };
    tokio::join!(
        changes(0),
        changes(1),
        changes(2),
        bookings(3),
        bookings(4),
        async {
            for _ in 0..40 {
                assert_eq!(find(&other).await.considered, 6);
            }
        }
    );
    app::offer::withdraw(
        &world.cx,
        &world.hosts[5].provider,
        (world.hosts[5].offer, None),
    )
    .await
    .unwrap();
    assert_eq!(find(&other).await.considered, 5);
    assert_eq!(compare_book(&world.cx).await.unwrap(), []);
    assert_eq!(compare_book(&other).await.unwrap(), []);
}

/// The trap of every feed by sequence: a change that began first and commits last.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_commits_late_is_not_missed() {
    let mut world = World::create().await;
    let (late, early) = (world.host(1, (10, 0)).await, world.host(1, (20, 0)).await);
    let offer = world.hosts[late].offer;
    assert_eq!(price(&world.cx, offer).await, Some(10));
    let slow = world.database.client().await;
    slow.batch_execute("BEGIN").await.unwrap();
    let change = format!(
        "UPDATE offer SET gpu_hour = 15 WHERE id = '{}'",
        offer.uuid()
    );
    slow.batch_execute(&change).await.unwrap();
    // Others overtake it, and the node reads on.
    for round in 0..3 {
        world.change_offer(early, at(30 + round)).await;
        assert_eq!(
            price(&world.cx, world.hosts[early].offer).await,
            Some(30 + round)
        );
        assert_eq!(price(&world.cx, offer).await, Some(10));
    }
    slow.batch_execute("COMMIT").await.unwrap();
    assert_eq!(price(&world.cx, offer).await, Some(15));
    assert_eq!(compare_book(&world.cx).await.unwrap(), []);
}

/// Who was away for longer than changes are kept reads everything again.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_gap_the_book_is_read_again() {
    let mut world = World::create().await;
    let host = world.host(1, (10, 0)).await;
    let offer = world.hosts[host].offer;
    let (away, _clock) = second(&world, &world.database.url);
    assert_eq!(price(&away, offer).await, Some(10));
    world.change_offer(host, at(20)).await;
    let sql = world.database.client().await;
    assert_eq!(sweep_book(&world.cx).await.unwrap(), 0, "nothing is old");
    sql.batch_execute("UPDATE book_change SET at = at - interval '61 minutes'")
        .await
        .unwrap();
    // Transactions of other tests hold rows back for a moment: they are in the same cluster.
    tests::wait::until("old changes to be forgotten", async || {
        sweep_book(&world.cx).await.unwrap();
        let left = sql.query_one("SELECT count(*) FROM book_change", &[]);
        (left.await.unwrap().get::<_, i64>(0) == 0).then_some(())
    })
    .await;
    assert_eq!(price(&away, offer).await, Some(20));
    // And from there it follows the feed: nothing new, nothing read.
    assert_eq!(follow_book(&away).await.unwrap(), 0);
    world.change_offer(host, at(30)).await;
    assert_eq!(follow_book(&away).await.unwrap(), 1);
    assert_eq!(price(&away, offer).await, Some(30));
}

/// Searches go on from memory while the database is away, for as long as a machine may be silent.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_memory_answers_and_says_from_when() {
    let mut world = World::create().await;
    let host = world.host(1, (10, 0)).await;
    let proxy = Proxy::start(&world.database.url, Stop::At(usize::MAX)).await;
    let (node, clock) = second(&world, &proxy.url);
    let fresh = find(&node).await;
    assert_eq!(fresh.found.fitting, 1);
    drop(proxy);
    clock.pass(Span::from_secs(29));
    let old = find(&node).await;
    assert_eq!((old.found.fitting, old.as_of), (1, fresh.as_of));
    clock.pass(Span::from_secs(2));
    assert!(search(&node, ask()).await.is_err());

    // Connections that end are no reason to be wrong.
    let (node, _clock) = second(&world, &world.database.url);
    find(&node).await;
    let sql = world.database.client().await;
    for round in 1..=5 {
        world.change_offer(host, at(10 + round)).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sql.execute(end, &[]).await.unwrap();
        let offer = world.hosts[host].offer;
        tests::wait::until("the node sees the change", async || {
            (price(&node, offer).await == Some(10 + round)).then_some(())
        })
        .await;
        tests::wait::until("the market has a connection", async || {
            price(&world.cx, offer).await.filter(|p| *p == 10 + round)
        })
        .await;
    }
    assert_eq!(compare_book(&node).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_machine_leaves_the_book_and_comes_back() {
    let mut world = World::create().await;
    let host = world.host(1, (10, 0)).await;
    assert_eq!(find(&world.cx).await.found.fitting, 1);
    world.hosts[host].online = false;
    world.pass(Span::from_secs(40)).await;
    let found = find(&world.cx).await.found;
    assert_eq!(found.fitting, 0);
    assert_eq!(found.excluded.binding().unwrap().field(), "bookable");
    assert_eq!(compare_book(&world.cx).await.unwrap(), []);
    world.hosts[host].online = true;
    world.pass(Span::from_secs(20)).await;
    assert_eq!(find(&world.cx).await.found.fitting, 1);
    assert_eq!(compare_book(&world.cx).await.unwrap(), []);
}

/// Parts over HTTP while prices change; what is not known is refused by name; a killed server reads
/// its book again.
#[tokio::test(flavor = "multi_thread")]
async fn parts_over_http_stand_while_the_market_moves() {
    let mut market = Market::start().await;
    let provider = market.person("provider").await;
    let mut offers = Vec::new();
    let mut agents = Vec::new();
    for number in 0..4 {
        let price = format!("{}.00", number + 1);
        let name = format!("machine{number}");
        let (agent, offer) = ScriptedAgent::listed(&market, &provider, (&name, 2), &price).await;
        offers.push(offer["id"].as_str().unwrap().to_owned());
        agents.push(agent);
    }
    let client = market.client();
    let mut wanted =
        json!({"simulated": true, "limit": 2, "sort": ["price_per_tflop", "price_per_gpu_gib"]});
    let first = client.post("/v1/offers/search", &wanted).await.expect(200);
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|m| m["offer_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&first), offers[..2]);
    assert_eq!(
        (&first["fitting"], &first["has_more"]),
        (&json!(4), &json!(true))
    );
    assert!(first["facets"].is_null());
    // One that was shown becomes the dearest, one that was not becomes the cheapest.
    for (offer, usd) in [(0, "9.00"), (3, "0.50")] {
        let path = format!("/v1/offers/{}", offers[offer]);
        let body = json!({"price": {"amount": usd, "currency": "USD", "per": "gpu_hour"}});
        let patch = provider.request(reqwest::Method::PATCH, &path);
        let patch = patch.header("if-match", "\"v1\"").body(body.to_string());
        let patch = patch.header("content-type", "application/merge-patch+json");
        provider.send(patch).await.expect(200);
    }
    wanted["cursor"] = first["next_cursor"].clone();
    wanted["facets"] = json!(true);
    let second = client.post("/v1/offers/search", &wanted).await.expect(200);
    assert_eq!(ids(&second), offers[2..3]);
    assert_eq!(
        (&second["changed"], &second["has_more"]),
        (&json!(2), &json!(false))
    );
    let sum = |name: &str| -> i64 {
        let counts = second["facets"][name].as_array().unwrap().iter();
        counts.map(|c| c["offers"].as_i64().unwrap()).sum()
    };
    assert_eq!(
        (sum("gpu_models"), sum("countries"), sum("prices")),
        (4, 4, 4)
    );
    for bad in [
        json!({"sort": ["carbon"]}),
        json!({"cursor": "s1"}),
        json!({"cursor": first["next_cursor"], "simulated": true}),
        json!({"sort": vec!["price"; 6]}),
    ] {
        client.post("/v1/offers/search", &bad).await.problem(422);
    }
    market.server.kill();
    market.restart().await;
    wanted["cursor"] = serde_json::Value::Null;
    let client = market.client();
    let again = client.post("/v1/offers/search", &wanted).await.expect(200);
    assert_eq!(again["considered"], 4);
}
