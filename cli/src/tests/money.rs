//! Usage, invoices and budgets: what is asked for, what is shown, which files are kept.

use serde_json::{Value, json};

use super::documents::{LEASE, money, rate};
use super::stub::{Reply, Stub, environment, folder, gpumarket, refusal, reply};

const INVOICE: &str = "inv_0000000000000000000000000f";
const BUDGET: &str = "bud_0000000000000000000000000g";

fn invoice() -> Value {
    let who = |name: &str| json!({"name": name, "address": ["Street 1"], "country": "DE"});
    json!({
        "id": INVOICE, "number": "INV-2026-000042", "kind": "sale",
        "period_from": "2026-11-01T00:00:00.000000Z", "period_to": "2026-12-01T00:00:00.000000Z",
        "issued_at": "2026-12-01T02:00:00.000000Z", "seller": who("Market"), "buyer": who("Lab"),
        "tax_note": "Reverse charge", "payments": "sandbox", "gross": money("1.234567"),
        "fee": money("0.061728"), "tax": money("0.000000"), "total": money("1.234567"),
        "total_in_cents": money("1.230000"),
        "lines": [{"lease_id": LEASE, "label": "train", "resource": "compute",
            "gpu_model": "h100-sxm-80gb", "gpu_count": 2, "disk_gib": 10, "simulated": true,
            "from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z", "first_charge": 1,
            "last_charge": 3, "billable_milliseconds": 3_605_250, "rate": rate("4.200000", "hour"),
            "tax_bps": 0, "gross": money("1.234567"), "fee": money("0.061728"),
            "tax": money("0.000000")}],
    })
}

fn budget() -> Value {
    json!({
        "id": BUDGET, "scope": "label", "label": "train", "period": "month",
        "period_from": "2026-12-01T00:00:00Z", "limit": money("100.000000"),
        "spent": money("81.500000"), "exhausted": false, "alert_percents": [50, 80],
        "action": "stop", "alerts": [{"percent": 80, "spent": money("80.000000"),
        "at": "2026-12-01T09:00:00Z"}], "version": 3, "created_at": "2026-12-01T09:00:00Z",
        "updated_at": "2026-12-01T09:00:00Z",
    })
}

fn usage() -> Value {
    json!({
        "side": "cost", "group_by": "label", "from": "2026-12-01T00:00:00Z",
        "to": "2026-12-01T10:00:00Z", "has_more": false, "total": money("4.200001"),
        "data": [{"key": "", "gpu_seconds": 3600, "gib_seconds": 0, "gross": money("4.200001"),
            "fee": money("0.210000"), "tax": money("0.000000"), "total": money("4.200001")}],
    })
}

fn file(kind: &str, body: &str) -> Reply {
    reply(200, body).with("content-type", kind)
}

/// Runs `arguments` against one answer: what was asked, and what was shown.
async fn ask(arguments: &[&str], answer: Value) -> (String, String) {
    let stub = Stub::play(vec![reply(200, answer.to_string())]).await;
    let done = gpumarket(environment(Some(&stub.url)), arguments).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    (stub.lines().join("\n"), done.out)
}

#[tokio::test]
async fn views_show_what_counts_exactly() {
    let page = |row: Value| json!({"data": [row], "has_more": false});
    for (arguments, answer, path, shown) in [
        (
            vec!["invoices"],
            page(invoice()),
            "GET /v1/invoices?limit=50",
            "INV-2026-000042",
        ),
        (
            vec!["invoice", "show", INVOICE],
            invoice(),
            "GET /v1/invoices/",
            "3605.250",
        ),
        (
            vec!["budgets"],
            page(budget()),
            "GET /v1/budgets?limit=50",
            "81 %",
        ),
        (
            vec!["budget", "show", BUDGET],
            budget(),
            "GET /v1/budgets/",
            "80 % at 80.00 USD",
        ),
        (
            vec![
                "usage",
                "--by",
                "label",
                "--from",
                "2026-12-01",
                "--earnings",
            ],
            usage(),
            "GET /v1/usage?from=2026-12-01T00%3A00%3A00.000000Z&side=earnings&group_by=label",
            "4.200001 USD",
        ),
    ] {
        let (asked, out) = ask(&arguments, answer).await;
        assert!(asked.starts_with(path), "{asked}");
        assert!(out.contains(shown), "{arguments:?}: {out}");
    }
    let (_, out) = ask(&["invoice", "show", INVOICE], invoice()).await;
    assert!(
        out.contains("sandbox (play money)") && out.contains("Reverse charge"),
        "{out}"
    );
}

