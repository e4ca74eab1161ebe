//! Simulated machines: profiles as data, for trying the market without GPUs.
//!
//! Invariants: whatever comes from here is marked simulated, and its UUIDs start with `SIM-`; they
//! follow from the machine's key, so a restart reports the same ones and no two machines share one.

use serde::Deserialize;
use thiserror::Error;
use web_openapi::agent::ProbedGpu;

const EMBEDDED: &str = include_str!("../data/profiles.toml");
const UUID_CONTEXT: &str = "gpumarket-agent 2026-12 simulated gpu uuid";

/// A simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name on the command line.
    pub name: String,
    /// Name of each GPU as the vendor's driver would tell it.
    pub gpu: String,
    /// Memory of each GPU.
    pub gpu_memory_mib: u64,
    /// How many GPUs each NVLink island has, in order of their positions.
    pub islands: Vec<u16>,
    /// Cores.
    pub cpu_cores: u64,
    /// Memory.
    pub ram_mib: u64,
    /// Disk.
    pub disk_gib: u64,
    /// Driver version.
    pub driver_version: String,
    /// CUDA version.
    pub cuda_version: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    profile: Vec<Profile>,
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// No such name.
    #[error("there is no profile `{0}`; there are: {1}")]
    Unknown(String, String),
    /// The embedded data cannot be read.
    #[error("the embedded profiles cannot be read: {0}")]
    Form(String),
}

/// Every profile.
pub fn profiles() -> Result<Vec<Profile>, ProfileError> {
    let file: File = toml::from_str(EMBEDDED).map_err(|e| ProfileError::Form(e.to_string()))?;
    Ok(file.profile)
}

/// The names of all profiles, for people.
pub fn names() -> String {
    let names: Vec<String> = profiles()
        .unwrap_or_default()
        .into_iter()
        .map(|p| p.name)
        .collect();
    names.join(", ")
}

/// The profile of a name.
pub fn find(name: &str) -> Result<Profile, ProfileError> {
    profiles()?
        .into_iter()
        .find(|p| p.name == name)
        .ok_or_else(|| ProfileError::Unknown(name.to_owned(), names()))
}

impl Profile {
    /// Its GPUs on the machine with this public key.
    pub fn gpus(&self, public_key: &[u8; 32]) -> Vec<ProbedGpu> {
        let islands = (0_u16..).zip(&self.islands);
        let island_of = islands.flat_map(|(island, size)| (0..*size).map(move |_| island));
        (0_u16..)
            .zip(island_of)
            .map(|(index, island)| ProbedGpu {
                index,
                uuid: uuid(public_key, index),
                name: self.gpu.clone(),
                memory_mib: self.gpu_memory_mib,
                island,
                foreign_processes: 0,
            })
            .collect()
    }
}

/// `SIM-` and 128 bits in the form of a UUID.
fn uuid(public_key: &[u8; 32], index: u16) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(UUID_CONTEXT);
    hasher.update(public_key);
    hasher.update(&index.to_be_bytes());
    let digits = hasher.finalize().to_hex();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "SIM-{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_profile_is_of_a_known_model_with_fitting_memory() {
        let catalogue = domain::gpu::Catalogue::embedded().unwrap();
        let all = profiles().unwrap();
        assert!(all.len() >= 5);
        for profile in all {
            let model = catalogue
                .find(&profile.gpu)
                .unwrap_or_else(|| panic!("{}", profile.gpu));
            let (has, told) = (u64::from(model.memory_mib), profile.gpu_memory_mib);
            assert!(
                told <= has + has / 50 && told + has / 8 >= has,
                "{}: {told}",
                profile.name
            );
            let count: u16 = profile.islands.iter().sum();
            let prefix = format!("{count}x");
            assert!(profile.name.starts_with(&prefix), "{}", profile.name);
        }
    }

    #[test]
    fn uuids_are_stable_marked_and_unique() {
        let profile = find("8xh100-sxm").unwrap();
        let gpus = profile.gpus(&[7; 32]);
        assert_eq!(gpus, profile.gpus(&[7; 32]));
        assert_eq!(gpus.len(), 8);
        let all: BTreeSet<String> = gpus
            .iter()
            .chain(&profile.gpus(&[8; 32]))
            .map(|g| g.uuid.clone())
            .collect();
        assert_eq!(all.len(), 16);
        for uuid in all {
            assert!(uuid.starts_with("SIM-") && uuid.len() == 40, "{uuid}");
            assert!(uuid.parse::<domain::gpu::GpuUuid>().is_ok());
        }
    }

    #[test]
    fn islands_follow_positions() {
        let gpus = find("4xa40").unwrap().gpus(&[1; 32]);
        let told: Vec<(u16, u16)> = gpus.iter().map(|g| (g.index, g.island)).collect();
        assert_eq!(told, [(0, 0), (1, 0), (2, 1), (3, 1)]);
    }

    #[test]
    fn an_unknown_profile_is_refused_with_the_known_ones() {
        let refusal = find("9xh100").unwrap_err().to_string();
        assert!(
            refusal.contains("8xh100-sxm") && refusal.contains("1xrtx-4090"),
            "{refusal}"
        );
    }
}
