//! What is sent again, with which key, and what is not.

use super::documents::{LEASE, OFFER, lease, search};
use super::stub::{Stub, environment, gpumarket, refusal, reply};

fn stop() -> [&'static str; 3] {
    ["--json", "stop", LEASE]
}

#[tokio::test]
async fn a_post_is_repeated_with_the_same_key_and_body() {
    let body = lease("stopping", "", "0.100000").to_string();
    let stub = Stub::play(vec![
        refusal(503, "unavailable", "away"),
        reply(200, "").hang_up(),
        refusal(429, "throttled", "slow").with("Retry-After", "0"),
        reply(200, body.clone()),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &stop()).await;
    assert_eq!(
        (done.code, done.out.trim_end()),
        (0, body.as_str()),
        "{}",
        done.err
    );
    let asked = stub.asked();
    assert_eq!(asked.len(), 4);
    let key = asked[0].header("idempotency-key").unwrap();
    assert_eq!(uuid::Uuid::parse_str(key).unwrap().get_version_num(), 4);
    for again in &asked {
        assert_eq!(again.header("idempotency-key"), Some(key));
        assert_eq!(again.body, r#"{"type":"stop"}"#);
        assert_eq!(again.header("authorization"), Some("Bearer gm_live_test"));
    }
}

#[tokio::test]
async fn each_invocation_has_its_own_key() {
    let found = || reply(200, search(&[]).to_string());
    let stub = Stub::play(vec![found(), found()]).await;
    for _ in 0..2 {
        gpumarket(environment(Some(&stub.url)), &["search"]).await;
    }
    let asked = stub.asked();
    assert_ne!(
        asked[0].header("idempotency-key"),
        asked[1].header("idempotency-key")
    );
}

#[tokio::test]
async fn a_request_in_flight_is_asked_for_again() {
    let stub = Stub::play(vec![
        refusal(409, "idempotency_in_flight", "busy").with("Retry-After", "0"),
        reply(200, lease("ending", "", "0.100000").to_string()),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &["end", LEASE]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn refusals_that_stay_are_not_repeated() {
    for (status, code) in [
        (400, "malformed_request"),
        (402, "insufficient_funds"),
        (409, "lease_state"),
        (422, "invalid_field"),
        (429, "throttled"),
        (500, "internal"),
    ] {
        let stub = Stub::play(vec![refusal(status, code, "no")]).await;
        let done = gpumarket(environment(Some(&stub.url)), &stop()).await;
        assert_eq!(done.code, 1);
        assert_eq!(done.json()["error"]["code"], code);
        assert_eq!(stub.asked().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_long_retry_after_is_told_instead_of_waited_for() {
    let stub = Stub::play(vec![
        refusal(429, "throttled", "slow").with("Retry-After", "3600"),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &["wallet"]).await;
    assert_eq!((done.code, stub.asked().len()), (1, 1));
    assert!(done.err.contains("again in: 3600 s"), "{}", done.err);
}

#[tokio::test]
async fn repetition_is_bounded() {
    let away = || refusal(503, "unavailable", "away");
    let stub = Stub::play(vec![away(), away(), away(), away(), away()]).await;
    let done = gpumarket(environment(Some(&stub.url)), &["wallet"]).await;
    assert_eq!((done.code, stub.unused()), (1, 1));
}

#[tokio::test]
async fn a_lost_answer_to_a_change_without_a_key_is_not_repeated() {
    let stub = Stub::play(vec![reply(200, "").hang_up(), reply(200, "{}")]).await;
    let done = gpumarket(
        environment(Some(&stub.url)),
        &["offer", "set", OFFER, "--price", "2", "--if-version", "7"],
    )
    .await;
    assert_eq!((done.code, stub.unused()), (1, 1));
    let asked = stub.asked();
    assert_eq!(asked[0].header("if-match"), Some("\"v7\""));
    assert_eq!(
        asked[0].header("content-type"),
        Some("application/merge-patch+json")
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let done = gpumarket(environment(Some(&url)), &["wallet"]).await;
    assert_eq!(done.code, 1);
    for word in [url.as_str(), "refused", "--server", "GPUMARKET_SERVER"] {
        assert!(done.err.contains(word), "{word}: {}", done.err);
    }
    let done = gpumarket(environment(Some(&url)), &["wallet", "--json"]).await;
    assert_eq!(done.json()["error"]["code"], "server_unreachable");
    assert_eq!(done.err, "");
}

#[tokio::test]
async fn an_answer_of_something_else_is_said_to_be_so() {
    for status in [200, 404] {
        let page = || reply(status, "<h1>\n  nginx</h1>");
        let stub = Stub::play(vec![page(), page()]).await;
        let done = gpumarket(environment(Some(&stub.url)), &["wallet"]).await;
        assert_eq!((done.code, done.out.as_str()), (1, ""));
        let told = format!("answered {status}, not as a market: <h1> nginx</h1>");
        assert!(done.err.contains(&told), "{}", done.err);
        let done = gpumarket(environment(Some(&stub.url)), &["wallet", "--json"]).await;
        assert_eq!(
            (done.code, done.json()["error"]["code"].as_str()),
            (1, Some("unexpected_answer"))
        );
    }
}

#[tokio::test]
async fn a_gateway_s_lost_answer_is_repeated_where_that_is_safe() {
    let lost = || reply(502, "bad gateway");
    let stub = Stub::play(vec![
        lost(),
        reply(200, lease("stopping", "", "0").to_string()),
    ])
    .await;
    assert_eq!(
        gpumarket(environment(Some(&stub.url)), &stop()).await.code,
        0
    );
    let stub = Stub::play(vec![lost(), reply(200, "{}")]).await;
    let done = gpumarket(environment(Some(&stub.url)), &["offer", "withdraw", OFFER]).await;
    assert_eq!((done.code, stub.unused()), (1, 1));
}
