//! Configuration: one file (TOML) and the environment, checked as a whole before anything starts.
//!
//! The only reader of the environment in this room.

use std::net::SocketAddr;
use std::path::PathBuf;

use app::context::PaymentsMode;
use domain::clock::Span;
use serde::Deserialize;

/// What the file may say; the environment (`GPUMARKET_…` in capitals) wins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    database_url: Option<String>,
    listen: Option<String>,
    public_url: Option<String>,
    state_dir: Option<PathBuf>,
    payments: Option<String>,
    allow_simulated: Option<bool>,
    heartbeat_ms: Option<u32>,
    fee_bps: Option<u32>,
    tax_bps: Option<u32>,
    database_connections: Option<u32>,
    rate_limit_factor: Option<u32>,
    log: Option<String>,
    log_format: Option<String>,
}

/// A checked configuration.
#[derive(Clone)]
pub struct Config {
    /// Where PostgreSQL is.
    pub database_url: String,
    /// Where to listen.
    pub listen: SocketAddr,
    /// How clients reach it.
    pub public_url: String,
    /// Where the market's keys are.
    pub state_dir: PathBuf,
    /// How money gets in.
    pub payments: PaymentsMode,
    /// May simulated GPUs be listed?
    pub allow_simulated: bool,
    /// How often agents report.
    pub heartbeat: Span,
    /// The platform's share, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, in 1/10,000.
    pub tax_bps: u32,
    /// Size of the database pool.
    pub database_connections: usize,
    /// Multiplies every rate limit; for tests and trusted networks.
    pub rate_limit_factor: u32,
    /// Log filter.
    pub log: String,
    /// Logs as JSON.
    pub log_json: bool,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the environment in this room"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(format!("GPUMARKET_{name}"))
        .ok()
        .filter(|v| !v.is_empty())
}

/// Collects every fault, so that all are told at once.
struct Faults(Vec<String>);

impl Faults {
    fn parsed<T: std::str::FromStr>(&mut self, name: &str, text: Option<String>) -> Option<T> {
        let text = text?;
        let value = text.parse().ok();
        if value.is_none() {
            self.0
                .push(format!("GPUMARKET_{name}: `{text}` is not valid"));
        }
        value
    }

    fn number(
        &mut self,
        name: &str,
        in_file: Option<u32>,
        (default, range): (u32, std::ops::RangeInclusive<u32>),
    ) -> u32 {
        let value = self
            .parsed(name, variable(name))
            .or(in_file)
            .unwrap_or(default);
        if !range.contains(&value) {
            let (least, most) = (range.start(), range.end());
            self.0.push(format!(
                "GPUMARKET_{name}: {value} is outside {least}–{most}"
            ));
        }
        value
    }

    fn payments(&mut self, text: Option<String>) -> PaymentsMode {
        match text.as_deref() {
            Some("sandbox") => PaymentsMode::Sandbox,
            None | Some("disabled") => PaymentsMode::Disabled,
            Some(other) => {
                let text = format!("GPUMARKET_PAYMENTS: `{other}` is not `sandbox` or `disabled`");
                self.0.push(text);
                PaymentsMode::Disabled
            }
        }
    }
}

impl Config {
    /// Reads file and environment. `Err` lists every fault in one text.
    pub fn load(file: Option<&std::path::Path>) -> Result<Self, String> {
        let raw = match file {
            None => Raw::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
                toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?
            }
        };
        Self::check(raw)
    }

    fn check(raw: Raw) -> Result<Self, String> {
        let mut faults = Faults(Vec::new());
        let payments = faults.payments(variable("PAYMENTS").or(raw.payments));
        let listen = variable("LISTEN")
            .or(raw.listen)
            .unwrap_or_else(|| "127.0.0.1:8080".into());
        let listen: Option<SocketAddr> = faults.parsed("LISTEN", Some(listen));
        let database_url = variable("DATABASE_URL").or(raw.database_url);
        if database_url.is_none() {
            let text = "GPUMARKET_DATABASE_URL is missing (postgres://user@host:port/name)";
            faults.0.push(text.into());
        }
        let heartbeat_ms = faults.number("HEARTBEAT_MS", raw.heartbeat_ms, (10_000, 50..=30_000));
        let fee_bps = faults.number("FEE_BPS", raw.fee_bps, (500, 0..=10_000));
        let tax_bps = faults.number("TAX_BPS", raw.tax_bps, (0, 0..=10_000));
        let rate_limit_factor = faults.number(
            "RATE_LIMIT_FACTOR",
            raw.rate_limit_factor,
            (1, 1..=1_000_000),
        );
        let database_connections = faults.number(
            "DATABASE_CONNECTIONS",
            raw.database_connections,
            (20, 2..=1_000),
        );
        let allow_simulated = faults
            .parsed("ALLOW_SIMULATED", variable("ALLOW_SIMULATED"))
            .or(raw.allow_simulated);
        let (Some(listen), Some(database_url), true) = (listen, database_url, faults.0.is_empty())
        else {
            return Err(faults.0.join("\n"));
        };
        let public_url = variable("PUBLIC_URL").or(raw.public_url);
        let state_dir = variable("STATE_DIR").map(PathBuf::from).or(raw.state_dir);
        Ok(Self {
            public_url: public_url.unwrap_or_else(|| format!("http://{listen}")),
            state_dir: state_dir.unwrap_or_else(|| "state".into()),
            heartbeat: Span::from_millis(i64::from(heartbeat_ms)),
            log: variable("LOG").or(raw.log).unwrap_or_else(|| "info".into()),
            log_json: variable("LOG_FORMAT").or(raw.log_format).as_deref() == Some("json"),
            allow_simulated: allow_simulated.unwrap_or(false),
            database_connections: usize::try_from(database_connections).unwrap_or(20),
            rate_limit_factor,
            fee_bps,
            tax_bps,
            database_url,
            listen,
            payments,
        })
    }

    /// One line without secrets.
    pub fn summary(&self) -> String {
        let host = self
            .database_url
            .rsplit_once('@')
            .map_or("?", |(_, host)| host);
        format!(
            "listen {} database {host} payments {} simulated supply {} fee {} bps tax {} bps heartbeat {} ms",
            self.listen,
            self.payments.as_str(),
            self.allow_simulated,
            self.fee_bps,
            self.tax_bps,
            self.heartbeat.millis(),
        )
    }

    /// Combinations that are allowed but rarely meant.
    pub fn warnings(&self) -> Vec<&'static str> {
        let open = !self.listen.ip().is_loopback();
        let mut found = Vec::new();
        if open && self.payments == PaymentsMode::Sandbox {
            found.push("play money (payments = sandbox) on an address that others can reach");
        }
        if open && self.allow_simulated {
            found.push("simulated GPUs are listed on an address that others can reach");
        }
        if self.rate_limit_factor > 1 && open {
            found.push("rate limits are loosened on an address that others can reach");
        }
        found
    }
}
