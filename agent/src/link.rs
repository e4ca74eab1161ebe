//! The link to the market: it dials out, proves who it is, and starts over whenever it is cut.
//!
//! Invariants: a cut link changes nothing on the machine; pauses between tries grow with jitter, so
//! that a fleet does not come back as one; only a fatal refusal ends it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use thiserror::Error;
use tokio::time::Instant;
use web_openapi::agent::Probe;

use crate::enroll::route;
use crate::identity::MachineKey;
use crate::keeper::KeeperHandle;
use crate::probe::ProbeError;
use crate::runner::Runner;
use session::{Ended, session};

mod logs;
mod session;

/// Shortest pause before dialling again.
const SHORTEST: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(15);
/// A connection that lasted so long makes the next pause short again.
const SETTLED: Duration = Duration::from_secs(30);

/// Makes the probe anew; called from a thread that may block.
pub type ProbeSource = Arc<dyn Fn(&[String]) -> Result<Probe, ProbeError> + Send + Sync>;

/// All that a link needs.
pub struct Link<R> {
    /// Address of the market.
    pub server: Url,
    /// `mch_…`
    pub machine_id: String,
    /// Signs the challenge.
    pub key: MachineKey,
    /// UUID of the kernel's boot.
    pub boot_id: String,
    /// Makes the probe.
    pub probe: ProbeSource,
    /// Knows what is seen, and takes what is desired.
    pub keeper: KeeperHandle,
    /// Reads logs.
    pub runner: Arc<R>,
}

impl<R> std::fmt::Debug for Link<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({} to {})", self.machine_id, self.server)
    }
}

/// Why a link ends for good.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The market says that trying again is useless.
    #[error("the market refuses this machine: {detail} ({code})")]
    Refused {
        /// Code as in the API's problems.
        code: String,
        /// For people.
        detail: String,
    },
}

impl<R: Runner> Link<R> {
    /// Keeps the link up. Returns only when the market refuses for good.
    pub async fn run(self) -> LinkError {
        let url = socket_url(&self.server);
        let mut pause = SHORTEST;
        loop {
            let since = Instant::now();
            match session(&self, &url).await {
                Ended::Refused {
                    code,
                    detail,
                    fatal: true,
                } => {
                    return LinkError::Refused { code, detail };
                }
                Ended::Refused {
                    code,
                    detail,
                    fatal: false,
                } => {
                    tracing::warn!(code, detail, "the market does not take this machine now");
                }
                Ended::Cut(why) => tracing::warn!(%url, why, "the link to the market is cut"),
            }
            if since.elapsed() >= SETTLED {
                pause = SHORTEST;
            }
            let wait = jittered(pause, random_byte());
            tracing::info!(wait_ms = wait.as_millis(), "dialling again");
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2).min(LONGEST);
        }
    }
}

/// `ws` for `http`, `wss` for `https`.
fn socket_url(server: &Url) -> String {
    let url = route(server, "/v1/agent/connect").to_string();
    url.strip_prefix("http")
        .map_or(url.clone(), |rest| format!("ws{rest}"))
}

/// Between half the pause and the whole, and never under the shortest.
fn jittered(pause: Duration, dice: u8) -> Duration {
    let half = pause.div_f64(2.0);
    let part = half
        .saturating_mul(u32::from(dice))
        .checked_div(255)
        .unwrap_or(half);
    half.saturating_add(part).max(SHORTEST)
}

#[expect(
    clippy::disallowed_methods,
    reason = "jitter is made where the agent dials"
)]
fn random_byte() -> u8 {
    let mut byte = [0_u8; 1];
    if getrandom::fill(&mut byte).is_err() {
        return u8::MAX;
    }
    let [byte] = byte;
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_follow_the_scheme_of_the_market() {
        let url = |s: &str| socket_url(&Url::parse(s).unwrap());
        assert_eq!(
            url("http://127.0.0.1:1"),
            "ws://127.0.0.1:1/v1/agent/connect"
        );
        assert_eq!(
            url("https://m.example/p"),
            "wss://m.example/p/v1/agent/connect"
        );
    }

    #[test]
    fn pauses_stay_between_half_a_second_and_fifteen() {
        for dice in [0, 1, 128, 255] {
            let mut pause = SHORTEST;
            for _ in 0..10 {
                let wait = jittered(pause, dice);
                assert!(wait >= SHORTEST && wait <= LONGEST, "{wait:?}");
                pause = pause.saturating_mul(2).min(LONGEST);
            }
        }
        assert_eq!(jittered(LONGEST, 255), LONGEST);
    }
}
