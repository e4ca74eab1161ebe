//! Machines and their enrolment tokens.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::machine::{MachineAct, MachineView, TokenView};
use domain::party::DisplayName;
use serde_json::json;
use web_openapi::machine::{
    CreateEnrollmentToken, EnrollmentToken, Machine, MachineAction, MachineActionKind, MachinePage,
};
use web_openapi::page::PageQuery;
use web_openapi::time::to_text;

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{answer, detached, page, view};
use crate::edge::token;
use crate::state::Shared;

/// Make a one-time token for `gpumarket-agent join`. It is shown in this reply only.
#[utoipa::path(tag = "machines", security(("bearer" = [])), request_body = CreateEnrollmentToken,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = EnrollmentToken), Problems))]
#[post("/v1/machines/enrollment-tokens")]
pub(crate) async fn create_enrollment_token(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateEnrollmentToken>,
) -> Result<HttpResponse, Fault> {
    let name: DisplayName = body
        .value
        .machine_name
        .parse()
        .map_err(|e| Fault::field("/machine_name", "malformed", format!("{e}")))?;
    let key = key.on("POST /v1/machines/enrollment-tokens", body.fingerprint);
    let secret = token::make(&shared.keys, token::ENROLLMENT, &auth.0, key.as_ref())
        .map_err(|e| Fault::internal(&e))?;
    detached(async move {
        let render =
            |t: &TokenView| json!({"id": t.id.to_string(), "expires_at": to_text(t.expires_at)});
        let once = Once {
            key,
            status: 201,
            render: &render,
        };
        let hash = token::hash(&secret);
        let answer = app::machine::create_token(&shared.cx, &auth.0, name, hash, once).await?;
        let mut body = answer.body;
        if let Some(fields) = body.as_object_mut() {
            fields.insert("token".to_owned(), secret.into());
        }
        Ok(HttpResponse::Created().json(body))
    })
    .await
}

/// List the party's machines.
#[utoipa::path(tag = "machines", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = MachinePage), Problems))]
#[get("/v1/machines")]
pub(crate) async fn list_machines(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::machine::list(&shared.cx, &auth.0, page::page("machines", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("machines", id));
    let body = MachinePage {
        data: found.rows.iter().map(view::machine).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/machines", &query.0),
        next_cursor.as_deref(),
    ))
}

/// Get a machine of the party.
#[utoipa::path(tag = "machines", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Machine), Problems))]
#[get("/v1/machines/{id}")]
pub(crate) async fn get_machine(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::machine::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok().json(view::machine(&found)))
}

/// List, unlist, drain, maintain or retire a machine. No running lease is ended by it.
#[utoipa::path(tag = "machines", security(("bearer" = [])), request_body = MachineAction,
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = Machine), Problems))]
#[post("/v1/machines/{id}/actions")]
pub(crate) async fn act_on_machine(
    shared: Data<Shared>,
    auth: Auth,
    (id, key): (Path<String>, IdempotencyKey),
    body: Body<MachineAction>,
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    let act = match body.value.kind {
        MachineActionKind::List => MachineAct::List,
        MachineActionKind::Unlist => MachineAct::Unlist,
        MachineActionKind::Drain => MachineAct::Drain,
        MachineActionKind::Maintenance => MachineAct::Maintenance,
        MachineActionKind::Retire => MachineAct::Retire,
    };
    let reason = body
        .value
        .reason
        .filter(|r| !r.trim().is_empty() && r.len() <= 500);
    let reason = reason.unwrap_or_else(|| "asked for by the provider".to_owned());
    let key = key.on("POST /v1/machines/{id}/actions", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 200,
            render: &|v: &MachineView| view::json(&view::machine(v)),
        };
        Ok(answer(
            &app::machine::act(&shared.cx, &auth.0, (id, act, reason), once).await?,
        ))
    })
    .await
}
