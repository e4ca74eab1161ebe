//! The real agent as a process, on the real container engine, with simulated GPUs.

use std::process::Command;

use serde_json::Value;

use crate::client::Client;
use crate::database::service;
use crate::market::Market;
use crate::process::{Folder, Running, binary};
use crate::wait::until;

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    /// Its process.
    pub process: Running,
    /// `mch_…`
    pub machine: String,
    /// Its files.
    pub folder: Folder,
}

impl Agent {
    /// Enrols a machine of `provider` and runs its agent.
    pub async fn join(market: &Market, provider: &Client, name: &str) -> Self {
        let token = market.token(provider, name).await;
        let folder = Folder::create("agent");
        let process = run(
            &folder,
            &["join", "--token", &token, "--server", &market.base],
        );
        let machine = until("the machine to enrol", || async {
            let page = provider.get("/v1/machines").await.expect(200);
            let own = page["data"]
                .as_array()
                .unwrap()
                .iter()
                .find(|m| m["name"] == name);
            own.map(|m: &Value| m["id"].as_str().unwrap().to_owned())
        })
        .await;
        Self {
            process,
            machine,
            folder,
        }
    }

    /// Starts it again after it was killed.
    pub fn restart(&mut self) {
        self.process = run(&self.folder, &["run"]);
    }
}

fn run(folder: &Folder, args: &[&str]) -> Running {
    let mut command = Command::new(binary("gpumarket-agent"));
    command
        .args(args)
        .args(["--simulate", "8xh100-sxm"])
        .arg("--state")
        .arg(folder.0.join("state"))
        .arg("--engine")
        .arg(service("GPUMARKET_TEST_ENGINE"))
        .env("GPUMARKET_LOG", "info");
    Running::start(command, folder.0.join("agent.log"))
}
