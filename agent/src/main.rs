//! `gpumarket-agent`: reads the command line, starts the agent, ends it on a signal.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use agent::config::{Cli, Command, Join, Machine, ProbeOnce, Run};
use agent::enroll::parse_server;
use agent::identity::MachineKey;
use agent::probe::GpuSource;
use agent::runner::engine::{Engine, EngineSettings};
use agent::service::{self, MachineSettings, Settings};
use agent::state_dir::StateDir;
use anyhow::Context;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use web_openapi::agent::Probe;

/// What is under way when a signal comes is given so long.
const LAST_WORDS: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without stderr there is nobody to tell.
            drop(writeln!(std::io::stderr(), "gpumarket-agent: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&cli.log).context("--log is not a filter")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        tracing::debug!("a TLS provider is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(async {
        match cli.command {
            Command::Join(join) => until_signal(joined(join)?).await,
            Command::Run(run) => until_signal(settings(run)).await,
            Command::Probe(once) => probe_once(once).await,
        }
    });
    runtime.shutdown_timeout(LAST_WORDS);
    result
}

async fn until_signal(settings: Settings) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate()).context("cannot take signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot take signals")?;
    tokio::select! {
        ended = Box::pin(service::run(settings)) => match ended? {},
        _ = term.recv() => tracing::info!("SIGTERM: ending; containers go on"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending; containers go on"),
    }
    Ok(())
}

fn joined(join: Join) -> anyhow::Result<Settings> {
    let server = parse_server(&join.server)?;
    Ok(Settings {
        server: Some(server),
        token: join.token,
        ..settings(join.run)
    })
}

fn settings(run: Run) -> Settings {
    if let Some(name) = &run.machine.name {
        tracing::info!(name, "agent");
    }
    Settings {
        state: run.state,
        server: None,
        token: None,
        machine: machine(run.machine),
    }
}

fn machine(machine: Machine) -> MachineSettings {
    MachineSettings {
        source: machine
            .simulate
            .map_or(GpuSource::Driver, GpuSource::Profile),
        engine: machine.engine,
        country: machine.country,
        disk_gib: machine.disk_gib,
        disk_path: machine.disk_path,
    }
}

async fn probe_once(once: ProbeOnce) -> anyhow::Result<()> {
    let machine = machine(once.machine);
    // Without a key the simulated UUIDs are an example.
    let key = match &once.state {
        Some(path) => MachineKey::load(&StateDir::open(path)?)?,
        None => None,
    };
    let key = key.unwrap_or_else(|| MachineKey::from_seed([0; 32]));
    let engine = EngineSettings {
        address: machine.engine.clone(),
        machine: String::new(),
        flavour: None,
    };
    let engine = match Engine::connect(engine).await {
        Ok(engine) => engine.info().to_string(),
        Err(why) => {
            tracing::warn!(%why, "no container engine");
            "none".to_owned()
        }
    };
    let source = service::probe_source(&machine, &key, engine);
    let probe = tokio::task::spawn_blocking(move || source(&[])).await??;
    let text = if once.json {
        serde_json::to_string_pretty(&probe)?
    } else {
        describe(&probe)
    };
    writeln!(std::io::stdout(), "{text}").context("cannot write")
}

fn describe(probe: &Probe) -> String {
    let mark = if probe.simulated { " (SIMULATED)" } else { "" };
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let mut lines = vec![
        format!("host      {}{mark}", probe.hostname),
        format!("cores     {}", probe.cpu_cores),
        format!("memory    {} MiB", probe.ram_mib),
        format!("disk      {} GiB", probe.disk_gib),
        format!("driver    {}", or_none(&probe.driver_version)),
        format!("CUDA      {}", or_none(&probe.cuda_version)),
        format!("engine    {}", probe.engine),
    ];
    lines.extend(probe.gpus.iter().map(|g| {
        format!(
            "GPU {:<3}   {}, {} MiB, {}, island {}, {} foreign processes",
            g.index, g.name, g.memory_mib, g.uuid, g.island, g.foreign_processes
        )
    }));
    lines.join("\n")
}
