//! The port to whatever runs containers, and the nouns that cross it.
//!
//! Invariant: a runner knows only containers that carry this machine's label.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use thiserror::Error;
use web_openapi::agent::DesiredLease;
use web_openapi::lease::LogLine;

pub mod engine;

/// Label with the lease's id.
pub const LABEL_LEASE: &str = "gpumarket.lease";
/// Label with the `start_no` that a container was made for.
pub const LABEL_START_NO: &str = "gpumarket.start_no";
/// Label with the machine's id: agents that share an engine leave each other's containers alone.
pub const LABEL_MACHINE: &str = "gpumarket.machine";
/// Label with the UUIDs of the lease's GPUs, joined by commas.
pub const LABEL_GPUS: &str = "gpumarket.gpus";
/// Time between SIGTERM and SIGKILL.
pub const STOP_GRACE: Duration = Duration::from_secs(10);

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Made, never started.
    Created,
    /// Its process runs.
    Running,
    /// Frozen by somebody on the machine.
    Paused,
    /// Its process ended, by order or by itself.
    Ended {
        /// Exit code of its process, if the engine knows it.
        exit_code: Option<i64>,
        /// The kernel killed it for lack of memory.
        out_of_memory: bool,
        /// What the engine says went wrong; often empty.
        fault: String,
    },
}

impl Phase {
    /// Does it hold its process and so its GPUs?
    pub const fn is_active(&self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// A container of a lease, as just inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The engine's id.
    pub id: String,
    /// `lse_…`
    pub lease: String,
    /// The start that it was made for; later starts are in the journal.
    pub made_for: i64,
    /// UUIDs of the GPUs that were given to it.
    pub gpus: Vec<String>,
    /// What it does.
    pub phase: Phase,
    /// The engine's time of the last start; `None` if it never started.
    pub started_at: Option<String>,
}

/// What to make a container of.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The lease with its workload, GPUs and limits.
    pub lease: DesiredLease,
}

impl Spec {
    /// Name of the container of this start.
    pub fn container_name(&self) -> String {
        format!("gpumarket-{}-{}", self.lease.lease_id, self.lease.start_no)
    }
}

/// Which lines of a container's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// At most so many lines: the last ones, or with `after` the first ones after it.
    pub tail: u32,
    /// Only lines after this time (RFC 3339).
    pub after: Option<jiff::Timestamp>,
}

/// Most lines of one answer.
pub const LOG_LINES: u32 = 1_000;
/// Most bytes of one answer, as JSON.
pub const LOG_BYTES: usize = 512 * 1024;

/// Why the engine did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunnerError {
    /// The engine cannot be reached or does not answer in time: ask again later.
    #[error("the container engine does not answer: {0}")]
    Unavailable(String),
    /// The engine refuses; asking again is useless.
    #[error("{0}")]
    Refused(String),
    /// There is no such container or image.
    #[error("not found: {0}")]
    NotFound(String),
}

/// Takes signs of progress, in words for people.
pub trait Progress: Send + Sync {
    /// Something moved on.
    fn note(&self, detail: String);
}

/// The engine and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    /// `Docker` or `Podman`.
    pub name: String,
    /// As the engine tells it.
    pub version: String,
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Runs containers. Every call may be repeated: what is done already is no error.
pub trait Runner: Send + Sync + 'static {
    /// Every container of this machine, each inspected now.
    fn list(&self) -> impl Future<Output = Result<Vec<Container>, RunnerError>> + Send;

    /// Makes the image present: uses the local one, else pulls it.
    fn fetch(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// Makes the lease's network and container; the image is present. Gives the container's id.
    fn create(&self, spec: &Spec) -> impl Future<Output = Result<String, RunnerError>> + Send;

    /// Makes a new container with the disk of `old`, for other GPUs. `old` stays.
    fn rebuild(
        &self,
        old: &str,
        spec: &Spec,
    ) -> impl Future<Output = Result<String, RunnerError>> + Send;

    /// Starts a container.
    fn start(&self, id: &str) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// SIGTERM, [`STOP_GRACE`], SIGKILL; the container and its disk stay.
    fn stop(&self, id: &str) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// Ends a pause.
    fn unpause(&self, id: &str) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// Removes a container that does not run, and its disk.
    fn remove(&self, id: &str) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// Removes what else the lease left: its network and the images of its disk.
    fn clear(&self, lease: &str) -> impl Future<Output = Result<(), RunnerError>> + Send;

    /// Lines of a container's output, oldest first, within [`LOG_LINES`] and [`LOG_BYTES`].
    fn logs(
        &self,
        id: &str,
        query: &LogQuery,
    ) -> impl Future<Output = Result<Vec<LogLine>, RunnerError>> + Send;
}
