//! Enrolment: a one-time token and the machine's public key become a machine of the market.
//!
//! Repeating it is safe: the same token with the same key gives the same answer.

use std::time::Duration;

use reqwest::Url;
use thiserror::Error;
use web_openapi::agent::{Enroll, Enrolled};
use web_openapi::problem::Problem;

use crate::identity::MachineKey;

/// Tries while the server cannot be reached.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(15);

/// Why the machine is not enrolled.
#[derive(Debug, Error)]
pub enum EnrollError {
    /// The address cannot be used.
    #[error("`{0}` is not an address of a market; expected e.g. https://market.example")]
    Address(String),
    /// The server refuses, with its words.
    #[error("the market refuses the enrolment: {detail} ({code})")]
    Refused {
        /// Code of the problem, or the HTTP status.
        code: String,
        /// For people.
        detail: String,
    },
    /// Nobody answers.
    #[error("cannot reach the market at {server} after {TRIES} tries: {why}")]
    Unreachable {
        /// The address.
        server: String,
        /// What the last try met.
        why: String,
    },
    /// Something answers, but no market.
    #[error("{server} does not answer like a market: {why}")]
    Strange {
        /// The address.
        server: String,
        /// What is wrong.
        why: String,
    },
}

/// Reads the address of a market: `http` or `https`, with an optional path.
pub fn parse_server(text: &str) -> Result<Url, EnrollError> {
    let wrong = || EnrollError::Address(text.to_owned());
    let mut url = Url::parse(text).ok().ok_or_else(wrong)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong());
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The address of a route of the market.
pub fn route(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_path(&format!("{}{path}", server.path().trim_end_matches('/')));
    url
}

/// Enrols. Tries again only while the server cannot be reached or says so.
pub async fn enroll(server: &Url, token: &str, key: &MachineKey) -> Result<Enrolled, EnrollError> {
    let strange = |why: String| EnrollError::Strange {
        server: server.to_string(),
        why,
    };
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|e| strange(e.to_string()))?;
    let body = Enroll {
        token: token.to_owned(),
        public_key: key.public_hex(),
    };
    let mut pause = FIRST_PAUSE;
    let mut why = String::new();
    for attempt in 1..=TRIES {
        let sent = client
            .post(route(server, "/v1/agent/enroll"))
            .json(&body)
            .send()
            .await;
        match sent {
            Ok(answer) if answer.status().is_success() => {
                return answer.json().await.map_err(|e| strange(chain(&e)));
            }
            Ok(answer) if answer.status().as_u16() == 503 => {
                why = refusal(answer).await.to_string();
            }
            Ok(answer) => return Err(refusal(answer).await),
            Err(error) => why = chain(&error),
        }
        tracing::warn!(attempt, %why, "enrolment did not get through");
        if attempt < TRIES {
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
    }
    Err(EnrollError::Unreachable {
        server: server.to_string(),
        why,
    })
}

async fn refusal(answer: reqwest::Response) -> EnrollError {
    let status = answer.status();
    match answer.json::<Problem>().await {
        Ok(problem) => {
            let more = problem
                .suggestion
                .map(|s| format!(" {s}"))
                .unwrap_or_default();
            EnrollError::Refused {
                code: problem.code,
                detail: format!("{}{more}", problem.detail),
            }
        }
        Err(_) => EnrollError::Refused {
            code: status.as_u16().to_string(),
            detail: format!("it answers {status} without saying why"),
        },
    }
}

/// An error with its causes: the first one alone rarely says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_joined() {
        let plain = parse_server("http://127.0.0.1:8080/").unwrap();
        assert_eq!(
            route(&plain, "/v1/x").as_str(),
            "http://127.0.0.1:8080/v1/x"
        );
        let deep = parse_server("https://m.example/gpu/?a=1").unwrap();
        assert_eq!(route(&deep, "/v1/x").as_str(), "https://m.example/gpu/v1/x");
        for bad in ["", "market.example", "ws://m.example", "http://"] {
            assert!(
                matches!(parse_server(bad), Err(EnrollError::Address(_))),
                "{bad}"
            );
        }
    }
}
