//! Strict JSON bodies: the right media type, a size limit, and a field by name when one is wrong.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpRequest, web};
use domain::refusal::Code;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::fault::Fault;

/// The most bytes of a body.
pub const LIMIT: usize = 256 * 1024;

/// A body, read strictly, with the fingerprint of the request that carried it.
#[derive(Clone, Debug)]
pub struct Body<T> {
    /// What was sent.
    pub value: T,
    /// BLAKE3 of method, path and body.
    pub fingerprint: [u8; 32],
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Fault>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            media_type(&request)?;
            let mut bytes = web::BytesMut::new();
            while let Some(chunk) = payload.next().await {
                let chunk = chunk.map_err(|e| {
                    Fault::new(Code::MalformedRequest, format!("The body broke off: {e}"))
                })?;
                if bytes.len().saturating_add(chunk.len()) > LIMIT {
                    return Err(Fault::new(
                        Code::BodyTooLarge,
                        format!("The limit is {LIMIT} bytes."),
                    ));
                }
                bytes.extend_from_slice(&chunk);
            }
            let value = parse(&bytes)?;
            Ok(Self {
                value,
                fingerprint: fingerprint(&request, &bytes),
            })
        })
    }
}

/// BLAKE3 of method, path and body.
pub fn fingerprint(request: &HttpRequest, body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(request.method().as_str().as_bytes());
    hasher.update(b"\n");
    hasher.update(request.path().as_bytes());
    hasher.update(b"\n");
    hasher.update(body);
    *hasher.finalize().as_bytes()
}

fn media_type(request: &HttpRequest) -> Result<(), Fault> {
    let wanted: &[&str] = if request.method() == actix_web::http::Method::PATCH {
        &["application/merge-patch+json", "application/json"]
    } else {
        &["application/json"]
    };
    let sent = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let plain = sent
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    if wanted.contains(&plain.as_str()) {
        return Ok(());
    }
    let wanted = wanted.join(" or ");
    Err(Fault::new(
        Code::UnsupportedMediaType,
        format!("Send the body as {wanted}."),
    ))
}

/// Reads JSON into `T`; what is wrong is named by JSON pointer.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let pointer = pointer(&error);
        let cause = error.into_inner();
        match cause.classify() {
            Category::Data => {
                let text = cause.to_string();
                let text = text.split(" at line ").next().unwrap_or("").to_owned();
                Fault::field(&pointer, code_of(&text), text)
            }
            Category::Io | Category::Syntax | Category::Eof => Fault::new(
                Code::MalformedRequest,
                format!("The body is not JSON: {cause}."),
            ),
        }
    })?;
    reader
        .end()
        .map_err(|e| Fault::new(Code::MalformedRequest, format!("After the JSON: {e}.")))?;
    Ok(value)
}

fn code_of(text: &str) -> &'static str {
    if text.starts_with("unknown field") {
        "unknown_field"
    } else if text.starts_with("missing field") {
        "missing_field"
    } else if text.starts_with("unknown variant") {
        "unknown_value"
    } else {
        "wrong_type"
    }
}

fn pointer(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    use serde_path_to_error::Segment;
    let mut out = String::new();
    for segment in error.path() {
        let name = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => continue,
        };
        out.push('/');
        out.push_str(&name);
    }
    // serde names a missing or unknown field in its text only.
    let text = error.inner().to_string();
    let quoted = text.split('`').nth(1).unwrap_or("");
    let names_field = text.starts_with("missing field") || text.starts_with("unknown field");
    if names_field && !out.ends_with(&format!("/{quoted}")) {
        out.push('/');
        out.push_str(quoted);
    }
    out
}

#[cfg(test)]
mod tests {
    use web_openapi::quote::CreateQuote;

    use super::*;

    fn refusal(text: &str) -> String {
        parse::<CreateQuote>(text.as_bytes()).map_or_else(|f| f.to_string(), |q| format!("{q:?}"))
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            ("{", "malformed_request"),
            ("{} x", "invalid_field: /offer_id"),
            (
                r#"{"offer_id":"o","gpu_count":1} x"#,
                "malformed_request: After the JSON",
            ),
            (r#"{"offer_id":"o"}"#, "invalid_field: /gpu_count"),
            (
                r#"{"offer_id":"o","gpu_count":1,"quantity":4}"#,
                "invalid_field: /quantity",
            ),
            (
                r#"{"offer_id":"o","gpu_count":"1"}"#,
                "invalid_field: /gpu_count",
            ),
            (
                r#"{"offer_id":"o","gpu_count":-1}"#,
                "invalid_field: /gpu_count",
            ),
            (
                r#"{"offer_id":"o","gpu_count":1,"disk_gib":1.5}"#,
                "invalid_field: /disk_gib",
            ),
        ] {
            assert!(
                refusal(body).starts_with(expected),
                "{body}: {}",
                refusal(body)
            );
        }
    }

    #[test]
    fn optional_fields_may_be_absent_or_null() {
        for body in [
            r#"{"offer_id":"o","gpu_count":1}"#,
            r#"{"offer_id":"o","gpu_count":1,"disk_gib":null,"duration_seconds":null,"offer_version":null}"#,
        ] {
            assert!(parse::<CreateQuote>(body.as_bytes()).is_ok(), "{body}");
        }
    }
}
