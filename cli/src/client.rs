//! The API over HTTP: one call, its safe repetitions, and what came back.
//!
//! Invariant: a call is sent again only where that cannot do it twice: the connection was never
//! made, the market said "not now" (429, 503, or the same key in flight), or the answer was lost
//! and the call is a read or carries an `Idempotency-Key`, which stays the same each time.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, RETRY_AFTER};
use reqwest::{Method, Url};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use web_openapi::problem::Problem;

use crate::environment::{Patience, idempotency_key, random};
use crate::fault::{Fault, Local, Refused};

const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// A market, and who we are to it.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    server: String,
    key: Option<String>,
    patience: Patience,
}

/// An answer that is not a refusal.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The body as it came.
    pub(crate) body: Vec<u8>,
    /// Version of what was read, for `If-Match`.
    pub(crate) etag: Option<String>,
}

impl Answer {
    /// The body as a wire type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|bad| {
            Local::new(
                "unexpected_answer",
                format!("The market's answer is not what this program knows: {bad}"),
            )
            .suggest("use the version of gpumarket that belongs to the market, or --json")
            .into()
        })
    }
}

/// One call, the same in each repetition.
struct Call {
    method: Method,
    url: Url,
    body: Option<Vec<u8>>,
    content_type: &'static str,
    idempotency_key: Option<String>,
    if_match: Option<String>,
    /// The media type of the answer, if it is a file and no JSON.
    file: Option<&'static str>,
}

impl Call {
    /// Does a second arrival change nothing more?
    fn is_harmless(&self) -> bool {
        self.method == Method::GET || self.idempotency_key.is_some()
    }
}

/// How one attempt ended, if not well.
struct Attempt {
    fault: Fault,
    may_repeat: bool,
    retry_after: Option<Duration>,
}

