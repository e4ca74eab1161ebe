//! Documents as a market would send them.

use serde_json::{Value, json};

pub(super) const LEASE: &str = "lse_0000000000000000000000000a";
pub(super) const OFFER: &str = "ofr_0000000000000000000000000b";
pub(super) const QUOTE: &str = "quo_0000000000000000000000000c";
pub(super) const MACHINE: &str = "mch_0000000000000000000000000d";
pub(super) const KEY: &str = "key_0000000000000000000000000e";

pub(super) fn money(amount: &str) -> Value {
    json!({"amount": amount, "currency": "USD"})
}

pub(super) fn rate(amount: &str, per: &str) -> Value {
    json!({"amount": amount, "currency": "USD", "per": per})
}

pub(super) fn price() -> Value {
    json!({
        "gpu_hour": rate("2.100000", "gpu_hour"),
        "keep_price": rate("2.100000", "gpu_hour"),
        "compute_per_hour": rate("4.200000", "hour"),
        "storage_per_month": rate("1.000000", "month"),
        "duration_seconds": 3600,
        "compute": money("4.200000"), "storage": money("0.001369"),
        "fee_included": money("0.210068"), "tax": money("0.000000"),
        "total": money("4.201369"),
        "total_per_hour": rate("4.201369", "hour"),
    })
}

pub(super) fn offer_match() -> Value {
    json!({
        "offer_id": OFFER, "offer_version": 3, "gpu_model": "h100-sxm-80gb", "gpu_count": 2,
        "gpus_free": 8, "gpu_memory_mib": 81_920, "cpu_cores": 192, "ram_mib": 2_097_152,
        "disk_gib": 4000, "country": "DE", "simulated": true, "price": price(),
    })
}

pub(super) fn search(data: &[Value]) -> Value {
    json!({
        "data": data, "has_more": false, "as_of": "2026-12-01T10:00:00Z", "considered": 4,
        "excluded": [], "relaxations": [],
    })
}

pub(super) fn nothing() -> Value {
    let mut search = search(&[]);
    search["excluded"] = json!([{"constraint": "max_price", "offers": 3}]);
    search["relaxations"] =
        json!([{"field": "max_price", "from": "1.50", "to": "2.10", "offers": 3}]);
    search
}

pub(super) fn quote() -> Value {
    json!({
        "id": QUOTE, "offer_id": OFFER, "offer_version": 3, "gpu_model": "h100-sxm-80gb",
        "gpu_count": 2, "disk_gib": 10, "simulated": true, "price": price(),
        "created_at": "2026-12-01T10:00:00.000000Z", "expires_at": "2026-12-01T10:02:00.000000Z",
        "signature": "00",
    })
}

pub(super) fn lease(state: &str, detail: &str, so_far: &str) -> Value {
    let mut lease = json!({
        "id": LEASE, "label": "train", "state": state, "state_reason": "machine",
        "state_detail": detail, "version": 2, "kind": "on_demand", "offer_id": OFFER,
        "machine_id": MACHINE, "gpu_model": "h100-sxm-80gb", "gpu_count": 2,
        "gpus": [{"id": "gpu_1", "uuid": "GPU-1", "index": 0}, {"id": "gpu_2", "uuid": "GPU-2", "index": 1}],
        "disk_gib": 10, "simulated": true,
        "workload": {"image": "busybox", "command": ["sleep", "9"], "env": {}},
        "gpu_hour": rate("2.100000", "gpu_hour"),
        "keep_price": rate("2.100000", "gpu_hour"), "keeps_gpus": false,
        "storage_price": rate("0.100000", "gib_month"),
        "cost": {
            "settled": money("0.000000"), "accrued": money(so_far), "so_far": money(so_far),
            "held": money("0.850000"), "billable_seconds": 65,
            "rate": rate("4.201369", "hour"),
        },
        "created_at": "2026-12-01T09:58:00.000000Z",
    });
    if matches!(state, "running" | "stopping" | "stopped") {
        lease["started_at"] = json!("2026-12-01T09:59:00.000000Z");
    }
    lease
}

pub(super) fn me(statement_key: &str) -> Value {
    json!({
        "api_key_id": KEY, "party_id": "pty_1", "party_name": "Ada & Co", "role": "owner",
        "scopes": ["leases:read"], "statement_key": statement_key,
    })
}

pub(super) fn logs(lines: &[(&str, &str)], next_after: Option<&str>, live: bool) -> Value {
    let data: Vec<_> = lines
        .iter()
        .map(|(stream, text)| json!({"at": "2026-12-01T10:00:00.1Z", "stream": stream, "text": text}))
        .collect();
    let mut logs = json!({"data": data, "live": live});
    if let Some(after) = next_after {
        logs["next_after"] = json!(after);
    }
    logs
}
