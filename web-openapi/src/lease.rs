//! Leases: booking, watching, acting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::{Money, Rate};

/// What runs in the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Image reference, best by digest.
    #[schema(
        example = "localhost/gpumarket/busybox:1",
        min_length = 1,
        max_length = 500
    )]
    pub image: String,
    /// Command and arguments; absent = the image's.
    #[serde(default)]
    #[schema(max_items = 256)]
    pub command: Vec<String>,
    /// Environment. Not for secrets yet.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Book a quote.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateLease {
    /// `quo_…`
    pub quote_id: String,
    /// What runs.
    pub workload: Workload,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 100)]
    pub label: Option<String>,
    /// Stop when the lease has cost this much.
    #[serde(default)]
    pub max_spend: Option<Money>,
    /// End then.
    #[serde(default)]
    #[schema(format = "date-time")]
    pub end_at: Option<String>,
}

/// What a lease has cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseCost {
    /// Booked in the ledger.
    pub settled: Money,
    /// Proven seconds, settled or not.
    pub accrued: Money,
    /// The same, carried on to now at the present rate while the machine reports: for showing.
    pub so_far: Money,
    /// Still held for this lease.
    pub held: Money,
    /// Seconds of GPU time proven.
    pub billable_seconds: i64,
    /// Proven up to here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub proven_through_at: Option<String>,
    /// Present rate, tax included.
    pub rate: Rate,
}

/// A GPU of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGpu {
    /// `gpu_…`
    pub id: String,
    /// Vendor's UUID.
    pub uuid: String,
    /// Position in the machine.
    pub index: u16,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// `lse_…`
    pub id: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// See the glossary.
    #[schema(example = "running")]
    pub state: String,
    /// Why it is in this state.
    pub state_reason: String,
    /// For people: progress or fault.
    pub state_detail: String,
    /// Counts up with each change; also the `ETag`.
    pub version: i64,
    /// `on_demand`.
    pub kind: String,
    /// `ofr_…`
    pub offer_id: String,
    /// `mch_…`
    pub machine_id: String,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Which; empty when it holds none.
    pub gpus: Vec<LeaseGpu>,
    /// Disk.
    pub disk_gib: u32,
    /// True if the GPUs are simulated.
    pub simulated: bool,
    /// What runs.
    pub workload: Workload,
    /// One GPU, one hour.
    pub gpu_hour: Rate,
    /// One GPU, one hour, while it is kept for a resume.
    pub keep_price: Rate,
    /// The lease is stopped and keeps its GPUs.
    pub keeps_gpus: bool,
    /// Disk, per GiB-month.
    pub storage_price: Rate,
    /// What it has cost.
    pub cost: LeaseCost,
    /// Guard.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_spend: Option<Money>,
    /// Guard.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub end_at: Option<String>,
    /// When it was booked.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When the container first ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When its end was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub end_requested_at: Option<String>,
    /// When nothing was left of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// Id of the container on the machine, once there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container_id: Option<String>,
    /// The container's start time as its engine tells it: unchanged while nothing restarted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container_started_at: Option<String>,
    /// Set after a stop: what the disk costs per day.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub continuing_cost_per_day: Option<Money>,
    /// Set after a stop: when the disk is deleted unless the lease is resumed or paid further.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub delete_at: Option<String>,
}

crate::page::page! {
    /// A page of leases.
    LeasePage of Lease
}

/// What to do with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseActionKind {
    /// Stop the container, keep the disk. Compute is billed up to this second; the GPUs are freed, or
    /// kept at the `keep_price` with `keep_gpus`.
    Stop,
    /// Start again on the same machine: on the kept GPUs, else 409 if they are taken.
    Resume,
    /// End it and delete the disk. Everything is billed up to this second.
    End,
    /// Grow the disk to `disk_gib`. The new size is billed from this second on; 402 and nothing
    /// changes if the wallet cannot hold its retention.
    Resize,
}

/// An action on a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseAction {
    /// Which.
    #[serde(rename = "type")]
    pub kind: LeaseActionKind,
    /// For `resize`, and only for it: the new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub disk_gib: Option<u32>,
    /// For `stop`, and only for it: keep the GPUs for a resume, at the lease's `keep_price`, until
    /// they are given back by another stop without it, a resume, an end, or the wallet's end.
    /// Absent = false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_gpus: Option<bool>,
}

/// One line of a container's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When the engine took it, RFC 3339 with nanoseconds.
    pub at: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text, without its end of line.
    pub text: String,
}

/// Lines of a container's output, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseLogs {
    /// The lines.
    pub data: Vec<LogLine>,
    /// Give this as `after` to read on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_after: Option<String>,
    /// The container still runs.
    pub live: bool,
}
