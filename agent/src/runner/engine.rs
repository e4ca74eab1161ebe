//! Docker and Podman through the Docker API (bollard); Podman's own API where that one falls short.
//!
//! Invariants: every object carries this machine's label, and only such are seen; nothing runs
//! privileged or in the host's network; "it is so already" is success.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::query_parameters::{
    CommitContainerOptions, CreateContainerOptions, RemoveContainerOptions, RemoveImageOptions,
    StopContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use thiserror::Error;
use web_openapi::lease::LogLine;

use super::{
    Container, EngineInfo, LABEL_LEASE, LABEL_MACHINE, LogQuery, Progress, Runner, RunnerError,
    STOP_GRACE, Spec,
};
use plan::{Flavour, Host, Plan};
use sight::{Inspected, Listed};
use socket::{Socket, label_filter};

mod image;
mod log;
mod network;
mod plan;
mod sight;
mod socket;

pub use plan::Flavour as EngineFlavour;

/// Where engines usually listen.
pub const USUAL_SOCKETS: [&str; 2] = ["/run/podman/podman.sock", "/var/run/docker.sock"];
/// Longest wait for an answer; a stop takes its grace.
const TIMEOUT_S: u64 = 60;
/// Longest wait for a look at all containers.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// None of the usual sockets exists.
    #[error(
        "no container engine found at {}. Install Podman (`apt install podman` and \
         `systemctl enable --now podman.socket`) or Docker, or name its socket with \
         --engine unix:///PATH",
        USUAL_SOCKETS.join(" or ")
    )]
    None,
    /// Not the address of a socket.
    #[error("`{0}` is not the address of an engine; expected unix:///PATH")]
    Address(String),
    /// It does not answer.
    #[error("the container engine at {0} does not answer: {1}")]
    Silent(String, String),
}

/// An engine, as used for one machine.
#[derive(Clone, Debug)]
pub struct Engine {
    docker: Docker,
    socket: Socket,
    flavour: Flavour,
    info: EngineInfo,
    machine: String,
    host: Host,
}

/// Where to find an engine and for whom.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// `unix:///PATH`, or `None` for the first of the usual sockets that exists.
    pub address: Option<String>,
    /// `mch_…`: value of the machine label.
    pub machine: String,
    /// Speak to it as to this flavour instead of asking it; for tests.
    pub flavour: Option<EngineFlavour>,
}

impl Engine {
    /// Connects and asks what it is.
    pub async fn connect(settings: EngineSettings) -> Result<Self, EngineError> {
        let socket = find_socket(settings.address.as_deref())?;
        let shown = socket.display().to_string();
        let silent = |e: &dyn std::fmt::Display| EngineError::Silent(shown.clone(), e.to_string());
        let docker = Docker::connect_with_unix(&shown, TIMEOUT_S, API_DEFAULT_VERSION)
            .map_err(|e| silent(&e))?
            .negotiate_version()
            .await
            .map_err(|e| silent(&e))?;
        let version = docker.version().await.map_err(|e| silent(&e))?;
        let parts = version.components.unwrap_or_default();
        let podman = parts.into_iter().find(|c| c.name.starts_with("Podman"));
        let (told, name, version) = match podman {
            Some(part) => (Flavour::Podman, "Podman", part.version),
            None => (
                Flavour::Docker,
                "Docker",
                version.version.unwrap_or_default(),
            ),
        };
        Ok(Self {
            docker,
            socket: Socket::new(&socket).map_err(|e| silent(&e))?,
            flavour: settings.flavour.unwrap_or(told),
            info: EngineInfo {
                name: name.to_owned(),
                version,
            },
            machine: settings.machine,
            host: Host::measure(),
        })
    }

    /// The same engine, used for another machine.
    #[must_use]
    pub fn for_machine(mut self, machine: &str) -> Self {
        machine.clone_into(&mut self.machine);
        self
    }

    /// What it is.
    pub const fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn make(&self, spec: &Spec, image: &str) -> Result<String, RunnerError> {
        let network = self.ensure_network(&spec.lease.lease_id).await;
        let plan = Plan::new(spec, image, (&self.machine, network, &self.host));
        if self.flavour == Flavour::Podman {
            return self.socket.create_podman(&plan).await;
        }
        let options = CreateContainerOptions {
            name: Some(plan.name.clone()),
            ..Default::default()
        };
        match self
            .docker
            .create_container(Some(options), plan.docker())
            .await
        {
            Ok(made) => Ok(made.id),
            Err(error) if status(&error) == Some(409) => self.id_of(&plan.name).await,
            Err(error) => Err(fault(error)),
        }
    }

    async fn id_of(&self, name: &str) -> Result<String, RunnerError> {
        let found: Inspected = self.socket.get(&format!("/containers/{name}/json")).await?;
        let labels = found.config.labels.as_ref();
        if labels.and_then(|l| l.get(LABEL_MACHINE)) == Some(&self.machine) {
            return Ok(sight::container(found).map(|c| c.id).unwrap_or_default());
        }
        Err(RunnerError::Refused(format!(
            "a container of somebody else has the name {name}"
        )))
    }

