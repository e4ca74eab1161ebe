//! One connection, from dialling to its end.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use web_openapi::agent::{FromAgent, MAX_MESSAGE_BYTES, PROTOCOL, Probe, ToAgent};

use super::Link;
use super::logs::{Question, answer};
use crate::keeper::Sighting;
use crate::runner::Runner;

/// Longest wait while dialling, for each message of the handshake, and for a send.
const PATIENCE: Duration = Duration::from_secs(10);
/// Shortest and longest heartbeat that is accepted from a server.
const HEARTBEATS: (u64, u64) = (200, 60_000);
/// So many heartbeats without any message mean that the connection is dead.
const SILENT_HEARTBEATS: u32 = 3;
/// Least time between two reports: changes in between become one.
const GAP: Duration = Duration::from_millis(100);
/// How often the machine is probed anew.
const PROBE_EVERY: Duration = Duration::from_mins(1);
/// Answers that wait to be sent, and questions that are worked on at once.
const ANSWERS: usize = 8;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How a connection ended.
pub(super) enum Ended {
    /// The market will not go on.
    Refused {
        code: String,
        detail: String,
        fatal: bool,
    },
    /// It broke, or was silent.
    Cut(String),
}

fn cut(why: impl std::fmt::Display) -> Ended {
    Ended::Cut(why.to_string())
}

/// Dials, proves who this is, and goes on until the end.
pub(super) async fn session<R: Runner>(link: &Link<R>, url: &str) -> Ended {
    let (socket, beat) = match timeout(PATIENCE * 2, open(link, url)).await {
        Ok(Ok(open)) => open,
        Ok(Err(ended)) => return ended,
        Err(_) => return cut("no answer in time"),
    };
    tracing::info!(url, heartbeat_ms = beat.as_millis(), "linked to the market");
    let (answers, answered) = mpsc::channel(ANSWERS);
    let session = Session {
        link,
        socket,
        beat,
        seq: 0,
        probe: None,
        answers,
        heard: Instant::now(),
        work: JoinSet::new(),
    };
    match session.run(answered).await {
        Ok(never) => match never {},
        Err(ended) => ended,
    }
}

async fn open<R: Runner>(link: &Link<R>, url: &str) -> Result<(Socket, Duration), Ended> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let (mut socket, _) = Box::pin(connect_async_with_config(url, Some(config), true))
        .await
        .map_err(cut)?;
    let first = next(&mut socket).await?;
    let ToAgent::Challenge { nonce } = first else {
        return Err(unexpected(first));
    };
    let hello = FromAgent::Hello {
        protocol: PROTOCOL,
        machine_id: link.machine_id.clone(),
        signature: link.key.answer(&nonce, &link.machine_id),
    };
    send(&mut socket, &hello).await?;
    let second = next(&mut socket).await?;
    let ToAgent::Welcome { heartbeat_ms } = second else {
        return Err(unexpected(second));
    };
    let (least, most) = HEARTBEATS;
    Ok((
        socket,
        Duration::from_millis(heartbeat_ms.clamp(least, most)),
    ))
}

fn unexpected(message: ToAgent) -> Ended {
    match message {
        ToAgent::Refused {
            code,
            detail,
            fatal,
        } => Ended::Refused {
            code,
            detail,
            fatal,
        },
        ToAgent::Challenge { .. } | ToAgent::Welcome { .. } | ToAgent::Desired { .. } => {
            cut("the server does not keep to the order of messages")
        }
        ToAgent::Ack { .. } | ToAgent::GetLogs { .. } => {
            cut("the server does not keep to the order of messages")
        }
    }
}

/// The next message, within patience.
async fn next(socket: &mut Socket) -> Result<ToAgent, Ended> {
    loop {
        let frame = timeout(PATIENCE, socket.next()).await.map_err(cut)?;
        if let Some(message) = read(frame)? {
            return Ok(message);
        }
    }
}

/// A message of the market; `None` for frames that only keep the connection alive.
fn read(
    frame: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
) -> Result<Option<ToAgent>, Ended> {
    match frame {
        Some(Ok(Message::Text(text))) => {
            serde_json::from_str(text.as_str()).map(Some).map_err(|e| {
                cut(format!(
                    "the server sent what this version does not understand: {e}"
                ))
            })
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Binary(_))) => Err(cut("the server sent a binary message")),
        Some(Ok(Message::Close(frame))) => {
            let why = frame
                .map(|f| f.reason.to_string())
                .filter(|r| !r.is_empty());
            Err(cut(why.unwrap_or_else(|| "the server closed it".to_owned())))
        }
        Some(Err(error)) => Err(cut(error)),
        None => Err(cut("the server closed it")),
    }
}

async fn send(socket: &mut Socket, message: &FromAgent) -> Result<(), Ended> {
    let text = serde_json::to_string(message).map_err(cut)?;
    send_frame(socket, Message::text(text)).await
}

async fn send_frame(socket: &mut Socket, frame: Message) -> Result<(), Ended> {
    timeout(PATIENCE, socket.send(frame))
        .await
        .map_err(|_late| cut("the server takes nothing any more"))?
        .map_err(cut)
}

struct Session<'a, R> {
    link: &'a Link<R>,
    socket: Socket,
    beat: Duration,
    seq: u64,
    probe: Option<Probe>,
    answers: mpsc::Sender<FromAgent>,
    heard: Instant,
    /// Questions and probes under way; dropped with the connection.
    work: JoinSet<Option<Probe>>,
}

