//! Disks that grow, machines that fall silent, reports that come again: which time is billed, and at
//! which price.

use billing::statement::{EarningsBody, MeetFault, StatementBody, meet, verify};
use serde_json::{Value, json};
use tests::market::micros;
use tests::scripted_agent::seen;

use crate::ledger::{Scene, running};

impl Scene {
    async fn resize(&self, body: Value) -> tests::client::Reply {
        let path = format!("/v1/leases/{}/actions", self.lease);
        self.renter.post(&path, &body).await
    }

    /// Lets a little time pass, by asking for something: what is metered here is real time.
    async fn pass(&self) {
        for _ in 0..10 {
            self.lease().await;
        }
    }

    async fn bill(&self) -> StatementBody {
        let path = format!("/v1/leases/{}/statement", self.lease);
        let bytes = self.renter.get(&path).await.bytes;
        verify::<StatementBody>(&bytes, None)
            .unwrap()
            .statement
            .body
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_grows_at_its_second_with_its_hold() {
    let mut scene = running("100", "2.10").await;
    let before = scene.lease().await;
    let held = micros(&scene.renter.get("/v1/wallet").await.expect(200)["held"]);
    scene.pass().await;
    let grown = scene
        .resize(json!({"type": "resize", "disk_gib": 900}))
        .await;
    let grown = grown.expect(200);
    assert_eq!(grown["disk_gib"], 900);
    assert!(micros(&grown["cost"]["rate"]) > micros(&before["cost"]["rate"]));
    // 890 GiB more for a day and three minutes at 0.05 a GiB-month, rounded up.
    let more = micros(&scene.renter.get("/v1/wallet").await.expect(200)["held"]) - held;
    assert!((1_465_600..=1_466_200).contains(&more), "{more}");
    // The same again changes nothing.
    let again = scene
        .resize(json!({"type": "resize", "disk_gib": 900}))
        .await;
    assert_eq!(again.expect(200)["version"], grown["version"]);
    scene.pass().await;
    scene
        .agent
        .report(600_000, vec![seen(&scene.lease, "running")])
        .await;
    // The machine is told, and goes on as it was.
    let events = format!("/v1/leases/{}/events", scene.lease);
    let events = scene.renter.get(&events).await.expect(200);
    let last = events["data"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["to"], &last["reason"]),
        (&json!("running"), &json!("renter"))
    );
    assert!(
        last["detail"]
            .as_str()
            .unwrap()
            .contains("from 10 to 900 GiB"),
        "{last}"
    );
    scene.end(700_000).await;
    scene.books_meet().await;
    let bill = scene.bill().await;
    let disk = bill
        .meters
        .iter()
        .find(|m| m.resource == "storage")
        .unwrap();
    let prices: Vec<i64> = disk.segments.iter().map(|s| s.price_micros).collect();
    assert_eq!(prices, [500_000, 45_000_000]);
    let segments: Vec<i64> = disk.charges.iter().map(|c| c.segment.unwrap()).collect();
    assert!(segments.is_sorted() && segments.first() == Some(&1) && segments.last() == Some(&2));
    assert_eq!(bill.disk_gib, 900);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_grow_stays_as_it_is() {
    let mut scene = running("1", "2.10").await;
    let before = (
        scene.lease().await,
        scene.renter.get("/v1/wallet").await.body,
    );
    for (body, status, code) in [
        (
            json!({"type": "resize", "disk_gib": 900}),
            402,
            "insufficient_funds",
        ),
        (
            json!({"type": "resize", "disk_gib": 9}),
            422,
            "invalid_field",
        ),
        (
            json!({"type": "resize", "disk_gib": 0}),
            422,
            "invalid_field",
        ),
        (
            json!({"type": "resize", "disk_gib": 2_000_000}),
            422,
            "invalid_field",
        ),
        (
            json!({"type": "resize", "disk_gib": 1_100}),
            409,
            "capacity_taken",
        ),
        (json!({"type": "resize"}), 422, "invalid_field"),
        (
            json!({"type": "stop", "disk_gib": 20}),
            422,
            "invalid_field",
        ),
    ] {
        let refused = scene.resize(body.clone()).await;
        let refused = refused.expect(status);
        assert_eq!(refused["code"], code, "{body} {refused}");
    }
    let after = (
        scene.lease().await,
        scene.renter.get("/v1/wallet").await.body,
    );
    assert_eq!(before.0["version"], after.0["version"]);
    assert_eq!(
        (&before.0["disk_gib"], &before.1["held"]),
        (&after.0["disk_gib"], &after.1["held"])
    );
    scene.end(20_000).await;
    let late = scene
        .resize(json!({"type": "resize", "disk_gib": 20}))
        .await;
    assert_eq!(late.expect(409)["code"], "lease_state");
    assert_eq!(scene.bill().await.meters[1].segments.len(), 1);
    scene.books_meet().await;
}

/// Row 69 of the field's faults: usage sent again was added again. Row 82: with duplicates, out of
/// order, late.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_comes_a_hundred_times_bills_once() {
    let mut scene = running("100", "2.10").await;
    scene.pass().await;
    let told = || vec![seen(&scene.lease, "running")];
    scene.agent.report(13_000, told()).await;
    let first = scene.lease().await["cost"]["accrued"].clone();
    assert!(micros(&first) > 0);
    for n in 0..100 {
        scene.agent.report(13_000 - n % 5, told()).await;
    }
    assert_eq!(scene.lease().await["cost"]["accrued"], first);
    scene.end(14_000).await;
    scene.books_meet().await;
}

/// Row 68: billed while the machine was off-line. Row 92: nothing earned when it drops before a
/// settlement. A machine that boots again proves nothing of the gap; one that was only cut off does.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_machine_earns_what_it_proves_and_no_more() {
    let mut scene = running("100", "36").await;
    scene.pass().await;
    let told = || vec![seen(&scene.lease, "running")];
    scene.agent.report(13_000, told()).await;
    let proven = micros(&scene.lease().await["cost"]["accrued"]);
    // Silent, and back in the same boot: the machine's clock proves the gap.
    scene.pass().await;
    scene.agent.report(15_000, told()).await;
    let caught_up = micros(&scene.lease().await["cost"]["accrued"]);
    assert!(caught_up > proven, "{caught_up} after {proven}");
    // Another container: nothing of the time between.
    scene.pass().await;
    let mut other = seen(&scene.lease, "running");
    other["container_started_at"] = json!("2026-01-01T09:00:00Z");
    scene.agent.report(17_000, vec![other]).await;
    let after = scene.lease().await;
    let disk = 1_000;
    assert!(
        micros(&after["cost"]["accrued"]) <= caught_up + disk,
        "{after}"
    );
    scene.end(18_000).await;
    assert!(scene.books_meet().await >= caught_up);
}

