//! HTTP: conventions once, for every route, and one file for each noun.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::ServiceConfig;
use actix_web::{Error, HttpResponse, ResponseError, web};
use domain::clock::IdSource;
use domain::id::RequestId;
use domain::refusal::Code;

use crate::edge::clock::FreshIds;
use crate::state::Shared;

pub mod agent;
pub mod api_key;
pub mod auth;
pub mod body;
pub mod docs;
pub mod fault;
pub mod gpu;
pub mod health;
pub mod lease;
pub mod limit;
pub mod machine;
pub mod offer;
pub mod once;
pub mod page;
pub mod prove;
pub mod quote;
pub mod session;
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
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let limited = match request.app_data::<web::Data<Shared>>() {
        Some(shared) => shared.limits.check(&request),
        None => limit::Verdict::free(),
    };
    let raw = request.request().clone();
    let refusal = if names_a_credential(request.query_string()) {
        Some(Fault::new(
            Code::KeyInUrl,
            "Send the key in the Authorization header. This one is burnt: revoke it.",
        ))
    } else {
        limited.refusal()
    };
    let mut response = match refusal {
        Some(fault) => ServiceResponse::new(raw, fault.error_response()).map_into_right_body(),
        None => match next.call(request).await {
            Ok(response) => response.map_into_left_body(),
            Err(error) => {
                let fault = Fault::from_actix(&error);
                ServiceResponse::new(raw, fault.error_response()).map_into_right_body()
            }
        },
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    limited.stamp(headers);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let status = response.status().as_u16();
    tracing::info!(%id, %method, path, status, "request");
    metrics::counter!("http_requests_total", "method" => method.to_string(), "status" => status.to_string())
        .increment(1);
    Ok(response)
}

/// Does a query string look as if a key or token was put into it?
fn names_a_credential(query: &str) -> bool {
    let lower = query.to_ascii_lowercase();
    let names = [
        "api_key=",
        "apikey=",
        "access_token=",
        "token=",
        "authorization=",
        "password=",
    ];
    lower.contains("gm_live_")
        || lower
            .split('&')
            .any(|pair| names.iter().any(|name| pair.starts_with(name)))
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
    let status = actix_web::http::StatusCode::from_u16(answer.status)
        .unwrap_or(actix_web::http::StatusCode::OK);
    let mut reply = HttpResponse::build(status);
    if answer.replayed {
        reply.insert_header(("idempotency-replayed", "true"));
    }
    version::stamp(&mut reply, answer.body.get("version"));
    reply.json(&answer.body)
}

#[cfg(test)]
mod tests;
