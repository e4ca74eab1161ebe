//! Versions: `ETag` on what can be changed, `If-Match` to change only what was read.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::{ETAG, IF_MATCH};
use actix_web::{FromRequest, HttpRequest, HttpResponseBuilder};
use domain::refusal::Code;
use serde_json::Value;

use super::fault::Fault;

/// The version that the client read, if it says one.
#[derive(Clone, Copy, Debug)]
pub struct IfMatch(pub Option<i64>);

impl FromRequest for IfMatch {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let Some(header) = request.headers().get(IF_MATCH) else {
            return ready(Ok(Self(None)));
        };
        let text = header.to_str().unwrap_or("").trim();
        if text == "*" {
            return ready(Ok(Self(None)));
        }
        let number = text
            .strip_prefix("\"v")
            .and_then(|t| t.strip_suffix('"')?.parse().ok());
        // An ETag that we never gave cannot be the present one.
        ready(number.map(|n| Self(Some(n))).ok_or_else(|| {
            Fault::new(
                Code::StaleVersion,
                "If-Match is not an ETag of this object; read it again.",
            )
        }))
    }
}

/// Puts the version on a reply.
pub fn stamp(reply: &mut HttpResponseBuilder, version: Option<&Value>) {
    if let Some(number) = version.and_then(Value::as_i64) {
        reply.insert_header((ETAG, format!("\"v{number}\"")));
    }
}
