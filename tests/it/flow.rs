//! The first line, end to end, as a person would: by the CLI, on a real container.

use std::process::{Command, Output};

use serde_json::Value;
use tests::agent::Agent;
use tests::market::{Market, PASSWORD, micros};
use tests::process::{Folder, binary};
use tests::wait::until;

struct Cli {
    folder: Folder,
    server: String,
}

impl Cli {
    fn run(&self, profile: &str, args: &[&str]) -> Output {
        Command::new(binary("gpumarket"))
            .args(["--server", &self.server, "--profile", profile])
            .args(args)
            .env("GPUMARKET_CONFIG", self.folder.0.join("config.toml"))
            .env("GPUMARKET_PASSWORD", PASSWORD)
            .output()
            .unwrap()
    }

    fn text(&self, profile: &str, args: &[&str]) -> String {
        let out = self.run(profile, args);
        let (text, errors) = (
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr),
        );
        assert!(out.status.success(), "gpumarket {args:?}\n{text}\n{errors}");
        text.into_owned()
    }

    fn json(&self, profile: &str, args: &[&str]) -> Value {
        let text = self.text(profile, &[&["--json"], args].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}\n{text}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gpu_is_booked_used_paid_and_the_bill_verified() {
    let market = Market::start().await;
    let cli = Cli {
        folder: Folder::create("cli"),
        server: market.base.clone(),
    };
    for name in ["renter", "provider"] {
        market.person(name).await;
        cli.text(name, &["login", "--email", &format!("{name}@example.org")]);
    }
    cli.text("renter", &["top-up", "50"]);
    let provider = login(&market, "provider").await;
    let renter = login(&market, "renter").await;
    let agent = Agent::join(&market, &provider, "rack").await;
    market
        .machine_in(&provider, &agent.machine, "unlisted")
        .await;
    cli.text(
        "provider",
        &[
            "offer",
            "create",
            "--machine",
            &agent.machine,
            "--price",
            "2.10",
            "--storage",
            "0.05",
        ],
    );

    let found = cli.json(
        "renter",
        &["search", "--gpu", "h100-sxm-80gb", "--simulated"],
    );
    assert_eq!(found["data"][0]["gpus_free"], 8);
    assert_eq!(found["data"][0]["simulated"], true);
    let script =
        "i=0; while true; do echo line $i gpus=$GPUMARKET_GPU_COUNT; i=$((i+1)); sleep 1; done";
    let booked = cli.json(
        "renter",
        &[
            "book",
            "--gpu",
            "h100-sxm-80gb",
            "--simulated",
            "--image",
            "localhost/gpumarket/busybox:1",
            "--label",
            "first",
            "--",
            "/bin/sh",
            "-c",
            script,
        ],
    );
    let lease = booked["id"].as_str().unwrap().to_owned();
    let running = market.lease_in(&renter, &lease, "running").await;
    assert_eq!(running["gpus"].as_array().unwrap().len(), 1);

    // Its output can be read, and its cost grows.
    until("the container's output", || async {
        Some(cli.text("renter", &["logs", &lease])).filter(|t| t.contains("line 1 gpus=1"))
    })
    .await;
    let path = format!("/v1/leases/{lease}");
    let cost = || async { micros(&renter.get(&path).await.expect(200)["cost"]["so_far"]) };
    let first = cost().await;
    until("the cost to grow", || async {
        Some(())
            .filter(|()| true)
            .zip(Some(cost().await).filter(|c| *c > first + 500))
    })
    .await;

    cli.text("renter", &["stop", &lease]);
    let stopped = market.lease_in(&renter, &lease, "stopped").await;
    assert!(stopped["gpus"].as_array().unwrap().is_empty());
    cli.text("renter", &["resume", &lease]);
    market.lease_in(&renter, &lease, "running").await;
    cli.text("renter", &["end", &lease]);
    market.lease_in(&renter, &lease, "ended").await;

    // The bill verifies offline, and fails when a byte is changed.
    let bill = cli.folder.0.join("bill.json");
    cli.text(
        "renter",
        &["statement", &lease, "-o", bill.to_str().unwrap()],
    );
    cli.text("renter", &["verify", bill.to_str().unwrap()]);
    let good = std::fs::read(&bill).unwrap();
    let place = good
        .windows(13)
        .position(|w| w == b"billable_ms\": ")
        .unwrap_or(good.len() / 2);
    for changed in [place, 0, good.len() - 2, good.len() / 3] {
        let mut bad = good.clone();
        bad[changed] ^= 1;
        std::fs::write(&bill, &bad).unwrap();
        assert!(
            !cli.run("renter", &["verify", bill.to_str().unwrap()])
                .status
                .success()
        );
    }

    // Renter down, provider and platform up, equal to the micro-dollar.
    let wallet = cli.json("renter", &["wallet"]);
    let earned = cli.json("provider", &["earnings"]);
    let paid = 50_000_000 - micros(&wallet["posted"]);
    assert!(paid > 0);
    assert_eq!(paid, micros(&earned["gross"]));
    assert_eq!(paid, micros(&earned["net"]) + micros(&earned["fee"]));
    assert_eq!(micros(&wallet["held"]), 0);
    market.prove();
}

async fn login(market: &Market, name: &str) -> tests::client::Client {
    let body = serde_json::json!({"email": format!("{name}@example.org"), "password": PASSWORD});
    let session = market
        .client()
        .post("/v1/auth/login", &body)
        .await
        .expect(200);
    market
        .client()
        .with(session["access_token"].as_str().unwrap())
}