#[tokio::test(flavor = "multi_thread")]
async fn earnings_are_stated_by_period_and_lease_and_only_to_their_provider() {
    let mut scene = running("100", "2.10").await;
    scene.pass().await;
    scene
        .agent
        .report(13_000, vec![seen(&scene.lease, "running")])
        .await;
    scene.end(14_000).await;
    let earnings = async |query: &str| {
        let path = format!("/v1/earnings/statement?from=2026-01-01T00:00:00Z{query}");
        scene.provider.get(&path).await
    };
    let read = |reply: tests::client::Reply| verify::<EarningsBody>(&reply.bytes, None).unwrap();
    let all = read(earnings("").await);
    let only = read(earnings(&format!("&lease={}", scene.lease)).await);
    assert_eq!(only.statement.body.total, all.statement.body.total);
    assert!(all.charges > 0);
    let earned = scene.provider.get("/v1/earnings").await.expect(200);
    assert_eq!(
        micros(&earned["net"]),
        all.statement.body.total.provider_gets_micros
    );
    let before = read(earnings("&to=2026-02-01T00:00:00Z").await);
    assert_eq!(before.charges, 0);
    let path = format!("/v1/leases/{}/statement", scene.lease);
    let bill = verify::<StatementBody>(&scene.renter.get(&path).await.bytes, None).unwrap();
    assert_eq!(meet(&bill, &before).unwrap().charges, 0);
    let own = "/v1/earnings/statement?from=2026-01-01T00:00:00Z";
    let of_renter = read(scene.renter.get(own).await);
    assert_eq!(of_renter.charges, 0);
    assert!(matches!(
        meet(&bill, &of_renter),
        Err(MeetFault::Unrelated(_))
    ));
    for bad in [
        "&to=2025-01-01T00:00:00Z",
        "&to=2999-01-01T00:00:00Z",
        "&to=yesterday",
        "&lease=lse_x",
        "&more=1",
    ] {
        earnings(bad).await.expect(422);
    }
    scene
        .provider
        .get("/v1/earnings/statement")
        .await
        .expect(200);
}
