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
        tax: billing::tax_rule::TaxTable::flat(0),
        operator: billing::invoice::Identity::default(),
        payouts: app::context::PayoutPolicy {
            maturing: domain::clock::Span::ZERO,
            reserve_bps: 0,
            reserve_kept: domain::clock::Span::ZERO,
            least: domain::money::Micros::new(1),
        },
        approval_above: domain::money::Micros::new(1),
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

#[actix_web::test]
async fn head_and_options_are_answered_where_get_is() {
    let reply = send(
        TestRequest::default()
            .method(Method::HEAD)
            .uri("/v1/gpu-models"),
    )
    .await;
    assert_eq!(reply.status, 200);
    let options = |path| TestRequest::default().method(Method::OPTIONS).uri(path);
    let reply = send(options("/v1/leases")).await;
    assert_eq!(
        (reply.status, reply.header("allow")),
        (204, "GET, HEAD, POST, OPTIONS")
    );
    assert_eq!(send(options("/v1/nothing")).await.status, 404);
}

#[actix_web::test]
async fn elsewhere_is_404_and_another_method_405_with_allow() {
    let get = |path| TestRequest::get().uri(path);
    for path in [
        "/",
        "/v1",
        "/v1/nothing",
        "/v1/leases/",
        "/v2/leases",
        "/v1/gpu-models/%FF",
    ] {
        let reply = send(get(path)).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.problem()["errors"], Value::Null);
    }
    for (path, methods) in [
        ("/v1/leases", "GET, HEAD, POST, OPTIONS"),
        ("/v1/offers/ofr_x", "GET, HEAD, PATCH, DELETE, OPTIONS"),
        ("/v1/offers/search", "POST, OPTIONS"),
        ("/v1/machines/enrollment-tokens", "POST, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
    ] {
        let reply = send(TestRequest::put().uri(path)).await;
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, methods),
            "{path}"
        );
        assert_eq!(reply.problem()["code"], "method_not_allowed");
    }
}

#[actix_web::test]
async fn a_credential_in_the_url_is_refused() {
    for query in [
        "api_key=x",
        "API_KEY=x",
        "api%5Fkey=x",
        "limit=1&access_token=x",
        "q=gm_live_abc",
        "q=gm%5Flive%5Fabc",
        "token=enr_x",
    ] {
        let reply = send(TestRequest::get().uri(&format!("/v1/gpu-models?{query}"))).await;
        assert_eq!(reply.problem()["code"], "key_in_url", "{query}");
    }
    let reply = send(TestRequest::get().uri("/v1/gpu-models?tokens=1")).await;
    assert_eq!(reply.status, 200);
}

#[actix_web::test]
async fn without_or_with_a_bad_credential_it_is_401() {
    for header in ["", "Basic eA==", "Bearer", "Bearer x.y.z"] {
        let request = TestRequest::get().uri("/v1/me");
        let reply = send(request.insert_header(("authorization", header))).await;
        assert_eq!(reply.status, 401, "{header}");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert_eq!(reply.problem()["code"], "unauthenticated");
    }
    // Its key cannot be looked up: that is no 401.
    let request = TestRequest::get().uri("/v1/me");
    let reply = send(request.insert_header(("authorization", "bearer gm_live_x"))).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    assert_eq!(reply.problem()["code"], "unavailable");
}