/// An address in one form: `http` or `https`, no slash at its end.
pub(crate) fn normal_server(text: &str) -> Result<String, Fault> {
    let bad = |why: &str| Fault::Usage(format!("the server's address `{text}` {why}"));
    let url = Url::parse(text).map_err(|_bad| bad("is not a URL such as https://example.org"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not contain credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("must end with the path"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Does the address name this computer?
pub(crate) fn is_local(server: &str) -> bool {
    let host = Url::parse(server)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|h| h == "localhost" || h.starts_with("127.") || h == "[::1]")
}

impl Client {
    /// A client of the market at `server` (in normal form).
    pub(crate) fn new(
        server: String,
        key: Option<String>,
        patience: Patience,
    ) -> Result<Self, Fault> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("gpumarket-cli/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(30));
        if is_local(&server) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|bad| Local::new("http_client", format!("HTTP cannot be set up: {bad}")))?;
        Ok(Self {
            http,
            server,
            key,
            patience,
        })
    }

    /// The same market, as somebody else.
    pub(crate) fn with_key(&self, key: Option<String>) -> Self {
        Self {
            key,
            ..self.clone()
        }
    }

    /// The market's address.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// How long to go on after failures that pass.
    pub(crate) const fn patience(&self) -> Patience {
        self.patience
    }

    /// Reads.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, Fault> {
        let mut call = self.call(Method::GET, path)?;
        for (name, value) in query {
            call.url.query_pairs_mut().append_pair(name, value);
        }
        self.send(&call).await
    }

    /// Reads a file of this media type.
    pub(crate) async fn get_file(
        &self,
        path: &str,
        query: &[(&str, String)],
        kind: &'static str,
    ) -> Result<Answer, Fault> {
        let mut call = self.call(Method::GET, path)?;
        call.file = Some(kind);
        for (name, value) in query {
            call.url.query_pairs_mut().append_pair(name, value);
        }
        self.send(&call).await
    }

    /// Makes or does something, once, however often it must be sent.
    pub(crate) async fn post<T: Serialize>(&self, path: &str, body: &T) -> Result<Answer, Fault> {
        let mut call = self.call(Method::POST, path)?;
        let key = idempotency_key()
            .ok_or_else(|| Local::new("randomness", "The system gives no random numbers."))?;
        call.idempotency_key = Some(key.to_string());
        call.body = Some(render(body)?);
        self.send(&call).await
    }

    /// Changes fields of what still has the version `if_match`.
    pub(crate) async fn patch<T: Serialize>(
        &self,
        path: &str,
        if_match: String,
        body: &T,
    ) -> Result<Answer, Fault> {
        let mut call = self.call(Method::PATCH, path)?;
        call.content_type = MERGE_PATCH;
        call.if_match = Some(if_match);
        call.body = Some(render(body)?);
        self.send(&call).await
    }

    /// Removes.
    pub(crate) async fn delete(&self, path: &str) -> Result<Answer, Fault> {
        self.send(&self.call(Method::DELETE, path)?).await
    }

    fn call(&self, method: Method, path: &str) -> Result<Call, Fault> {
        let url = Url::parse(&format!("{}{path}", self.server))
            .map_err(|bad| Fault::Usage(format!("the server's address is not valid: {bad}")))?;
        Ok(Call {
            method,
            url,
            body: None,
            content_type: JSON,
            idempotency_key: None,
            if_match: None,
            file: None,
        })
    }

    async fn send(&self, call: &Call) -> Result<Answer, Fault> {
        let mut pause = self.patience.first;
        let mut attempts = 1;
        loop {
            let failed = match self.attempt(call).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let wait = failed.retry_after.unwrap_or_else(|| jittered(pause));
            let is_last = attempts >= self.patience.attempts || wait > self.patience.longest;
            if !failed.may_repeat || is_last {
                return Err(failed.fault);
            }
            tokio::time::sleep(wait).await;
            attempts = attempts.saturating_add(1);
            pause = pause.saturating_mul(2);
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Answer, Attempt> {
        let mut request = self.http.request(call.method.clone(), call.url.clone());
        if let Some(key) = &self.key {
            let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_bad| {
                final_failure(Fault::Usage(
                    "the API key has characters no key has".to_owned(),
                ))
            })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(version) = &call.if_match {
            request = request.header(IF_MATCH, version);
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, call.content_type)
                .body(body.clone());
        }
        let answer = request.send().await.map_err(|e| self.lost(call, &e))?;
        let status = answer.status().as_u16();
        let text = |name| {
            let value: Option<&HeaderValue> = answer.headers().get(name);
            value.and_then(|v| v.to_str().ok()).map(str::to_owned)
        };
        let (etag, retry_after) = (text(ETAG), text(RETRY_AFTER));
        let retry_after = retry_after.and_then(|seconds| seconds.trim().parse().ok());
        let kind = text(CONTENT_TYPE).unwrap_or_default();
        let body = answer
            .bytes()
            .await
            .map_err(|e| self.lost(call, &e))?
            .to_vec();
        let is_wanted = match call.file {
            Some(wanted) => kind.split(';').next() == Some(wanted),
            None => body.is_empty() || serde_json::from_slice::<IgnoredAny>(&body).is_ok(),
        };
        if (200..300).contains(&status) && is_wanted {
            Ok(Answer { body, etag })
        } else {
            Err(self.refused(call, status, retry_after, &body))
        }
    }

    fn lost(&self, call: &Call, error: &reqwest::Error) -> Attempt {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let cause = if error.is_timeout() {
            "it took too long".to_owned()
        } else {
            cause.to_string()
        };
        Attempt {
            fault: Fault::Unreachable {
                server: self.server.clone(),
                cause,
            },
            may_repeat: error.is_connect() || (call.is_harmless() && !error.is_timeout()),
            retry_after: None,
        }
    }

    fn refused(&self, call: &Call, status: u16, retry_after: Option<u64>, body: &[u8]) -> Attempt {
        let raw: Option<Value> = serde_json::from_slice(body).ok();
        let read = raw.and_then(|raw| {
            let problem: Problem = serde_json::from_value(raw.clone()).ok()?;
            Some((raw, problem))
        });
        let Some((raw, problem)) = read else {
            let text = String::from_utf8_lossy(body);
            let words: Vec<&str> = text.split_whitespace().collect();
            let start: String = words.join(" ").chars().take(120).collect();
            let detail = format!(
                "{} answered {status}, not as a market: {start}",
                self.server
            );
            let fault = Local::new("unexpected_answer", detail.trim_end_matches([':', ' ']))
                .suggest("check the address: --server URL or GPUMARKET_SERVER");
            return Attempt {
                // A gateway's 502 or 504 is a lost answer.
                may_repeat: status == 503 || (matches!(status, 502 | 504) && call.is_harmless()),
                ..final_failure(fault.into())
            };
        };
        let in_flight = problem.code == "idempotency_in_flight";
        let may_repeat = status == 503 || (retry_after.is_some() && (status == 429 || in_flight));
        Attempt {
            fault: Fault::Problem(Box::new(Refused {
                raw,
                problem,
                retry_after_seconds: retry_after,
            })),
            may_repeat,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }
}

fn render<T: Serialize>(body: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(body).map_err(|bad| {
        Local::new("request", format!("The request cannot be written: {bad}")).into()
    })
}

const fn final_failure(fault: Fault) -> Attempt {
    Attempt {
        fault,
        may_repeat: false,
        retry_after: None,
    }
}

/// Up to half as long again, so that many clients do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let [byte] = random::<1>().unwrap_or_default();
    let extra = pause.saturating_mul(u32::from(byte)).checked_div(512);
    pause.saturating_add(extra.unwrap_or_default())
}
