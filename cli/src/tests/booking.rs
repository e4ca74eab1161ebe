//! Booking from search to running.

use super::documents::{LEASE, OFFER, QUOTE, lease, nothing, offer_match, quote, search};
use super::stub::{Reply, Stub, environment, gpumarket, refusal, reply};

fn until_booked() -> Vec<Reply> {
    vec![
        reply(200, search(&[offer_match()]).to_string()),
        reply(201, quote().to_string()),
        reply(201, lease("placing", "", "0.000000").to_string()),
    ]
}

const BOOK: [&str; 14] = [
    "book",
    "--gpu",
    "h100",
    "--count",
    "2",
    "--simulated",
    "--image",
    "busybox",
    "--env",
    "A=b=c",
    "--end-after",
    "2h",
    "--max-spend",
    "5",
];

#[tokio::test]
async fn booking_shows_price_progress_and_what_to_do_next() {
    let pulling = || {
        reply(
            200,
            lease("provisioning", "pulling 40 %", "0.000000").to_string(),
        )
    };
    let rest = vec![
        pulling(),
        pulling(),
        reply(200, lease("running", "", "0.000000").to_string()),
    ];
    let stub = Stub::play([until_booked(), rest].concat()).await;
    let arguments = [&BOOK[..], &["--", "sleep", "--long"]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(
        done.out,
        format!(
            "2 × h100-sxm-80gb (simulated) with 10 GiB disk from {OFFER}\n\
             4.201369 USD per hour, all-in; 4.201369 USD for 1 h 00 min 00 s \
             (GPUs 4.20 USD, disk 0.001369 USD, tax 0.00 USD)\n\
             Booked {LEASE}.\n  placing (machine)\n  provisioning (machine): pulling 40 %\n  \
             running (machine)\n\n  gpumarket show {LEASE} --watch\n  gpumarket logs {LEASE} --follow\n  \
             gpumarket stop {LEASE}\n  gpumarket end {LEASE}\n"
        )
    );
    let asked = stub.asked();
    assert_eq!(asked[1].json()["offer_version"], 3);
    assert_eq!(
        asked[2].json(),
        serde_json::json!({
            "quote_id": QUOTE,
            "workload": {"image": "busybox", "command": ["sleep", "--long"], "env": {"A": "b=c"}},
            "label": null,
            "max_spend": {"amount": "5.000000", "currency": "USD"},
            "end_at": "2026-12-01T12:00:00.000000Z",
        })
    );
}

#[tokio::test]
async fn with_json_only_the_lease_is_printed() {
    let running = lease("running", "", "0.000000").to_string();
    let stub = Stub::play([until_booked(), vec![reply(200, running.clone())]].concat()).await;
    let arguments = [&["--json"], &BOOK[..]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!((done.code, done.out.trim_end()), (0, running.as_str()));
}

#[tokio::test]
async fn a_lease_that_never_ran_is_a_failure() {
    let failed = lease("failed", "no such image", "0.000000");
    let stub = Stub::play([until_booked(), vec![reply(200, failed.to_string())]].concat()).await;
    let arguments = [&["--json"], &BOOK[..]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!(done.code, 1);
    assert_eq!(done.json()["error"]["code"], "lease_failed");
    assert_eq!(done.json()["error"]["lease"], failed);
}

#[tokio::test]
async fn a_short_program_that_ended_already_did_run() {
    let stopped = lease("stopped", "exit code 0", "0.000100");
    let stub = Stub::play([until_booked(), vec![reply(200, stopped.to_string())]].concat()).await;
    let done = gpumarket(environment(Some(&stub.url)), &BOOK).await;
    assert_eq!(done.code, 0, "{}", done.err);
}

#[tokio::test]
async fn no_wait_does_not_ask_again() {
    let stub = Stub::play(until_booked()).await;
    let arguments = [&BOOK[..], &["--no-wait"]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!((done.code, stub.asked().len()), (0, 3));
}

#[tokio::test]
async fn others_may_be_faster_but_not_for_ever() {
    let taken = || {
        vec![
            reply(200, search(&[offer_match()]).to_string()),
            reply(201, quote().to_string()),
            refusal(409, "capacity_taken", "Taken."),
        ]
    };
    let stub = Stub::play([taken(), until_booked()].concat()).await;
    let arguments = [&BOOK[..], &["--no-wait"]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("Somebody was faster"));
    let asked = stub.asked();
    assert_ne!(
        asked[2].header("idempotency-key"),
        asked[5].header("idempotency-key")
    );
    let stub = Stub::play([taken(), taken(), taken()].concat()).await;
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!((done.code, stub.asked().len()), (1, 9));
}

#[tokio::test]
async fn a_chosen_quote_is_booked_as_it_is() {
    let stub = Stub::play(until_booked().split_off(1)).await;
    let done = gpumarket(
        environment(Some(&stub.url)),
        &["book", "--quote", QUOTE, "--image", "i", "--no-wait"],
    )
    .await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(
        stub.lines(),
        [
            format!("GET /v1/quotes/{QUOTE}"),
            "POST /v1/leases".to_owned()
        ]
    );
}

#[tokio::test]
async fn nothing_that_fits_says_what_would() {
    let stub = Stub::play(vec![reply(200, nothing().to_string()); 3]).await;
    let told = "Nothing fits. Offers looked at: 4.\n  left out by --max-price: 3\n\
        What would find something:\n  --max-price 2.10 instead of 1.50: 3 offers";
    let done = gpumarket(environment(Some(&stub.url)), &BOOK).await;
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert_eq!(done.err, format!("error: {told}\n"));
    let done = gpumarket(environment(Some(&stub.url)), &["search"]).await;
    assert_eq!((done.code, done.out.trim_end()), (0, told));
    let arguments = [&["--json"], &BOOK[..]].concat();
    let done = gpumarket(environment(Some(&stub.url)), &arguments).await;
    assert_eq!(done.json()["error"]["search"], nothing());
}

#[tokio::test]
async fn a_wait_outlives_a_restart_of_the_market_but_not_its_end() {
    let away = || refusal(503, "unavailable", "Away.");
    let pause: Vec<Reply> = std::iter::repeat_with(away).take(5).collect();
    let back = vec![reply(200, lease("running", "", "0.000000").to_string())];
    let stub = Stub::play([until_booked(), pause, back].concat()).await;
    let done = gpumarket(environment(Some(&stub.url)), &BOOK).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("still trying"));
    let gone: Vec<Reply> = std::iter::repeat_with(away).take(16).collect();
    let stub = Stub::play([until_booked(), gone].concat()).await;
    let done = gpumarket(environment(Some(&stub.url)), &BOOK).await;
    assert_eq!((done.code, stub.unused()), (1, 0));
}
