//! Command line and environment: the only place of the agent that reads them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The agent of a machine on gpumarket.
#[derive(Clone, Debug, Parser)]
#[command(name = "gpumarket-agent", version, about)]
pub struct Cli {
    /// What is logged to stderr, e.g. `info` or `agent=debug`.
    #[arg(long, global = true, env = "GPUMARKET_LOG", default_value = "info")]
    pub log: String,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Enrol this machine with a one-time token, then run. With an identity in --state it just runs.
    Join(Join),
    /// Run with the identity in --state.
    Run(Run),
    /// Show what this machine would report, and stop.
    Probe(ProbeOnce),
}

/// `join`
#[derive(Clone, Debug, Args)]
pub struct Join {
    /// Address of the market, e.g. `https://market.example`.
    #[arg(long, env = "GPUMARKET_SERVER")]
    pub server: String,
    /// The one-time token (`enr_…`).
    #[arg(long, env = "GPUMARKET_ENROLLMENT_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// How to run.
    #[command(flatten)]
    pub run: Run,
}

/// `run`
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// Directory for the key, the identity and the journal; one per agent.
    #[arg(long, default_value = "/var/lib/gpumarket-agent")]
    pub state: PathBuf,
    /// How to look at the machine.
    #[command(flatten)]
    pub machine: Machine,
}

/// `probe`
#[derive(Clone, Debug, Args)]
pub struct ProbeOnce {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// State directory whose key simulated UUIDs follow from.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// How to look at the machine.
    #[command(flatten)]
    pub machine: Machine,
}

/// How to look at the machine.
#[derive(Clone, Debug, Args)]
pub struct Machine {
    /// Report the GPUs of this profile as simulated instead of asking the driver.
    #[arg(long, value_name = "PROFILE")]
    pub simulate: Option<String>,
    /// Socket of Docker or Podman; by default the first of the usual ones.
    #[arg(long, value_name = "unix:///PATH", env = "GPUMARKET_ENGINE")]
    pub engine: Option<String>,
    /// Name for the log; the market names the machine by its token.
    #[arg(long)]
    pub name: Option<String>,
    /// Two-letter country (ISO 3166-1) in which the machine stands.
    #[arg(long, value_parser = parse_country)]
    pub country: Option<String>,
    /// Disk for leases in GiB; by default the file system of --disk-path less a tenth.
    #[arg(long)]
    pub disk_gib: Option<u64>,
    /// Directory on the disk that the engine keeps containers on.
    #[arg(long, default_value = "/var/lib")]
    pub disk_path: PathBuf,
}

fn parse_country(text: &str) -> Result<String, String> {
    if text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic()) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("expected two letters, e.g. DE".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_join_as_documented_is_read() {
        let line = "gpumarket-agent join --server http://127.0.0.1:8080 --token enr_x --state /s \
                    --simulate 8xh100-sxm --engine unix:///run/podman/podman.sock --name n \
                    --country de";
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Join(join) = cli.command else {
            panic!("not join")
        };
        assert_eq!(join.token.as_deref(), Some("enr_x"));
        assert_eq!(join.run.machine.simulate.as_deref(), Some("8xh100-sxm"));
        assert_eq!(join.run.machine.country.as_deref(), Some("DE"));
        assert!(Cli::try_parse_from(["gpumarket-agent", "probe", "--country", "Germany"]).is_err());
    }
}
