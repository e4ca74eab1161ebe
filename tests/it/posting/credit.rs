//! Credit pays leases before money does, comes back unused, and expires.

use serde_json::{Value, json};
use tests::client::Client;
use tests::inside::Inside;
use tests::market::{Market, lease_of, micros};
use tests::scripted_agent::{ScriptedAgent, seen};

use super::{kinds, party, staff, usd, wallet};

fn in_an_hour() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let end = now.unwrap().as_millis() + 3_600_000;
    let at = domain::clock::Timestamp::from_millis(i64::try_from(end).unwrap());
    web_openapi::time::to_text(at)
}

async fn promo(finance: &Client, to: &Client, amount: &str) -> Value {
    let body = json!({
        "type": "promo", "party_id": party(to).await, "amount": usd(amount),
        "expires_at": in_an_hour(), "reason": "welcome to the market",
    });
    finance.post("/v1/admin/credits", &body).await.expect(201)
}

struct Scene {
    market: Market,
    finance: Client,
    renter: Client,
    agent: ScriptedAgent,
    offer: Value,
}

async fn scene() -> Scene {
    let market = Market::start().await;
    let finance = staff(&market, "finance", "finance").await;
    let provider = market.person("provider").await;
    let renter = market.person("renter").await;
    let (agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "36").await;
    Scene {
        market,
        finance,
        renter,
        agent,
        offer,
    }
}

impl Scene {
    async fn book(&mut self) -> String {
        let quote = self.market.quote(&self.renter, &self.offer, 1).await;
        let lease = self.renter.post("/v1/leases", &lease_of(&quote, &[])).await;
        let lease = lease.expect(201)["id"].as_str().unwrap().to_owned();
        self.agent.wanted(&lease, "run").await;
        self.agent
            .report(10_000, vec![seen(&lease, "running")])
            .await;
        self.market.lease_in(&self.renter, &lease, "running").await;
        lease
    }

