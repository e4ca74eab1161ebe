//! Statements: fetched byte by byte, recomputed offline.

use std::path::PathBuf;

use billing::statement::{
    ChargeLine, EARNINGS_FORMAT, EarningsBody, EarningsLease, EarningsMeter, FORMAT, MeterLines,
    Opening, SegmentLine, StatementBody, Totals, sign,
};
use ed25519_dalek::SigningKey;

use super::documents::LEASE;
use super::stub::{Stub, environment, folder, gpumarket, reply};
use crate::Environment;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn public() -> String {
    hex::encode(key().verifying_key().to_bytes())
}

fn charge(seq: i64, from_s: i64, to_s: i64, gross: i64, fee: i64) -> ChargeLine {
    ChargeLine {
        seq,
        segment: Some(1),
        from_us: from_s * 1_000_000,
        to_us: to_s * 1_000_000,
        billable_ms: (to_s - from_s) * 1_000,
        gross_micros: gross,
        fee_micros: fee,
        tax_micros: 0,
        booked_at_us: Some(to_s * 1_000_000),
        hash: String::new(),
    }
}

/// Two charges over one hour at 4.20 USD per hour with 5 % fee.
fn statement() -> Vec<u8> {
    sign(bill(), &key()).unwrap()
}

fn bill() -> StatementBody {
    let compute = MeterLines {
        meter: "mtr_1".to_owned(),
        resource: "compute".to_owned(),
        price_micros: None,
        segments: vec![SegmentLine {
            no: 1,
            from_us: 0,
            price_micros: 4_200_000,
        }],
        period_ms: 3_600_000,
        fee_bps: 500,
        tax_bps: 0,
        charges: vec![
            charge(1, 0, 600, 700_000, 35_000),
            charge(2, 600, 3_600, 3_500_000, 175_000),
        ],
        billable_ms: 3_600_000,
    };
    StatementBody {
        format: FORMAT.to_owned(),
        lease: LEASE.to_owned(),
        renter: "pty_r".to_owned(),
        provider: "pty_p".to_owned(),
        machine: "mch_m".to_owned(),
        gpu_model: "h100-sxm-80gb".to_owned(),
        gpu_count: 2,
        disk_gib: 10,
        simulated: true,
        currency: "USD".to_owned(),
        state: "ended".to_owned(),
        issued_at_us: 1_796_119_200_000_000,
        meters: vec![compute],
        total: Totals::default(),
    }
}

/// The provider's side of these charges.
fn earned(from: &StatementBody) -> Vec<u8> {
    let compute = &from.meters[0];
    let meter = EarningsMeter {
        meter: compute.meter.clone(),
        resource: compute.resource.clone(),
        segments: compute.segments.clone(),
        period_ms: compute.period_ms,
        fee_bps: compute.fee_bps,
        tax_bps: compute.tax_bps,
        opening: Opening::default(),
        charges: compute.charges.clone(),
        billable_ms: compute.billable_ms,
    };
    let lease = EarningsLease {
        lease: from.lease.clone(),
        renter: from.renter.clone(),
        machine: from.machine.clone(),
        gpu_model: from.gpu_model.clone(),
        gpu_count: from.gpu_count,
        simulated: from.simulated,
        meters: vec![meter],
        total: Totals::default(),
    };
    let body = EarningsBody {
        format: EARNINGS_FORMAT.to_owned(),
        provider: from.provider.clone(),
        only_lease: None,
        currency: from.currency.clone(),
        from_us: 0,
        to_us: 7_200_000_000,
        issued_at_us: 7_300_000_000,
        leases: vec![lease],
        total: Totals::default(),
    };
    sign(body, &key()).unwrap()
}

