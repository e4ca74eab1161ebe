//! A plain HTTP client with a credential.

use reqwest::{Method, StatusCode};
use serde_json::Value;

/// Who asks.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    bearer: Option<String>,
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: reqwest::header::HeaderMap,
    /// Body; `null` if it is no JSON.
    pub body: Value,
    /// Body as bytes.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// The body, if the status is as expected.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{}",
            String::from_utf8_lossy(&self.bytes)
        );
        self.body
    }

    /// The problem's code, if it is one of this status.
    pub fn problem(&self, status: u16) -> String {
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        assert_eq!(self.status.as_u16(), status, "{text}");
        let media = self.headers.get("content-type").unwrap().to_str().unwrap();
        assert!(
            media.starts_with("application/problem+json"),
            "{media}: {text}"
        );
        assert!(
            !self.body["request_id"].as_str().unwrap().is_empty(),
            "{text}"
        );
        assert_eq!(self.body["status"], status, "{text}");
        self.body["code"].as_str().unwrap().to_owned()
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no header {name}"))
            .to_str()
            .unwrap()
    }
}

impl Client {
    /// Somebody without a credential.
    pub fn anonymous(base: &str) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        Self {
            http: reqwest::Client::new(),
            base: base.to_owned(),
            bearer: None,
        }
    }

    /// The same with a credential.
    pub fn with(&self, bearer: &str) -> Self {
        Self {
            bearer: Some(bearer.to_owned()),
            ..self.clone()
        }
    }

    /// Its credential.
    pub fn bearer(&self) -> &str {
        self.bearer.as_deref().unwrap()
    }

    /// A request that can still be changed.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.bearer {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends it.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let reply = request.send().await.unwrap();
        let (status, headers) = (reply.status(), reply.headers().clone());
        let bytes = reply.bytes().await.unwrap().to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply {
            status,
            headers,
            body,
            bytes,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// POST with an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.send(
            self.request(Method::POST, path)
                .header("idempotency-key", key)
                .json(body),
        )
        .await
    }
}
