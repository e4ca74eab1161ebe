//! Who may what, over every operation of the document.

use reqwest::Method;
use serde_json::{Value, json};
use tests::market::{Market, lease_of};
use tests::scripted_agent::ScriptedAgent;

fn document() -> Value {
    serde_json::from_str(&api::openapi().to_json().unwrap()).unwrap()
}

/// Every operation that asks for a credential, as (method, path template).
fn protected(document: &Value) -> Vec<(Method, String)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"]
                .as_array()
                .is_some_and(|s| !s.is_empty())
            {
                found.push((method.to_uppercase().parse().unwrap(), path.clone()));
            }
        }
    }
    found
}

fn budget() -> Value {
    let limit = json!({"amount": "1", "currency": "USD"});
    json!({"scope": "party", "period": "month", "limit": limit, "action": "alert"})
}

/// A body that the operation can read.
fn body(path: &str) -> Value {
    let price = json!({"amount": "1", "currency": "USD", "per": "gpu_hour"});
    match path {
        "/v1/api-keys" => json!({"name": "k"}),
        "/v1/offers" => json!({"machine_id": "mch_00000000000000000000000000", "price": price}),
        "/v1/offers/{id}" => json!({}),
        "/v1/quotes" => json!({"offer_id": "ofr_00000000000000000000000000", "gpu_count": 1}),
        "/v1/leases" => {
            json!({"quote_id": "quo_00000000000000000000000000", "workload": {"image": "i"}})
        }
        "/v1/leases/{id}/actions" => json!({"type": "stop"}),
        "/v1/machines/{id}/actions" => json!({"type": "unlist"}),
        "/v1/wallet/top-ups" => json!({"amount": {"amount": "1", "currency": "USD"}}),
        "/v1/payouts" => json!({}),
        "/v1/admin/credits" => json!({
            "type": "goodwill", "party_id": "pty_00000000000000000000000000", "reason": "test",
            "amount": {"amount": "1", "currency": "USD"},
        }),
        "/v1/admin/adjustments" => json!({
            "party_id": "pty_00000000000000000000000000", "direction": "credit", "reason": "test",
            "account": "renter_wallet", "borne_by": "suspense",
            "amount": {"amount": "1", "currency": "USD"},
        }),
        "/v1/admin/adjustments/{id}/actions" => json!({"type": "approve"}),
        "/v1/machines/enrollment-tokens" => json!({"machine_name": "m"}),
        "/v1/invoices" => json!({"month": "2020-01"}),
        "/v1/admin/invoices/{id}/credit-notes" => {
            json!({"amount": {"amount": "1", "currency": "USD"}, "reason": "r"})
        }
        "/v1/me/billing-profile" | "/v1/budgets/{id}" => json!({}),
        "/v1/budgets" => budget(),
        _ => Value::Null,
    }
}

