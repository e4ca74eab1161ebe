//! Invoices, usage and FOCUS say what the ledger says, once.

use billing::month::Month;
use billing::tax_rule::{TaxRules, TaxTable};
use domain::clock::{Span, Timestamp};
use domain::money::Micros;
use serde_json::{Value, json};
use tests::client::Client;
use tests::market::{Market, lease_of, micros};
use tests::node::{StandingClock, node};
use tests::scripted_agent::{ScriptedAgent, seen};

/// A renter and a provider after a lease that has ended and was paid.
struct Scene {
    market: Market,
    provider: Client,
    renter: Client,
    ended_at: String,
}

async fn ended() -> Scene {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "500").await;
    let (mut agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 2), "900").await;
    let quote = market.quote(&renter, &offer, 1).await;
    let mut body = lease_of(&quote, &[]);
    body["label"] = json!("=training");
    let lease = renter.post("/v1/leases", &body).await.expect(201);
    let lease = lease["id"].as_str().unwrap().to_owned();
    agent.wanted(&lease, "run").await;
    for mono in [10_000, 11_000, 12_000] {
        agent.report(mono, vec![seen(&lease, "running")]).await;
    }
    market.lease_in(&renter, &lease, "running").await;
    agent.report(90_000, vec![seen(&lease, "running")]).await;
    market.act(&renter, &lease, "end").await.expect(200);
    agent.wanted(&lease, "gone").await;
    agent.report(91_000, vec![seen(&lease, "gone")]).await;
    let lease = market.lease_in(&renter, &lease, "ended").await;
    Scene {
        ended_at: lease["ended_at"].as_str().unwrap().to_owned(),
        market,
        provider,
        renter,
    }
}

impl Scene {
    /// What has left the wallet, in micro-dollars.
    async fn paid(&self) -> i64 {
        let wallet = self.renter.get("/v1/wallet").await.expect(200);
        500_000_000 - micros(&wallet["posted"])
    }

    async fn earned(&self) -> i64 {
        let earned = self.provider.get("/v1/earnings").await.expect(200);
        micros(&earned["net"])
    }

    fn ended(&self) -> Timestamp {
        web_openapi::time::from_text(&self.ended_at).unwrap()
    }

    /// The body of an invoice of everything.
    fn everything(&self, kind: &str) -> Value {
        json!({"kind": kind, "from": "2020-01-01T00:00:00Z", "to": self.ended_at})
    }
}

