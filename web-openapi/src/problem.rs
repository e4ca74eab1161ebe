//! Problems (RFC 9457, `application/problem+json`): the one shape of every refusal.

use domain::refusal::{Code, Kind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Where the code is documented.
    #[serde(rename = "type")]
    #[schema(example = "/docs/errors#insufficient_funds")]
    pub kind: String,
    /// The code's sentence.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened this time, and what to do.
    pub detail: String,
    /// The rule that refused; stable.
    #[schema(example = "insufficient_funds")]
    pub code: String,
    /// Id of the request, for support.
    pub request_id: String,
    /// Field by field, where fields are at fault.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<FieldError>,
    /// What would work instead.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suggestion: Option<String>,
}

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer into the body, or `query/name`.
    #[schema(example = "/gpu_count")]
    pub pointer: String,
    /// What is wrong, for programs.
    #[schema(example = "out_of_range")]
    pub code: String,
    /// What is wrong, for people.
    pub detail: String,
}

/// The HTTP status of a code.
pub const fn status_of(code: Code) -> u16 {
    match code.kind() {
        Kind::Malformed => 400,
        Kind::Unauthenticated => 401,
        Kind::Unpaid => 402,
        Kind::Forbidden => 403,
        Kind::NotFound => 404,
        Kind::NotAllowed => 405,
        Kind::Conflict => 409,
        Kind::Stale => 412,
        Kind::TooLarge => 413,
        Kind::Unsupported => 415,
        Kind::Unprocessable => 422,
        Kind::Throttled => 429,
        Kind::Fault => 500,
        Kind::Unavailable => 503,
    }
}

impl Problem {
    /// A problem of `code`.
    pub fn new(code: Code, detail: impl Into<String>, request_id: impl Into<String>) -> Self {
        Self {
            kind: format!("/docs/errors#{}", code.as_str()),
            title: code.title().to_owned(),
            status: status_of(code),
            detail: detail.into(),
            code: code.as_str().to_owned(),
            request_id: request_id.into(),
            errors: Vec::new(),
            suggestion: None,
        }
    }
}
