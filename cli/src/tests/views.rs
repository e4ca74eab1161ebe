//! Every view of one document, as people and as programs get it.

use serde_json::{Value, json};

use super::documents::{LEASE, MACHINE, OFFER, lease, money, rate};
use super::stub::{Stub, environment, gpumarket, reply};

type View = (Vec<&'static str>, Value, &'static str);

/// Each list and view, in both forms: people see the id, programs the very same bytes.
#[tokio::test]
async fn every_view_reads_its_document_and_repeats_it_with_json() {
    for (arguments, document, told) in all_views() {
        let body = document.to_string();
        let stub = Stub::play(vec![reply(200, body.clone()), reply(200, body.clone())]).await;
        let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
        assert!(
            done.out.contains(told),
            "{arguments:?}: {told}\n{}",
            done.out
        );
        let json = [&["--json"], arguments.as_slice()].concat();
        let done = gpumarket(environment(Some(&stub.url)), &json).await;
        assert_eq!(
            (done.code, done.out),
            (0, format!("{body}\n")),
            "{arguments:?}"
        );
    }
}

fn all_views() -> Vec<View> {
    let views = [renter_views(), provider_views(), earning_views()];
    views.into_iter().flatten().collect()
}

fn page(row: Value) -> Value {
    json!({"data": [row], "has_more": true, "next_cursor": "abc"})
}

fn renter_views() -> Vec<View> {
    let wallet = json!({
        "posted": money("10.000000"), "held": money("1.500000"), "available": money("8.500000"),
        "promo": money("2.000000"), "receivable": money("0.000000"), "frozen": false,
        "burn_rate": rate("2.000000", "hour"), "payments": "sandbox",
        "runs_out_at": "2026-12-01T15:00:00.000000Z",
    });
    let event = json!({"id": "evt_1", "at": "2026-12-01T09:59:00Z", "from": "placing",
        "to": "provisioning", "reason": "machine", "detail": "", "actor": "machine"});
    let moved = json!({"id": "txn_1", "at": "2026-12-01T09:59:00Z", "kind": "top_up",
        "account": "renter_wallet", "amount": money("10.000000"), "cause": "top_1",
        "description": "Top-up"});
    let top_up = json!({"id": "top_1", "amount": money("10.000000"), "status": "succeeded",
        "payments": "sandbox", "created_at": "2026-12-01T09:59:00Z", "wallet": wallet});
    let model = json!({"slug": "h100-sxm-80gb", "name": "H100", "vendor": "nvidia",
        "architecture": "Hopper", "memory_mib": 81_920, "memory_bandwidth_gbps": 3350,
        "fp16_gflops": 989_400, "power_watts": 700, "interconnect": "NVLink 4",
        "mig_profiles": [], "aliases": [], "source": "x"});
    let key = json!({"id": "key_1", "name": "ci", "prefix": "gm_live_3fk2",
        "scopes": ["leases:read"], "created_at": "2026-12-01T09:00:00Z"});
    vec![
        (vec!["wallet"], wallet, "(in 5 h 00 min 00 s)"),
        (vec!["top-up", "10"], top_up, "sandbox (play money)"),
        (vec!["transactions"], page(moved), "+10.00 USD"),
        (vec!["models"], page(model), "989 TFLOPS"),
        (vec!["keys"], page(key), "gm_live_3fk2…"),
        (
            vec!["leases"],
            page(lease("running", "", "0.07")),
            "There are more: --cursor abc",
        ),
        (
            vec!["show", LEASE],
            lease("running", "", "0.070000"),
            "0.070000 USD",
        ),
        (vec!["events", LEASE], page(event), "placing → provisioning"),
    ]
}

fn provider_views() -> Vec<View> {
    let machine = json!({
        "id": MACHINE, "name": "rack 1", "state": "listed", "state_reason": "provider",
        "simulated": true, "cpu_cores": 192, "ram_mib": 2048, "disk_gib": 100,
        "agent_version": "0.1.0", "created_at": "2026-12-01T09:00:00Z",
        "last_seen_at": "2026-12-01T09:59:58Z",
        "gpus": [{"id": "gpu_1", "index": 0, "uuid": "GPU-1", "model": "h100-sxm-80gb",
            "memory_mib": 81_920, "island": 0, "leased": true}],
    });
    let offer = json!({
        "id": OFFER, "version": 3, "machine_id": MACHINE, "gpu_model": "h100-sxm-80gb",
        "gpu_count": 8, "gpus_free": 6, "price": rate("2.100000", "gpu_hour"),
        "keep_price": rate("2.100000", "gpu_hour"), "storage_price": rate("0.100000", "gib_month"), "min_gpus": 1, "max_gpus": 8,
        "state": "live", "simulated": true, "created_at": "2026-12-01T09:00:00Z",
        "updated_at": "2026-12-01T09:00:00Z",
    });
    let token = json!({"id": "enr_1", "token": "enr_secret", "expires_at": "2026-12-01T11:00:00Z"});
    vec![
        (
            vec!["machines"],
            page(machine.clone()),
            "1 × h100-sxm-80gb (simulated)",
        ),
        (
            vec!["machine", "show", MACHINE],
            machine.clone(),
            "(2 s ago)",
        ),
        (
            vec!["machine", "drain", MACHINE],
            machine,
            "1 GPU is leased; its lease goes on.",
        ),
        (
            vec!["machine", "token"],
            token,
            "gpumarket-agent join --server http://127.0.0.1:",
        ),
        (
            vec!["offers"],
            page(offer.clone()),
            "8 × h100-sxm-80gb (simulated)",
        ),
        (
            vec!["offer", "show", OFFER],
            offer.clone(),
            "live, version 3",
        ),
        (
            vec![
                "offer",
                "create",
                "--machine",
                MACHINE,
                "--price",
                "2.1",
                "--floor",
                "1",
            ],
            offer,
            "2.10 USD per GPU-hour",
        ),
    ]
}

fn earning_views() -> Vec<View> {
    let earned = json!({"gross": money("4.000000"), "fee": money("0.200000"), "net": money("3.800000"),
        "pending": money("0.100000"), "earning_rate": rate("1.900000", "hour"), "live_leases": 2,
        "tax": money("0.000000"), "maturing": money("1.000000"), "reserve": money("0.300000"),
        "payable": money("2.500000"), "in_flight": money("0.000000"), "paid": money("0.000000"),
        "receivable": money("0.000000")});
    let payout = json!({"id": "pay_1", "amount": money("2.500000"), "state": "in_flight",
        "state_reason": "on its way", "sandbox": true, "requested_at": "2026-12-01T09:00:00Z",
        "state_at": "2026-12-01T09:00:02Z"});
    vec![
        (vec!["earnings"], earned, "of it payable    2.50 USD"),
        (
            vec!["payouts"],
            page(payout.clone()),
            "2.50 USD (play money)",
        ),
        (
            vec!["payout", "create", "--amount", "2.50"],
            payout.clone(),
            "on its way",
        ),
        (
            vec!["payout", "show", "pay_00000000000000000000000001"],
            payout,
            "in_flight",
        ),
    ]
}
