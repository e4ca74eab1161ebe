//! `gpumarket-server`: serves the market, and the operator's commands beside it.

use std::cell::Cell;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use api::config::Config;
use api::replay::ReplayArguments;
use api::state::{Application, Shared};
use api::telemetry;
use clap::{Parser, Subcommand};
use domain::party::StaffRole;

/// The gpumarket server.
#[derive(Parser)]
#[command(name = "gpumarket-server", version, about)]
struct Arguments {
    /// Configuration file (TOML); the environment (GPUMARKET_…) wins over it.
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API, the agents' links and the workers.
    Serve,
    /// Bring the database's schema and the GPU models up to date.
    Migrate,
    /// Print the OpenAPI document.
    Openapi,
    /// Check every invariant of the ledger; exit code 0 means proven.
    ProveLedger {
        /// Print the proof as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let the ledger go on after an invariant stopped it.
    LiftLedgerStop {
        /// What was found, for the audit log.
        #[arg(long)]
        reason: String,
    },
    /// Play a trace of requests against placement policies; nothing is booked.
    Replay(ReplayArguments),
    /// Give a registered person a role for the operator.
    Grant {
        /// Log-in name.
        #[arg(long)]
        email: String,
        /// operator, moderator, finance or auditor.
        #[arg(long)]
        role: String,
        /// Why, for the record.
        #[arg(long)]
        reason: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            say_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command's word to its user")]
fn say_error(text: &str) {
    eprintln!("gpumarket-server: {text}");
}

#[expect(clippy::print_stdout, reason = "a command's word to its user")]
fn say(text: &str) {
    println!("{text}");
}

async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if matches!(arguments.command, Command::Openapi) {
        say(&api::openapi().to_pretty_json()?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Replay(arguments) = &arguments.command {
        say(&api::replay::replay(arguments).map_err(|e| anyhow!(e))?);
        return Ok(ExitCode::SUCCESS);
    }
    let config = Config::load(arguments.config.as_deref()).map_err(|e| anyhow!(e))?;
    telemetry::start(&config);
    match arguments.command {
        Command::Serve => start(&config).await,
        Command::Migrate => migrate(&config).await,
        Command::ProveLedger { json } => prove(&config, json).await,
        Command::LiftLedgerStop { reason } => lift(&config, &reason).await,
        Command::Grant {
            email,
            role,
            reason,
        } => grant(&config, &email, (&role, &reason)).await,
        Command::Openapi | Command::Replay(_) => Ok(ExitCode::SUCCESS),
    }
}

/// How long the database may take to start.
const PATIENCE: Duration = Duration::from_secs(15);

/// Waits a little for the database: it may be starting as well.
async fn reach(shared: &Shared) -> anyhow::Result<()> {
    let last = Cell::new(String::new());
    let attempts = async {
        while let Err(error) = shared.cx.db.ping().await {
            last.set(error.to_string());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, attempts).await.is_ok() {
        return Ok(());
    }
    bail!(
        "the database at {} cannot be reached: {}",
        shared.cx.db.target(),
        last.take()
    )
}

async fn start(config: &Config) -> anyhow::Result<ExitCode> {
    tracing::info!("{}", config.summary());
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let listener = TcpListener::bind(config.listen).with_context(|| {
        format!(
            "{} cannot be listened on (is another server running there?)",
            config.listen
        )
    })?;
    let application = Application::build(config, listener).map_err(|e| anyhow!(e))?;
    let shared = &application.shared;
    reach(shared).await?;
    if !shared.cx.db.migrated().await? {
        bail!(
            "the database's schema is not that of this version: run `gpumarket-server migrate` first"
        );
    }
    tracing::info!("ready on {}", config.public_url);
    application.run().await?;
    Ok(ExitCode::SUCCESS)
}

async fn migrate(config: &Config) -> anyhow::Result<ExitCode> {
    let shared = Shared::build(config, None).map_err(|e| anyhow!(e))?;
    reach(&shared).await?;
    let applied = shared.cx.db.migrate(&shared.cx.catalogue).await?;
    for name in &applied {
        say(&format!("applied {name}"));
    }
    let models = shared.cx.catalogue.models().len();
    say(&format!(
        "the schema is up to date; {models} GPU models are known"
    ));
    Ok(ExitCode::SUCCESS)
}

async fn prove(config: &Config, json: bool) -> anyhow::Result<ExitCode> {
    let shared = Shared::build(config, None).map_err(|e| anyhow!(e))?;
    reach(&shared).await?;
    let proof = app::prove::prove(&shared.cx).await?;
    if json {
        say(&serde_json::to_string_pretty(&api::http::prove::view(
            &proof,
        ))?);
    } else {
        for row in &proof.rows {
            let mark = if row.violations == 0 { "ok  " } else { "BAD " };
            say(&format!("{mark} {:4} {}", row.id, row.statement));
            if row.violations > 0 {
                say(&format!(
                    "     {} violations, e.g. {}",
                    row.violations,
                    row.examples.join(", ")
                ));
            }
        }
        say(if proof.proven {
            "the ledger is proven"
        } else {
            "the ledger is NOT proven"
        });
    }
    Ok(if proof.proven {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn lift(config: &Config, reason: &str) -> anyhow::Result<ExitCode> {
    let shared = Shared::build(config, None).map_err(|e| anyhow!(e))?;
    reach(&shared).await?;
    let lifted = app::prove::lift(&shared.cx, reason)
        .await
        .map_err(|e| anyhow!("{e}"))?;
    say(if lifted == 0 {
        "the ledger was not stopped"
    } else {
        "the ledger's writers go on"
    });
    Ok(ExitCode::SUCCESS)
}

async fn grant(
    config: &Config,
    email: &str,
    (role, reason): (&str, &str),
) -> anyhow::Result<ExitCode> {
    let role: StaffRole = role
        .parse()
        .map_err(|()| anyhow!("`{role}` is not operator, moderator, finance or auditor"))?;
    let shared = Shared::build(config, None).map_err(|e| anyhow!(e))?;
    reach(&shared).await?;
    let user = app::party::grant(&shared.cx, email, role, reason)
        .await
        .map_err(|e| anyhow!("{e}"))?;
    say(&format!("{email} ({user}) is {} now", role.as_str()));
    Ok(ExitCode::SUCCESS)
}
