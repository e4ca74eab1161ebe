//! The conventions as a client meets them, on the real routes and without a database.

use actix_web::body::to_bytes;
use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, web};
use serde_json::Value;

use crate::config::Config;
use crate::state::Shared;

/// A process whose database is nowhere: what needs it answers 503.
fn shared(folder: &std::path::Path) -> Shared {
    let config = Config {
        database_url: "postgres://nobody@127.0.0.1:1/nothing".to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: "http://127.0.0.1".to_owned(),
        state_dir: folder.to_owned(),
        payments: app::context::PaymentsMode::Sandbox,
        allow_simulated: true,
        heartbeat: domain::clock::Span::from_secs(10),
        fee_bps: 500,
        tax_bps: 0,
        database_connections: 2,
        rate_limit_factor: 1_000,
        log: "info".to_owned(),
        log_json: false,
    };
    Shared::build(&config, None).unwrap()
}

struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(body["status"], self.status);
        assert_eq!(body["request_id"], self.header("x-request-id"));
        assert!(self.header("x-request-id").starts_with("rqs_"));
        body
    }
}

async fn send(request: TestRequest) -> Reply {
    let folder = std::env::temp_dir().join(format!("gpumarket-api-{}", std::process::id()));
    let service = init_service(
        App::new()
            .app_data(web::Data::new(shared(&folder)))
            .wrap(actix_web::middleware::from_fn(super::conventions))
            .configure(super::mount),
    )
    .await;
    let response: ServiceResponse<_> = call_service(&service, request.to_request()).await;
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned()))
        .collect();
    let Ok(body) = to_bytes(response.into_body()).await else {
        panic!("the body broke off");
    };
    Reply {
        status,
        headers,
        body: body.to_vec(),
    }
}

fn post(path: &str, body: &str) -> TestRequest {
    TestRequest::post()
        .uri(path)
        .insert_header(("content-type", "application/json"))
        .set_payload(body.to_owned())
}

#[actix_web::test]
async fn a_matched_route_answers() {
    let reply = send(TestRequest::get().uri("/v1/gpu-models")).await;
    assert_eq!(reply.status, 200);
    let reply = send(TestRequest::get().uri("/v1/gpu-models/h100-sxm-80gb")).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("x-request-id").starts_with("rqs_"));
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    assert!(reply.header("ratelimit").starts_with("\"read\";r="));
    assert!(reply.header("ratelimit-policy").starts_with("\"read\";q="));
}