impl<R: Runner> Session<'_, R> {
    async fn run(
        mut self,
        mut answered: mpsc::Receiver<FromAgent>,
    ) -> Result<std::convert::Infallible, Ended> {
        let mut changes = self.link.keeper.changes();
        changes.mark_unchanged();
        let mut beats = interval(self.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut probes = interval(PROBE_EVERY);
        probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first probe goes out before the first report.
        probes.tick().await;
        let first = self
            .look_at_machine()
            .await
            .map_err(|e| cut(format!("cannot probe: {e}")))?;
        self.take_probe(first).await?;
        let mut last = Instant::now();
        loop {
            let silence = self.heard + self.beat * SILENT_HEARTBEATS;
            tokio::select! {
                // What has arrived counts before the silence does.
                biased;
                frame = self.socket.next() => {
                    self.heard = Instant::now();
                    if let Some(message) = read(frame)? {
                        self.take(message).await?;
                    }
                }
                () = sleep_until(silence) => return Err(cut("the server is silent")),
                _ = beats.tick() => {
                    send_frame(&mut self.socket, Message::Ping(Vec::new().into())).await?;
                    if let Some(seen) = self.link.keeper.look().await {
                        changes.mark_unchanged();
                        self.report(seen).await?;
                    }
                    last = Instant::now();
                }
                () = changed(&mut changes, last + GAP) => {
                    let seen = changes.borrow_and_update().clone();
                    if let Some(seen) = seen {
                        self.report(seen).await?;
                    }
                    last = Instant::now();
                }
                Some(message) = answered.recv() => send(&mut self.socket, &message).await?,
                _ = probes.tick() => self.probe_again().await,
                Some(done) = self.work.join_next() => {
                    if let Ok(Some(probe)) = done {
                        self.take_probe(probe).await?;
                    }
                }
            }
        }
    }

    async fn take(&mut self, message: ToAgent) -> Result<(), Ended> {
        match message {
            ToAgent::Desired { leases } => self.link.keeper.desire(leases).await,
            ToAgent::Ack { seq } => tracing::debug!(seq, "the report is durable"),
            ToAgent::GetLogs {
                request,
                lease_id,
                tail,
                after,
            } => {
                let question = Question {
                    request,
                    lease: lease_id,
                    tail,
                    after,
                };
                if self.work.len() >= ANSWERS {
                    let fault = Some("the machine is busy with other questions".to_owned());
                    let busy = FromAgent::Logs {
                        request,
                        lines: Vec::new(),
                        live: true,
                        fault,
                    };
                    return send(&mut self.socket, &busy).await;
                }
                let (runner, keeper) = (
                    std::sync::Arc::clone(&self.link.runner),
                    self.link.keeper.clone(),
                );
                let answers = self.answers.clone();
                self.work.spawn(async move {
                    let message = answer(&*runner, &keeper, question).await;
                    if answers.send(message).await.is_err() {
                        tracing::debug!(request, "the connection of this question is over");
                    }
                    None
                });
            }
            other @ (ToAgent::Refused { .. }
            | ToAgent::Challenge { .. }
            | ToAgent::Welcome { .. }) => {
                return Err(unexpected(other));
            }
        }
        Ok(())
    }

    async fn report(&mut self, seen: Sighting) -> Result<(), Ended> {
        self.seq = self.seq.saturating_add(1);
        let report = FromAgent::Report {
            seq: self.seq,
            boot_id: self.link.boot_id.clone(),
            mono_ms: seen.mono_ms,
            leases: seen.leases,
        };
        send(&mut self.socket, &report).await
    }

    /// Sends the probe if it differs from the one before.
    async fn take_probe(&mut self, probe: Probe) -> Result<(), Ended> {
        if self.probe.as_ref() != Some(&probe) {
            send(
                &mut self.socket,
                &FromAgent::Probe {
                    probe: probe.clone(),
                },
            )
            .await?;
            self.probe = Some(probe);
        }
        Ok(())
    }

    async fn look_at_machine(&self) -> Result<Probe, String> {
        let source = std::sync::Arc::clone(&self.link.probe);
        let ids: Vec<String> = self
            .link
            .keeper
            .containers()
            .await
            .into_iter()
            .map(|c| c.id)
            .collect();
        let looked = tokio::task::spawn_blocking(move || source(&ids)).await;
        looked
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())
    }

    /// Probes in the background: a driver may take seconds.
    async fn probe_again(&mut self) {
        let source = std::sync::Arc::clone(&self.link.probe);
        let ids: Vec<String> = self
            .link
            .keeper
            .containers()
            .await
            .into_iter()
            .map(|c| c.id)
            .collect();
        self.work.spawn(async move {
            match tokio::task::spawn_blocking(move || source(&ids)).await {
                Ok(Ok(probe)) => Some(probe),
                Ok(Err(why)) => {
                    tracing::warn!(%why, "cannot probe the machine now");
                    None
                }
                Err(_) => None,
            }
        });
    }
}

/// Waits for a change, and then at least until `not_before`.
async fn changed(
    changes: &mut tokio::sync::watch::Receiver<Option<Sighting>>,
    not_before: Instant,
) {
    if changes.changed().await.is_err() {
        // The keeper is gone; the process is about to end.
        std::future::pending::<()>().await;
    }
    changes.mark_changed();
    sleep_until(not_before).await;
}
