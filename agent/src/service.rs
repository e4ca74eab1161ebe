//! The whole agent in one future: dropping it is like killing the process, containers go on.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use thiserror::Error;

use crate::enroll::{EnrollError, enroll};
use crate::identity::{self, Identity, MachineKey};
use crate::keeper::Keeper;
use crate::link::{Link, LinkError, ProbeSource};
use crate::meter;
use crate::probe::{GpuSource, ProbeError, ProbeRequest, probe};
use crate::runner::Runner;
use crate::runner::engine::{Engine, EngineError, EngineSettings};
use crate::state_dir::{StateDir, StateError};

/// How an agent is to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its state directory.
    pub state: PathBuf,
    /// Address of the market; `None` for the one that it enrolled with.
    pub server: Option<Url>,
    /// One-time token, used only while there is no identity.
    pub token: Option<String>,
    /// How to look at the machine.
    pub machine: MachineSettings,
}

/// How to look at the machine.
#[derive(Clone, Debug)]
pub struct MachineSettings {
    /// Where the GPUs come from.
    pub source: GpuSource,
    /// Socket of the engine; `None` for the usual ones.
    pub engine: Option<String>,
    /// Two-letter country.
    pub country: Option<String>,
    /// Disk for leases; measured if `None`.
    pub disk_gib: Option<u64>,
    /// Directory on the disk that containers use.
    pub disk_path: PathBuf,
}

/// Why the agent does not run.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// The enrolment.
    #[error(transparent)]
    Enroll(#[from] EnrollError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The machine.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The market.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no identity and no token.
    #[error(
        "this machine is not enrolled: {} holds no identity. Make a token (`gpumarket machine \
         token`) and run `gpumarket-agent join --server URL --token enr_… --state DIR`",
        .0.display()
    )]
    NotEnrolled(PathBuf),
    /// The kernel does not tell its boot.
    #[error("cannot read the kernel's boot id: {0}")]
    Boot(std::io::Error),
    /// The keeper ended: a fault of this program.
    #[error("the keeper of the containers ended")]
    KeeperEnded,
}

/// Runs the agent; enrols first if it has no identity but a token.
///
/// Returns only on a fault that trying again would not mend.
pub async fn run(settings: Settings) -> Result<Infallible, ServiceError> {
    let state = Arc::new(StateDir::open(&settings.state)?);
    let key = MachineKey::load_or_make(&state)?;
    let engine = EngineSettings {
        address: settings.machine.engine.clone(),
        machine: String::new(),
        flavour: None,
    };
    // Engine and GPUs first: a token is not spent on a machine that cannot run.
    let engine = Engine::connect(engine).await?;
    let source = probe_source(&settings.machine, &key, engine.info().to_string());
    let first = Arc::clone(&source);
    let looked = tokio::task::spawn_blocking(move || first(&[])).await;
    let seen = looked.map_err(|_panic| ServiceError::KeeperEnded)??;
    tracing::info!(
        gpus = seen.gpus.len(),
        simulated = seen.simulated,
        engine = seen.engine,
        "machine probed"
    );
    let (identity, server) = enrolled(&settings, &state, &key).await?;
    tracing::info!(machine = identity.machine_id, server = %server, "running");
    let runner = Arc::new(engine.for_machine(&identity.machine_id));
    let parts = Parts {
        state,
        key,
        server,
        machine_id: identity.machine_id,
        probe: source,
    };
    run_with(runner, parts).await
}

/// What [`run_with`] needs besides a runner.
pub struct Parts {
    /// The locked state directory.
    pub state: Arc<StateDir>,
    /// The machine's key.
    pub key: MachineKey,
    /// Address of the market.
    pub server: Url,
    /// `mch_…`
    pub machine_id: String,
    /// Makes the probe.
    pub probe: ProbeSource,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parts({} at {})", self.machine_id, self.server)
    }
}

/// Runs an enrolled agent with any runner.
pub async fn run_with<R: Runner>(runner: Arc<R>, parts: Parts) -> Result<Infallible, ServiceError> {
    let (keeper, handle) = Keeper::new(Arc::clone(&runner), parts.state)?;
    let link = Link {
        server: parts.server,
        machine_id: parts.machine_id,
        key: parts.key,
        boot_id: meter::boot_id().map_err(ServiceError::Boot)?,
        probe: parts.probe,
        keeper: handle,
        runner,
    };
    // One task: when this future is dropped, the lock on the state directory is free at once.
    tokio::select! {
        () = Box::pin(keeper.run()) => Err(ServiceError::KeeperEnded),
        refusal = Box::pin(link.run()) => Err(refusal.into()),
    }
}

async fn enrolled(
    settings: &Settings,
    state: &StateDir,
    key: &MachineKey,
) -> Result<(Identity, Url), ServiceError> {
    if let Some(identity) = identity::load(state)? {
        let own = crate::enroll::parse_server(&identity.server)?;
        let server = settings.server.clone().unwrap_or_else(|| own.clone());
        if server != own {
            tracing::warn!(enrolled = %own, used = %server, "not the address it enrolled with");
        }
        return Ok((identity, server));
    }
    let (Some(server), Some(token)) = (&settings.server, &settings.token) else {
        return Err(ServiceError::NotEnrolled(settings.state.clone()));
    };
    if server.scheme() == "http" && !is_local(server) {
        tracing::warn!(%server, "the token and all messages go unencrypted; use https");
    }
    let made = enroll(server, token, key).await?;
    let identity = Identity {
        server: server.to_string(),
        machine_id: made.machine_id,
    };
    identity::save(state, &identity)?;
    tracing::info!(
        machine = identity.machine_id,
        name = made.machine_name,
        "enrolled"
    );
    Ok((identity, server.clone()))
}

fn is_local(server: &Url) -> bool {
    matches!(server.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Makes probes of this machine as configured.
pub fn probe_source(machine: &MachineSettings, key: &MachineKey, engine: String) -> ProbeSource {
    let machine = machine.clone();
    let public_key = key.public_bytes();
    Arc::new(move |containers| {
        probe(&ProbeRequest {
            source: &machine.source,
            public_key,
            country: machine.country.as_deref(),
            disk_gib: machine.disk_gib,
            disk_path: &machine.disk_path,
            engine: engine.clone(),
            containers,
        })
    })
}
