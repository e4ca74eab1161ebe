//! Every kind of money that moves beside leases: credit, adjustments, earnings, payouts, disputes.

use serde_json::{Value, json};
use tests::client::Client;
use tests::market::{Market, micros};

mod credit;
mod dispute;
mod earnings;
mod staff;

/// A person with a role for the operator.
async fn staff(market: &Market, name: &str, role: &str) -> Client {
    let person = market.person(name).await;
    let email = format!("{name}@example.org");
    let args = [
        "grant", "--email", &email, "--role", role, "--reason", "test",
    ];
    let done = market.server_command(&args);
    assert!(done.status.success(), "{done:?}");
    person
}

async fn party(who: &Client) -> String {
    let me = who.get("/v1/me").await.expect(200);
    me["party"]["id"]
        .as_str()
        .or(me["party_id"].as_str())
        .unwrap_or_else(|| panic!("{me}"))
        .to_owned()
}

fn usd(amount: &str) -> Value {
    json!({"amount": amount, "currency": "USD"})
}

async fn wallet(who: &Client, field: &str) -> i64 {
    micros(&who.get("/v1/wallet").await.expect(200)[field])
}

/// The kinds of a party's movements, newest first.
async fn kinds(who: &Client) -> Vec<String> {
    let list = who.get("/v1/transactions?limit=200").await.expect(200);
    let kind = |t: &Value| t["kind"].as_str().unwrap().to_owned();
    list["data"].as_array().unwrap().iter().map(kind).collect()
}
