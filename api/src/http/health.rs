//! Is it there, is it ready, how is it: for machines, outside the API.

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Data, ServiceConfig, get};
use domain::clock::Span;
use domain::refusal::Code;

use super::fault::Fault;
use crate::state::Shared;

/// Mounts `/healthz`, `/readyz` and `/metrics`.
pub fn mount(config: &mut ServiceConfig) {
    config
        .route("/healthz", get().to(alive))
        .route("/readyz", get().to(ready))
        .route("/metrics", get().to(metrics));
}

async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))
}

/// Ready is: the database is there and has this version's schema.
async fn ready(shared: Data<Shared>) -> Result<HttpResponse, Fault> {
    let why = match shared.cx.db.migrated().await {
        Ok(true) => return Ok(HttpResponse::Ok().json(serde_json::json!({"status": "ready"}))),
        Ok(false) => "the database's schema is not that of this version",
        Err(error) => {
            tracing::warn!(%error, "not ready");
            "the database cannot be reached"
        }
    };
    let fault = Fault::new(Code::Unavailable, format!("Not ready: {why}."));
    Err(fault.retry_after(Span::from_secs(1)))
}

async fn metrics(shared: Data<Shared>) -> Result<HttpResponse, Fault> {
    metrics::gauge!("agent_links").set(f64::from(u32::try_from(shared.hub.count()).unwrap_or(0)));
    match &shared.metrics {
        Some(handle) => {
            handle.run_upkeep();
            Ok(HttpResponse::Ok()
                .insert_header((CONTENT_TYPE, "text/plain; version=0.0.4"))
                .body(handle.render()))
        }
        None => Err(Fault::new(
            Code::NotFound,
            "This process records no metrics.",
        )),
    }
}
