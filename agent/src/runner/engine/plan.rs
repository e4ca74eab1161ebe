//! From a lease to what the engine is told: pure, so that hardening can be tested without an engine.
//!
//! Hardening: all capabilities but the few that common images need, no new privileges, limits on
//! processes, memory and cores, no restart by the engine, never privileged, never the host's
//! namespaces. Capabilities: <https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities>.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, HostConfigLogConfig, RestartPolicy,
    RestartPolicyNameEnum,
};
use serde_json::json;

use crate::probe::host;
use crate::runner::{LABEL_GPUS, LABEL_LEASE, LABEL_MACHINE, LABEL_START_NO, STOP_GRACE, Spec};

/// What images need to switch users, take over files and bind low ports.
pub(super) const CAPABILITIES: [&str; 7] = [
    "CHOWN",
    "SETUID",
    "SETGID",
    "DAC_OVERRIDE",
    "FOWNER",
    "KILL",
    "NET_BIND_SERVICE",
];
/// Most processes and threads of a lease.
const PIDS: i64 = 32_768;
/// Most bytes of a container's output that are kept.
const LOG_BYTES: i64 = 32 * 1024 * 1024;
const MIB: u64 = 1 << 20;
/// Least memory with which engines start a container at all.
const LEAST_RAM_MIB: u64 = 16;

/// Whose dialect an engine speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

/// What the host really has: engines refuse more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Cores.
    pub(super) cores: u64,
    /// Memory.
    pub(super) ram_mib: u64,
}

impl Host {
    /// This host; unlimited where it cannot be read, and then the engine says no.
    pub(super) fn measure() -> Self {
        Self {
            cores: host::cpu_cores().unwrap_or(u64::MAX),
            ram_mib: host::ram_mib().unwrap_or(u64::MAX),
        }
    }
}

/// A container to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Unique in the engine.
    pub(super) name: String,
    image: String,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    cpu_millis: i64,
    memory: i64,
    /// The lease's own network, or the engine's default bridge.
    network: Option<String>,
    /// UUIDs of real GPUs.
    devices: Vec<String>,
}

impl Plan {
    /// `machine`, the network if there is one of its own, and the host's limits.
    pub(super) fn new(
        spec: &Spec,
        image: &str,
        (machine, network, host): (&str, Option<String>, &Host),
    ) -> Self {
        let lease = &spec.lease;
        let gpus = lease.gpu_uuids.join(",");
        let labels = [
            (LABEL_LEASE, lease.lease_id.clone()),
            (LABEL_START_NO, lease.start_no.to_string()),
            (LABEL_MACHINE, machine.to_owned()),
            (LABEL_GPUS, gpus),
        ];
        let cpu_millis = lease
            .cpu_millis
            .clamp(10, host.cores.saturating_mul(1_000).max(10));
        let ram = lease
            .ram_mib
            .min(host.ram_mib)
            .max(LEAST_RAM_MIB)
            .saturating_mul(MIB);
        Self {
            name: spec.container_name(),
            image: image.to_owned(),
            command: lease.workload.command.clone(),
            env: env(spec),
            labels: labels.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            cpu_millis: i64::try_from(cpu_millis).unwrap_or(i64::MAX),
            memory: i64::try_from(ram).unwrap_or(i64::MAX),
            network,
            devices: if lease.simulated {
                Vec::new()
            } else {
                lease.gpu_uuids.clone()
            },
        }
    }

    /// For the Docker API.
    pub(super) fn docker(&self) -> ContainerCreateBody {
        let some = |list: &[&str]| Some(list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        let gpus = DeviceRequest {
            driver: Some("nvidia".to_owned()),
            device_ids: Some(self.devices.clone()),
            capabilities: Some(vec![vec!["gpu".to_owned()]]),
            ..Default::default()
        };
        let log = [
            ("max-size", format!("{}m", LOG_BYTES >> 20)),
            ("max-file", "2".to_owned()),
        ];
        let host = HostConfig {
            cap_drop: some(&["ALL"]),
            cap_add: some(&CAPABILITIES),
            security_opt: some(&["no-new-privileges"]),
            pids_limit: Some(PIDS),
            memory: Some(self.memory),
            memory_swap: Some(self.memory),
            nano_cpus: Some(self.cpu_millis.saturating_mul(1_000_000)),
            privileged: Some(false),
            network_mode: Some(self.network.clone().unwrap_or_else(|| "bridge".to_owned())),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(log.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
            }),
            device_requests: (!self.devices.is_empty()).then(|| vec![gpus]),
            ..Default::default()
        };
        ContainerCreateBody {
            image: Some(self.image.clone()),
            cmd: (!self.command.is_empty()).then(|| self.command.clone()),
            env: Some(self.env.iter().map(|(k, v)| format!("{k}={v}")).collect()),
            labels: Some(self.labels.clone().into_iter().collect::<HashMap<_, _>>()),
            stop_signal: Some("SIGTERM".to_owned()),
            stop_timeout: i64::try_from(STOP_GRACE.as_secs()).ok(),
            host_config: Some(host),
            ..Default::default()
        }
    }

    /// For Podman's own API: its Docker API loses CDI devices before version 5.
    /// Form: SpecGenerator, <https://docs.podman.io/en/latest/_static/api.html#tag/containers/operation/ContainerCreateLibpod>.
    pub(super) fn libpod(&self) -> serde_json::Value {
        let period: i64 = 100_000;
        let mut body = json!({
            "name": self.name,
            "image": self.image,
            "env": self.env,
            "labels": self.labels,
            "stop_signal": 15,
            "stop_timeout": STOP_GRACE.as_secs(),
            "restart_policy": "no",
            "privileged": false,
            "cap_drop": ["ALL"],
            "cap_add": CAPABILITIES,
            "no_new_privileges": true,
            "resource_limits": {
                "memory": { "limit": self.memory, "swap": self.memory },
                "cpu": { "period": period, "quota": self.cpu_millis.saturating_mul(period / 1_000) },
                "pids": { "limit": PIDS },
            },
            "log_configuration": { "driver": "k8s-file", "size": LOG_BYTES },
            "netns": { "nsmode": "bridge" },
        });
        if let Some(map) = body.as_object_mut() {
            if !self.command.is_empty() {
                map.insert("command".to_owned(), json!(self.command));
            }
            if let Some(network) = &self.network {
                map.insert("networks".to_owned(), json!({ network.as_str(): {} }));
            }
            let devices = self
                .devices
                .iter()
                .map(|u| json!({ "path": format!("nvidia.com/gpu={u}") }));
            map.insert("devices".to_owned(), devices.collect());
        }
        body
    }
}

/// The renter's environment, and over it what the market says about the lease.
fn env(spec: &Spec) -> BTreeMap<String, String> {
    let lease = &spec.lease;
    let mut env = lease.workload.env.clone();
    let gpus = lease.gpu_uuids.join(",");
    let visible = if lease.simulated {
        "void".to_owned()
    } else {
        gpus.clone()
    };
    let ours = [
        ("GPUMARKET_LEASE", lease.lease_id.clone()),
        ("GPUMARKET_GPU_COUNT", lease.gpu_uuids.len().to_string()),
        ("GPUMARKET_GPUS", gpus),
        ("NVIDIA_VISIBLE_DEVICES", visible),
    ];
    env.extend(ours.into_iter().map(|(k, v)| (k.to_owned(), v)));
    env.remove("GPUMARKET_SIMULATED");
    if lease.simulated {
        env.insert("GPUMARKET_SIMULATED".to_owned(), "1".to_owned());
    }
    env
}

#[cfg(test)]
mod tests;
