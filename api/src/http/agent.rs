//! The agents' door: enrolment over HTTP, then one WebSocket.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, get, post};
use domain::refusal::Code;
use web_openapi::agent::{Enroll, Enrolled};

use super::body::Body;
use super::docs::Problems;
use super::fault::Fault;
use super::{detached, request_id};
use crate::edge::token;
use crate::state::Shared;

mod link;
mod wire;

/// Where agents connect.
pub(super) const CONNECT: &str = "/v1/agent/connect";

/// Turn a one-time token into a machine.
#[utoipa::path(tag = "agent", request_body = Enroll, responses((status = 201, body = Enrolled), Problems))]
#[post("/v1/agent/enroll")]
pub(crate) async fn enroll_machine(
    shared: Data<Shared>,
    body: Body<Enroll>,
) -> Result<HttpResponse, Fault> {
    let mut key = [0u8; 32];
    let read = hex::decode_to_slice(&body.value.public_key, &mut key).is_ok();
    if !read || ed25519_dalek::VerifyingKey::from_bytes(&key).is_err() {
        return Err(Fault::field(
            "/public_key",
            "malformed",
            "Must be an Ed25519 public key in hex.",
        ));
    }
    let hash = token::hash(&body.value.token);
    detached(async move {
        let view = app::machine::enroll(&shared.cx, &request_id(), hash, key).await?;
        Ok(HttpResponse::Created().json(Enrolled {
            machine_id: view.machine.to_string(),
            machine_name: view.name,
        }))
    })
    .await
}

/// Connect an agent (WebSocket; see `web-openapi/src/agent.rs` for the messages).
#[utoipa::path(tag = "agent", responses((status = 101, description = "Switching to WebSocket"), Problems))]
#[get("/v1/agent/connect")]
pub(crate) async fn connect_agent(
    shared: Data<Shared>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Fault> {
    let (reply, session, stream) = actix_ws::handle(&request, payload).map_err(|e| {
        Fault::new(
            Code::MalformedRequest,
            format!("This route speaks WebSocket: {e}."),
        )
    })?;
    let stream = stream.max_frame_size(web_openapi::agent::MAX_MESSAGE_BYTES);
    let stream = stream.aggregate_continuations();
    let stream = stream.max_continuation_size(web_openapi::agent::MAX_MESSAGE_BYTES);
    actix_web::rt::spawn(link::run(shared, session, stream));
    Ok(reply)
}