    async fn look(&self) -> Result<Vec<Container>, RunnerError> {
        let filter = label_filter(LABEL_MACHINE, &self.machine);
        let path = format!("/containers/json?all=true&{filter}");
        let listed: Vec<Listed> = self.socket.get(&path).await?;
        let mut seen = Vec::with_capacity(listed.len());
        for Listed { id } in listed {
            match self
                .socket
                .get::<Inspected>(&format!("/containers/{id}/json"))
                .await
            {
                Ok(found) => seen.extend(sight::container(found)),
                Err(RunnerError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(seen)
    }
}

impl Runner for Engine {
    async fn list(&self) -> Result<Vec<Container>, RunnerError> {
        tokio::time::timeout(LOOK_TIMEOUT, self.look())
            .await
            .map_err(|e| RunnerError::Unavailable(format!("looking at the containers: {e}")))?
    }

    async fn fetch(&self, image: &str, progress: &dyn Progress) -> Result<(), RunnerError> {
        self.fetch_image(image, progress).await
    }

    async fn create(&self, spec: &Spec) -> Result<String, RunnerError> {
        self.make(spec, &spec.lease.workload.image).await
    }

    async fn rebuild(&self, old: &str, spec: &Spec) -> Result<String, RunnerError> {
        let (repo, tag) = (
            disk_image(&spec.lease.lease_id),
            spec.lease.start_no.to_string(),
        );
        let options = CommitContainerOptions {
            container: Some(old.to_owned()),
            repo: Some(repo.clone()),
            tag: Some(tag.clone()),
            pause: false,
            ..Default::default()
        };
        let config = bollard::models::ContainerConfig::default();
        self.docker
            .commit_container(options, config)
            .await
            .map_err(fault)?;
        self.make(spec, &format!("{repo}:{tag}")).await
    }

    async fn start(&self, id: &str) -> Result<(), RunnerError> {
        done(self.docker.start_container(id, None).await)
    }

    async fn stop(&self, id: &str) -> Result<(), RunnerError> {
        let seconds = i32::try_from(STOP_GRACE.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptions {
            t: Some(seconds),
            ..Default::default()
        };
        done(self.docker.stop_container(id, Some(options)).await)
    }

    async fn unpause(&self, id: &str) -> Result<(), RunnerError> {
        done(self.docker.unpause_container(id).await)
    }

    async fn remove(&self, id: &str) -> Result<(), RunnerError> {
        let options = RemoveContainerOptions {
            v: true,
            force: false,
            link: false,
        };
        match self.docker.remove_container(id, Some(options)).await {
            Err(error) if status(&error) == Some(404) => Ok(()),
            other => done(other),
        }
    }

    async fn clear(&self, lease: &str) -> Result<(), RunnerError> {
        self.remove_network(lease).await?;
        for image in self.disk_images(lease).await? {
            let options = RemoveImageOptions {
                force: true,
                ..Default::default()
            };
            match self.docker.remove_image(&image, Some(options), None).await {
                Ok(_) => {}
                Err(error) if status(&error) == Some(404) => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Ok(())
    }

    async fn logs(&self, id: &str, query: &LogQuery) -> Result<Vec<LogLine>, RunnerError> {
        self.read_logs(id, query).await
    }
}

/// Repository of the images in which the disk of a lease moves to other GPUs.
fn disk_image(lease: &str) -> String {
    format!("localhost/gpumarket-disk/{}", lease.to_ascii_lowercase())
}

fn find_socket(address: Option<&str>) -> Result<PathBuf, EngineError> {
    let Some(address) = address else {
        let usual = USUAL_SOCKETS.iter().map(Path::new).find(|p| p.exists());
        return usual.map(Path::to_owned).ok_or(EngineError::None);
    };
    let path = address.strip_prefix("unix://").unwrap_or(address);
    if !path.starts_with('/') {
        return Err(EngineError::Address(address.to_owned()));
    }
    Ok(PathBuf::from(path))
}

fn status(error: &bollard::errors::Error) -> Option<u16> {
    let bollard::errors::Error::DockerResponseServerError { status_code, .. } = error else {
        return None;
    };
    Some(*status_code)
}

/// 304: it is so already. 404: what is to be changed is not there.
fn done(result: Result<(), bollard::errors::Error>) -> Result<(), RunnerError> {
    match result {
        Err(error) if status(&error) == Some(304) => Ok(()),
        other => other.map_err(fault),
    }
}

/// Sorts the library's errors: what was answered is a refusal, the rest is silence.
fn fault(error: bollard::errors::Error) -> RunnerError {
    use bollard::errors::Error;
    if let Error::DockerResponseServerError {
        status_code,
        message,
    } = error
    {
        return match status_code {
            404 => RunnerError::NotFound(message),
            503 => RunnerError::Unavailable(message),
            _ => RunnerError::Refused(message),
        };
    }
    if let Error::DockerStreamError { error } = error {
        return RunnerError::Refused(error);
    }
    RunnerError::Unavailable(error.to_string())
}
