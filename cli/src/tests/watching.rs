//! Watching a lease and following its output.

use super::documents::{LEASE, lease, logs};
use super::stub::{Stub, environment, gpumarket, reply};

#[tokio::test]
async fn a_watch_shows_the_cost_grow_until_the_lease_is_over() {
    let stub = Stub::play(vec![
        reply(200, lease("running", "", "0.001167").to_string()),
        reply(200, lease("running", "", "0.002334").to_string()),
        reply(200, lease("ended", "", "0.002334").to_string()),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &["show", LEASE, "--watch"]).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(
        done.out,
        "2026-12-01 11:00:00 +01  0.001167 USD  running (machine)\n\
         2026-12-01 11:00:00 +01  0.002334 USD  running (machine)\n\
         2026-12-01 11:00:00 +01  0.002334 USD  ended (machine)\n"
    );
}

#[tokio::test]
async fn on_a_terminal_the_picture_is_drawn_again() {
    let stub = Stub::play(vec![
        reply(200, lease("running", "\x1b[2Jevil", "0.001167").to_string()),
        reply(200, lease("ended", "", "0.002334").to_string()),
    ])
    .await;
    let mut terminal = environment(Some(&stub.url));
    terminal.output_is_terminal = true;
    let done = gpumarket(terminal, &["show", LEASE, "-w"]).await;
    assert_eq!(done.out.matches("\x1b[H\x1b[J").count(), 2);
    assert!(
        !done.out.contains("\x1b[2J"),
        "foreign texts cannot direct the terminal"
    );
}

#[tokio::test]
async fn following_reads_on_where_it_was_and_ends_with_the_container() {
    let stub = Stub::play(vec![
        reply(200, logs(&[], None, false).to_string()),
        reply(200, lease("provisioning", "", "0").to_string()),
        reply(
            200,
            logs(&[("stdout", "one"), ("stderr", "two")], Some("c+1"), true).to_string(),
        ),
        reply(
            200,
            logs(&[("stdout", "three")], Some("c2"), true).to_string(),
        ),
        reply(200, logs(&[], None, true).to_string()),
        reply(200, logs(&[], None, false).to_string()),
        reply(200, lease("stopped", "", "0").to_string()),
    ])
    .await;
    let done = gpumarket(
        environment(Some(&stub.url)),
        &["logs", LEASE, "--tail", "5", "--follow"],
    )
    .await;
    assert_eq!(
        (done.code, done.out.as_str(), done.err.as_str()),
        (0, "one\nthree\n", "two\n")
    );
    let path = format!("GET /v1/leases/{LEASE}");
    assert_eq!(
        stub.lines(),
        [
            format!("{path}/logs?tail=5"),
            path.clone(),
            format!("{path}/logs?tail=5"),
            format!("{path}/logs?after=c%2B1"),
            format!("{path}/logs?after=c2"),
            format!("{path}/logs?after=c2"),
            path.clone(),
        ]
    );
}

#[tokio::test]
async fn output_is_passed_on_as_it_is_but_not_to_terminals() {
    for (on_terminal, raw, expected) in [
        (false, false, "\x1b[31mred\tx\n"),
        (true, false, "\u{fffd}[31mred\tx\n"),
        (true, true, "\x1b[31mred\tx\n"),
    ] {
        let text = logs(&[("stdout", "\x1b[31mred\tx")], None, true).to_string();
        let stub = Stub::play(vec![reply(200, text)]).await;
        let mut place = environment(Some(&stub.url));
        place.output_is_terminal = on_terminal;
        let arguments: &[&str] = if raw {
            &["logs", LEASE, "--raw"]
        } else {
            &["logs", LEASE]
        };
        assert_eq!(gpumarket(place, arguments).await.out, expected);
    }
}

#[tokio::test]
async fn a_stop_says_what_goes_on_costing() {
    let mut stopping = lease("stopping", "", "0.070000");
    stopping["continuing_cost_per_day"] =
        serde_json::json!({"amount": "0.032877", "currency": "USD"});
    stopping["delete_at"] = "2026-12-02T10:00:00.000000Z".into();
    let stub = Stub::play(vec![reply(200, stopping.to_string())]).await;
    let done = gpumarket(environment(Some(&stub.url)), &["stop", LEASE]).await;
    assert_eq!(
        done.out,
        format!(
            "{LEASE} is stopping (machine). Cost so far: 0.070000 USD.\n\
             The disk goes on costing 0.032877 USD per day.\n\
             The disk is deleted 2026-12-02 11:00:00 +01 (in 1 d 00 h).\n\
             Next: gpumarket resume {LEASE}   or   gpumarket end {LEASE}\n"
        )
    );
}

#[tokio::test]
async fn an_end_can_be_waited_for() {
    let stub = Stub::play(vec![
        reply(200, lease("ending", "", "0.070000").to_string()),
        reply(200, lease("ending", "", "0.070000").to_string()),
        reply(200, lease("ended", "", "0.070000").to_string()),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &["end", LEASE, "--wait"]).await;
    assert_eq!((done.code, stub.unused()), (0, 0));
    assert!(done.out.contains("is ended") && done.out.contains("gpumarket verify"));
}
