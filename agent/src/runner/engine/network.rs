//! A network of its own for each lease.

use std::collections::HashMap;

use bollard::models::NetworkCreateRequest;

use super::{Engine, LABEL_LEASE, LABEL_MACHINE, fault, status};
use crate::runner::RunnerError;

fn name_of(lease: &str) -> String {
    format!("gpumarket-{lease}")
}

impl Engine {
    /// The lease's network, made if it is not there; `None` where this machine cannot make any, and
    /// then the engine's default bridge is used.
    pub(super) async fn ensure_network(&self, lease: &str) -> Option<String> {
        let name = name_of(lease);
        if self.docker.inspect_network(&name, None).await.is_ok() {
            return Some(name);
        }
        let labels = [(LABEL_LEASE, lease), (LABEL_MACHINE, self.machine.as_str())];
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some("bridge".to_owned()),
            labels: Some(
                labels
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .collect::<HashMap<_, _>>(),
            ),
            ..Default::default()
        };
        match self.docker.create_network(request).await {
            Ok(_) => Some(name),
            Err(error) if status(&error) == Some(409) => Some(name),
            Err(error) => {
                let why = fault(error);
                tracing::warn!(lease, %why, "no network of its own; using the default bridge");
                None
            }
        }
    }

    /// Removes the lease's network, if there is one.
    pub(super) async fn remove_network(&self, lease: &str) -> Result<(), RunnerError> {
        match self.docker.remove_network(&name_of(lease)).await {
            Err(error) if status(&error) == Some(404) => Ok(()),
            other => other.map_err(fault),
        }
    }
}
