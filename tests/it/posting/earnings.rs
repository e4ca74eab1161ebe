//! Earnings mature, a share is kept back, and payouts go through their states.

use serde_json::{Value, json};
use tests::client::Client;
use tests::inside::Inside;
use tests::market::{Market, micros};
use tests::wait::until;

use super::{kinds, party, staff, usd};

const WEEK_AND_A_DAY: i64 = 8 * 24;

struct Scene {
    market: Market,
    provider: Client,
    later: Inside,
}

/// A provider who has earned some dollars (by an adjustment: a lease would take an hour).
async fn earned(amounts: &[&str]) -> Scene {
    let market = Market::start().await;
    let finance = staff(&market, "finance", "finance").await;
    let provider = market.person("provider").await;
    let whose = party(&provider).await;
    for amount in amounts {
        let body = json!({
            "party_id": whose, "direction": "credit", "account": "provider_earned",
            "borne_by": "suspense", "amount": usd(amount), "reason": "earned elsewhere",
        });
        finance
            .post("/v1/admin/adjustments", &body)
            .await
            .expect(201);
    }
    let later = Inside::on(&market.database.url);
    Scene {
        market,
        provider,
        later,
    }
}

impl Scene {
    async fn earnings(&self, fields: &[&str]) -> Vec<i64> {
        let seen = self.provider.get("/v1/earnings").await.expect(200);
        fields.iter().map(|f| micros(&seen[f])).collect()
    }

    async fn paid(&self, payout: &Value) -> Value {
        let path = format!("/v1/payouts/{}", payout["id"].as_str().unwrap());
        until("the payout to be paid", || async {
            Some(self.provider.get(&path).await.expect(200)).filter(|p| p["state"] == "paid")
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn earnings_mature_and_are_paid_out_and_the_rest_stays() {
    let scene = earned(&["57.123456"]).await;
    let places = ["maturing", "reserve", "payable", "in_flight", "paid"];
    let mature = || app::reconcile::mature_earnings(&scene.later.cx);
    assert_eq!(mature().await.unwrap(), 0);
    assert_eq!(scene.earnings(&places).await, [57_123_456, 0, 0, 0, 0]);
    let early = scene.provider.post("/v1/payouts", &json!({})).await;
    assert_eq!(early.problem(422), "amount_out_of_range");
    scene.later.pass(WEEK_AND_A_DAY);
    assert_eq!(mature().await.unwrap(), 1);
    assert_eq!(mature().await.unwrap(), 0);
    assert_eq!(
        scene.earnings(&places).await,
        [0, 5_712_345, 51_411_111, 0, 0]
    );
    scene.market.prove();
    let payout = scene
        .provider
        .post_once("/v1/payouts", "k", &json!({}))
        .await
        .expect(201);
    assert_eq!(micros(&payout["amount"]), 51_410_000);
    assert_eq!(
        (&payout["state"], &payout["sandbox"]),
        (&json!("requested"), &json!(true))
    );
    let again = scene
        .provider
        .post_once("/v1/payouts", "k", &json!({}))
        .await
        .expect(201);
    assert_eq!(again, payout);
    let paid = scene.paid(&payout).await;
    assert!(paid["state_reason"].as_str().unwrap().contains("sandbox"));
    assert_eq!(
        scene.earnings(&places).await,
        [0, 5_712_345, 1_111, 0, 51_410_000]
    );
    // The reserve follows a month later, once.
    let release = || app::reconcile::release_reserves(&scene.later.cx);
    assert_eq!(release().await.unwrap(), 0);
    scene.later.pass(31 * 24);
    assert_eq!(release().await.unwrap(), 1);
    assert_eq!(release().await.unwrap(), 0);
    assert_eq!(
        scene.earnings(&places).await,
        [0, 0, 5_713_456, 0, 51_410_000]
    );
    let kinds = kinds(&scene.provider).await;
    let told = |kind: &str| kinds.iter().filter(|k| *k == kind).count();
    assert_eq!(
        (told("payout_requested"), told("payout_sent")),
        (2, 1),
        "{kinds:?}"
    );
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_fails_or_comes_back_is_payable_again() {
    use app::payout::{PayoutNews, hear};
    let scene = earned(&["100", "100"]).await;
    scene.later.pass(WEEK_AND_A_DAY);
    app::reconcile::mature_earnings(&scene.later.cx)
        .await
        .unwrap();
    for (amount, status, code) in [
        ("10.005", 422, "amount_out_of_range"),
        ("0", 422, "amount_out_of_range"),
        ("0.99", 422, "amount_out_of_range"),
        ("180.01", 402, "insufficient_funds"),
    ] {
        let refused = scene
            .provider
            .post("/v1/payouts", &json!({"amount": usd(amount)}))
            .await;
        assert_eq!(refused.problem(status), code, "{amount}");
    }
    let payout = scene
        .provider
        .post("/v1/payouts", &json!({"amount": usd("20")}))
        .await;
    let payout = payout.expect(201);
    let id = payout["id"].as_str().unwrap().parse().unwrap();
    scene.paid(&payout).await;
    let cx = &scene.later.cx;
    for _twice in 0..2 {
        let back = hear(cx, id, (PayoutNews::Returned, "account closed"))
            .await
            .unwrap();
        assert_eq!(back.state, store::payout::PayoutState::Returned);
        // What comes late changes nothing.
        hear(cx, id, (PayoutNews::Failed, "late news"))
            .await
            .unwrap();
    }
    let places = ["payable", "in_flight", "paid"];
    assert_eq!(scene.earnings(&places).await, [180_000_000, 0, 0]);
    scene.market.prove();
    // Nobody else sees it.
    let stranger = scene.market.person("stranger").await;
    let path = format!("/v1/payouts/{}", payout["id"].as_str().unwrap());
    assert_eq!(stranger.get(&path).await.problem(404), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_need_the_scope_and_a_known_body() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let key = json!({"name": "reader", "scopes": ["money:read"]});
    let key = provider.post("/v1/api-keys", &key).await.expect(201);
    let reader = provider.with(key["secret"].as_str().unwrap());
    assert_eq!(
        reader.post("/v1/payouts", &json!({})).await.problem(403),
        "forbidden"
    );
    let unknown = provider.post("/v1/payouts", &json!({"all": true})).await;
    assert_eq!(unknown.problem(422), "invalid_field");
    assert!(
        reader.get("/v1/payouts").await.expect(200)["data"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
