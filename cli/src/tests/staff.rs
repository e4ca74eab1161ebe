//! The operator's people: each command logs in, since a key has no such role.

use std::io::Cursor;

use serde_json::{Value, json};

use super::documents::me;
use super::stub::{Stub, environment, gpumarket, reply};

const PARTY: &str = "pty_00000000000000000000000001";
const LOGIN: [&str; 4] = ["admin", "--email", "ada@example.org", "--password-stdin"];

fn adjustment(state: &str) -> Value {
    json!({
        "id": "adj_00000000000000000000000001", "party_id": PARTY, "direction": "debit",
        "account": "renter_wallet", "borne_by": "suspense",
        "amount": {"amount": "150.000000", "currency": "USD"}, "reason": "counted wrong",
        "needs_approval": true, "state": state, "proposed_by": "usr_1",
        "proposed_at": "2026-12-01T09:00:00Z", "expires_at": "2026-12-08T09:00:00Z",
    })
}

/// Runs an admin command after a log-in; what was asked after it, and what was said.
async fn run(arguments: &[&str], answer: (u16, Value)) -> (String, Value, String) {
    let session = json!({
        "access_token": "jwt", "token_type": "Bearer", "expires_in_seconds": 900, "me": me("aa"),
    });
    let script = vec![
        reply(200, session.to_string()),
        reply(answer.0, answer.1.to_string()),
    ];
    let stub = Stub::play(script).await;
    let mut here = environment(Some(&stub.url));
    here.input = Box::new(Cursor::new(b"correct horse battery\n".to_vec()));
    let done = gpumarket(here, &[&LOGIN[..], arguments].concat()).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    let asked = stub.asked();
    assert_eq!(asked[0].json()["password"], "correct horse battery");
    assert_eq!(asked[1].header("authorization"), Some("Bearer jwt"));
    let body = if stub.lines()[1].starts_with("POST") {
        asked[1].json()
    } else {
        Value::Null
    };
    (stub.lines()[1].clone(), body, done.out)
}

#[tokio::test]
async fn money_is_moved_by_a_person_who_logs_in() {
    let adjust = [
        "adjust",
        "debit",
        "150",
        "--party",
        PARTY,
        "--borne-by",
        "suspense",
        "--reason",
        "counted wrong",
    ];
    let (line, body, out) = run(&adjust, (201, adjustment("proposed"))).await;
    assert_eq!(line, "POST /v1/admin/adjustments");
    assert_eq!(body["amount"]["amount"], "150.000000");
    assert_eq!(body["account"], "renter_wallet");
    assert!(out.contains("waits for a second person"), "{out}");
    let id = "adj_00000000000000000000000001";
    let (line, body, out) = run(&["approve", id], (200, adjustment("applied"))).await;
    assert_eq!(line, format!("POST /v1/admin/adjustments/{id}/actions"));
    assert_eq!(body, json!({"type": "approve"}));
    assert!(out.contains("applied") && !out.contains("waits"), "{out}");
    let reject = ["reject", id, "--reason", "counted right"];
    let (_line, body, _out) = run(&reject, (200, adjustment("rejected"))).await;
    assert_eq!(body, json!({"type": "reject", "reason": "counted right"}));
}

#[tokio::test]
async fn credit_is_granted_and_lists_are_shown() {
    let credit = json!({
        "id": "crd_1", "party_id": PARTY, "type": "promo", "reason": "welcome",
        "amount": {"amount": "20.000000", "currency": "USD"},
        "remaining": {"amount": "12.500000", "currency": "USD"}, "granted_by": "usr_1",
        "expires_at": "2026-12-31T09:00:00Z", "created_at": "2026-12-01T09:00:00Z",
    });
    let grant = [
        "credit",
        "promo",
        "20",
        "--party",
        PARTY,
        "--expires-after",
        "30d",
        "--reason",
        "welcome",
    ];
    let (line, body, out) = run(&grant, (201, credit.clone())).await;
    assert_eq!(line, "POST /v1/admin/credits");
    assert_eq!(
        (&body["type"], &body["party_id"]),
        (&json!("promo"), &json!(PARTY))
    );
    assert!(body["expires_at"].is_string() && body.get("lease_id").is_none());
    assert!(out.contains("20.00 USD") && out.contains("crd_1"), "{out}");
    let page = |row: Value| {
        (
            200,
            json!({"data": [row], "has_more": true, "next_cursor": "abc"}),
        )
    };
    let (line, _, out) = run(&["credits"], page(credit)).await;
    assert!(line.starts_with("GET /v1/admin/credits"), "{line}");
    assert!(
        out.contains("12.50 USD") && out.contains("--cursor abc"),
        "{out}"
    );
    let (_, _, out) = run(&["adjustments"], page(adjustment("proposed"))).await;
    assert!(out.contains("counted wrong"), "{out}");
}
