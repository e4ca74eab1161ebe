//! Which seconds are billed, and that all sums meet: with an agent whose reports the test writes.

use billing::statement::{EarningsBody, StatementBody, meet, verify};
use serde_json::{Value, json};
use tests::client::Client;
use tests::market::{Market, lease_of, micros};
use tests::scripted_agent::{ScriptedAgent, seen};

/// A lease that runs on a scripted machine.
pub(crate) struct Scene {
    pub(crate) market: Market,
    pub(crate) provider: Client,
    pub(crate) renter: Client,
    pub(crate) agent: ScriptedAgent,
    pub(crate) lease: String,
}

pub(crate) async fn running(usd: &str, price: &str) -> Scene {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", usd).await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), price).await;
    let quote = market.quote(&renter, &offer, 1).await;
    let lease = renter
        .post("/v1/leases", &lease_of(&quote, &[]))
        .await
        .expect(201);
    let lease = lease["id"].as_str().unwrap().to_owned();
    agent.wanted(&lease, "run").await;
    agent.report(10_000, vec![seen(&lease, "preparing")]).await;
    agent.report(11_000, vec![seen(&lease, "running")]).await;
    market.lease_in(&renter, &lease, "running").await;
    Scene {
        market,
        provider,
        renter,
        agent,
        lease,
    }
}

impl Scene {
    pub(crate) async fn lease(&self) -> Value {
        self.renter
            .get(&format!("/v1/leases/{}", self.lease))
            .await
            .expect(200)
    }

    /// Ends the lease with the machine's evidence.
    pub(crate) async fn end(&mut self, mono_ms: u64) -> Value {
        self.market
            .act(&self.renter, &self.lease, "end")
            .await
            .expect(200);
        self.agent.wanted(&self.lease, "gone").await;
        self.agent
            .report(mono_ms, vec![seen(&self.lease, "gone")])
            .await;
        self.market
            .lease_in(&self.renter, &self.lease, "ended")
            .await
    }