#[tokio::test]
async fn requests_say_what_was_wanted() {
    let asked = async |arguments: &[&str], answers: Vec<Reply>| {
        let stub = Stub::play(answers).await;
        let done = gpumarket(environment(Some(&stub.url)), arguments).await;
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
        stub.asked().last().unwrap().clone()
    };
    let made = |value: Value| vec![reply(201, value.to_string())];
    let create = asked(
        &["invoice", "create", "--month", "2026-11", "--earnings"],
        made(invoice()),
    );
    let expected = json!({"kind": "self_billing", "month": "2026-11", "from": null, "to": null});
    assert_eq!(create.await.json(), expected);
    let credit = [
        "invoice", "credit", INVOICE, "--amount", "1.5", "--reason", "slow",
    ];
    let credit = asked(&credit, made(invoice())).await;
    assert_eq!(
        credit.line,
        format!("POST /v1/admin/invoices/{INVOICE}/credit-notes")
    );
    let budget_of = [
        "budget", "create", "--label", "train", "--limit", "100", "--action", "stop", "--alerts",
        "25,75",
    ];
    let body = asked(&budget_of, made(budget())).await.json();
    assert_eq!(
        (&body["scope"], &body["action"]),
        (&json!("label"), &json!("stop"))
    );
    assert_eq!(body["alert_percents"], json!([25, 75]));
    let versioned = reply(200, budget().to_string()).with("etag", "\"v3\"");
    let set = ["budget", "set", BUDGET, "--limit", "7"];
    let set = asked(&set, vec![versioned, reply(200, budget().to_string())]).await;
    assert_eq!(set.header("if-match"), Some("\"v3\""));
    assert_eq!(
        set.json(),
        json!({"limit": {"amount": "7.000000", "currency": "USD"}})
    );
    let profile = json!({"legal_name": "Lab", "address": ["a"], "version": 1,
        "updated_at": "2026-12-01T09:00:00Z"});
    let answers = vec![
        reply(200, profile.to_string()),
        reply(200, profile.to_string()),
    ];
    let set = ["invoice", "set-profile", "--country", "DE", "--vat-id", ""];
    let set = asked(&set, answers).await;
    assert_eq!(set.json(), json!({"country": "DE", "vat_id": null}));
}

#[tokio::test]
async fn files_are_kept_as_they_came() {
    let folder = folder("invoice");
    let path = folder.join("bill.pdf");
    let name = path.to_str().unwrap();
    let stub = Stub::play(vec![file("application/pdf", "%PDF-1.7 …")]).await;
    let arguments = ["invoice", "download", INVOICE, "-o", name];
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "%PDF-1.7 …");
    assert_eq!(stub.lines(), [format!("GET /v1/invoices/{INVOICE}/pdf")]);
    let table = "BilledCost\r\n1.000000\r\n";
    let stub = Stub::play(vec![file("text/csv; charset=utf-8", table)]).await;
    let done = gpumarket(environment(Some(&stub.url)), &["usage", "focus"]).await;
    assert_eq!((done.code, done.out.as_str()), (0, table));
    // What is no such file is not kept.
    let stub = Stub::play(vec![file("text/html", "<p>log in</p>")]).await;
    std::fs::remove_file(&path).unwrap();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!(done.code, 1);
    assert!(!path.exists(), "{}", done.err);
    let stub = Stub::play(vec![refusal(404, "not_found", "No.")]).await;
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert!(done.err.contains("not_found"), "{}", done.err);
}

#[tokio::test]
async fn wrong_periods_and_subjects_are_usage() {
    for arguments in [
        vec!["invoice", "create"],
        vec!["invoice", "create", "--month", "2026-13"],
        vec![
            "invoice",
            "create",
            "--month",
            "2026-11",
            "--from",
            "2026-11-01",
            "--to",
            "2026-11-02",
        ],
        vec!["invoice", "create", "--from", "2026-11-01"],
        vec!["invoice", "set-profile"],
        vec!["usage", "--from", "yesterday"],
        vec!["usage", "focus", "--json"],
        vec!["budget", "create"],
        vec![
            "budget", "create", "--limit", "1", "--label", "x", "--lease", LEASE,
        ],
        vec!["budget", "set", BUDGET],
    ] {
        let stub = Stub::play(vec![file("text/csv", "a\r\n")]).await;
        let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.out, done.err);
    }
}
