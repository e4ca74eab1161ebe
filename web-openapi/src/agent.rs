//! The agent's protocol: enrolment over HTTP, then one WebSocket with JSON messages.
//!
//! It is level-triggered: the server sends the whole desired state of the machine, the agent
//! reports the whole observed state. So a lost, repeated or late message changes nothing.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lease::{LogLine, Workload};

/// Version of this protocol; the server refuses others with a clear message.
pub const PROTOCOL: u32 = 1;
/// What an agent signs: this, the nonce, and the machine's id, joined by `\n`.
pub const CHALLENGE_CONTEXT: &str = "gpumarket-agent-connect-v1";
/// The most bytes of one message.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The bytes that an agent signs to connect.
pub fn challenge_bytes(nonce: &str, machine_id: &str) -> Vec<u8> {
    format!("{CHALLENGE_CONTEXT}\n{nonce}\n{machine_id}").into_bytes()
}

/// `POST /v1/agent/enroll`: a token becomes a machine.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Enroll {
    /// The one-time token.
    #[schema(max_length = 200)]
    pub token: String,
    /// Ed25519 public key in hex: 64 digits.
    #[schema(min_length = 64, max_length = 64)]
    pub public_key: String,
}

impl std::fmt::Debug for Enroll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Enroll(key {})", self.public_key)
    }
}

/// The new machine. The same token with the same key gives the same answer again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Enrolled {
    /// `mch_…`
    pub machine_id: String,
    /// Name given by the provider.
    pub machine_name: String,
}

/// One GPU as probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbedGpu {
    /// Position.
    pub index: u16,
    /// Vendor's UUID.
    pub uuid: String,
    /// Name as the driver tells it; the server finds the model by it.
    pub name: String,
    /// Memory.
    pub memory_mib: u64,
    /// GPUs with the same number are joined by NVLink or the like.
    pub island: u16,
    /// Processes on it that no lease explains.
    pub foreign_processes: u32,
}

/// What a machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Version of the agent.
    pub agent_version: String,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// Host name.
    pub hostname: String,
    /// Cores.
    pub cpu_cores: u64,
    /// Memory.
    pub ram_mib: u64,
    /// Disk that leases may use.
    pub disk_gib: u64,
    /// Driver version, if there is a driver.
    pub driver_version: Option<String>,
    /// CUDA version, if there is one.
    pub cuda_version: Option<String>,
    /// Two-letter country as configured, if any.
    pub country: Option<String>,
    /// Container engine: name and version.
    pub engine: String,
    /// The GPUs.
    pub gpus: Vec<ProbedGpu>,
}

/// What the machine is to make true for one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The container runs.
    Run,
    /// It is stopped, its disk kept.
    Stop,
    /// Nothing is left.
    Gone,
}

/// One lease in the desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredLease {
    /// `lse_…`
    pub lease_id: String,
    /// What to make true.
    pub target: Target,
    /// Counts up with each start wanted by the server: a container that exited by itself is
    /// started again only by a higher number.
    pub start_no: i64,
    /// What runs.
    pub workload: Workload,
    /// Vendor UUIDs of its GPUs.
    pub gpu_uuids: Vec<String>,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// Most cores, in thousandths.
    pub cpu_millis: u64,
    /// Most memory.
    pub ram_mib: u64,
    /// Disk.
    pub disk_gib: u32,
}

/// What the machine sees of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// The image is being pulled or the container made.
    Preparing,
    /// The container runs.
    Running,
    /// The container is stopped by order; its disk is there.
    Stopped,
    /// The container ended by itself; its disk is there.
    Exited,
    /// It could not be started.
    Failed,
    /// Nothing is left.
    Gone,
}

/// One lease in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseReport {
    /// `lse_…`
    pub lease_id: String,
    /// What is seen.
    pub observed: Observed,
    /// The `start_no` that this container was started for.
    pub start_no: i64,
    /// Counts up with each sign of progress while preparing.
    pub progress: u64,
    /// For people: progress, exit code or fault.
    pub detail: String,
    /// Container id, if there is one.
    pub container_id: Option<String>,
    /// The engine's start time of the container, if it runs or ran.
    pub container_started_at: Option<String>,
}

/// Server to agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToAgent {
    /// First message: sign this.
    Challenge {
        /// Random, used once.
        nonce: String,
    },
    /// The signature is good.
    Welcome {
        /// How often to report, in milliseconds.
        heartbeat_ms: u64,
    },
    /// The whole desired state. What is not listed is to be left alone and reported.
    Desired {
        /// Every lease that is not known to be gone.
        leases: Vec<DesiredLease>,
    },
    /// The report with this number is durable.
    Ack {
        /// [`FromAgent::Report::seq`].
        seq: u64,
    },
    /// Send lines of a container's output.
    GetLogs {
        /// To match the answer.
        request: u64,
        /// `lse_…`
        lease_id: String,
        /// The last so many lines.
        tail: u32,
        /// Only lines after this time (as in [`LogLine::at`]).
        after: Option<String>,
    },
    /// The server will not go on; it closes after this.
    Refused {
        /// Code as in the API's problems.
        code: String,
        /// For people.
        detail: String,
        /// Trying again without a change is useless.
        fatal: bool,
    },
}

/// Agent to server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAgent {
    /// Answer to the challenge.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// `mch_…`
        machine_id: String,
        /// Ed25519 signature in hex over [`challenge_bytes`].
        signature: String,
    },
    /// What the machine is: after `welcome`, and when it changes.
    Probe {
        /// The probe.
        probe: Probe,
    },
    /// What the machine sees: at each heartbeat, and at once when something changes.
    Report {
        /// Counts up from 1 in each connection.
        seq: u64,
        /// UUID of the kernel's boot.
        boot_id: String,
        /// Milliseconds since that boot, suspended time included (`CLOCK_BOOTTIME`).
        mono_ms: u64,
        /// Every lease that has anything on this machine.
        leases: Vec<LeaseReport>,
    },
    /// Answer to `get_logs`.
    Logs {
        /// As asked.
        request: u64,
        /// The lines, oldest first.
        lines: Vec<LogLine>,
        /// The container still runs.
        live: bool,
        /// Why there are none, if that is a fault.
        fault: Option<String>,
    },
}
