//! A refusal or fault on its way out: `application/problem+json`, and the cause logged once.

use std::error::Error as _;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use app::error::Refusal;
use domain::clock::Span;
use domain::refusal::{Code, Kind};
use web_openapi::problem::{FieldError, MEDIA_TYPE, Problem};

use super::request_id;

/// What a handler fails with.
#[derive(Debug)]
pub struct Fault {
    refusal: Box<Refusal>,
    allow: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.refusal.code, self.refusal.detail)
    }
}

impl Fault {
    /// A refusal at the door.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let refusal = Refusal {
            code,
            detail: detail.into(),
            fields: Vec::new(),
            suggestion: None,
            retry_after: None,
        };
        Self {
            refusal: Box::new(refusal),
            allow: None,
        }
    }

    /// 422 for one field.
    pub fn field(pointer: &str, code: &'static str, detail: impl Into<String>) -> Self {
        app::Error::field(pointer, code, detail).into()
    }

    /// A fault of ours, logged.
    pub fn internal(what: &str) -> Self {
        tracing::error!(id = request_id(), what, "fault");
        Self::new(Code::Internal, "The fault is logged under this request id.")
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after(mut self, span: Span) -> Self {
        self.refusal.retry_after = Some(span);
        self
    }

    /// Says what would work instead.
    #[must_use]
    pub fn suggesting(mut self, suggestion: &str) -> Self {
        self.refusal.suggestion = Some(suggestion.to_owned());
        self
    }

    /// 405 with the methods that the route has.
    pub fn not_allowed(methods: String) -> Self {
        let mut fault = Self::new(Code::MethodNotAllowed, format!("This route has {methods}."));
        fault.allow = Some(methods);
        fault
    }

    /// What actix itself refuses: bad paths, payloads, queries.
    pub fn from_actix(error: &actix_web::Error) -> Self {
        if let Some(fault) = error.as_error::<Self>() {
            return Self {
                refusal: fault.refusal.clone(),
                allow: fault.allow.clone(),
            };
        }
        Self::of_status(error.as_response_error().status_code(), error.to_string())
    }

    fn of_status(status: StatusCode, detail: String) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::new(Code::NoRoute, "There is no such route."),
            StatusCode::METHOD_NOT_ALLOWED => Self::new(Code::MethodNotAllowed, detail),
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(Code::BodyTooLarge, detail),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(Code::UnsupportedMediaType, detail),
            status if status.is_client_error() => Self::new(Code::MalformedRequest, detail),
            _ => Self::internal(&detail),
        }
    }

    fn problem(&self) -> Problem {
        let refusal = &self.refusal;
        let mut problem = Problem::new(refusal.code, refusal.detail.clone(), request_id());
        problem.errors = refusal
            .fields
            .iter()
            .map(|f| FieldError {
                pointer: f.pointer.clone(),
                code: f.code.to_owned(),
                detail: f.detail.clone(),
            })
            .collect();
        problem.suggestion = refusal.suggestion.clone();
        problem
    }
}

/// The problem in place of a refusal that actix made itself (path, payload, guard), if it is one.
pub fn foreign<B>(response: &HttpResponse<B>) -> Option<HttpResponse> {
    let status = response.status();
    let refused = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(CONTENT_TYPE);
    if !refused || kind.is_some_and(|k| k.as_bytes() == MEDIA_TYPE.as_bytes()) {
        return None;
    }
    let mut fault = match response.error() {
        Some(error) => Fault::from_actix(error),
        None => Fault::of_status(status, "The request was not taken.".to_owned()),
    };
    let methods = response.headers().get(ALLOW).and_then(|m| m.to_str().ok());
    fault.allow = fault.allow.or_else(|| methods.map(str::to_owned));
    Some(fault.error_response())
}

impl From<app::Error> for Fault {
    fn from(error: app::Error) -> Self {
        let refusal = error.public();
        if matches!(refusal.code.kind(), Kind::Fault | Kind::Unavailable) {
            let cause = error.source().map(|c| format!("{c} {:?}", c.source()));
            tracing::error!(id = request_id(), %error, ?cause, "fault");
        }
        Self {
            refusal: Box::new(refusal),
            allow: None,
        }
    }
}

impl ResponseError for Fault {
    fn status_code(&self) -> StatusCode {
        let status = web_openapi::problem::status_of(self.refusal.code);
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut reply = HttpResponse::build(self.status_code());
        reply.content_type(MEDIA_TYPE);
        if let Some(span) = self.refusal.retry_after {
            // Whole seconds, rounded up: too early is refused again.
            let seconds = span
                .micros()
                .saturating_add(999_999)
                .div_euclid(1_000_000)
                .max(1);
            reply.insert_header((RETRY_AFTER, seconds.to_string()));
        }
        if self.refusal.code.kind() == Kind::Unauthenticated {
            reply.insert_header((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        if let Some(methods) = &self.allow {
            reply.insert_header((ALLOW, methods.as_str()));
        }
        let body = serde_json::to_string(&self.problem()).unwrap_or_default();
        reply.body(body)
    }
}
