//! Durable bookings over HTTP: a real server process, 64 clients, each with a wallet of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::id::QuoteId;
use futures_util::future::join_all;
use serde_json::json;
use tests::database::TestDatabase;
use tests::market::Market;
use tokio_postgres::Client;

use crate::Asked;
use crate::cluster::{Cluster, Script};
use crate::cpu::Cost;
use crate::report::{Report, Row, median};
use crate::wire::Wire;
use crate::{cpu, supply};

const CLIENTS: usize = 64;
/// Machines on offer: room for tens of thousands of leases of one GPU.
const MACHINES: i64 = 8_000;
/// More than anybody books in a second here.
const MOST_PER_SECOND: i64 = 3_000;

/// A client with its party and its quotes.
struct Renter {
    wire: Wire,
    party: String,
    quotes: Vec<String>,
}

async fn renters(market: &Market, sql: &Client) -> Vec<Renter> {
    let mut renters = Vec::new();
    for n in 0..CLIENTS {
        let name = format!("renter-{n}");
        let person = market.renter(&name, "100000").await;
        let row = sql
            .query_one(
                "SELECT party_id::text FROM membership m JOIN app_user u ON u.id = m.user_id WHERE email = $1",
                &[&format!("{name}@example.org")],
            )
            .await
            .unwrap();
        renters.push(Renter {
            wire: Wire::connect(&market.base, person.bearer()).await,
            party: row.get(0),
            quotes: Vec::new(),
        });
    }
    renters
}

/// Gives each renter quotes; `from` counts all so far.
async fn quote(sql: &Client, renters: &mut [Renter], (from, count): (i64, i64)) {
    let parties: Vec<String> = renters.iter().map(|r| r.party.clone()).collect();
    let mut by_party: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (quote, party) in supply::quotes(sql, &parties, (from, count)).await {
        let id = QuoteId::from_uuid(quote.parse().unwrap()).to_string();
        by_party.entry(party).or_default().push(id);
    }
    for renter in renters {
        renter
            .quotes
            .extend(by_party.remove(&renter.party).unwrap_or_default());
    }
}

/// Books until the time is over; gives the number of bookings.
async fn book(renter: &mut Renter, end: Instant) -> u64 {
    let mut booked = 0;
    while Instant::now() < end {
        let quote = renter.quotes.pop().expect("quotes for the whole round");
        let body = json!({
            "quote_id": quote, "workload": {"image": "localhost/gpumarket/busybox:1", "command": []},
        });
        let (status, bytes) = renter
            .wire
            .post_once("/v1/leases", &quote, &body.to_string())
            .await;
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&bytes));
        booked += 1;
    }
    booked
}

async fn round(renters: &mut [Renter], time: Duration) -> (u64, f64) {
    let begun = Instant::now();
    let booked: u64 = join_all(renters.iter_mut().map(|r| book(r, begun + time)))
        .await
        .iter()
        .sum();
    (
        booked,
        f64::from(u32::try_from(booked).unwrap()) / begun.elapsed().as_secs_f64(),
    )
}

/// Measures the row.
pub async fn measure(cluster: &Cluster, asked: &Asked, report: &mut Report) {
    println!("  bookings: preparing {MACHINES} machines, {CLIENTS} renters");
    cluster.prepare_pgbench().await;
    let market = Market::on(TestDatabase::create().await, 5_000).await;
    let sql = market.database.client().await;
    supply::machines(&sql, MACHINES).await;
    let mut renters = renters(&market, &sql).await;
    let per_round = MOST_PER_SECOND * i64::try_from(asked.time.as_secs()).unwrap();
    let (mut from, mut ours, mut theirs) = (0, Vec::new(), Vec::new());
    let mut yard = Vec::new();
    let (mut booked, mut used) = (0, (Duration::ZERO, Duration::ZERO));
    for n in 0..=asked.rounds {
        // The first round warms caches and prepared statements up and does not count.
        let time = if n == 0 {
            Duration::from_secs(1)
        } else {
            asked.time
        };
        for renter in &mut renters {
            renter.quotes.clear();
        }
        quote(&sql, &mut renters, (from, per_round)).await;
        cluster.settle_down().await;
        let mut cost = Cost::default();
        let work = cluster.pgbench(Script::TpcbLike, 32, time);
        let tps = cost.of(cluster.pid, work).await;
        cluster.settle_down().await;
        let before = (
            cpu::of_cluster(cluster.pid),
            cpu::of_process(market.server.pid()),
        );
        let (count, rate) = round(&mut renters, time).await;
        // The next quotes are for the GPUs after those that are taken now.
        from += i64::try_from(count).unwrap();
        if n > 0 {
            theirs.push(tps);
            yard.push(cost.each().iter().sum::<f64>());
            ours.push(rate);
            booked += count;
            used.0 += cpu::of_cluster(cluster.pid) - before.0;
            used.1 += cpu::of_process(market.server.pid()) - before.1;
        }
    }
    market.prove();
    let each =
        |time: Duration| time.as_secs_f64() * 1e6 / f64::from(u32::try_from(booked).unwrap());
    report.figure("booking: CPU of PostgreSQL", each(used.0), "us each");
    report.figure("booking: CPU of the server", each(used.1), "us each");
    report.figure(
        "pgbench tpcb-like: CPU of both sides",
        median(&yard),
        "us each",
    );
    let ratio = median(&yard) / (each(used.0) + each(used.1));
    report.figure("bookings: ratio by CPU instead of seconds", ratio, "x");
    report.row(Row {
        name: "bookings",
        values: ours,
        unit: "bookings/s",
        yardstick: "pgbench tpcb-like, 32 clients, tps",
        yardstick_values: theirs,
        goal: 2.0,
    });
}
