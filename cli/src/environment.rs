//! The outside of the process, gathered in one place: variables, terminal, clock, randomness.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::{Builder, Uuid};

/// How long to go on after failures that pass.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Requests sent at most for one call.
    pub attempts: u32,
    /// Pause before the second; doubled each time.
    pub first: Duration,
    /// The longest pause that is waited for; a longer `Retry-After` is told instead.
    pub longest: Duration,
    /// Pause between two looks at something that changes.
    pub poll: Duration,
    /// Failures that pass, in a row, before a wait is given up.
    pub failures: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 4,
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            failures: 15,
        }
    }
}

/// Everything that a command takes from outside its arguments.
pub struct Environment {
    /// `GPUMARKET_SERVER`.
    pub server: Option<String>,
    /// `GPUMARKET_API_KEY`.
    pub api_key: Option<String>,
    /// `GPUMARKET_PROFILE`.
    pub profile: Option<String>,
    /// `GPUMARKET_PASSWORD`.
    pub password: Option<String>,
    /// The configuration file: `GPUMARKET_CONFIG`, else below `XDG_CONFIG_HOME` or `HOME`.
    pub config: Option<PathBuf>,
    /// This computer's name, for the names of API keys.
    pub host: String,
    /// Standard input, for passwords.
    pub input: Box<dyn BufRead>,
    /// Is standard input a terminal?
    pub input_is_terminal: bool,
    /// Is standard output a terminal?
    pub output_is_terminal: bool,
    /// Zone that times are shown in.
    pub zone: TimeZone,
    /// The clock.
    pub now: fn() -> Timestamp,
    /// How long to go on after failures that pass.
    pub patience: Patience,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("server", &self.server)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let config = variable("GPUMARKET_CONFIG").map(PathBuf::from).or_else(|| {
            let home = variable("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config")));
            home.map(|folder| folder.join("gpumarket").join("config.toml"))
        });
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            server: variable("GPUMARKET_SERVER"),
            api_key: variable("GPUMARKET_API_KEY"),
            profile: variable("GPUMARKET_PROFILE"),
            password: variable("GPUMARKET_PASSWORD"),
            config,
            host: host.trim().to_owned(),
            input: Box::new(std::io::BufReader::new(std::io::stdin())),
            input_is_terminal: std::io::stdin().is_terminal(),
            output_is_terminal: std::io::stdout().is_terminal(),
            zone: TimeZone::system(),
            now: clock,
            patience: Patience::default(),
        }
    }
}

/// A variable that is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the command reads its environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the command reads the clock"
)]
fn clock() -> Timestamp {
    Timestamp::now()
}

/// Bytes that nobody can guess; `None` if the system has none to give.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the command takes randomness"
)]
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

/// A fresh idempotency key.
pub(crate) fn idempotency_key() -> Option<Uuid> {
    random::<16>().map(|bytes| Builder::from_random_bytes(bytes).into_uuid())
}