    async fn end(&mut self, lease: &str) -> i64 {
        self.agent
            .report(40_000, vec![seen(lease, "running")])
            .await;
        self.market
            .act(&self.renter, lease, "end")
            .await
            .expect(200);
        self.agent.wanted(lease, "gone").await;
        self.agent.report(41_000, vec![seen(lease, "gone")]).await;
        let ended = self.market.lease_in(&self.renter, lease, "ended").await;
        micros(&ended["cost"]["settled"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credit_alone_pays_a_lease_and_never_turns_into_money() {
    let mut scene = scene().await;
    let credit = promo(&scene.finance, &scene.renter, "20").await;
    assert_eq!(micros(&credit["remaining"]), 20_000_000);
    let (renter, before) = (scene.renter.clone(), 20_000_000);
    assert_eq!(
        (
            wallet(&renter, "promo").await,
            wallet(&renter, "available").await
        ),
        (before, 0)
    );
    let lease = scene.book().await;
    let held = wallet(&renter, "held").await;
    assert!(held > 7_000_000, "{held}");
    assert_eq!(wallet(&renter, "promo").await, before - held);
    assert_eq!(wallet(&renter, "available").await, 0);
    scene.market.prove();
    let cost = scene.end(&lease).await;
    assert!(cost > 0);
    assert_eq!(wallet(&renter, "promo").await, before - cost);
    assert_eq!(
        (
            wallet(&renter, "posted").await,
            wallet(&renter, "held").await
        ),
        (0, 0)
    );
    let kinds = kinds(&renter).await;
    for kind in [
        "promo_granted",
        "promo_released",
        "promo_returned",
        "charge",
    ] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
    let list = renter.get("/v1/transactions").await.expect(200);
    let of_credit = |t: &&Value| t["kind"].as_str().unwrap().starts_with("promo_");
    let rows = list["data"].as_array().unwrap();
    assert!(
        rows.iter()
            .filter(of_credit)
            .all(|t| t["cause"] == credit["id"]),
        "{list}"
    );
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_takes_credit_first_and_money_for_the_rest() {
    let mut scene = scene().await;
    promo(&scene.finance, &scene.renter, "2").await;
    let renter = scene.renter.clone();
    let body = json!({"amount": usd("50")});
    renter.post("/v1/wallet/top-ups", &body).await.expect(201);
    let lease = scene.book().await;
    let held = wallet(&renter, "held").await;
    assert_eq!(wallet(&renter, "promo").await, 0);
    assert_eq!(wallet(&renter, "available").await, 52_000_000 - held);
    scene.market.prove();
    let cost = scene.end(&lease).await;
    assert!(cost < 2_000_000, "{cost}");
    assert_eq!(wallet(&renter, "promo").await, 2_000_000 - cost);
    assert_eq!(wallet(&renter, "available").await, 50_000_000);
    scene.market.prove();
}

/// A stop lowers the hold: what it gives back is credit again, never money.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_gives_credit_back_as_credit() {
    let mut scene = scene().await;
    promo(&scene.finance, &scene.renter, "20").await;
    let lease = scene.book().await;
    let renter = scene.renter.clone();
    scene
        .agent
        .report(40_000, vec![seen(&lease, "running")])
        .await;
    scene.market.act(&renter, &lease, "stop").await.expect(200);
    scene.agent.wanted(&lease, "stop").await;
    scene
        .agent
        .report(41_000, vec![seen(&lease, "stopped")])
        .await;
    let stopped = scene.market.lease_in(&renter, &lease, "stopped").await;
    let cost = micros(&stopped["cost"]["settled"]);
    let held = wallet(&renter, "held").await;
    assert!(held < 1_000_000, "only the disk's time: {held}");
    assert_eq!(wallet(&renter, "available").await, 0);
    let settled = cost + held + wallet(&renter, "promo").await;
    assert!((19_990_000..=20_000_000).contains(&settled), "{settled}");
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_expires_and_what_a_hold_had_expires_when_it_comes_back() {
    let mut scene = scene().await;
    promo(&scene.finance, &scene.renter, "20").await;
    let lease = scene.book().await;
    let later = Inside::on(&scene.market.database.url);
    assert_eq!(app::reconcile::expire_credit(&later.cx).await.unwrap(), 0);
    later.pass(2);
    assert_eq!(app::reconcile::expire_credit(&later.cx).await.unwrap(), 1);
    assert_eq!(app::reconcile::expire_credit(&later.cx).await.unwrap(), 0);
    assert_eq!(wallet(&scene.renter, "promo").await, 0);
    scene.market.prove();
    // The lease runs on with what it holds.
    let cost = scene.end(&lease).await;
    assert!(cost > 0);
    assert_eq!(wallet(&scene.renter, "posted").await, 0);
    assert_eq!(app::reconcile::expire_credit(&later.cx).await.unwrap(), 1);
    let rows = scene.finance.get("/v1/admin/credits").await.expect(200);
    assert_eq!(micros(&rows["data"][0]["remaining"]), 0);
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_lost_service_add_up_to_what_is_owed() {
    let mut scene = scene().await;
    promo(&scene.finance, &scene.renter, "20").await;
    let lease = scene.book().await;
    let sla = |owed: &str| json!({"type": "sla", "lease_id": lease, "amount": usd(owed), "reason": "host was down"});
    for (owed, given) in [("1.20", 1_200_000), ("1.50", 300_000)] {
        let credit = scene.finance.post("/v1/admin/credits", &sla(owed)).await;
        assert_eq!(micros(&credit.expect(201)["amount"]), given);
    }
    let again = scene.finance.post("/v1/admin/credits", &sla("1.50")).await;
    assert_eq!(again.problem(409), "nothing_due");
    let bare = json!({"type": "sla", "party_id": party(&scene.renter).await,
        "amount": usd("1"), "reason": "host was down"});
    let bare = scene.finance.post("/v1/admin/credits", &bare).await;
    assert_eq!(bare.problem(422), "invalid_field");
    assert_eq!(bare.body["errors"][0]["pointer"], "/lease_id");
    scene.market.prove();
}
