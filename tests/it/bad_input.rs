//! Bad input gets a clear error and loses nothing.

use reqwest::Method;
use serde_json::{Value, json};
use tests::market::Market;
use tests::scripted_agent::{ScriptedAgent, handshake, probe};

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_body_is_named() {
    let market = Market::start().await;
    let renter = market.renter("renter", "5").await;
    let top_up = |amount: &str| json!({"amount": {"amount": amount, "currency": "USD"}});
    for (body, pointer) in [
        (
            json!({"amount": {"amount": "1", "currency": "USD"}, "cents": 5}),
            "/cents",
        ),
        (json!({"amount": {"amount": "1"}}), "/amount/currency"),
        (
            json!({"amount": {"amount": 1, "currency": "USD"}}),
            "/amount/amount",
        ),
        (
            json!({"amount": {"amount": "1", "currency": "DM"}}),
            "/amount",
        ),
        (top_up("1e3"), "/amount"),
        (top_up("NaN"), "/amount"),
        (json!({}), "/amount"),
    ] {
        let reply = renter.post("/v1/wallet/top-ups", &body).await;
        assert_eq!(reply.problem(422), "invalid_field", "{body}");
        assert_eq!(reply.body["errors"][0]["pointer"], pointer, "{body}");
    }
    for amount in ["0", "0.99", "-5", "100000.000001"] {
        let reply = renter.post("/v1/wallet/top-ups", &top_up(amount)).await;
        assert_eq!(reply.problem(422), "amount_out_of_range", "{amount}");
    }
    let plain = renter
        .request(Method::POST, "/v1/wallet/top-ups")
        .body("{}");
    assert_eq!(
        renter.send(plain).await.problem(415),
        "unsupported_media_type"
    );
    let broken = renter
        .request(Method::POST, "/v1/wallet/top-ups")
        .header("content-type", "application/json")
        .body("{");
    assert_eq!(renter.send(broken).await.problem(400), "malformed_request");
    let large = json!({"name": "x".repeat(300_000)});
    assert_eq!(
        renter.post("/v1/api-keys", &large).await.problem(413),
        "body_too_large"
    );
    let wallet = renter.get("/v1/wallet").await.expect(200);
    assert_eq!(wallet["posted"]["amount"], "5.000000");
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn conventions_hold_everywhere() {
    let market = Market::start().await;
    let renter = market.renter("renter", "5").await;
    let reply = renter.get("/v1/wallet").await;
    for header in [
        "x-request-id",
        "ratelimit",
        "ratelimit-policy",
        "x-content-type-options",
    ] {
        reply.header(header);
    }
    assert_eq!(renter.get("/v1/nothing").await.problem(404), "no_route");
    let wrong = renter
        .send(renter.request(Method::DELETE, "/v1/wallet"))
        .await;
    assert_eq!(wrong.problem(405), "method_not_allowed");
    assert!(wrong.header("allow").contains("GET"));
    assert_eq!(
        renter.get("/v1/wallet?api_key=abc").await.problem(400),
        "key_in_url"
    );
    assert_eq!(
        renter.get("/v1/leases?limit=0").await.problem(422),
        "invalid_field"
    );
    assert_eq!(
        renter.get("/v1/leases?cursor=x").await.problem(422),
        "invalid_field"
    );
    assert_eq!(
        renter.get("/v1/leases?colour=red").await.problem(422),
        "invalid_field"
    );
    assert_eq!(
        renter.get("/v1/leases?state=flying").await.problem(422),
        "invalid_field"
    );
    assert_eq!(
        renter.get("/v1/leases/lse_x").await.problem(404),
        "not_found"
    );
    let bad_key = renter
        .post_once("/v1/wallet/top-ups", "two words", &json!({}))
        .await;
    assert_eq!(bad_key.status.as_u16(), 422);
    let docs = renter.get("/docs/").await;
    assert_eq!(docs.status.as_u16(), 200);
    assert_eq!(
        renter.get("/openapi.json").await.expect(200)["openapi"],
        "3.1.0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_without_gap_or_double() {
    let market = Market::start().await;
    let renter = market.person("renter").await;
    for n in 0..7 {
        renter
            .post("/v1/api-keys", &json!({"name": format!("k{n}")}))
            .await
            .expect(201);
    }
    let (mut names, mut path) = (Vec::new(), "/v1/api-keys?limit=3".to_owned());
    loop {
        let page = renter.get(&path).await;
        let body = page.body.clone();
        names.extend(
            body["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|k| k["name"].as_str().unwrap().to_owned()),
        );
        match body["next_cursor"].as_str() {
            Some(cursor) => {
                assert!(page.header("link").contains(cursor));
                path = format!("/v1/api-keys?limit=3&cursor={cursor}");
            }
            None => break,
        }
    }
    assert_eq!(names, ["k6", "k5", "k4", "k3", "k2", "k1", "k0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_model_brings_near_names_and_nothing_found_says_why() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "5").await;
    let (_agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "2").await;
    let typo = renter
        .post("/v1/offers/search", &json!({"gpu_models": ["h10"]}))
        .await;
    assert_eq!(typo.problem(422), "unknown_gpu_model");
    assert!(typo.body["suggestion"].as_str().unwrap().contains("h100"));
    let hidden = renter
        .post("/v1/offers/search", &json!({}))
        .await
        .expect(200);
    assert!(hidden["data"].as_array().unwrap().is_empty());
    assert_eq!(hidden["relaxations"][0]["field"], "simulated");
    let dear = json!({"simulated": true, "max_price": {"amount": "1", "currency": "USD", "per": "gpu_hour"}});
    let none = renter.post("/v1/offers/search", &dear).await.expect(200);
    assert_eq!(none["relaxations"][0]["to"], "2.000000");
    let found = renter
        .post("/v1/offers/search", &json!({"simulated": true}))
        .await
        .expect(200);
    assert_eq!(found["data"][0]["offer_id"], offer["id"]);
    assert_eq!(found["data"][0]["simulated"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_probes_are_refused_and_quarantined() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let with = |change: fn(&mut Value)| {
        let mut p = probe("liar", 2);
        change(&mut p);
        p
    };
    let lies = [
        with(|p| p["cpu_cores"] = json!(1_000_000_000_000u64)),
        with(|p| p["gpus"][0]["memory_mib"] = json!(1)),
        with(|p| p["gpus"][1]["uuid"] = p["gpus"][0]["uuid"].clone()),
        with(|p| p["gpus"] = json!([])),
        with(|p| p["gpus"][0]["uuid"] = json!("GPU-real-looking")),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut agent = ScriptedAgent::join(&market, &provider, &format!("liar{number}")).await;
        agent.send(&json!({"type": "probe", "probe": lie})).await;
        let refused = agent.next_of("refused").await;
        assert_eq!(refused["code"], "implausible_probe", "{refused}");
        let machine = market
            .machine_in(&provider, &agent.machine, "quarantined")
            .await;
        assert!(
            machine["state_reason"]
                .as_str()
                .unwrap()
                .contains("implausible"),
            "{machine}"
        );
        let offer = json!({"machine_id": agent.machine, "price": {"amount": "1", "currency": "USD", "per": "gpu_hour"}});
        assert_eq!(
            provider.post("/v1/offers", &offer).await.problem(409),
            "machine_state"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_gpu_on_two_machines_quarantines_both() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let (honest, _) = ScriptedAgent::listed(&market, &provider, ("same", 2), "2").await;
    let mut copy = ScriptedAgent::join(&market, &provider, "copy").await;
    copy.send(&json!({"type": "probe", "probe": probe("same", 2)}))
        .await;
    assert_eq!(copy.next_of("refused").await["code"], "implausible_probe");
    market
        .machine_in(&provider, &copy.machine, "quarantined")
        .await;
    market
        .machine_in(&provider, &honest.machine, "quarantined")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_makes_one_machine() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let token = market.token(&provider, "m").await;
    let key = |n: u8| {
        hex::encode(
            ed25519_dalek::SigningKey::from_bytes(&[n; 32])
                .verifying_key()
                .to_bytes(),
        )
    };
    let enroll = |n: u8| json!({"token": token, "public_key": key(n)});
    let client = market.client();
    let first = client
        .post("/v1/agent/enroll", &enroll(1))
        .await
        .expect(201);
    let again = client
        .post("/v1/agent/enroll", &enroll(1))
        .await
        .expect(201);
    assert_eq!(first, again);
    assert_eq!(
        client
            .post("/v1/agent/enroll", &enroll(2))
            .await
            .problem(409),
        "enrollment_spent"
    );
    let guess = json!({"token": "enr_guess", "public_key": key(3)});
    assert_eq!(
        client.post("/v1/agent/enroll", &guess).await.problem(401),
        "unauthenticated"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_state_folder_is_found_out() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let (mut original, _) = ScriptedAgent::listed(&market, &provider, ("m", 1), "2").await;
    let (machine, key) = (original.machine.clone(), original.key.clone());
    // The original goes on answering pings while a copy of its key connects.
    let lives = tokio::spawn(async move { while !original.next().await.is_null() {} });
    let (_socket, reply) = handshake(&market.base, &machine, &key).await;
    assert_eq!(reply["type"], "refused", "{reply}");
    market.machine_in(&provider, &machine, "quarantined").await;
    lives.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_does_not_connect() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let agent = ScriptedAgent::join(&market, &provider, "m").await;
    let other = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let (_socket, reply) = handshake(&market.base, &agent.machine, &other).await;
    assert_eq!(
        (reply["type"].as_str(), reply["code"].as_str()),
        (Some("refused"), Some("unauthenticated"))
    );
}
