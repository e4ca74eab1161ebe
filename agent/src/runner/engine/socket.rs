//! Plain JSON over the engine's socket, where the typed client is too narrow: it knows neither
//! Podman's `stopped` state nor its nulls, and not Podman's own API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::plan::Plan;
use crate::runner::RunnerError;

const TIMEOUT: Duration = Duration::from_mins(1);
const LIBPOD: &str = "/v4.0.0/libpod";

/// The engine's socket.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    client: reqwest::Client,
}

/// The id of what was made or found.
#[derive(Deserialize)]
struct Id {
    #[serde(rename = "Id")]
    id: String,
}

#[derive(Deserialize)]
struct Refused {
    message: String,
}

impl Socket {
    /// Of the socket file; it connects at the first call.
    pub(super) fn new(path: &Path) -> Result<Self, RunnerError> {
        let path: PathBuf = path.to_owned();
        let built = reqwest::Client::builder()
            .unix_socket(path)
            .timeout(TIMEOUT)
            .build();
        Ok(Self {
            client: built.map_err(silent)?,
        })
    }

    /// Reads `path` with its query.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RunnerError> {
        self.call(Method::GET, path, None).await
    }

    /// Makes the container by Podman's own API, or finds the one that was made before.
    pub(super) async fn create_podman(&self, plan: &Plan) -> Result<String, RunnerError> {
        let there = format!("{LIBPOD}/containers/{}/json", plan.name);
        match self.get::<Id>(&there).await {
            Ok(found) => return Ok(found.id),
            Err(RunnerError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let path = format!("{LIBPOD}/containers/create");
        Ok(self
            .call::<Id>(Method::POST, &path, Some(plan.libpod()))
            .await?
            .id)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> Result<T, RunnerError> {
        let mut request = self.client.request(method, format!("http://engine{path}"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.map_err(silent)?;
        let status = answer.status();
        let text = answer.text().await.map_err(silent)?;
        if status.is_success() {
            let form = |e: serde_json::Error| RunnerError::Unavailable(format!("{path}: {e}"));
            return serde_json::from_str(&text).map_err(form);
        }
        let message = serde_json::from_str::<Refused>(&text).map_or(text, |r| r.message);
        Err(match status {
            StatusCode::NOT_FOUND => RunnerError::NotFound(message),
            StatusCode::SERVICE_UNAVAILABLE => RunnerError::Unavailable(message),
            _ => RunnerError::Refused(message),
        })
    }
}

fn silent(error: reqwest::Error) -> RunnerError {
    RunnerError::Unavailable(error.to_string())
}

/// A filter by label, as these APIs take it in a query.
pub(super) fn label_filter(label: &str, value: &str) -> String {
    let filter = serde_json::json!({ "label": [format!("{label}={value}")] }).to_string();
    let mut url = reqwest::Url::parse("http://engine/").ok();
    if let Some(url) = url.as_mut() {
        url.query_pairs_mut().append_pair("filters", &filter);
    }
    url.and_then(|u| u.query().map(ToOwned::to_owned))
        .unwrap_or_default()
}
