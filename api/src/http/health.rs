//! Is it there, is it ready, how is it: for machines, outside the API.

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Data, ServiceConfig, get};
use actix_web::{HttpResponse, web};

use crate::state::Shared;

/// Mounts `/healthz`, `/readyz` and `/metrics`.
pub fn mount(config: &mut ServiceConfig) {
    config
        .route("/healthz", get().to(alive))
        .route("/readyz", web::get().to(ready))
        .route("/metrics", web::get().to(metrics));
}

async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))
}

async fn ready(shared: Data<Shared>) -> HttpResponse {
    match shared.cx.db.ping().await {
        Ok(()) => HttpResponse::Ok().json(serde_json::json!({"status": "ready"})),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            let body = serde_json::json!({"status": "the database cannot be reached"});
            HttpResponse::ServiceUnavailable().json(body)
        }
    }
}

async fn metrics(shared: Data<Shared>) -> HttpResponse {
    metrics::gauge!("agent_links").set(f64::from(u32::try_from(shared.hub.count()).unwrap_or(0)));
    match &shared.metrics {
        Some(handle) => {
            handle.run_upkeep();
            HttpResponse::Ok()
                .insert_header((CONTENT_TYPE, "text/plain; version=0.0.4"))
                .body(handle.render())
        }
        None => HttpResponse::NotFound().finish(),
    }
}
