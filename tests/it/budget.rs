//! Budgets: alert once for each threshold, then stop, and refuse what would spend more.

use serde_json::{Value, json};
use tests::client::Client;
use tests::market::{Market, lease_of};
use tests::scripted_agent::{ScriptedAgent, seen};
use tests::wait::until;

struct Scene {
    market: Market,
    renter: Client,
    agent: ScriptedAgent,
    offer: Value,
    lease: String,
}

async fn running(label: &str) -> Scene {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "500").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "900").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let mut body = lease_of(&quote, &[]);
    body["label"] = json!(label);
    let lease = renter.post("/v1/leases", &body).await.expect(201);
    let lease = lease["id"].as_str().unwrap().to_owned();
    agent.wanted(&lease, "run").await;
    agent.report(10_000, vec![seen(&lease, "running")]).await;
    market.lease_in(&renter, &lease, "running").await;
    Scene {
        market,
        renter,
        agent,
        offer,
        lease,
    }
}

fn usd(amount: &str) -> Value {
    json!({"amount": amount, "currency": "USD"})
}

impl Scene {
    /// Lets the lease run until `done` says so of it.
    async fn run_until(&mut self, done: impl Fn(&Value) -> bool) -> Value {
        for step in 1..2_000u64 {
            let path = format!("/v1/leases/{}", self.lease);
            let lease = self.renter.get(&path).await.expect(200);
            if done(&lease) {
                return lease;
            }
            self.agent
                .report(10_000 + step * 2_000, vec![seen(&self.lease, "running")])
                .await;
        }
        panic!("the lease went on");
    }

    async fn budget(&self, body: &Value) -> Value {
        self.renter.post("/v1/budgets", body).await.expect(201)
    }

