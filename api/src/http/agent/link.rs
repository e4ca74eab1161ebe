//! One live link: a signed challenge, then whole states both ways.

use std::time::Duration;

use actix_web::web::Data;
use actix_ws::{AggregatedMessage, AggregatedMessageStream, Session};
use domain::id::MachineId;
use domain::refusal::Code;
use ed25519_dalek::{Signature, VerifyingKey};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};
use web_openapi::agent::{FromAgent, PROTOCOL, ToAgent, challenge_bytes};

use super::wire;
use crate::edge::hub::Order;
use crate::edge::keys::random;
use crate::state::Shared;

/// How long a handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long another live link may take to show that it lives.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// How long the other side may refuse to read.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// The desired state is sent, and a ping, at least this often.
const REFRESH: Duration = Duration::from_secs(20);

/// Why a link ends.
enum End {
    Gone,
    Refuse(Code, String, bool),
}

struct Link {
    shared: Data<Shared>,
    session: Session,
    machine: MachineId,
    /// A probe was accepted on this link: the machine may be told what to do.
    probed: bool,
}

/// Serves one connection to its end.
pub(super) async fn run(
    shared: Data<Shared>,
    mut session: Session,
    mut stream: AggregatedMessageStream,
) {
    let greeted = tokio::time::timeout(HANDSHAKE_LIMIT, greet(&shared, &mut session, &mut stream));
    let machine = match greeted.await {
        Ok(Ok(machine)) => machine,
        Ok(Err(end)) => return close(session, end).await,
        Err(_late) => return close(session, End::Gone).await,
    };
    let (number, orders) = shared.hub.register(machine);
    tracing::info!(%machine, "an agent is connected");
    let mut link = Link {
        shared: shared.clone(),
        session: session.clone(),
        machine,
        probed: false,
    };
    let end = link.serve(&mut stream, orders).await;
    shared.hub.leave(machine, number);
    tracing::info!(%machine, "an agent has left");
    close(session, end).await;
}

async fn close(mut session: Session, end: End) {
    if let End::Refuse(code, detail, fatal) = end {
        tracing::warn!(code = code.as_str(), detail, "an agent is refused");
        let message = ToAgent::Refused {
            code: code.as_str().to_owned(),
            detail,
            fatal,
        };
        if say(&mut session, &message).await.is_err() {
            return;
        }
    }
    if !matches!(
        tokio::time::timeout(SEND_LIMIT, session.close(None)).await,
        Ok(Ok(()))
    ) {
        tracing::debug!("a link was closed from the other side");
    }
}

async fn say(session: &mut Session, message: &ToAgent) -> Result<(), End> {
    let text = serde_json::to_string(message).map_err(|_never| End::Gone)?;
    in_time(session.text(text)).await
}

/// Sending waits while the other side does not read: not for ever.
async fn in_time(sent: impl Future<Output = Result<(), actix_ws::Closed>>) -> Result<(), End> {
    match tokio::time::timeout(SEND_LIMIT, sent).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(End::Gone),
    }
}

fn read(text: &str) -> Result<FromAgent, End> {
    serde_json::from_str(text).map_err(|e| {
        End::Refuse(
            Code::InvalidField,
            format!("not a message of this protocol: {e}"),
            false,
        )
    })
}

/// Challenge, hello, welcome.
async fn greet(
    shared: &Shared,
    session: &mut Session,
    stream: &mut AggregatedMessageStream,
) -> Result<MachineId, End> {
    let nonce = hex::encode(random::<32>().map_err(|_none| End::Gone)?);
    say(
        session,
        &ToAgent::Challenge {
            nonce: nonce.clone(),
        },
    )
    .await?;
    let text = loop {
        match stream.next().await {
            Some(Ok(AggregatedMessage::Text(text))) => break text,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(End::Gone),
        }
    };
    let FromAgent::Hello {
        protocol,
        machine_id,
        signature,
    } = read(&text)?
    else {
        return Err(End::Refuse(
            Code::InvalidField,
            "`hello` comes first".to_owned(),
            false,
        ));
    };
    if protocol != PROTOCOL {
        let text =
            format!("this server speaks protocol {PROTOCOL}, the agent {protocol}: update it");
        return Err(End::Refuse(Code::InvalidField, text, true));
    }
    let unknown = || {
        let text = "the machine is not known here, or its key is another".to_owned();
        End::Refuse(Code::Unauthenticated, text, true)
    };
    let machine: MachineId = machine_id.parse().map_err(|_bad| unknown())?;
    let key = app::link::machine_key(&shared.cx, machine)
        .await
        .map_err(|_fault| End::Gone)?
        .ok_or_else(unknown)?;
    let mut bytes = [0; 64];
    hex::decode_to_slice(&signature, &mut bytes).map_err(|_bad| unknown())?;
    VerifyingKey::from_bytes(&key)
        .and_then(|k| {
            k.verify_strict(
                &challenge_bytes(&nonce, &machine_id),
                &Signature::from_bytes(&bytes),
            )
        })
        .map_err(|_bad| unknown())?;
    only_one(shared, machine).await?;
    let heartbeat_ms = u64::try_from(shared.cx.policy.heartbeat.millis()).unwrap_or(10_000);
    say(session, &ToAgent::Welcome { heartbeat_ms }).await?;
    Ok(machine)
}