#[actix_web::test]
async fn bodies_are_read_strictly() {
    let search = "/v1/offers/search";
    let other = TestRequest::post()
        .uri(search)
        .insert_header(("content-type", "text/plain"));
    assert_eq!(
        send(other.set_payload("{}")).await.problem()["code"],
        "unsupported_media_type"
    );
    let bare = TestRequest::post().uri(search).set_payload("{}");
    assert_eq!(send(bare).await.status, 415);
    for (body, status, code, pointer) in [
        ("", 400, "malformed_request", ""),
        ("{\"", 400, "malformed_request", ""),
        ("\u{0}", 400, "malformed_request", ""),
        (r#"{"gpus":1}"#, 422, "invalid_field", "/gpus"),
        (r#"{"gpu_count":0}"#, 422, "invalid_field", "/gpu_count"),
        (
            r#"{"gpu_count":1,"gpu_count":1}"#,
            422,
            "invalid_field",
            "/gpu_count",
        ),
        (
            r#"{"gpu_models":["a",7]}"#,
            422,
            "invalid_field",
            "/gpu_models/1",
        ),
        (
            r#"{"max_price":{"currency":"USD"}}"#,
            422,
            "invalid_field",
            "/max_price/amount",
        ),
        (
            r#"{"countries":["de"]}"#,
            422,
            "invalid_field",
            "/countries/0",
        ),
    ] {
        let problem = send(post(search, body)).await.problem();
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&status.into(), &code.into()),
            "{body}"
        );
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().unwrap_or(""),
            pointer,
            "{body}"
        );
    }
    let large = format!(
        "{{\"gpu_models\":[\"{}\"]}}",
        "a".repeat(super::body::LIMIT)
    );
    assert_eq!(
        send(post(search, &large)).await.problem()["code"],
        "body_too_large"
    );
    let deep = "[".repeat(10_000);
    assert_eq!(send(post(search, &deep)).await.status, 422);
    let deep = format!("{{\"x\":{deep}");
    assert!([400, 422].contains(&send(post(search, &deep)).await.status));
}

#[test]
fn a_query_names_the_parameter_at_fault() {
    use web_openapi::page::PageQuery;
    for (query, expected) in [
        ("limit=x", "query/limit"),
        ("cursor=a&limit=-1", "query/limit"),
        ("colour=red&limit=1", "query/colour"),
        ("limit=1&limit=2", "query/"),
    ] {
        let fault = super::docs::read::<PageQuery>(query)
            .unwrap_err()
            .to_string();
        assert!(
            fault.starts_with(&format!("invalid_field: {expected}")),
            "{fault}"
        );
    }
    assert!(super::docs::read::<PageQuery>("").is_ok());
}

#[actix_web::test]
async fn health_tells_process_and_database_apart() {
    assert_eq!(send(TestRequest::get().uri("/healthz")).await.status, 200);
    let reply = send(TestRequest::get().uri("/readyz")).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.problem()["code"], "unavailable");
}

#[actix_web::test]
async fn the_documentation_needs_no_other_host() {
    for path in [
        "/docs/",
        "/docs/index.html",
        "/docs/swagger-initializer.js",
        "/docs/errors",
    ] {
        let reply = send(TestRequest::get().uri(path)).await;
        assert_eq!(reply.status, 200, "{path}");
        let text = String::from_utf8(reply.body).unwrap();
        assert!(!text.contains("https://"), "{path}");
    }
    let reply = send(TestRequest::get().uri("/docs/swagger-initializer.js")).await;
    assert!(
        String::from_utf8(reply.body)
            .unwrap()
            .contains("\"validatorUrl\": \"none\"")
    );
    let reply = send(TestRequest::get().uri("/docs")).await;
    assert_eq!((reply.status, reply.header("location")), (308, "/docs/"));
    assert_eq!(
        send(TestRequest::get().uri("/docs/none.js"))
            .await
            .problem()["status"],
        404
    );
}

#[test]
fn every_code_is_a_problem_with_its_status() {
    use actix_web::ResponseError;
    for code in domain::refusal::Code::ALL {
        let fault = super::fault::Fault::new(*code, "Why.");
        let reply = fault.error_response();
        let status = web_openapi::problem::status_of(*code);
        assert_eq!(reply.status().as_u16(), status, "{code}");
        let kind = reply.headers().get("content-type").unwrap();
        assert_eq!(kind, "application/problem+json");
        assert_eq!(
            reply.headers().contains_key("www-authenticate"),
            status == 401
        );
    }
}