    async fn book(&self, label: &str) -> tests::client::Reply {
        let quote = self.market.quote(&self.renter, &self.offer, 1).await;
        let mut body = lease_of(&quote, &[]);
        body["label"] = json!(label);
        self.renter.post("/v1/leases", &body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_budget_stops_leases_and_refuses_bookings_until_it_is_raised() {
    let mut scene = running("train").await;
    let budget = scene
        .budget(
            &json!({"scope": "party", "period": "month", "limit": usd("0.05"),
            "alert_percents": [50], "action": "stop"}),
        )
        .await;
    let lease = scene.run_until(|l| l["state"] != "running").await;
    assert_eq!(lease["state_reason"], "budget_reached", "{lease}");
    let path = format!("/v1/budgets/{}", budget["id"].as_str().unwrap());
    let used = scene.renter.get(&path).await.expect(200);
    assert_eq!(used["exhausted"], true);
    let percents: Vec<i64> = used["alerts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["percent"].as_i64().unwrap())
        .collect();
    assert_eq!(percents, [50, 100]);
    let told = scene
        .market
        .database
        .client()
        .await
        .query(
            "SELECT payload->>'percent' FROM outbox WHERE topic = 'budget.alert' ORDER BY seq",
            &[],
        )
        .await
        .unwrap();
    let told: Vec<String> = told.iter().map(|row| row.get(0)).collect();
    assert_eq!(told, ["50", "100"]);
    assert_eq!(scene.book("other").await.problem(402), "budget_exhausted");
    scene.agent.wanted(&scene.lease, "stop").await;
    scene
        .agent
        .report(9_000_000, vec![seen(&scene.lease, "stopped")])
        .await;
    scene
        .market
        .lease_in(&scene.renter, &scene.lease, "stopped")
        .await;
    let resume = scene
        .market
        .act(&scene.renter, &scene.lease, "resume")
        .await;
    assert_eq!(resume.problem(402), "budget_exhausted");
    let patch = scene
        .renter
        .request(reqwest::Method::PATCH, &path)
        .json(&json!({"limit": usd("400")}));
    let raised = scene.renter.send(patch).await.expect(200);
    assert_eq!(
        (raised["exhausted"].as_bool(), raised["version"].as_i64()),
        (Some(false), Some(2))
    );
    scene.book("other").await.expect(201);
    // Lowered below what is spent, it is shut at once.
    let low = scene
        .renter
        .request(reqwest::Method::PATCH, &path)
        .json(&json!({"limit": usd("0.01")}));
    scene.renter.send(low).await.expect(200);
    assert_eq!(scene.book("third").await.problem(402), "budget_exhausted");
    let high = scene
        .renter
        .request(reqwest::Method::PATCH, &path)
        .json(&json!({"limit": usd("400")}));
    scene.renter.send(high).await.expect(200);
    scene
        .market
        .act(&scene.renter, &scene.lease, "resume")
        .await
        .expect(200);
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_covers_what_it_names_and_an_alert_stops_nothing() {
    let mut scene = running("train").await;
    let me = scene.renter.get("/v1/me").await.expect(200);
    let limit = usd("0.01");
    let other = json!({"scope": "label", "label": "other", "period": "total", "limit": limit,
        "action": "stop"});
    let other = scene.budget(&other).await;
    let member = json!({"scope": "member", "member_id": me["user_id"], "period": "total",
        "limit": limit, "action": "alert"});
    let member = scene.budget(&member).await;
    let lease = json!({"scope": "lease", "lease_id": scene.lease, "period": "total",
        "limit": limit, "alert_percents": [], "action": "alert"});
    let lease = scene.budget(&lease).await;
    let renter = scene.renter.clone();
    scene
        .run_until(|l| tests::market::micros(&l["cost"]["accrued"]) >= 10_000)
        .await;
    for (budget, alerts) in [(&member, 3), (&lease, 1)] {
        let path = format!("/v1/budgets/{}", budget["id"].as_str().unwrap());
        let seen = until("alerts", || async {
            let seen = renter.get(&path).await.expect(200);
            Some(seen).filter(|b| b["alerts"].as_array().unwrap().len() == alerts)
        });
        assert_eq!(seen.await["exhausted"], true);
    }
    let untouched = renter
        .get(&format!("/v1/budgets/{}", other["id"].as_str().unwrap()))
        .await;
    assert_eq!(untouched.expect(200)["spent"], usd("0.000000"));
    let state = renter
        .get(&format!("/v1/leases/{}", scene.lease))
        .await
        .expect(200);
    assert_eq!(state["state"], "running");
    scene.book("train").await.expect(201);
    // Removed, it is gone; what it said is on record.
    let path = format!("/v1/budgets/{}", other["id"].as_str().unwrap());
    renter
        .send(renter.request(reqwest::Method::DELETE, &path))
        .await
        .expect(200);
    assert_eq!(renter.get(&path).await.problem(404), "not_found");
    let left = renter.get("/v1/budgets").await.expect(200);
    assert_eq!(left["data"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_budget_cannot_mean_is_refused() {
    let market = Market::start().await;
    let renter = market.person("renter").await;
    let good = json!({"scope": "party", "period": "month", "limit": usd("1"), "action": "alert"});
    renter.post("/v1/budgets", &good).await.expect(201);
    for (field, value) in [
        ("scope", json!("member")),
        ("label", json!("x")),
        ("limit", usd("0")),
        ("limit", usd("-1")),
        ("alert_percents", json!([80, 50])),
        ("alert_percents", json!([0])),
        ("alert_percents", json!([50, 50])),
        ("period", json!("week")),
        ("member", json!("x")),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let reply = renter.post("/v1/budgets", &bad).await;
        assert_eq!(reply.problem(422), "invalid_field", "{bad}");
    }
    let stranger = json!({"scope": "member", "member_id": "usr_00000000000000000000000000",
        "period": "month", "limit": usd("1"), "action": "stop"});
    assert_eq!(
        renter.post("/v1/budgets", &stranger).await.problem(422),
        "invalid_field"
    );
}
