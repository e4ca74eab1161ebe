//! Strict JSON bodies: the right media type, a size limit, and a field by name when one is wrong.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpRequest, web};
use domain::refusal::Code;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use super::fault::Fault;

/// The most bytes of a body.
pub const LIMIT: usize = 256 * 1024;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

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
            let late = |_late| Fault::new(Code::MalformedRequest, "The body took too long.");
            let bytes = tokio::time::timeout(PATIENCE, whole(&mut payload))
                .await
                .map_err(late)??;
            let value = parse(&bytes)?;
            Ok(Self {
                value,
                fingerprint: fingerprint(&request, &bytes)?,
            })
        })
    }
}

async fn whole(payload: &mut Payload) -> Result<web::BytesMut, Fault> {
    let mut bytes = web::BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk
            .map_err(|e| Fault::new(Code::MalformedRequest, format!("The body broke off: {e}")))?;
        if bytes.len().saturating_add(chunk.len()) > LIMIT {
            let text = format!("The limit is {LIMIT} bytes.");
            return Err(Fault::new(Code::BodyTooLarge, text));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// BLAKE3 of method, path and body: the body as a value, so that blanks and the order of fields,
/// which another client library may choose otherwise at the repeat, do not matter.
pub fn fingerprint(request: &HttpRequest, body: &[u8]) -> Result<[u8; 32], Fault> {
    let value: Value = parse(body)?;
    let canonical = serde_json::to_vec(&sorted(value))
        .map_err(|_never| Fault::internal("a body cannot be rendered"))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(request.method().as_str().as_bytes());
    hasher.update(b"\n");
    hasher.update(request.path().as_bytes());
    hasher.update(b"\n");
    hasher.update(&canonical);
    Ok(*hasher.finalize().as_bytes())
}

/// The value with the fields of each object in order of their names.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(n, v)| (n, sorted(v))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
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
    } else if text.starts_with("duplicate field") {
        "duplicate_field"
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
    let names_field = ["missing field", "unknown field", "duplicate field"]
        .iter()
        .any(|start| text.starts_with(start));
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
    fn a_repeat_is_known_by_its_meaning() {
        use actix_web::test::TestRequest;
        let of = |path: &str, body: &str| {
            let request = TestRequest::post().uri(path).to_http_request();
            fingerprint(&request, body.as_bytes()).unwrap()
        };
        let first = of("/v1/quotes", r#"{"a":{"y":1,"x":[1,2]},"b":null}"#);
        assert_eq!(
            first,
            of("/v1/quotes", r#"{ "b":null, "a":{"x":[1,2],"y":1} }"#)
        );
        for other in [
            of("/v1/quotes", r#"{"a":{"y":1,"x":[2,1]},"b":null}"#),
            of("/v1/quotes", r#"{"a":{"y":1,"x":[1,2]}}"#),
            of("/v1/quotes", r#"{"a":{"y":"1","x":[1,2]},"b":null}"#),
            of("/v1/leases", r#"{"a":{"y":1,"x":[1,2]},"b":null}"#),
        ] {
            assert_ne!(first, other);
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
