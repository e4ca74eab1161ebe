//! What this machine is: GPUs by the vendor's driver or by a simulation profile, and the host.
//!
//! Invariant: simulated and real never mix; without a driver and without a profile there is no
//! probe, only a message that says what to do.

use std::path::Path;

use thiserror::Error;
use web_openapi::agent::Probe;

use crate::simulate::{self, ProfileError};

pub mod host;
pub mod nvidia;

/// Where the GPUs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSource {
    /// The vendor's driver.
    Driver,
    /// A simulation profile.
    Profile(String),
}

/// What a probe needs to know beforehand.
#[derive(Clone, Debug)]
pub struct ProbeRequest<'a> {
    /// Where the GPUs come from.
    pub source: &'a GpuSource,
    /// The machine's public key: simulated UUIDs follow from it.
    pub public_key: [u8; 32],
    /// Two-letter country as configured.
    pub country: Option<&'a str>,
    /// Disk that leases may use, as configured; else it is measured.
    pub disk_gib: Option<u64>,
    /// Directory on the disk that leases use.
    pub disk_path: &'a Path,
    /// Name and version of the container engine.
    pub engine: String,
    /// Ids of the containers of leases: their processes are not foreign.
    pub containers: &'a [String],
}

/// Why there is no probe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// No usable driver.
    #[error(
        "no usable NVIDIA driver on this machine ({why}). Install the driver (`nvidia-smi` must \
         work), or run with --simulate PROFILE to try the market with simulated GPUs; profiles: \
         {profiles}"
    )]
    NoDriver {
        /// What the library says.
        why: String,
        /// Known profiles.
        profiles: String,
    },
    /// The driver works, but sees no GPU.
    #[error(
        "the NVIDIA driver works but sees no GPU. Check the hardware, or run with --simulate \
         PROFILE; profiles: {0}"
    )]
    NoGpu(String),
    /// No such profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The host's figures cannot be read.
    #[error("cannot read the host's {what}: {why}")]
    Host {
        /// Which figure.
        what: &'static str,
        /// What the system says.
        why: String,
    },
}

/// Looks at the machine. Blocks for up to some seconds while the driver answers.
pub fn probe(request: &ProbeRequest<'_>) -> Result<Probe, ProbeError> {
    let agent_version = env!("CARGO_PKG_VERSION").to_owned();
    let hostname = host::hostname();
    let country = request.country.map(str::to_ascii_uppercase);
    let engine = request.engine.clone();
    match request.source {
        GpuSource::Profile(name) => {
            let profile = simulate::find(name)?;
            Ok(Probe {
                agent_version,
                simulated: true,
                hostname,
                cpu_cores: profile.cpu_cores,
                ram_mib: profile.ram_mib,
                disk_gib: request.disk_gib.unwrap_or(profile.disk_gib),
                gpus: profile.gpus(&request.public_key),
                driver_version: Some(profile.driver_version),
                cuda_version: Some(profile.cuda_version),
                country,
                engine,
            })
        }
        GpuSource::Driver => {
            let found = nvidia::look(request.containers)?;
            let disk = || host::disk_gib(request.disk_path);
            Ok(Probe {
                agent_version,
                simulated: false,
                hostname,
                cpu_cores: host::cpu_cores()?,
                ram_mib: host::ram_mib()?,
                disk_gib: request.disk_gib.map_or_else(disk, Ok)?,
                driver_version: Some(found.driver_version),
                cuda_version: found.cuda_version,
                country,
                engine,
                gpus: found.gpus,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(source: &GpuSource) -> ProbeRequest<'_> {
        ProbeRequest {
            source,
            public_key: [3; 32],
            country: Some("de"),
            disk_gib: None,
            disk_path: Path::new("/"),
            engine: "Podman 4.3.1".into(),
            containers: &[],
        }
    }

    #[test]
    fn a_simulated_machine_says_so_everywhere() {
        let source = GpuSource::Profile("8xh100-sxm".into());
        let told = probe(&request(&source)).unwrap();
        assert!(told.simulated && told.gpus.iter().all(|g| g.uuid.starts_with("SIM-")));
        assert_eq!((told.gpus.len(), told.country.as_deref()), (8, Some("DE")));
        assert_eq!(told, probe(&request(&source)).unwrap());
    }

    #[test]
    fn without_driver_and_profile_the_message_says_what_to_do() {
        // On a machine with a driver there is nothing to see here.
        if let Err(refusal) = probe(&request(&GpuSource::Driver)) {
            let text = refusal.to_string();
            assert!(
                text.contains("--simulate PROFILE") && text.contains("8xh100-sxm"),
                "{text}"
            );
        }
    }
}