/// The sum of a column of money.
fn column(bytes: &[u8], name: &str) -> i64 {
    let mut reader = csv::Reader::from_reader(bytes);
    let headers = reader.headers().unwrap().clone();
    let place = headers.iter().position(|h| h == name).unwrap();
    let amounts = reader
        .records()
        .map(|r| r.unwrap()[place].parse::<Micros>().unwrap().get());
    amounts.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_says_what_the_ledger_says_and_only_once() {
    let scene = ended().await;
    let (paid, earned) = (scene.paid().await, scene.earned().await);
    assert!(paid > 0 && earned > 0);
    for (who, kind, amount, prefix) in [
        (&scene.renter, "sale", paid, "INV-"),
        (&scene.provider, "self_billing", earned, "SBI-"),
    ] {
        let body = scene.everything(kind);
        let made = who.post_once("/v1/invoices", "k", &body).await.expect(201);
        assert_eq!(micros(&made["total"]), amount, "{made}");
        assert!(
            made["number"].as_str().unwrap().starts_with(prefix),
            "{made}"
        );
        let again = who.post_once("/v1/invoices", "k", &body).await.expect(201);
        assert_eq!(again, made);
        let more = who.post("/v1/invoices", &body).await;
        assert_eq!(more.problem(409), "nothing_to_invoice");
        let path = format!("/v1/invoices/{}", made["id"].as_str().unwrap());
        assert_eq!(who.get(&path).await.expect(200), made);
        let listed = who.get("/v1/invoices").await.expect(200);
        assert_eq!(listed["data"][0]["id"], made["id"]);
        let table = who.get(&format!("{path}/csv")).await;
        assert_eq!(column(&table.bytes, "total"), amount);
        let text = String::from_utf8(table.bytes).unwrap();
        assert!(
            text.contains("'=training") && !text.contains(",=training"),
            "{text}"
        );
        let pages = who.get(&format!("{path}/pdf")).await;
        assert!(pages.bytes.starts_with(b"%PDF-"));
        assert_eq!(pages.header("content-type"), "application/pdf");
        let stranger = scene.market.person(&format!("stranger-{kind}")).await;
        for end in ["", "/csv", "/pdf"] {
            let reply = stranger.get(&format!("{path}{end}")).await;
            assert_eq!(reply.problem(404), "not_found");
        }
    }
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_and_focus_add_up_to_the_ledger() {
    let scene = ended().await;
    let (paid, earned) = (scene.paid().await, scene.earned().await);
    for group in ["lease", "label", "resource", "day"] {
        let usage = scene
            .renter
            .get(&format!("/v1/usage?group_by={group}"))
            .await
            .expect(200);
        assert_eq!(micros(&usage["total"]), paid, "{usage}");
        let rows = usage["data"].as_array().unwrap();
        assert_eq!(rows.iter().map(|r| micros(&r["total"])).sum::<i64>(), paid);
    }
    let cost = scene.renter.get("/v1/usage/focus").await;
    assert_eq!(cost.header("content-type"), "text/csv");
    assert_eq!(column(&cost.bytes, "BilledCost"), paid);
    let income = scene.provider.get("/v1/usage/focus?side=earnings").await;
    assert_eq!(column(&income.bytes, "BilledCost"), earned);
    let nothing = scene.provider.get("/v1/usage/focus?side=cost").await;
    assert_eq!(column(&nothing.bytes, "BilledCost"), 0);
    for bad in [
        "/v1/usage?group_by=week",
        "/v1/usage?side=both",
        "/v1/usage?from=2020-01-01T00:00:00Z",
        "/v1/usage?from=2026-11-31T00:00:00Z",
        "/v1/usage/focus?to=2019-01-01T00:00:00Z",
    ] {
        assert_eq!(
            scene.renter.get(bad).await.problem(422),
            "invalid_field",
            "{bad}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_month_is_invoiced_once_by_any_number_of_nodes() {
    let scene = ended().await;
    let (paid, earned) = (scene.paid().await, scene.earned().await);
    let month = Month::of(scene.ended());
    let over = month.period().to;
    let clock = StandingClock::at(over.plus(Span::from_mins(119)));
    let nodes: Vec<_> = (0..3)
        .map(|_n| node(&scene.market, &clock, TaxTable::flat(0)))
        .collect();
    // Charges may still come.
    assert_eq!(app::reconcile::issue_invoices(&nodes[0]).await.unwrap(), 0);
    clock.set(over.plus(Span::from_mins(121)));
    let [a, b, c] = [0, 1, 2].map(|n| app::reconcile::issue_invoices(&nodes[n]));
    let (a, b, c) = tokio::join!(a, b, c);
    assert_eq!(a.unwrap() + b.unwrap() + c.unwrap(), 2);
    for node in &nodes {
        assert_eq!(app::reconcile::issue_invoices(node).await.unwrap(), 0);
    }
    for (who, amount, number) in [
        (&scene.renter, paid, "INV"),
        (&scene.provider, earned, "SBI"),
    ] {
        let listed = who.get("/v1/invoices").await.expect(200);
        let [made] = listed["data"].as_array().unwrap().as_slice() else {
            panic!("{listed}");
        };
        assert_eq!(micros(&made["total"]), amount);
        let from = format!("{month}-01T00:00:00.000000Z");
        assert_eq!(made["period_from"], from);
        let number = format!("{number}-{}-000001", billing::month::year_of(over));
        assert_eq!(made["number"], number);
        assert!(
            listed.to_string().contains("Market Operator GmbH"),
            "{listed}"
        );
    }
    scene.market.prove();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credit_note_refers_to_an_invoice_and_never_exceeds_it() {
    let scene = ended().await;
    let made = scene
        .renter
        .post("/v1/invoices", &scene.everything("sale"))
        .await
        .expect(201);
    let finance = scene.market.person("finance").await;
    let path = format!(
        "/v1/admin/invoices/{}/credit-notes",
        made["id"].as_str().unwrap()
    );
    let body = |amount: &Value| json!({"amount": amount, "reason": "the machine was slow"});
    let nobody = finance.post(&path, &body(&made["total"])).await;
    assert_eq!(nobody.problem(404), "not_found");
    let grant = [
        "grant",
        "--email",
        "finance@example.org",
        "--role",
        "finance",
        "--reason",
        "test",
    ];
    assert!(scene.market.server_command(&grant).status.success());
    let part = json!({"amount": "0.000001", "currency": "USD"});
    let note = finance.post(&path, &body(&part)).await.expect(201);
    assert_eq!(note["credits"]["number"], made["number"]);
    assert_eq!(note["kind"], "credit_note");
    let all = finance.post(&path, &body(&made["total"])).await;
    assert_eq!(all.problem(409), "credit_conflict");
    let rest = Micros::new(micros(&made["total"]) - 1).to_string();
    let rest = json!({"amount": rest, "currency": "USD"});
    finance.post(&path, &body(&rest)).await.expect(201);
    let unknown = json!({"amount": part, "reason": "x",
        "transfer_id": "txn_00000000000000000000000000"});
    assert_eq!(
        finance.post(&path, &unknown).await.problem(409),
        "credit_conflict"
    );
    // The renter sees both, and the invoice as it was.
    let listed = scene.renter.get("/v1/invoices").await.expect(200);
    let numbers: Vec<&str> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["number"].as_str().unwrap())
        .collect();
    assert!(
        numbers[0].ends_with("-000002") && numbers[0].starts_with("CRN"),
        "{numbers:?}"
    );
    assert!(numbers[1].ends_with("-000001"), "{numbers:?}");
    let same = scene
        .renter
        .get(&format!("/v1/invoices/{}", made["id"].as_str().unwrap()))
        .await;
    assert_eq!(same.expect(200), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_decides_the_tax_of_quotes_and_stands_on_invoices() {
    let market = Market::start().await;
    let provider = market.person("provider").await;
    let renter = market.renter("renter", "50").await;
    let (_agent, offer) = ScriptedAgent::listed(&market, &provider, ("m", 1), "2").await;
    let path = "/v1/me/billing-profile";
    let fresh = renter.get(path).await.expect(200);
    assert_eq!(
        (fresh["legal_name"].as_str(), fresh["version"].as_i64()),
        (Some("renter"), Some(0))
    );
    let patch = |body: Value| {
        let request = renter.request(reqwest::Method::PATCH, path).json(&body);
        renter.send(request)
    };
    let set = patch(
        json!({"legal_name": "Renter GmbH", "address": ["Weg 1", "Köln"],
        "country": "DE", "vat_id": "de 99"}),
    );
    let set = set.await.expect(200);
    assert_eq!(
        (set["vat_id"].as_str(), set["version"].as_i64()),
        (Some("DE 99"), Some(1))
    );
    for bad in [
        json!({"country": "de"}),
        json!({"legal_name": ""}),
        json!({"vat_id": "=1+1"}),
        json!({"address": vec!["x"; 7]}),
        json!({"city": "Köln"}),
    ] {
        assert_eq!(
            patch(bad.clone()).await.problem(422),
            "invalid_field",
            "{bad}"
        );
    }
    let rule =
        |bps, customer: &str| json!({"country": "DE", "customer": customer, "rate_bps": bps});
    let rules = json!({"rule": [rule(0, "business"), rule(1_900, "consumer")]});
    let rules: TaxRules = serde_json::from_value(rules).unwrap();
    let clock = StandingClock::at(
        web_openapi::time::from_text(set["updated_at"].as_str().unwrap()).unwrap(),
    );
    let cx = node(&market, &clock, TaxTable::new(700, &rules).unwrap());
    let user = app::party::credentials(&cx, "renter@example.org")
        .await
        .unwrap()
        .unwrap()
        .user;
    let caller = app::Caller {
        actor: app::party::actor_of_user(&cx, user).await.unwrap().unwrap(),
        request_id: "test".to_owned(),
    };
    let ask = app::quote::QuoteAsk {
        offer: offer["id"].as_str().unwrap().parse().unwrap(),
        offer_version: None,
        gpu_count: 1,
        disk_gib: 10,
        duration: Span::from_hours(1),
    };
    for (vat_id, tax) in [(json!("DE 99"), 0), (Value::Null, 1_900)] {
        patch(json!({"vat_id": vat_id})).await.expect(200);
        let once = app::Once {
            key: None,
            status: 201,
            render: &|q: &app::quote::QuoteView| json!(q.quote.tax_bps),
        };
        let made = app::quote::create(&cx, &caller, ask, once).await.unwrap();
        assert_eq!(made.body, json!(tax));
    }
}
