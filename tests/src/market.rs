//! A market of one's own: database, server process, people.

use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Client;
use crate::database::TestDatabase;
use crate::process::{Folder, Running, binary};
use crate::wait::until;

/// The password of every test person.
pub const PASSWORD: &str = "correct horse battery";

/// A running market.
#[derive(Debug)]
pub struct Market {
    /// Its server.
    pub server: Running,
    /// `http://127.0.0.1:…`
    pub base: String,
    /// Its files.
    pub folder: Folder,
    /// Its database.
    pub database: TestDatabase,
    port: u16,
    heartbeat_ms: u32,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl Market {
    /// Starts one with quick heartbeats.
    pub async fn start() -> Self {
        Self::with_heartbeat(200).await
    }

    /// Starts one whose agents report every `heartbeat_ms`.
    pub async fn with_heartbeat(heartbeat_ms: u32) -> Self {
        let database = TestDatabase::create().await;
        Self::on(database, heartbeat_ms).await
    }

    /// Starts one on a database.
    pub async fn on(database: TestDatabase, heartbeat_ms: u32) -> Self {
        let folder = Folder::create("market");
        let port = free_port();
        let base = format!("http://127.0.0.1:{port}");
        let server = serve(&folder, &database.url, port, heartbeat_ms);
        let mut market = Self {
            server,
            base,
            folder,
            database,
            port,
            heartbeat_ms,
        };
        market.ready().await;
        market
    }

    async fn ready(&mut self) {
        let client = self.client();
        until("the server to be ready", || {
            self.server.expect_alive();
            let request = client.request(reqwest::Method::GET, "/readyz");
            async move {
                request
                    .send()
                    .await
                    .ok()
                    .filter(|r| r.status().is_success())
            }
        })
        .await;
    }

    /// Starts the server again after it was killed.
    pub async fn restart(&mut self) {
        self.server = serve(
            &self.folder,
            &self.database.url,
            self.port,
            self.heartbeat_ms,
        );
        self.ready().await;
    }

    /// Somebody without a credential.
    pub fn client(&self) -> Client {
        Client::anonymous(&self.base)
    }

    /// Registers a person with a party of its own.
    pub async fn person(&self, name: &str) -> Client {
        let body = json!({
            "email": format!("{name}@example.org"), "password": PASSWORD, "party_name": name,
        });
        let session = self
            .client()
            .post("/v1/auth/register", &body)
            .await
            .expect(201);
        self.client()
            .with(session["access_token"].as_str().unwrap())
    }

    /// A renter with money.
    pub async fn renter(&self, name: &str, usd: &str) -> Client {
        let renter = self.person(name).await;
        let body = json!({"amount": {"amount": usd, "currency": "USD"}});
        renter.post("/v1/wallet/top-ups", &body).await.expect(201);
        renter
    }

    /// A token for a machine of `provider`.
    pub async fn token(&self, provider: &Client, name: &str) -> String {
        let body = json!({"machine_name": name});
        let token = provider
            .post("/v1/machines/enrollment-tokens", &body)
            .await
            .expect(201);
        token["token"].as_str().unwrap().to_owned()
    }

    /// Waits until a machine is in `state`.
    pub async fn machine_in(&self, provider: &Client, machine: &str, state: &str) -> Value {
        let path = format!("/v1/machines/{machine}");
        until(&format!("machine {state}"), || async {
            Some(provider.get(&path).await.expect(200)).filter(|m| m["state"] == state)
        })
        .await
    }

    /// Offers a machine once it is verified.
    pub async fn offer(&self, provider: &Client, machine: &str, usd_per_hour: &str) -> Value {
        self.machine_in(provider, machine, "unlisted").await;
        let body = json!({
            "machine_id": machine,
            "price": {"amount": usd_per_hour, "currency": "USD", "per": "gpu_hour"},
            "storage_price": {"amount": "0.05", "currency": "USD", "per": "gib_month"},
        });
        provider.post("/v1/offers", &body).await.expect(201)
    }

    /// A quote for `gpus` GPUs.
    pub async fn quote(&self, renter: &Client, offer: &Value, gpus: u16) -> Value {
        let body = json!({"offer_id": offer["id"], "gpu_count": gpus});
        renter.post("/v1/quotes", &body).await.expect(201)
    }

    /// Waits until a lease is in `state`.
    pub async fn lease_in(&self, renter: &Client, lease: &str, state: &str) -> Value {
        let path = format!("/v1/leases/{lease}");
        until(&format!("lease {state}"), || async {
            Some(renter.get(&path).await.expect(200)).filter(|l| l["state"] == state)
        })
        .await
    }

    /// Acts on a lease.
    pub async fn act(&self, renter: &Client, lease: &str, kind: &str) -> crate::client::Reply {
        renter
            .post(
                &format!("/v1/leases/{lease}/actions"),
                &json!({"type": kind}),
            )
            .await
    }

    /// Runs a sub-command of the server on this market's database.
    pub fn server_command(&self, args: &[&str]) -> std::process::Output {
        let mut command = server(
            &self.folder,
            &self.database.url,
            self.port,
            self.heartbeat_ms,
        );
        command.args(args).output().unwrap()
    }

    /// Fails unless every invariant of the ledger holds.
    pub fn prove(&self) {
        let out = self.server_command(&["prove-ledger", "--json"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            out.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let proof: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(proof["proven"], true, "{text}");
    }
}

/// A lease's body for `quote`.
pub fn lease_of(quote: &Value, command: &[&str]) -> Value {
    json!({
        "quote_id": quote["id"],
        "workload": {"image": "localhost/gpumarket/busybox:1", "command": command},
    })
}

/// An amount in micro-units.
pub fn micros(money: &Value) -> i64 {
    let text = money["amount"]
        .as_str()
        .unwrap_or_else(|| panic!("no money: {money}"));
    text.parse::<domain::money::Micros>().unwrap().get()
}

fn server(folder: &Folder, url: &str, port: u16, heartbeat_ms: u32) -> Command {
    let mut command = Command::new(binary("gpumarket-server"));
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        // Where it is tomorrow already: no bill may depend on it.
        .env("TZ", "Pacific/Kiritimati")
        .env("GPUMARKET_DATABASE_URL", url)
        .env("GPUMARKET_LISTEN", format!("127.0.0.1:{port}"))
        .env("GPUMARKET_STATE_DIR", folder.0.join("state"))
        .env("GPUMARKET_PAYMENTS", "sandbox")
        .env("GPUMARKET_ALLOW_SIMULATED", "true")
        .env("GPUMARKET_HEARTBEAT_MS", heartbeat_ms.to_string())
        .env("GPUMARKET_RATE_LIMIT_FACTOR", "1000")
        .env("GPUMARKET_LOG", "info");
    command
}

fn serve(folder: &Folder, url: &str, port: u16, heartbeat_ms: u32) -> Running {
    let mut command = server(folder, url, port, heartbeat_ms);
    command.arg("serve");
    Running::start(command, folder.0.join("server.log"))
}
