//! How figures and documents look.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{from_value, json};
use web_openapi::money::{Money, Per, Rate};

use super::documents::{LEASE, MACHINE, OFFER, lease, offer_match, quote, search};
use super::stub::{Stub, environment, gpumarket, noon, reply};
use crate::text::{self, View};

fn view() -> View {
    View {
        zone: TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(),
        now: noon(),
    }
}

fn money(amount: &str) -> Money {
    Money {
        amount: amount.to_owned(),
        currency: "USD".to_owned(),
    }
}

#[test]
fn money_has_its_currency_and_cents() {
    for (wire, shown) in [
        ("12.340000", "12.34 USD"),
        ("0.000001", "0.000001 USD"),
        ("5", "5.00 USD"),
        ("100.000000", "100.00 USD"),
        ("-0.500000", "-0.50 USD"),
    ] {
        assert_eq!(text::money(&money(wire)), shown);
    }
    assert_eq!(text::signed_money(&money("1.000000")), "+1.00 USD");
    assert_eq!(text::signed_money(&money("-1.000000")), "-1.00 USD");
    let rate = Rate {
        amount: "2.100000".to_owned(),
        currency: "USD".to_owned(),
        per: Per::GpuHour,
    };
    assert_eq!(text::rate(&rate), "2.10 USD per GPU-hour");
}

#[test]
fn lengths_and_memory_are_readable() {
    for (seconds, shown) in [
        (0, "0 s"),
        (59, "59 s"),
        (65, "1 min 05 s"),
        (3_600, "1 h 00 min 00 s"),
        (360_000, "4 d 04 h"),
        (-5, "-5 s"),
    ] {
        assert_eq!(text::seconds(seconds), shown);
    }
    for (mib, shown) in [(512, "512 MiB"), (81_920, "80 GiB"), (1_536, "1.5 GiB")] {
        assert_eq!(text::memory(mib), shown);
    }
}

#[test]
fn times_are_local_and_others_stay() {
    let view = view();
    assert_eq!(
        view.time("2026-07-01T10:00:00.123456Z"),
        "2026-07-01 12:00:00 CEST"
    );
    assert_eq!(
        view.distant_time("2026-12-01T10:03:05Z"),
        "2026-12-01 11:03:05 CET (in 3 min 05 s)"
    );
    assert_eq!(
        view.distant_time("2026-12-01T09:59:55Z"),
        "2026-12-01 10:59:55 CET (5 s ago)"
    );
    assert_eq!(view.time("yesterday"), "yesterday");
}

#[test]
fn durations_hours_and_amounts_are_read_strictly() {
    for (text, seconds) in [
        ("45s", 45),
        ("90m", 5_400),
        ("1d 12h", 129_600),
        ("1h30m", 5_400),
    ] {
        assert_eq!(text::duration(text), Ok(Duration::from_secs(seconds)));
    }
    for bad in [
        "",
        "5",
        "h",
        "0s",
        "1w",
        "-1h",
        "1.5h",
        "99999999999999999999d",
    ] {
        assert!(text::duration(bad).is_err(), "{bad}");
    }
    assert_eq!(text::hours("1.5"), Ok(5_400));
    assert_eq!(text::hours("8760"), Ok(31_536_000));
    for bad in ["0", "8761", "-1", "1e3", "0.01"] {
        assert!(text::hours(bad).is_err(), "{bad}");
    }
    assert!(text::amount("0").is_err() && text::amount("1.0000001").is_err());
    assert!(text::price("0").is_ok() && text::price("-1").is_err());
    assert!(text::assignment("=x").is_err() && text::assignment("x").is_err());
    assert_eq!(text::assignment("A="), Ok(("A".to_owned(), String::new())));
}

#[test]
fn a_lease_says_state_cost_and_what_comes() {
    let mut document = lease("running", "all well", "0.075600");
    document["end_at"] = "2026-12-01T12:00:00.000000Z".into();
    let shown = crate::lease::picture(&from_value(document).unwrap(), &view()).trim_fmt();
    assert_eq!(
        shown,
        format!(
            "\
lease        {LEASE}
label        train
state        running (machine): all well
cost so far  0.075600 USD
  settled    0.000000 USD
  held       0.85 USD
  proven     1 min 05 s of GPU time
rate now     4.201369 USD per hour
GPUs         2 × h100-sxm-80gb (simulated)
  positions  0, 1
  price      2.10 USD per GPU-hour
  if kept    2.10 USD per GPU-hour
disk         10 GiB, 0.10 USD per GiB-month
runs         busybox sleep 9
machine      {MACHINE}
booked       2026-12-01 10:58:00 CET
started      2026-12-01 10:59:00 CET
ends         2026-12-01 13:00:00 CET (in 2 h 00 min 00 s)"
        )
    );
}

#[test]
fn a_quote_shows_how_its_total_comes_about() {
    let shown = crate::quote::picture(&from_value(quote()).unwrap(), &view()).trim_fmt();
    for line in [
        "GPUs         2 × h100-sxm-80gb (simulated)",
        "  if kept    2.10 USD per GPU-hour",
        "  total      4.201369 USD",
        "  fee in it  0.210068 USD",
        "good until   2026-12-01 11:02:00 CET (in 2 min 00 s)",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[tokio::test]
async fn a_search_is_a_small_table() {
    let stub = Stub::play(vec![reply(200, search(&[offer_match()]).to_string())]).await;
    let done = gpumarket(environment(Some(&stub.url)), &["search", "--gpu", "h100"]).await;
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "OFFER GPUS FREE GPU MEMORY CORES RAM DISK COUNTRY PRICE TOTAL"
    );
    assert!(
        lines[2].starts_with(OFFER) && lines[2].ends_with("4.201369 USD"),
        "{}",
        done.out
    );
    assert!(lines[2].contains("2 × h100-sxm-80gb (simulated)"));
    assert!(
        done.out
            .contains("Totals are for 1 h 00 min 00 s with 10 GiB disk")
    );
}

#[test]
fn a_patch_names_only_what_changes_and_can_remove_the_floor() {
    let terms = crate::command::provider::Terms {
        floor: None,
        keep: Some(domain::money::Micros::new(700_000)),
        storage: None,
        min: None,
        max: Some(4),
    };
    let patch = crate::offer::patch_of(None, &terms, (true, false));
    let written = serde_json::to_value(&patch).unwrap();
    let keep = json!({"amount": "0.700000", "currency": "USD", "per": "gpu_hour"});
    assert_eq!(
        written,
        json!({"bid_floor": null, "keep_price": keep, "max_gpus": 4})
    );
}