    /// Renter's, provider's and platform's books meet to the micro-dollar, and the bill verifies.
    pub(crate) async fn books_meet(&self) -> i64 {
        let path = format!("/v1/leases/{}/statement", self.lease);
        let mine = self.renter.get(&path).await;
        let theirs = self.provider.get(&path).await;
        let me = self.renter.get("/v1/me").await.expect(200);
        let key = hex::decode(me["statement_key"].as_str().unwrap())
            .unwrap()
            .try_into()
            .unwrap();
        let verified = verify::<StatementBody>(&mine.bytes, Some(key)).unwrap();
        let other = verify::<StatementBody>(&theirs.bytes, Some(key)).unwrap();
        let other = other.statement.body;
        let period = "/v1/earnings/statement?from=2026-01-01T00:00:00Z";
        let earned = self.provider.get(period).await;
        let earned = verify::<EarningsBody>(&earned.bytes, Some(key)).unwrap();
        let met = meet(&verified, &earned).unwrap();
        assert_eq!((met.charges, met.newer), (verified.charges, 0));
        assert_eq!(met.total, verified.statement.body.total);
        let bill = verified.statement.body;
        assert_eq!(bill.total, other.total);
        let wallet = self.renter.get("/v1/wallet").await.expect(200);
        let earned = self.provider.get("/v1/earnings").await.expect(200);
        let lease = self.lease().await;
        let paid = bill.total.renter_pays_micros;
        assert_eq!(micros(&lease["cost"]["settled"]), paid);
        assert_eq!(micros(&wallet["held"]), 0);
        assert_eq!(micros(&wallet["posted"]), micros(&wallet["available"]));
        assert_eq!(micros(&earned["net"]), bill.total.provider_gets_micros);
        assert_eq!(micros(&earned["fee"]), bill.total.fee_micros);
        assert_eq!(
            paid,
            micros(&earned["net"]) + micros(&earned["fee"]) + bill.total.tax_micros
        );
        self.market.prove();
        paid
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_proven_seconds_are_billed_and_the_books_meet() {
    let mut scene = running("100", "2.10").await;
    assert_eq!(scene.lease().await["cost"]["billable_seconds"], 0);
    // The machine's clock says five seconds, but hardly any time has passed here: the smaller counts.
    scene
        .agent
        .report(16_000, vec![seen(&scene.lease, "running")])
        .await;
    let lease = scene.lease().await;
    assert!(
        lease["cost"]["billable_seconds"].as_i64().unwrap() <= 5,
        "{lease}"
    );
    // Sent again and out of order: nothing changes.
    let before = micros(&scene.lease().await["cost"]["accrued"]);
    for mono in [16_000, 12_000, 16_000, 11_000] {
        scene
            .agent
            .report(mono, vec![seen(&scene.lease, "running")])
            .await;
    }
    assert_eq!(micros(&scene.lease().await["cost"]["accrued"]), before);
    let ended = scene.end(20_000).await;
    assert_eq!(ended["state_reason"], "renter");
    scene.books_meet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn provisioning_is_free_and_a_failed_start_costs_nothing() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "10").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 1), "2.10").await;
    for round in 0..3 {
        let quote = market.quote(&renter, &offer, 1).await;
        let lease = renter
            .post("/v1/leases", &lease_of(&quote, &[]))
            .await
            .expect(201);
        let id = lease["id"].as_str().unwrap().to_owned();
        agent.wanted(&id, "run").await;
        agent
            .report(10_000 + round, vec![seen(&id, "preparing")])
            .await;
        agent
            .report(90_000 + round, vec![seen(&id, "failed")])
            .await;
        let failed = market.lease_in(&renter, &id, "failed").await;
        assert_eq!(failed["state_reason"], "start_failed");
        assert_eq!(micros(&failed["cost"]["settled"]), 0);
    }
    let wallet = renter.get("/v1/wallet").await.expect(200);
    assert_eq!(
        (micros(&wallet["posted"]), micros(&wallet["held"])),
        (10_000_000, 0)
    );
    // Three failed starts take the machine off the market, and its provider is told why.
    let machine = market
        .machine_in(&provider, &agent.machine, "unlisted")
        .await;
    assert!(
        machine["state_reason"]
            .as_str()
            .unwrap()
            .contains("starts failed"),
        "{machine}"
    );
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_billing_at_the_request_and_a_resume_goes_on() {
    let mut scene = running("100", "2.10").await;
    let stopped = scene
        .market
        .act(&scene.renter, &scene.lease, "stop")
        .await
        .expect(200);
    assert_eq!(stopped["state"], "stopping");
    assert!(stopped["continuing_cost_per_day"].is_object() && stopped["delete_at"].is_string());
    // However late the machine stops, nothing after the request is billed.
    let asked = micros(&scene.lease().await["cost"]["so_far"]);
    scene.agent.wanted(&scene.lease, "stop").await;
    scene
        .agent
        .report(500_000, vec![seen(&scene.lease, "stopped")])
        .await;
    let lease = scene
        .market
        .lease_in(&scene.renter, &scene.lease, "stopped")
        .await;
    assert!(lease["gpus"].as_array().unwrap().is_empty());
    let billed = micros(&lease["cost"]["settled"]);
    // The disk runs on while it stops: that is all that may come on top of what was shown.
    assert!(
        billed <= asked + 2_000,
        "{billed} after {asked} at the request"
    );
    let resumed = scene
        .market
        .act(&scene.renter, &scene.lease, "resume")
        .await
        .expect(200);
    assert_eq!(resumed["state"], "resuming");
    let order = scene.agent.wanted(&scene.lease, "run").await;
    assert_eq!(order["start_no"], 2);
    let mut report = seen(&scene.lease, "running");
    report["start_no"] = json!(2);
    report["container_started_at"] = json!("2026-01-01T01:00:00Z");
    scene.agent.report(600_000, vec![report]).await;
    scene
        .market
        .lease_in(&scene.renter, &scene.lease, "running")
        .await;
    scene.end(601_000).await;
    scene.books_meet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_without_the_machine_ends_the_renters_billing() {
    let scene = running("100", "2.10").await;
    drop(scene.agent);
    let ended = scene
        .market
        .act(&scene.renter, &scene.lease, "end")
        .await
        .expect(200);
    assert_eq!(ended["state"], "ending");
    assert!(ended["end_requested_at"].is_string());
    let path = format!("/v1/leases/{}", scene.lease);
    let first = micros(&scene.renter.get(&path).await.expect(200)["cost"]["so_far"]);
    let again = scene
        .market
        .act(&scene.renter, &scene.lease, "end")
        .await
        .expect(200);
    assert_eq!(again["state"], "ending");
    assert_eq!(
        micros(&scene.renter.get(&path).await.expect(200)["cost"]["so_far"]),
        first
    );
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ends_by_itself_stops_the_lease() {
    let mut scene = running("100", "2.10").await;
    scene
        .agent
        .report(13_000, vec![seen(&scene.lease, "exited")])
        .await;
    let lease = scene
        .market
        .lease_in(&scene.renter, &scene.lease, "stopped")
        .await;
    assert_eq!(lease["state_reason"], "container_exited");
    scene.end(14_000).await;
    scene.books_meet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn max_spend_holds_to_the_micro_dollar() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "100").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 1), "900").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let mut body = lease_of(&quote, &[]);
    // A quarter of a dollar is one second at this price; the disk's retention is part of the limit.
    body["max_spend"] = json!({"amount": "0.50", "currency": "USD"});
    let lease = renter.post("/v1/leases", &body).await.expect(201);
    let id = lease["id"].as_str().unwrap().to_owned();
    agent.wanted(&id, "run").await;
    let mut mono = 10_000;
    agent.report(mono, vec![seen(&id, "running")]).await;
    let mut stopped = lease;
    for _try in 0..600 {
        mono += 100;
        agent.report(mono, vec![seen(&id, "running")]).await;
        stopped = renter.get(&format!("/v1/leases/{id}")).await.expect(200);
        assert!(micros(&stopped["cost"]["accrued"]) <= 500_000, "{stopped}");
        if stopped["state"] == "stopping" {
            break;
        }
    }
    assert_eq!(stopped["state_reason"], "max_spend");
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_wallet_stops_the_lease_and_never_goes_below_zero() {
    // 30 cents a minute: the smallest hold is three minutes of it, and hardly more is there.
    let mut scene = running("1", "18").await;
    let wallet = scene.renter.get("/v1/wallet").await.expect(200);
    assert!(micros(&wallet["available"]) >= 0);
    assert!(wallet["runs_out_at"].is_string());
    let held = micros(&wallet["held"]);
    assert!(held > 0 && held <= 1_000_000);
    scene.end(12_000).await;
    assert!(scene.books_meet().await <= held);
}