/// A copied state folder shows as two live links with one key. A dead link is simply replaced.
async fn only_one(shared: &Shared, machine: MachineId) -> Result<(), End> {
    let Some(other) = shared.hub.present(machine) else {
        return Ok(());
    };
    let (pong, answered) = oneshot::channel();
    let asked = other.send(Order::Ping(pong)).await.is_ok();
    let lives = asked
        && tokio::time::timeout(PING_LIMIT, answered)
            .await
            .is_ok_and(|r| r.is_ok());
    if !lives {
        let told = other.try_send(Order::Close("another connection took over"));
        tracing::info!(%machine, closed = told.is_ok(), "a dead link is replaced");
        return Ok(());
    }
    let reason = "its key is used by two agents at the same time";
    app::link::distrust(&shared.cx, machine, reason)
        .await
        .map_err(|_fault| End::Gone)?;
    let text = format!("{reason}: the machine is quarantined until a moderator has looked");
    Err(End::Refuse(Code::MachineState, text, true))
}

impl Link {
    async fn serve(
        &mut self,
        stream: &mut AggregatedMessageStream,
        mut orders: mpsc::Receiver<Order>,
    ) -> End {
        let beat = u64::try_from(self.shared.cx.policy.heartbeat.millis()).unwrap_or(10_000);
        // Three missed heartbeats, but never less than a breath.
        let silence = Duration::from_millis((beat * 3).max(3_000));
        let mut refresh = tokio::time::interval(REFRESH);
        let mut pings: Vec<oneshot::Sender<()>> = Vec::new();
        let mut heard = tokio::time::Instant::now();
        loop {
            let step = tokio::select! {
                message = stream.next() => {
                    heard = tokio::time::Instant::now();
                    match message {
                        Some(Ok(AggregatedMessage::Text(text))) => self.take(&text).await,
                        Some(Ok(AggregatedMessage::Ping(bytes))) => {
                            in_time(self.session.pong(&bytes)).await
                        }
                        Some(Ok(AggregatedMessage::Pong(_))) => {
                            for ping in pings.drain(..) {
                                if ping.send(()).is_err() {
                                    tracing::debug!("nobody waits for this pong");
                                }
                            }
                            Ok(())
                        }
                        Some(Ok(AggregatedMessage::Binary(_))) => {
                            Err(End::Refuse(Code::InvalidField, "messages are text".to_owned(), false))
                        }
                        Some(Ok(AggregatedMessage::Close(_)) | Err(_)) | None => Err(End::Gone),
                    }
                }
                order = orders.recv() => match order {
                    Some(Order::SendDesired) => self.send_desired().await,
                    Some(Order::Say(message)) => say(&mut self.session, &message).await,
                    Some(Order::Close(_)) | None => Err(End::Gone),
                    Some(Order::Ping(answer)) => {
                        pings.push(answer);
                        in_time(self.session.ping(b"alive")).await
                    }
                },
                _tick = refresh.tick() => match in_time(self.session.ping(b"alive")).await {
                    Ok(()) => self.send_desired().await,
                    Err(end) => Err(end),
                },
                () = tokio::time::sleep_until(heard + silence) => Err(End::Gone),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn send_desired(&mut self) -> Result<(), End> {
        if !self.probed {
            return Ok(());
        }
        match app::link::desired(&self.shared.cx, self.machine).await {
            Ok(wanted) => {
                let leases = wanted.into_iter().map(wire::desired).collect();
                say(&mut self.session, &ToAgent::Desired { leases }).await
            }
            Err(error) => {
                // It is sent again soon; the agent keeps to the last one until then.
                tracing::warn!(machine = %self.machine, %error, "the desired state was not read");
                Ok(())
            }
        }
    }

    async fn take(&mut self, text: &str) -> Result<(), End> {
        let cx = &self.shared.cx;
        match read(text)? {
            FromAgent::Hello { .. } => Err(End::Refuse(
                Code::InvalidField,
                "`hello` came twice".to_owned(),
                false,
            )),
            FromAgent::Probe { probe } => {
                if let Err(error) = app::link::probe(cx, self.machine, wire::probe(probe)).await {
                    let public = error.public();
                    if let Some(cause) = std::error::Error::source(&error) {
                        tracing::error!(machine = %self.machine, %cause, "a probe was not taken");
                    }
                    let fatal = public.code.kind() == domain::refusal::Kind::Unprocessable;
                    return Err(End::Refuse(public.code, public.detail, fatal));
                }
                self.probed = true;
                self.send_desired().await
            }
            FromAgent::Report {
                seq,
                boot_id,
                mono_ms,
                leases,
            } => {
                let report = wire::report(boot_id, mono_ms, leases);
                match app::link::report(cx, self.machine, report).await {
                    Ok(changed) => {
                        say(&mut self.session, &ToAgent::Ack { seq }).await?;
                        if changed {
                            self.send_desired().await
                        } else {
                            Ok(())
                        }
                    }
                    Err(error) => {
                        // Not acknowledged: the next report proves the same time again.
                        let cause = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::error!(machine = %self.machine, %error, ?cause, "a report was not taken");
                        Ok(())
                    }
                }
            }
            FromAgent::Logs {
                request,
                lines,
                live,
                fault,
            } => {
                let answer = match fault {
                    Some(text) => Err(text),
                    None => Ok((lines, live)),
                };
                self.shared.hub.answered(self.machine, request, answer);
                Ok(())
            }
        }
    }
}