fn filled(path: &str, id: &str) -> String {
    path.replace("{id}", id)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_without_a_credential() {
    let market = Market::start().await;
    let document = document();
    let nobody = market.client();
    let liar = nobody.with("gm_live_0000000000000000000000000000000000000000000");
    let mut walked = 0;
    for (method, path) in protected(&document) {
        for client in [&nobody, &liar] {
            let request = client.request(
                method.clone(),
                &filled(&path, "lse_00000000000000000000000000"),
            );
            let reply = client.send(request.json(&body(&path))).await;
            assert_eq!(reply.problem(401), "unauthenticated", "{method} {path}");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
        }
        walked += 1;
    }
    assert!(walked >= 25, "{walked} operations");
}

/// Another party's objects do not exist: 404 for every operation with an id.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_objects_do_not_exist() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "50").await;
    let stranger = market.renter("stranger", "50").await;
    let (_agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "2").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let lease = renter
        .post("/v1/leases", &lease_of(&quote, &[]))
        .await
        .expect(201);
    let key = renter
        .post("/v1/api-keys", &json!({"name": "k"}))
        .await
        .expect(201);
    let budget = renter.post("/v1/budgets", &budget()).await.expect(201);
    let ids = [
        ("/v1/offers/", offer["id"].as_str().unwrap()),
        ("/v1/quotes/", quote["id"].as_str().unwrap()),
        ("/v1/leases/", lease["id"].as_str().unwrap()),
        ("/v1/machines/", offer["machine_id"].as_str().unwrap()),
        ("/v1/api-keys/", key["key"]["id"].as_str().unwrap()),
        ("/v1/budgets/", budget["id"].as_str().unwrap()),
        // Nothing was charged yet; a real invoice is asked for in `invoice.rs`.
        ("/v1/invoices/", "inv_00000000000000000000000000"),
        ("/v1/admin/", "inv_00000000000000000000000000"),
        ("/v1/payouts/", "pay_00000000000000000000000000"),
        ("/v1/admin/adjustments/", "adj_00000000000000000000000000"),
    ];
    let mut walked = 0;
    for (method, path) in protected(&document())
        .into_iter()
        .filter(|(_, p)| p.contains("{id}"))
    {
        let (_, id) = ids
            .iter()
            .find(|(prefix, _)| path.starts_with(prefix))
            .unwrap();
        let request = stranger.request(method.clone(), &filled(&path, id));
        let request = match body(&path) {
            Value::Null => request,
            body => request.json(&body),
        };
        let reply = stranger.send(request).await;
        assert_eq!(reply.problem(404), "not_found", "{method} {path}");
        walked += 1;
    }
    assert!(walked >= 12, "{walked} operations");
    // A quote of somebody else cannot be booked either.
    let stolen = stranger.post("/v1/leases", &lease_of(&quote, &[])).await;
    assert_eq!(stolen.problem(404), "not_found");
    // The operator's pages do not exist for others.
    let mut pages = 0;
    for (method, path) in protected(&document()) {
        if path.starts_with("/v1/admin/") {
            let there = filled(&path, "adj_00000000000000000000000000");
            let request = renter.request(method.clone(), &there).json(&body(&path));
            let reply = renter.send(request).await;
            assert_eq!(reply.problem(404), "not_found", "{method} {path}");
            pages += 1;
        }
    }
    assert!(pages >= 7, "{pages} pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_what_its_scopes_say_until_it_is_revoked() {
    let market = Market::start().await;
    let renter = market.renter("renter", "5").await;
    let made = renter
        .post(
            "/v1/api-keys",
            &json!({"name": "reader", "scopes": ["leases:read"]}),
        )
        .await
        .expect(201);
    let key = renter.with(made["secret"].as_str().unwrap());
    key.get("/v1/leases").await.expect(200);
    assert_eq!(key.get("/v1/wallet").await.problem(403), "forbidden");
    assert_eq!(
        key.post("/v1/api-keys", &json!({"name": "more"}))
            .await
            .problem(403),
        "forbidden"
    );
    let listed = renter.get("/v1/api-keys").await;
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(made["secret"].as_str().unwrap()));
    let path = format!("/v1/api-keys/{}", made["key"]["id"].as_str().unwrap());
    renter
        .send(renter.request(Method::DELETE, &path))
        .await
        .expect(200);
    assert_eq!(key.get("/v1/leases").await.problem(401), "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_see_the_proof_and_a_grant_needs_a_reason() {
    let market = Market::start().await;
    let auditor = market.person("auditor").await;
    let without = [
        "grant",
        "--email",
        "auditor@example.org",
        "--role",
        "auditor",
        "--reason",
        " ",
    ];
    assert!(!market.server_command(&without).status.success());
    let with = [
        "grant",
        "--email",
        "auditor@example.org",
        "--role",
        "auditor",
        "--reason",
        "test",
    ];
    assert!(market.server_command(&with).status.success());
    let proof = auditor.get("/v1/admin/ledger-proof").await.expect(200);
    assert_eq!(proof["proven"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_in_tells_nothing_of_who_has_an_account() {
    let market = Market::start().await;
    market.person("known").await;
    let client = market.client();
    let attempt = |email: &str| json!({"email": email, "password": "wrong password 123"});
    let known = client
        .post("/v1/auth/login", &attempt("known@example.org"))
        .await;
    let unknown = client
        .post("/v1/auth/login", &attempt("unknown@example.org"))
        .await;
    assert_eq!(known.problem(401), "bad_login");
    assert_eq!(unknown.problem(401), "bad_login");
    assert_eq!(known.body["detail"], unknown.body["detail"]);
    let right = json!({"email": "Known@Example.org", "password": tests::market::PASSWORD});
    client.post("/v1/auth/login", &right).await.expect(200);
}
