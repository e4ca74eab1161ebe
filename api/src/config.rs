//! Configuration: one file (TOML) and the environment, checked as a whole before anything starts.
//!
//! The only reader of the environment in this room.

use std::net::SocketAddr;
use std::path::PathBuf;

use app::context::{PaymentsMode, PayoutPolicy};
use billing::invoice::Identity;
use billing::tax_rule::TaxTable;
use domain::clock::Span;
use domain::money::Micros;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

mod operator;
mod payouts;

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
    maturing_hours: Option<u32>,
    reserve_bps: Option<u32>,
    reserve_hours: Option<u32>,
    payout_least_usd: Option<u32>,
    approval_above_usd: Option<u32>,
    tax_rules: Option<String>,
    operator_name: Option<String>,
    operator_address: Option<String>,
    operator_country: Option<String>,
    operator_vat_id: Option<String>,
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
    /// Tax on top, in 1/10,000, where no rule of `tax` says otherwise.
    pub tax_bps: u32,
    /// Earnings on their way out.
    pub payouts: PayoutPolicy,
    /// Adjustments and credits above it need a second person.
    pub approval_above: Micros,
    /// Tax on top, by who buys.
    pub tax: TaxTable,
    /// Who the operator is on invoices.
    pub operator: Identity,
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

/// Reads a variable by its name without the prefix.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Collects every fault, so that all are told at once.
struct Faults<'a> {
    found: Vec<String>,
    variable: Environment<'a>,
}

