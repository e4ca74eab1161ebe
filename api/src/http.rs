//! HTTP: conventions once, for every route, and one file for each noun.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::ServiceConfig;
use actix_web::{Error, HttpMessage, HttpResponse, ResponseError, web};
use domain::clock::IdSource;
use domain::id::RequestId;
use domain::refusal::Code;

use crate::edge::clock::FreshIds;
use crate::edge::token;
use crate::state::Shared;

pub mod adjustment;
pub mod agent;
pub mod api_key;
pub mod auth;
pub mod body;
pub mod budget;
pub mod credit;
pub mod docs;
pub mod fault;
pub mod gpu;
pub mod health;
pub mod invoice;
pub mod lease;
pub mod limit;
pub mod machine;
pub mod offer;
pub mod once;
pub mod page;
pub mod payout;
pub mod prove;
pub mod quote;
pub mod session;
pub mod statement;
pub mod usage;
pub mod version;
pub mod view;
pub mod wallet;

use fault::Fault;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request that is being handled; empty outside of one.
pub fn request_id() -> String {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}

/// Mounts every route.
pub fn mount(config: &mut ServiceConfig) {
    health::mount(config);
    docs::mount(config);
    let mut config = utoipa_actix_web::service_config::ServiceConfig::new(config);
    docs::routes(&mut config);
    config.default_service(web::to(docs::no_route));
}

/// What holds for every request: an id, no credentials in the URL, a rate limit, problems for all
/// errors, and the headers of a careful server.
pub async fn conventions(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let id = RequestId::from_uuid(FreshIds.next()).to_string();
    REQUEST_ID
        .scope(id.clone(), handle(id, request, next))
        .await
}

async fn handle(
    id: String,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let shared = request.app_data::<web::Data<Shared>>().cloned();
    let guest = limit::Guest::of(&request);
    let limited = match &shared {
        Some(shared) => shared.limits.check(&request, &guest),
        None => limit::Verdict::free(),
    };
    let mut response = if let Some(reply) = early(&request, &limited) {
        request.into_response(reply).map_into_right_body()
    } else {
        // The transport leaves the body of an answer to HEAD out.
        if method == Method::HEAD && path != agent::CONNECT {
            request.head_mut().method = Method::GET;
        }
        let response = next.call(request).await?;
        match fault::foreign(response.response()) {
            Some(reply) => response.into_response(reply).map_into_right_body(),
            None => response.map_into_left_body(),
        }
    };
    if let Some(shared) = &shared {
        let proven = response
            .request()
            .extensions()
            .get::<auth::Proven>()
            .copied();
        match proven {
            Some(proven) => shared.limits.learn(&guest, proven.0),
            None if response.status() == StatusCode::UNAUTHORIZED => shared.limits.forget(&guest),
            None => {}
        }
    }
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    limited.stamp(headers);
    harden(headers, &path);
    tracing::info!(%id, %method, path, status, "request");
    metrics::counter!("http_requests_total", "method" => method.to_string(), "status" => status.to_string())
        .increment(1);
    Ok(response)
}

/// What is answered before any route is asked.
fn early(request: &ServiceRequest, limited: &limit::Verdict) -> Option<HttpResponse> {
    if names_a_credential(request.query_string()) {
        let text = "Send the key in the Authorization header. This one is burnt: revoke it.";
        return Some(Fault::new(Code::KeyInUrl, text).error_response());
    }
    if let Some(fault) = limited.refusal() {
        return Some(fault.error_response());
    }
    if *request.method() == Method::OPTIONS {
        let methods = docs::methods_of(request.request())?;
        let reply = HttpResponse::NoContent()
            .insert_header((header::ALLOW, methods))
            .finish();
        return Some(reply);
    }
    None
}

/// The headers of a careful server.
fn harden(headers: &mut header::HeaderMap, path: &str) {
    let documents = path == "/docs" || path.starts_with("/docs/");
    let policy = if documents {
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    } else {
        "default-src 'none'; frame-ancestors 'none'"
    };
    let lines = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    for (name, text) in lines {
        headers.insert(name, HeaderValue::from_static(text));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Does a query string look as if a key or token was put into it?
fn names_a_credential(query: &str) -> bool {
    const NAMES: [&str; 8] = [
        "api_key",
        "api-key",
        "apikey",
        "access_token",
        "token",
        "authorization",
        "password",
        "secret",
    ];
    let secret = |text: &str| {
        [token::API_KEY, token::ENROLLMENT]
            .iter()
            .any(|prefix| text.contains(prefix))
    };
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query);
    secret(query)
        || pairs.is_ok_and(|pairs| {
            pairs.iter().any(|(name, value)| {
                NAMES.contains(&name.to_ascii_lowercase().as_str()) || secret(value)
            })
        })
}

/// Runs a mutation to its end even if the client hangs up.
pub async fn detached<T: 'static>(
    work: impl Future<Output = Result<T, Fault>> + 'static,
) -> Result<T, Fault> {
    let id = request_id();
    actix_web::rt::spawn(REQUEST_ID.scope(id, work))
        .await
        .map_err(|_panic| Fault::internal("a mutation did not run to its end"))?
}

/// The reply of a mutation.
pub fn answer(answer: &app::Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut reply = HttpResponse::build(status);
    if answer.replayed {
        reply.insert_header(("idempotency-replayed", "true"));
    }
    version::stamp(&mut reply, answer.body.get("version"));
    reply.json(&answer.body)
}

#[cfg(test)]
mod tests;
