//! An agent that says what the test wants: the protocol is real, the machine is not.

use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::client::Client;
use crate::market::Market;

/// A machine whose reports are written by the test.
#[derive(Debug)]
pub struct ScriptedAgent {
    /// `mch_…`
    pub machine: String,
    /// Its key.
    pub key: SigningKey,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    seq: u64,
    /// The last desired state that came.
    pub desired: Value,
}

/// A plausible probe of `gpus` simulated H100s; `tag` makes the UUIDs unlike those of others.
pub fn probe(tag: &str, gpus: u16) -> Value {
    let list: Vec<Value> = (0..gpus)
        .map(|i| {
            json!({
                "index": i, "uuid": format!("SIM-{tag}-{i}"), "name": "NVIDIA H100 80GB HBM3",
                "memory_mib": 81_559, "island": 0, "foreign_processes": 0,
            })
        })
        .collect();
    json!({
        "agent_version": "0.1.0", "simulated": true, "hostname": tag, "cpu_cores": 64,
        "ram_mib": 262_144, "disk_gib": 1_000, "driver_version": null, "cuda_version": null,
        "country": "DE", "engine": "scripted 1", "gpus": list,
    })
}

/// A report about one lease.
pub fn seen(lease: &str, observed: &str) -> Value {
    json!({
        "lease_id": lease, "observed": observed, "start_no": 1, "progress": 1, "detail": observed,
        "container_id": "c1", "container_started_at": "2026-01-01T00:00:00Z",
    })
}

impl ScriptedAgent {
    /// Enrols and connects, without a probe yet.
    pub async fn join(market: &Market, provider: &Client, name: &str) -> Self {
        let token = market.token(provider, name).await;
        let key = SigningKey::from_bytes(&seed(name));
        let public = hex::encode(key.verifying_key().to_bytes());
        let body = json!({"token": token, "public_key": public});
        let enrolled = market
            .client()
            .post("/v1/agent/enroll", &body)
            .await
            .expect(201);
        let machine = enrolled["machine_id"].as_str().unwrap().to_owned();
        let socket = connect(market, &machine, &key).await;
        Self {
            machine,
            key,
            socket,
            seq: 0,
            desired: Value::Null,
        }
    }

    /// Enrols, connects, sends a probe of `gpus` GPUs, and is offered at `usd_per_hour`.
    pub async fn listed(
        market: &Market,
        provider: &Client,
        (name, gpus): (&str, u16),
        usd_per_hour: &str,
    ) -> (Self, Value) {
        let mut agent = Self::join(market, provider, name).await;
        agent
            .send(&json!({"type": "probe", "probe": probe(name, gpus)}))
            .await;
        agent.report(1_000, vec![]).await;
        let offer = market.offer(provider, &agent.machine, usd_per_hour).await;
        (agent, offer)
    }

    /// Connects again with the same key.
    pub async fn reconnect(&mut self, market: &Market) {
        self.socket = connect(market, &self.machine, &self.key).await;
        self.seq = 0;
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Value) {
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    /// The next message; `null` when the server has closed.
    pub async fn next(&mut self) -> Value {
        loop {
            let message = tokio::time::timeout(Duration::from_secs(30), self.socket.next()).await;
            match message.expect("no message for 30 s") {
                Some(Ok(Message::Text(text))) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    if value["type"] == "desired" {
                        self.desired = value["leases"].clone();
                    }
                    return value;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Value::Null,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next message of a type, past others.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await;
            assert!(
                !message.is_null(),
                "the server closed instead of sending `{kind}`"
            );
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Reports, and waits until the report is durable.
    pub async fn report(&mut self, mono_ms: u64, leases: Vec<Value>) {
        self.seq += 1;
        let message = json!({
            "type": "report", "seq": self.seq, "boot_id": "boot-1", "mono_ms": mono_ms,
            "leases": leases,
        });
        self.send(&message).await;
        let ack = self.next_of("ack").await;
        assert_eq!(ack["seq"], self.seq);
    }

    /// Waits until the server wants `target` for the lease.
    pub async fn wanted(&mut self, lease: &str, target: &str) -> Value {
        loop {
            let all = self.desired.as_array().cloned().unwrap_or_default();
            if let Some(one) = all
                .into_iter()
                .find(|l| l["lease_id"] == lease && l["target"] == target)
            {
                return one;
            }
            self.next_of("desired").await;
        }
    }
}

fn seed(name: &str) -> [u8; 32] {
    let mut seed = [0; 32];
    for (place, byte) in name
        .bytes()
        .chain(uuid::Uuid::new_v4().into_bytes())
        .take(32)
        .enumerate()
    {
        seed[place] = byte;
    }
    seed
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(market: &Market, machine: &str, key: &SigningKey) -> Socket {
    let (socket, reply) = handshake(&market.base, machine, key).await;
    assert_eq!(reply["type"], "welcome", "{reply}");
    socket
}

async fn message(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Answers the challenge; gives what the server says to it.
pub async fn handshake(base: &str, machine: &str, key: &SigningKey) -> (Socket, Value) {
    let url = format!("{}/v1/agent/connect", base.replace("http://", "ws://"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let challenge = message(&mut socket).await;
    let nonce = challenge["nonce"].as_str().unwrap();
    let bytes = web_openapi::agent::challenge_bytes(nonce, machine);
    let hello = json!({
        "type": "hello", "protocol": web_openapi::agent::PROTOCOL, "machine_id": machine,
        "signature": hex::encode(key.sign(&bytes).to_bytes()),
    });
    socket.send(Message::text(hello.to_string())).await.unwrap();
    let reply = message(&mut socket).await;
    (socket, reply)
}
