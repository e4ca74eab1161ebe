//! A fake server: it speaks the protocol to one agent and keeps no state.

use agent::identity::MachineKey;
use ed25519_dalek::{Signature, VerifyingKey};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use web_openapi::agent::{FromAgent, Observed, PROTOCOL, ToAgent, challenge_bytes};

use crate::tests::{BEAT_MS, MACHINE, PATIENCE};

/// The fake server's end of one connection.
pub(crate) struct FakeServer(WebSocketStream<TcpStream>);

impl FakeServer {
    /// Takes a connection and checks the answer to its challenge.
    pub(crate) async fn accept(listener: &TcpListener, key: &MachineKey) -> Self {
        let (stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        let mut server = Self(tokio_tungstenite::accept_async(stream).await.unwrap());
        let nonce = "nonce-1".to_owned();
        server
            .send(&ToAgent::Challenge {
                nonce: nonce.clone(),
            })
            .await;
        let FromAgent::Hello {
            protocol,
            machine_id,
            signature,
        } = server.next().await
        else {
            panic!("no hello");
        };
        assert_eq!((protocol, machine_id.as_str()), (PROTOCOL, MACHINE));
        let bytes: [u8; 64] = hex::decode(signature).unwrap().try_into().unwrap();
        let public = VerifyingKey::from_bytes(&key.public_bytes()).unwrap();
        let signed = challenge_bytes(&nonce, &machine_id);
        public
            .verify_strict(&signed, &Signature::from_bytes(&bytes))
            .unwrap();
        server
    }

    pub(crate) async fn welcome(&mut self) {
        self.send(&ToAgent::Welcome {
            heartbeat_ms: BEAT_MS,
        })
        .await;
        let FromAgent::Probe { probe } = self.next().await else {
            panic!("no probe first")
        };
        assert!(probe.simulated && probe.gpus.len() == 1);
    }

    pub(crate) async fn send(&mut self, message: &ToAgent) {
        self.0
            .send(Message::text(serde_json::to_string(message).unwrap()))
            .await
            .unwrap();
    }

    pub(crate) async fn next(&mut self) -> FromAgent {
        let next = async {
            loop {
                match self.0.next().await.unwrap().unwrap() {
                    Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                    Message::Ping(_) | Message::Pong(_) => {}
                    other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                        panic!("unexpected {other:?}")
                    }
                }
            }
        };
        timeout(PATIENCE, next).await.expect("no message in time")
    }

    /// Acknowledges reports until one shows this; gives its number and progress.
    pub(crate) async fn until(&mut self, observed: Observed) -> (u64, u64) {
        loop {
            if let FromAgent::Report {
                seq,
                leases,
                mono_ms,
                boot_id,
            } = self.next().await
            {
                assert!(mono_ms > 0 && boot_id.len() == 36);
                self.send(&ToAgent::Ack { seq }).await;
                if let Some(lease) = leases.first().filter(|l| l.observed == observed) {
                    return (seq, lease.progress);
                }
            }
        }
    }
}
