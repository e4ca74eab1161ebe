//! The GPU model catalogue.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A MIG profile of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigProfile {
    /// NVIDIA's name, e.g. `1g.10gb`.
    pub name: String,
    /// How many fit on one GPU.
    pub max_instances: u32,
    /// Memory of one.
    pub memory_mib: u32,
}

/// A model of GPU or accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuModel {
    /// Canonical name.
    #[schema(example = "h100-sxm-80gb")]
    pub slug: String,
    /// For people.
    pub name: String,
    /// `nvidia`, `amd`, `intel`, `aws` or `google`.
    pub vendor: String,
    /// Vendor's architecture name.
    pub architecture: String,
    /// Memory of one GPU.
    pub memory_mib: u32,
    /// Memory bandwidth in GB/s.
    pub memory_bandwidth_gbps: u32,
    /// Dense FP16 rate in GFLOPS.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fp16_gflops: Option<u64>,
    /// Dense BF16 rate in GFLOPS.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bf16_gflops: Option<u64>,
    /// Dense FP8 rate in GFLOPS.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fp8_gflops: Option<u64>,
    /// Board power.
    pub power_watts: u32,
    /// Fastest link to its peers.
    pub interconnect: String,
    /// MIG profiles.
    pub mig_profiles: Vec<MigProfile>,
    /// Other names that find it.
    pub aliases: Vec<String>,
    /// Where the figures are from.
    pub source: String,
}

crate::page::page! {
    /// A page of models, in order of slug.
    GpuModelPage of GpuModel
}
