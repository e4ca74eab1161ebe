//! A disputed payment freezes the wallet until all is decided and paid.

use app::dispute::{NewDispute, lost, open, won};
use billing::posting::Rail;
use domain::money::Micros;
use serde_json::json;
use store::dispute::DisputeState;
use tests::client::Client;
use tests::inside::Inside;
use tests::market::{Market, lease_of};
use tests::scripted_agent::ScriptedAgent;

use super::{kinds, party, usd, wallet};

async fn disputed(renter: &Client, usd: i64) -> NewDispute {
    NewDispute {
        party: party(renter).await.parse().unwrap(),
        rail: Rail::Sandbox,
        amount: Micros::new(usd * 1_000_000),
        reason: "the card holder does not know it".to_owned(),
    }
}

async fn is_frozen(renter: &Client) -> bool {
    let wallet = renter.get("/v1/wallet").await.expect(200);
    wallet["frozen"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_dispute_is_owed_and_the_next_top_up_ends_the_freeze_at_once() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "30").await;
    let (_agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "2").await;
    let cx = Inside::on(&market.database.url).cx;
    let dispute = open(&cx, disputed(&renter, 50).await).await.unwrap();
    assert_eq!(wallet(&renter, "available").await, 0);
    assert_eq!(wallet(&renter, "receivable").await, 20_000_000);
    assert!(is_frozen(&renter).await);
    let quote = market.quote(&renter, &offer, 1).await;
    let body = lease_of(&quote, &[]);
    assert_eq!(
        renter.post("/v1/leases", &body).await.problem(409),
        "wallet_frozen"
    );
    market.prove();
    for _twice in 0..2 {
        assert_eq!(
            lost(&cx, dispute.id).await.unwrap().state,
            DisputeState::Lost
        );
    }
    // Decided, but not paid.
    assert!(is_frozen(&renter).await);
    let part = renter
        .post("/v1/wallet/top-ups", &json!({"amount": usd("5")}))
        .await;
    assert_eq!(part.expect(201)["wallet"]["frozen"], true);
    let rest = renter
        .post("/v1/wallet/top-ups", &json!({"amount": usd("25")}))
        .await;
    let rest = rest.expect(201);
    assert_eq!(rest["wallet"]["frozen"], false, "{rest}");
    assert_eq!(rest["wallet"]["receivable"]["amount"], "0.000000");
    assert_eq!(wallet(&renter, "available").await, 10_000_000);
    renter.post("/v1/leases", &body).await.expect(201);
    let kinds = kinds(&renter).await;
    for kind in ["dispute_opened", "dispute_owed", "receivable_repaid"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind}: {kinds:?}");
    }
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_is_won_gives_everything_back() {
    let market = Market::start().await;
    let renter = market.renter("renter", "30").await;
    let cx = Inside::on(&market.database.url).cx;
    let dispute = open(&cx, disputed(&renter, 50).await).await.unwrap();
    renter
        .post("/v1/wallet/top-ups", &json!({"amount": usd("15")}))
        .await
        .expect(201);
    assert!(is_frozen(&renter).await);
    assert_eq!(won(&cx, dispute.id).await.unwrap().state, DisputeState::Won);
    assert_eq!(
        lost(&cx, dispute.id).await.unwrap().state,
        DisputeState::Won
    );
    assert!(!is_frozen(&renter).await);
    assert_eq!(wallet(&renter, "available").await, 45_000_000);
    assert_eq!(wallet(&renter, "receivable").await, 0);
    market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lease_gives_back_pays_the_debt() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "30").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 1), "36").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let lease = renter
        .post("/v1/leases", &lease_of(&quote, &[]))
        .await
        .expect(201);
    let lease = lease["id"].as_str().unwrap().to_owned();
    agent.wanted(&lease, "run").await;
    let cx = Inside::on(&market.database.url).cx;
    open(&cx, disputed(&renter, 30).await).await.unwrap();
    // What the lease holds stays the lease's.
    let owed = wallet(&renter, "receivable").await;
    assert_eq!(owed, wallet(&renter, "held").await);
    assert!(owed > 0);
    market.act(&renter, &lease, "end").await.expect(200);
    agent.wanted(&lease, "gone").await;
    agent
        .report(20_000, vec![tests::scripted_agent::seen(&lease, "gone")])
        .await;
    market.lease_in(&renter, &lease, "ended").await;
    tests::wait::until("the debt to be paid", || async {
        (wallet(&renter, "receivable").await == 0).then_some(())
    })
    .await;
    assert_eq!(wallet(&renter, "posted").await, 0);
    market.prove();
}
