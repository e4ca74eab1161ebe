//! From the engine's inspection to a container as the reducer sees it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::runner::{Container, LABEL_GPUS, LABEL_LEASE, LABEL_START_NO, Phase};

/// An entry of the list of containers.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    /// The engine's id.
    #[serde(rename = "Id")]
    pub(super) id: String,
}

/// An image in the list of images.
#[derive(Debug, Deserialize)]
pub(super) struct ListedImage {
    /// Its references.
    #[serde(rename = "RepoTags", default)]
    pub(super) tags: Option<Vec<String>>,
}

/// What an inspection tells, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Inspected {
    id: String,
    /// File with its output, if the engine keeps one.
    pub(super) log_path: String,
    state: State,
    pub(super) config: Config,
}

impl Inspected {
    /// Can it print more?
    pub(super) fn is_live(&self) -> bool {
        phase(&self.state).is_active()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub(super) labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct State {
    status: String,
    running: bool,
    paused: bool,
    #[serde(rename = "OOMKilled")]
    oom_killed: bool,
    exit_code: Option<i64>,
    error: String,
    started_at: String,
}

/// `None` if it does not carry the labels of a lease.
pub(super) fn container(found: Inspected) -> Option<Container> {
    let labels = found.config.labels?;
    let gpus = labels
        .get(LABEL_GPUS)
        .map(String::as_str)
        .unwrap_or_default();
    Some(Container {
        lease: labels.get(LABEL_LEASE)?.clone(),
        made_for: labels.get(LABEL_START_NO)?.parse().ok()?,
        gpus: gpus
            .split(',')
            .filter(|g| !g.is_empty())
            .map(ToOwned::to_owned)
            .collect(),
        phase: phase(&found.state),
        started_at: Some(found.state.started_at).filter(|at| is_real(at)),
        id: found.id,
    })
}

fn phase(state: &State) -> Phase {
    if state.paused || state.status == "paused" {
        return Phase::Paused;
    }
    // A container that is being stopped still has its process.
    if state.running || matches!(state.status.as_str(), "running" | "stopping") {
        return Phase::Running;
    }
    if state.status == "created" || !is_real(&state.started_at) {
        return Phase::Created;
    }
    Phase::Ended {
        exit_code: state.exit_code,
        out_of_memory: state.oom_killed,
        fault: state.error.clone(),
    }
}

/// Engines give the year 1 for "never".
fn is_real(at: &str) -> bool {
    !at.is_empty() && !at.starts_with("0001-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(status: &str, started: &str) -> State {
        let text = format!(
            r#"{{"Status":"{status}","Running":{},"ExitCode":3,"StartedAt":"{started}"}}"#,
            status == "running"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn states_of_both_engines_become_phases() {
        let (never, at) = ("0001-01-01T00:00:00Z", "2026-12-01T00:00:00.5Z");
        assert_eq!(phase(&state("created", never)), Phase::Created);
        assert_eq!(phase(&state("initialized", never)), Phase::Created);
        assert_eq!(phase(&state("running", at)), Phase::Running);
        assert_eq!(phase(&state("stopping", at)), Phase::Running);
        assert_eq!(phase(&state("paused", at)), Phase::Paused);
        assert_eq!(phase(&state("exited", never)), Phase::Created);
        for ended in ["exited", "stopped", "dead", "configured"] {
            let seen = phase(&state(ended, at));
            assert!(
                matches!(
                    seen,
                    Phase::Ended {
                        exit_code: Some(3),
                        ..
                    }
                ),
                "{ended}"
            );
        }
    }

    #[test]
    fn a_container_without_our_labels_is_not_ours() {
        assert_eq!(container(Inspected::default()), None);
        let foreign = r#"{"Id":"a","Config":{"Labels":null},"State":{"Status":"running"}}"#;
        assert_eq!(container(serde_json::from_str(foreign).unwrap()), None);
    }

    #[test]
    fn a_lease_container_is_read_whole() {
        let text = r#"{"Id":"a","State":{"Status":"running","Running":true,"StartedAt":"t"},
            "Config":{"Labels":{"gpumarket.lease":"lse_1","gpumarket.start_no":"2",
            "gpumarket.gpus":"SIM-1,SIM-2"}}}"#;
        let seen = container(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!((seen.made_for, seen.gpus.len()), (2, 2));
        assert_eq!(seen.started_at.as_deref(), Some("t"));
    }
}
