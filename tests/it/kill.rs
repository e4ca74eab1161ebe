//! `kill -9` of each process in turn: the container runs on, and the bill has no gap and no double.

use serde_json::Value;
use tests::agent::Agent;
use tests::market::{Market, lease_of, micros};
use tests::wait::until;

#[tokio::test(flavor = "multi_thread")]
async fn killing_any_process_ends_no_work_and_bills_no_second_twice() {
    let mut market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "50").await;
    let mut agent = Agent::join(&market, &provider, "rack").await;
    let offer = market.offer(&provider, &agent.machine, "2.10").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let script = ["/bin/sh", "-c", "while true; do sleep 1; done"];
    let lease = renter
        .post("/v1/leases", &lease_of(&quote, &script))
        .await
        .expect(201);
    let id = lease["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/leases/{id}");
    let running = market.lease_in(&renter, &id, "running").await;
    let container = (
        running["container_id"].clone(),
        running["container_started_at"].clone(),
    );
    assert!(container.0.is_string(), "{running}");

    let proven = |lease: &Value| lease["cost"]["billable_seconds"].as_i64().unwrap();
    let goes_on = |what: &'static str, least: i64| {
        let (renter, path, container) = (renter.clone(), path.clone(), container.clone());
        async move {
            let lease = until(what, || async {
                let reply = renter
                    .send(renter.request(reqwest::Method::GET, &path))
                    .await;
                Some(reply.expect(200)).filter(|l| proven(l) > least)
            })
            .await;
            assert_eq!(lease["state"], "running", "{what}: {lease}");
            let now = (
                lease["container_id"].clone(),
                lease["container_started_at"].clone(),
            );
            assert_eq!(now, container, "{what}: the container was restarted");
            lease
        }
    };
    let start = std::time::Instant::now();
    let first = goes_on("the first seconds", 1).await;
    agent.process.kill();
    agent.restart();
    let second = goes_on("seconds after the agent's death", proven(&first) + 2).await;
    market.server.kill();
    market.restart().await;
    let third = goes_on("seconds after the server's death", proven(&second) + 2).await;
    agent.process.kill();
    market.server.kill();
    agent.restart();
    market.restart().await;
    let fourth = goes_on("seconds after both died", proven(&third) + 2).await;
    // Within one boot the machine's clock proves the time in which nobody listened: nothing is
    // missed, and nothing can be more than the time that passed.
    assert!(proven(&fourth) <= i64::try_from(start.elapsed().as_secs()).unwrap() + 2);

    market.act(&renter, &id, "end").await.expect(200);
    let ended = market.lease_in(&renter, &id, "ended").await;
    let bill = renter.get(&format!("{path}/statement")).await;
    let bill = billing::statement::verify::<billing::statement::StatementBody>(&bill.bytes, None)
        .unwrap()
        .statement
        .body;
    assert_eq!(
        bill.total.renter_pays_micros,
        micros(&ended["cost"]["settled"])
    );
    let compute = bill
        .meters
        .iter()
        .find(|m| m.resource == "compute")
        .unwrap();
    let spans: i64 = compute
        .charges
        .iter()
        .map(|c| (c.to_us - c.from_us) / 1_000)
        .sum();
    // One run, one boot: the ranges tile, and each is proven but for the last report's slack.
    assert!(
        compute
            .charges
            .windows(2)
            .all(|w| w[0].to_us == w[1].from_us)
    );
    assert!(
        spans - compute.billable_ms < 5_000,
        "{spans} ms seen, {} proven",
        compute.billable_ms
    );
    market.prove();
}
