//! People move money with a reason, and large amounts with four eyes.

use serde_json::{Value, json};
use tests::inside::Inside;
use tests::market::Market;

use super::{kinds, party, staff, usd, wallet};

fn adjust(party: &str, direction: &str, amount: &str) -> Value {
    json!({
        "party_id": party, "direction": direction, "account": "renter_wallet",
        "borne_by": "suspense", "amount": usd(amount), "reason": "counted wrong",
    })
}

const PATH: &str = "/v1/admin/adjustments";

#[tokio::test(flavor = "multi_thread")]
async fn a_large_adjustment_needs_another_person() {
    let market = Market::start().await;
    let (ada, bob) = (
        staff(&market, "ada", "finance").await,
        staff(&market, "bob", "operator").await,
    );
    let renter = market.renter("renter", "300").await;
    let whose = party(&renter).await;
    let small = ada
        .post(PATH, &adjust(&whose, "credit", "100"))
        .await
        .expect(201);
    assert_eq!(
        (&small["state"], &small["needs_approval"]),
        (&json!("applied"), &json!(false))
    );
    assert_eq!(wallet(&renter, "available").await, 400_000_000);
    let large = ada
        .post(PATH, &adjust(&whose, "debit", "150"))
        .await
        .expect(201);
    assert_eq!(large["state"], "proposed");
    // Set aside: it cannot be spent meanwhile.
    assert_eq!(wallet(&renter, "available").await, 250_000_000);
    assert_eq!(wallet(&renter, "posted").await, 400_000_000);
    market.prove();
    let act = format!("{PATH}/{}/actions", large["id"].as_str().unwrap());
    let approve = json!({"type": "approve"});
    assert_eq!(ada.post(&act, &approve).await.problem(409), "four_eyes");
    let done = bob.post_once(&act, "once", &approve).await.expect(200);
    assert_eq!(done["state"], "applied");
    assert_eq!(
        bob.post_once(&act, "once", &approve).await.expect(200),
        done
    );
    assert_eq!(
        bob.post(&act, &approve).await.problem(409),
        "adjustment_state"
    );
    assert_eq!(wallet(&renter, "available").await, 250_000_000);
    assert_eq!(wallet(&renter, "posted").await, 250_000_000);
    assert_eq!(
        kinds(&renter).await[..2],
        ["adjustment_debit", "adjustment_credit"]
    );
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_or_forgotten_proposal_gives_everything_back() {
    let market = Market::start().await;
    let (ada, bob) = (
        staff(&market, "ada", "finance").await,
        staff(&market, "bob", "finance").await,
    );
    let renter = market.renter("renter", "500").await;
    let whose = party(&renter).await;
    let propose = adjust(&whose, "debit", "200");
    let first = ada.post(PATH, &propose).await.expect(201);
    let second = ada.post(PATH, &propose).await.expect(201);
    let third = ada.post(PATH, &propose).await;
    assert_eq!(third.problem(402), "insufficient_funds");
    let act = |a: &Value| format!("{PATH}/{}/actions", a["id"].as_str().unwrap());
    let bare = bob.post(&act(&first), &json!({"type": "reject"})).await;
    assert_eq!(bare.problem(422), "invalid_field");
    let reject = json!({"type": "reject", "reason": "counted right"});
    let no = bob.post(&act(&first), &reject).await.expect(200);
    assert_eq!(
        (&no["state"], &no["decision_reason"]),
        (&json!("rejected"), &json!("counted right"))
    );
    assert_eq!(wallet(&renter, "available").await, 300_000_000);
    let later = Inside::on(&market.database.url);
    later.pass(8 * 24);
    assert_eq!(
        app::reconcile::expire_adjustments(&later.cx).await.unwrap(),
        1
    );
    let seen = bob
        .get(&format!("{PATH}/{}", second["id"].as_str().unwrap()))
        .await;
    assert_eq!(seen.expect(200)["state"], "expired");
    assert_eq!(wallet(&renter, "available").await, 500_000_000);
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_people_with_the_role_move_money_and_only_with_a_reason() {
    let market = Market::start().await;
    let finance = staff(&market, "finance", "finance").await;
    let auditor = staff(&market, "auditor", "auditor").await;
    let renter = market.renter("renter", "5").await;
    let whose = party(&renter).await;
    let body = adjust(&whose, "credit", "1");
    assert_eq!(renter.post(PATH, &body).await.problem(404), "not_found");
    assert_eq!(auditor.post(PATH, &body).await.problem(403), "forbidden");
    auditor.get(PATH).await.expect(200);
    let key = finance
        .post("/v1/api-keys", &json!({"name": "k"}))
        .await
        .expect(201);
    let key = finance.with(key["secret"].as_str().unwrap());
    assert_eq!(key.post(PATH, &body).await.problem(404), "not_found");
    for (field, value, pointer) in [
        ("reason", json!("  "), "/reason"),
        ("account", json!("dispute_receivable"), "/account"),
        ("borne_by", json!("fee_revenue"), "/borne_by"),
        (
            "party_id",
            json!("pty_00000000000000000000000000"),
            "/party_id",
        ),
    ] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let reply = finance.post(PATH, &wrong).await;
        assert_eq!(reply.problem(422), "invalid_field", "{field}");
        assert_eq!(reply.body["errors"][0]["pointer"], pointer);
    }
    let promo = json!({"type": "promo", "party_id": whose, "amount": usd("101"),
        "expires_at": "2199-01-01T00:00:00Z", "reason": "too much at once"});
    let promo = finance.post("/v1/admin/credits", &promo).await;
    assert_eq!(promo.problem(422), "amount_out_of_range");
    assert_eq!(wallet(&renter, "posted").await, 5_000_000);
    market.prove();
}

/// The rows themselves refuse what the code would never write.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_knows_the_four_eyes() {
    let market = Market::start().await;
    let ada = staff(&market, "ada", "finance").await;
    let renter = market.renter("renter", "5").await;
    let body = adjust(&party(&renter).await, "credit", "200");
    ada.post(PATH, &body).await.expect(201);
    let sql = market.database.client().await;
    for (change, constraint) in [
        (
            "UPDATE adjustment SET state = 'applied', decided_at = now(), decided_by = proposed_by",
            "adjustment_four_eyes",
        ),
        (
            "UPDATE adjustment SET state = 'applied', decided_at = now()",
            "adjustment_four_eyes",
        ),
        ("UPDATE adjustment SET reason = ' '", "adjustment_reason"),
    ] {
        let refused = sql.batch_execute(change).await.unwrap_err();
        let refused = refused.as_db_error().unwrap();
        assert_eq!(refused.constraint(), Some(constraint), "{refused}");
    }
}
