//! NVIDIA GPUs through NVML, whose library belongs to the driver and is loaded at run time.
//!
//! API: <https://docs.nvidia.com/deploy/nvml-api/>. What a GPU does not support (links, process
//! lists in some modes) is left out, never guessed.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use web_openapi::agent::ProbedGpu;

use super::ProbeError;
use crate::simulate;

/// The library's file names: distributions ship the second only with development packages.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];
/// Most NVLinks of one GPU (`NVML_NVLINK_MAX_LINKS`).
const MAX_LINKS: u32 = 18;
const MIB: u64 = 1 << 20;

/// What the driver tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Driver version.
    pub driver_version: String,
    /// CUDA version that the driver supports.
    pub cuda_version: Option<String>,
    /// The GPUs by position.
    pub gpus: Vec<ProbedGpu>,
}

/// Where an NVLink leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Peer {
    /// To a GPU with this PCI address.
    Gpu(String),
    /// To a switch, which joins all GPUs that have links to switches.
    Switch,
}

/// Asks the driver. `containers` are ids whose processes are not foreign.
pub fn look(containers: &[String]) -> Result<Found, ProbeError> {
    let no_driver = |e: NvmlError| ProbeError::NoDriver {
        why: e.to_string(),
        profiles: simulate::names(),
    };
    let nvml = open().map_err(no_driver)?;
    let driver_version = nvml.sys_driver_version().map_err(no_driver)?;
    let cuda_version = nvml.sys_cuda_driver_version().ok().map(|v| {
        format!(
            "{}.{}",
            cuda_driver_version_major(v),
            cuda_driver_version_minor(v)
        )
    });
    let count = nvml.device_count().map_err(no_driver)?;
    if count == 0 {
        return Err(ProbeError::NoGpu(simulate::names()));
    }
    let mut gpus = Vec::new();
    let mut addresses = Vec::new();
    let mut links = Vec::new();
    for position in 0..count {
        let device = nvml.device_by_index(position).map_err(no_driver)?;
        let index = u16::try_from(position).unwrap_or(u16::MAX);
        gpus.push(ProbedGpu {
            index,
            uuid: device.uuid().map_err(no_driver)?,
            name: device.name().map_err(no_driver)?,
            memory_mib: device
                .memory_info()
                .map_err(no_driver)?
                .total
                .div_euclid(MIB),
            island: index,
            foreign_processes: foreign_processes(&device, containers),
        });
        addresses.push(device.pci_info().map(|p| p.bus_id).unwrap_or_default());
        links.push(peers(&device));
    }
    for (gpu, island) in gpus.iter_mut().zip(islands(&addresses, &links)) {
        gpu.island = island;
    }
    Ok(Found {
        driver_version,
        cuda_version,
        gpus,
    })
}

fn open() -> Result<Nvml, NvmlError> {
    let [first, second] = LIBRARIES.map(OsStr::new);
    Nvml::builder()
        .lib_path(first)
        .init()
        .or_else(|why| Nvml::builder().lib_path(second).init().map_err(|_also| why))
}

fn peers(device: &Device<'_>) -> Vec<Peer> {
    let mut peers = Vec::new();
    for number in 0..MAX_LINKS {
        let link = device.link_wrapper_for(number);
        if !matches!(link.is_active(), Ok(true)) {
            continue;
        }
        match link.remote_device_type(number) {
            Ok(IntDeviceType::Switch) => peers.push(Peer::Switch),
            Ok(IntDeviceType::Gpu) | Err(_) => {
                peers.extend(link.remote_pci_info().map(|p| Peer::Gpu(p.bus_id)));
            }
            Ok(IntDeviceType::Ibmnpu | IntDeviceType::Unknown) => {}
        }
    }
    peers
}

/// Islands by connected components; each is numbered by its place among the islands.
fn islands(addresses: &[String], links: &[Vec<Peer>]) -> Vec<u16> {
    let mut island: Vec<usize> = (0..addresses.len()).collect();
    let mut join = |a: usize, b: usize| {
        let (Some(&from), Some(&to)) = (island.get(a), island.get(b)) else {
            return;
        };
        let (low, high) = (from.min(to), from.max(to));
        for place in island.iter_mut().filter(|p| **p == high) {
            *place = low;
        }
    };
    let mut switched = None;
    for (gpu, peers) in links.iter().enumerate() {
        for peer in peers {
            match peer {
                Peer::Gpu(address) => {
                    if let Some(other) = addresses.iter().position(|a| a == address) {
                        join(gpu, other);
                    }
                }
                Peer::Switch => join(*switched.get_or_insert(gpu), gpu),
            }
        }
    }
    let mut numbers: BTreeMap<usize, u16> = BTreeMap::new();
    let mut next = 0_u16;
    island
        .iter()
        .map(|root| {
            *numbers.entry(*root).or_insert_with(|| {
                let number = next;
                next = next.saturating_add(1);
                number
            })
        })
        .collect()
}

fn foreign_processes(device: &Device<'_>, containers: &[String]) -> u32 {
    let Ok(processes) = device.running_compute_processes() else {
        return 0;
    };
    let foreign = processes.iter().filter(|p| {
        // A process that is gone by now is nobody's.
        std::fs::read_to_string(format!("/proc/{}/cgroup", p.pid))
            .is_ok_and(|cgroup| !is_explained(&cgroup, containers))
    });
    u32::try_from(foreign.count()).unwrap_or(u32::MAX)
}

/// Engines put a container's id into the name of its control group.
fn is_explained(cgroup: &str, containers: &[String]) -> bool {
    containers
        .iter()
        .any(|id| !id.is_empty() && cgroup.contains(id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("0000:0{i}:00.0")).collect()
    }

    #[test]
    fn a_switch_joins_all_that_have_links_to_it() {
        let links = vec![vec![Peer::Switch, Peer::Switch]; 8];
        assert_eq!(islands(&bus(8), &links), [0; 8]);
        let mut links = links;
        links[3].clear();
        assert_eq!(islands(&bus(8), &links), [0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn bridges_join_pairs_and_the_rest_stands_alone() {
        let at = bus(5);
        let to = |i: usize| vec![Peer::Gpu(at[i].clone())];
        let links = vec![to(2), to(3), to(0), to(1), vec![]];
        assert_eq!(islands(&at, &links), [0, 1, 0, 1, 2]);
    }

    #[test]
    fn chains_are_one_island_and_unknown_peers_none() {
        let at = bus(4);
        let to = |i: usize| vec![Peer::Gpu(at[i].clone())];
        let links = vec![to(1), to(2), to(3), vec![Peer::Gpu("0000:ff:00.0".into())]];
        assert_eq!(islands(&at, &links), [0; 4]);
        assert_eq!(islands(&at, &vec![vec![]; 4]), [0, 1, 2, 3]);
    }

    #[test]
    fn processes_of_lease_containers_are_not_foreign() {
        let cgroup = "0::/machine.slice/libpod-4f2a.scope\n";
        assert!(is_explained(cgroup, &["4f2a".into()]));
        assert!(!is_explained(cgroup, &["77aa".into(), String::new()]));
    }
}