impl Faults<'_> {
    fn add(&mut self, text: impl Into<String>) {
        self.found.push(text.into());
    }

    fn parsed<T: std::str::FromStr>(&mut self, name: &str, text: Option<String>) -> Option<T> {
        let text = text?;
        let value = text.parse().ok();
        if value.is_none() {
            self.add(format!("GPUMARKET_{name}: `{text}` is not valid"));
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
            .parsed(name, (self.variable)(name))
            .or(in_file)
            .unwrap_or(default);
        if !range.contains(&value) {
            let (least, most) = (range.start(), range.end());
            self.add(format!(
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
                self.add(text);
                PaymentsMode::Disabled
            }
        }
    }
}

impl Faults<'_> {
    fn database_url(&mut self, url: Option<String>) -> Option<String> {
        let known =
            |url: &String| url.starts_with("postgres://") || url.starts_with("postgresql://");
        if !url.as_ref().is_some_and(known) {
            // The value is not repeated: it may hold a password.
            let what = if url.is_some() {
                "not a URL of PostgreSQL"
            } else {
                "missing"
            };
            self.add(format!(
                "GPUMARKET_DATABASE_URL is {what} (postgres://user@host:port/name)"
            ));
        }
        url
    }

    fn public_url(&mut self, url: Option<String>) -> Option<String> {
        let url = url?.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            self.add(format!(
                "GPUMARKET_PUBLIC_URL: `{url}` is not http://… or https://…"
            ));
        }
        Some(url)
    }

    fn log(&mut self, filter: Option<String>) -> String {
        let filter = filter.unwrap_or_else(|| "info".to_owned());
        if let Err(error) = EnvFilter::try_new(&filter) {
            self.add(format!("GPUMARKET_LOG: `{filter}`: {error}"));
        }
        filter
    }

    fn log_json(&mut self, format: Option<String>) -> bool {
        match format.as_deref() {
            None | Some("text") => false,
            Some("json") => true,
            Some(other) => {
                self.add(format!(
                    "GPUMARKET_LOG_FORMAT: `{other}` is not `text` or `json`"
                ));
                false
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
        Self::check(raw, &variable)
    }

    fn check(raw: Raw, variable: Environment<'_>) -> Result<Self, String> {
        let found = Vec::new();
        let mut faults = Faults { found, variable };
        let payouts = payouts::rules(&mut faults, &raw);
        let approval_above = payouts::approval_above(&mut faults, &raw);
        let tax_bps = faults.number("TAX_BPS", raw.tax_bps, (0, 0..=10_000));
        let tax = operator::tax(&mut faults, &raw, tax_bps);
        let operator = operator::identity(&mut faults, &raw);
        let payments = faults.payments(variable("PAYMENTS").or(raw.payments));
        let listen = variable("LISTEN").or(raw.listen);
        let listen = listen.unwrap_or_else(|| "127.0.0.1:8080".into());
        let listen: Option<SocketAddr> = faults.parsed("LISTEN", Some(listen));
        let database_url = faults.database_url(variable("DATABASE_URL").or(raw.database_url));
        let public_url = faults.public_url(variable("PUBLIC_URL").or(raw.public_url));
        let heartbeat_ms = faults.number("HEARTBEAT_MS", raw.heartbeat_ms, (10_000, 50..=30_000));
        let fee_bps = faults.number("FEE_BPS", raw.fee_bps, (500, 0..=10_000));
        let factor = (1, 1..=1_000_000);
        let rate_limit_factor = faults.number("RATE_LIMIT_FACTOR", raw.rate_limit_factor, factor);
        let connections = (20, 2..=1_000);
        let connections = faults.number(
            "DATABASE_CONNECTIONS",
            raw.database_connections,
            connections,
        );
        let allow_simulated = faults
            .parsed("ALLOW_SIMULATED", variable("ALLOW_SIMULATED"))
            .or(raw.allow_simulated);
        let log = faults.log(variable("LOG").or(raw.log));
        let log_json = faults.log_json(variable("LOG_FORMAT").or(raw.log_format));
        let (Some(listen), Some(database_url), true) =
            (listen, database_url, faults.found.is_empty())
        else {
            return Err(faults.found.join("\n"));
        };
        let state_dir = variable("STATE_DIR").map(PathBuf::from).or(raw.state_dir);
        Ok(Self {
            public_url: public_url.unwrap_or_else(|| format!("http://{listen}")),
            state_dir: state_dir.unwrap_or_else(|| "state".into()),
            heartbeat: Span::from_millis(i64::from(heartbeat_ms)),
            allow_simulated: allow_simulated.unwrap_or(false),
            database_connections: usize::try_from(connections).unwrap_or(20),
            log,
            log_json,
            rate_limit_factor,
            fee_bps,
            tax_bps,
            payouts,
            approval_above,
            tax,
            operator,
            database_url,
            listen,
            payments,
        })
    }

    /// One line without secrets.
    pub fn summary(&self) -> String {
        let host = self.database_url.rsplit_once('@');
        let host = host.map_or("?", |(_, host)| host);
        // A password may stand behind the question mark as well.
        let host = host.split('?').next().unwrap_or("?");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn load(lines: &[(&str, &str)]) -> Result<Config, String> {
        let lines: Vec<(String, String)> = lines
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        Config::check(Raw::default(), &|name| {
            let line = lines.iter().find(|(n, _)| n == name);
            line.map(|(_, value)| value.clone())
        })
    }

    const DATABASE: (&str, &str) = ("DATABASE_URL", "postgres://u:hush@db:5432/m?password=hush");

    #[test]
    fn every_fault_is_told_at_once() {
        let faults = load(&[
            ("LISTEN", "nowhere"),
            ("PAYMENTS", "gold"),
            ("PUBLIC_URL", "ftp://x"),
            ("FEE_BPS", "10001"),
            ("HEARTBEAT_MS", "often"),
            ("ALLOW_SIMULATED", "perhaps"),
            ("LOG", "a=b=c"),
            ("LOG_FORMAT", "xml"),
        ])
        .unwrap_err();
        for name in [
            "LISTEN",
            "PAYMENTS",
            "PUBLIC_URL",
            "FEE_BPS",
            "HEARTBEAT_MS",
            "ALLOW_SIMULATED",
            "LOG:",
            "LOG_FORMAT",
            "DATABASE_URL",
        ] {
            assert!(
                faults.contains(&format!("GPUMARKET_{name}")),
                "{name}: {faults}"
            );
        }
        assert_eq!(faults.lines().count(), 9, "{faults}");
    }

    #[test]
    fn defaults_are_careful_and_nothing_secret_is_shown() {
        let config = load(&[DATABASE]).unwrap();
        assert_eq!(config.payments, PaymentsMode::Disabled);
        assert!(!config.allow_simulated && config.listen.ip().is_loopback());
        assert!(config.warnings().is_empty());
        assert!(config.summary().contains("db:5432/m"));
        for shown in [config.summary(), format!("{config:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
        }
    }

    #[test]
    fn play_money_in_the_open_is_warned_of() {
        let open = ("LISTEN", "0.0.0.0:80");
        let config = load(&[
            DATABASE,
            open,
            ("PAYMENTS", "sandbox"),
            ("ALLOW_SIMULATED", "true"),
        ]);
        assert_eq!(config.unwrap().warnings().len(), 2);
    }
}
