//! Machines and their enrolment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Ask for a one-time token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEnrollmentToken {
    /// Name that the machine will have.
    #[schema(min_length = 1, max_length = 100)]
    pub machine_name: String,
}

/// A one-time token for `gpumarket-agent join`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct EnrollmentToken {
    /// `enr_…`
    pub id: String,
    /// The secret; shown once.
    pub token: String,
    /// It can be used once, before this.
    #[schema(format = "date-time")]
    pub expires_at: String,
}

impl std::fmt::Debug for EnrollmentToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EnrollmentToken({})", self.id)
    }
}

/// One GPU of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gpu {
    /// `gpu_…`
    pub id: String,
    /// Position in the machine.
    pub index: u16,
    /// Vendor's UUID.
    pub uuid: String,
    /// Catalogue slug.
    pub model: String,
    /// Memory.
    pub memory_mib: u32,
    /// GPUs of the same island are joined by NVLink or the like.
    pub island: u16,
    /// Does a live lease occupy it?
    pub leased: bool,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Machine {
    /// `mch_…`
    pub id: String,
    /// For people.
    pub name: String,
    /// See the glossary.
    #[schema(example = "listed")]
    pub state: String,
    /// Why it is in this state.
    pub state_reason: String,
    /// True if its GPUs are simulated: nothing computes on them.
    pub simulated: bool,
    /// Two-letter country, if told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub country: Option<String>,
    /// Cores.
    pub cpu_cores: u32,
    /// Memory.
    pub ram_mib: u64,
    /// Disk that leases may use.
    pub disk_gib: u64,
    /// Driver version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver_version: Option<String>,
    /// Version of the agent.
    pub agent_version: String,
    /// Last heartbeat.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub last_seen_at: Option<String>,
    /// When it enrolled.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Its GPUs.
    pub gpus: Vec<Gpu>,
}

/// What to do with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MachineActionKind {
    /// Offer it (needs a live offer).
    List,
    /// Take it off the market; running leases go on.
    Unlist,
    /// No new leases; running ones go on until they end.
    Drain,
    /// Out of service once it is empty.
    Maintenance,
    /// It leaves for good; refused while a lease lives on it.
    Retire,
}

/// An action on a machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineAction {
    /// Which.
    #[serde(rename = "type")]
    pub kind: MachineActionKind,
    /// Why, for the record.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

crate::page::page! {
    /// A page of machines.
    MachinePage of Machine
}