fn file(bytes: &[u8]) -> PathBuf {
    let path = folder("bill").join("bill.json");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn pinned(statement_key: &str) -> Environment {
    let path = folder("pinned").join("config.toml");
    let text = format!("[profiles.default]\nstatement_key = \"{statement_key}\"\n");
    std::fs::write(&path, text).unwrap();
    let mut home = environment(Some("http://127.0.0.1:1"));
    home.config = Some(path);
    home
}

#[tokio::test]
async fn a_statement_is_written_as_it_came_and_verified_offline() {
    let bytes = statement();
    let stub = Stub::play(vec![
        reply(200, String::from_utf8(bytes.clone()).unwrap());
        2
    ])
    .await;
    let path = folder("fetch").join("bill.json");
    let name = path.to_str().unwrap();
    let done = gpumarket(
        environment(Some(&stub.url)),
        &["statement", LEASE, "-o", name],
    )
    .await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let done = gpumarket(environment(Some(&stub.url)), &["statement", LEASE]).await;
    assert_eq!(done.out.as_bytes(), bytes);
    let done = gpumarket(pinned(&public()), &["verify", name]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    for told in [
        "3600.000 (1 h 00 min 00 s)",
        "4.200000 USD per hour",
        "renter pays     4.200000 USD",
        "provider gets   3.990000 USD",
        "2 charges recomputed: order, hash chain, seconds × rate, fee, tax",
        "agree: renter pays = provider gets + fee + tax",
        "valid, by the key pinned in profile `default`",
        &public(),
        "the GPUs were simulated",
        "(the statement is final)",
    ] {
        assert!(done.out.contains(told), "{told}\n{}", done.out);
    }
}

#[tokio::test]
async fn a_changed_byte_fails() {
    let text = String::from_utf8(statement()).unwrap();
    for (from, to) in [
        ("700000", "700001"),
        ("\"ended\"", "\"ender\""),
        ("\n}\n", "\n}"),
    ] {
        let path = file(text.replacen(from, to, 1).as_bytes());
        let name = path.to_str().unwrap();
        let done = gpumarket(pinned(&public()), &["verify", name]).await;
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{from}");
        let done = gpumarket(pinned(&public()), &["--json", "verify", name]).await;
        assert_eq!(done.json()["error"]["code"], "statement_invalid");
    }
}

#[tokio::test]
async fn a_key_that_is_not_pinned_is_said_to_be_so() {
    let path = file(&statement());
    let name = path.to_str().unwrap();
    let done = gpumarket(environment(None), &["verify", name]).await;
    assert_eq!(done.code, 0);
    assert!(
        done.out
            .contains("signature is valid, but the key is not pinned"),
        "{}",
        done.out
    );
    let done = gpumarket(environment(None), &["verify", name, "--json"]).await;
    assert_eq!(done.json()["key_is_trusted"], false);
    let done = gpumarket(environment(None), &["verify", name, "--key", &public()]).await;
    assert!(done.out.contains("by the given key"), "{}", done.out);
}

#[tokio::test]
async fn another_key_fails_whether_given_or_pinned() {
    let path = file(&statement());
    let name = path.to_str().unwrap();
    let other = "11".repeat(32);
    let done = gpumarket(pinned(&other), &["verify", name]).await;
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("another key") && done.err.contains("--profile"),
        "{}",
        done.err
    );
    let done = gpumarket(pinned(&public()), &["verify", name, "--key", &other]).await;
    assert_eq!(done.code, 1);
    let done = gpumarket(environment(None), &["verify", name, "--key", "zz"]).await;
    assert_eq!(done.code, 2);
    let done = gpumarket(environment(None), &["verify", "/no/such/file"]).await;
    assert_eq!(done.code, 1);
}

#[tokio::test]
async fn both_sides_statements_are_recomputed_and_meet() {
    let (mine, theirs) = (file(&statement()), file(&earned(&bill())));
    let names = [mine.to_str().unwrap(), theirs.to_str().unwrap()];
    let done = gpumarket(pinned(&public()), &["verify", names[0], names[1]]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    for told in [
        "earnings of",
        "(final)",
        "you get         3.990000 USD",
        "2 charges are the same in both; renter pays 4.200000 USD, provider gets 3.990000 USD",
    ] {
        assert!(done.out.contains(told), "{told}\n{}", done.out);
    }
    let done = gpumarket(pinned(&public()), &["--json", "verify", names[0], names[1]]).await;
    let told = done.json();
    assert_eq!(told["meetings"][0]["meet"], true);
    assert_eq!(told["meetings"][0]["charges"], 2);
    let done = gpumarket(pinned(&public()), &["--json", "verify", names[1]]).await;
    assert_eq!(done.json()["body"]["format"], EARNINGS_FORMAT);
}

#[tokio::test]
async fn sides_that_were_told_different_things_do_not_meet() {
    let mut other = bill();
    other.meters[0].charges.pop();
    other.meters[0].billable_ms = 600_000;
    let (mine, theirs) = (file(&statement()), file(&earned(&other)));
    let names = [mine.to_str().unwrap(), theirs.to_str().unwrap()];
    let done = gpumarket(pinned(&public()), &["--json", "verify", names[0], names[1]]).await;
    assert_eq!(done.code, 1);
    assert_eq!(done.json()["error"]["code"], "statements_differ");
    let mut stranger = bill();
    stranger.provider = "pty_q".to_owned();
    let theirs = file(&earned(&stranger));
    let names = [mine.to_str().unwrap(), theirs.to_str().unwrap()];
    let done = gpumarket(pinned(&public()), &["verify", names[0], names[1]]).await;
    assert!(done.out.contains("NOT COMPARED"), "{}", done.out);
}

#[tokio::test]
async fn earnings_are_asked_for_by_period_and_lease() {
    let bytes = earned(&bill());
    let stub = Stub::play(vec![reply(200, String::from_utf8(bytes.clone()).unwrap())]).await;
    let path = folder("earned").join("earned.json");
    let name = path.to_str().unwrap();
    let from = "2026-11-01T00:00:00Z";
    let asked = [
        "earnings-statement",
        "--from",
        from,
        "--lease",
        LEASE,
        "-o",
        name,
    ];
    let done = gpumarket(environment(Some(&stub.url)), &asked).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let line = &stub.lines()[0];
    let expected =
        format!("GET /v1/earnings/statement?from=2026-11-01T00%3A00%3A00Z&lease={LEASE}");
    assert_eq!(*line, expected);
}

#[tokio::test]
async fn a_disk_is_grown_by_an_action() {
    let stub = Stub::play(vec![reply(
        200,
        super::documents::lease("running", "", "0.10").to_string(),
    )])
    .await;
    let asked = ["resize", LEASE, "--disk", "20"];
    let done = gpumarket(environment(Some(&stub.url)), &asked).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("The disk has "), "{}", done.out);
    let request = &stub.asked()[0];
    assert_eq!(request.line, format!("POST /v1/leases/{LEASE}/actions"));
    let expected = serde_json::json!({"type": "resize", "disk_gib": 20});
    assert_eq!(request.json(), expected);
}
