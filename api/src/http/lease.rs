//! Leases: booking, watching, acting.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::lease::{LeaseAct, LeaseView, NewLease};
use domain::refusal::Code;
use serde::Deserialize;
use store::lease::Workload;
use store::lease_event::LeaseEventRecord;
use utoipa::IntoParams;
use web_openapi::event::{LeaseEvent, LeaseEventPage};
use web_openapi::lease::{
    CreateLease, Lease, LeaseAction, LeaseActionKind, LeaseLogs, LeasePage,
    Workload as WireWorkload,
};
use web_openapi::page::PageQuery;
use web_openapi::time::{from_text, to_text};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::offer::within;
use super::once::IdempotencyKey;
use super::version::{IfMatch, stamp};
use super::{answer, detached, page, view};
use crate::state::Shared;

fn workload(w: WireWorkload) -> Result<Workload, Fault> {
    let image_fits = !w.image.is_empty()
        && w.image.len() <= 500
        && w.image.bytes().all(|b| b.is_ascii_graphic());
    if !image_fits {
        return Err(Fault::field(
            "/workload/image",
            "malformed",
            "Must be an image reference without blanks.",
        ));
    }
    within("/workload/command", w.command.len(), 0..=256)?;
    within("/workload/env", w.env.len(), 0..=256)?;
    let name_fits = |n: &String| !n.is_empty() && !n.contains(['=', '\0']) && n.len() <= 256;
    let no_nul = |t: &String| !t.contains('\0') && t.len() <= 65_536;
    if let Some(bad) = w.env.iter().find(|(n, v)| !name_fits(n) || !no_nul(v)) {
        return Err(Fault::field(
            &format!("/workload/env/{}", bad.0),
            "malformed",
            "Not an environment variable.",
        ));
    }
    if !w.command.iter().all(no_nul) {
        return Err(Fault::field(
            "/workload/command",
            "malformed",
            "An argument cannot be passed on.",
        ));
    }
    Ok(Workload {
        image: w.image,
        command: w.command,
        env: w.env,
    })
}

/// Book a quote: exactly its price, or 409 and nothing is charged.
#[utoipa::path(tag = "leases", security(("bearer" = [])), request_body = CreateLease,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Lease), Problems))]
#[post("/v1/leases")]
pub(crate) async fn book_lease(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateLease>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let end = |t: &String| {
        from_text(t).ok_or_else(|| Fault::field("/end_at", "malformed", "Must be RFC 3339."))
    };
    let amount = |m: &web_openapi::money::Money| {
        m.parse()
            .map(|m| m.amount)
            .map_err(|e| Fault::field("/max_spend", "malformed", format!("{e}")))
    };
    within(
        "/label",
        input.label.as_ref().map_or(0, String::len),
        0..=100,
    )?;
    let new = NewLease {
        quote: Id::field("/quote_id", &input.quote_id)?,
        workload: workload(input.workload)?,
        label: input.label,
        max_spend: input.max_spend.as_ref().map(amount).transpose()?,
        end_at: input.end_at.as_ref().map(end).transpose()?,
    };
    let key = key.on("POST /v1/leases", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|v: &LeaseView| view::json(&view::lease(v)),
        };
        Ok(answer(
            &app::lease::book(&shared.cx, &auth.0, new, once).await?,
        ))
    })
    .await
}

/// Which leases.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LeaseQuery {
    /// Rows wanted.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    #[param(max_length = 200)]
    pub cursor: Option<String>,
    /// Only these states, separated by commas.
    #[param(example = "running,stopped", max_length = 200)]
    pub state: Option<String>,
}

/// List the party's leases, newest first.
#[utoipa::path(tag = "leases", security(("bearer" = [])), params(LeaseQuery),
    responses((status = 200, body = LeasePage), Problems))]
#[get("/v1/leases")]
pub(crate) async fn list_leases(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<LeaseQuery>,
) -> Result<HttpResponse, Fault> {
    let asked = PageQuery {
        limit: query.0.limit,
        cursor: query.0.cursor.clone(),
    };
    let names = query
        .0
        .state
        .as_deref()
        .unwrap_or("")
        .split(',')
        .filter(|s| !s.is_empty());
    let state = |name: &str| {
        name.parse().map_err(|()| {
            Fault::field(
                "query/state",
                "unknown_value",
                format!("`{name}` is no state."),
            )
        })
    };
    let states = names.map(state).collect::<Result<Vec<_>, _>>()?;
    let found =
        app::lease::list(&shared.cx, &auth.0, page::page("leases", &asked)?, &states).await?;
    let next_cursor = found.next.map(|id| page::encode("leases", id));
    let body = LeasePage {
        data: found.rows.iter().map(view::lease).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    let path = match &query.0.state {
        Some(state) => format!("/v1/leases?state={state}"),
        None => "/v1/leases".to_owned(),
    };
    Ok(page::reply(&body, (&path, &asked), next_cursor.as_deref()))
}

/// Get a lease with its cost so far.
#[utoipa::path(tag = "leases", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Lease), Problems))]
#[get("/v1/leases/{id}")]
pub(crate) async fn get_lease(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let body = view::lease(&app::lease::get(&shared.cx, &auth.0, Id::parse(&id)?).await?);
    let mut reply = HttpResponse::Ok();
    stamp(&mut reply, Some(&body.version.into()));
    Ok(reply.json(body))
}

/// Stop, resume, end or resize a lease. Billing ends at the second of a stop or end request.
#[utoipa::path(tag = "leases", security(("bearer" = [])), request_body = LeaseAction,
    params(("id" = String, Path), ("If-Match" = Option<String>, Header), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = Lease), Problems))]
#[post("/v1/leases/{id}/actions")]
pub(crate) async fn act_on_lease(
    shared: Data<Shared>,
    auth: Auth,
    (id, version, key): (Path<String>, IfMatch, IdempotencyKey),
    body: Body<LeaseAction>,
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    let act = act_of(&body.value)?;
    let key = key.on("POST /v1/leases/{id}/actions", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 200,
            render: &|v: &LeaseView| view::json(&view::lease(v)),
        };
        Ok(answer(
            &app::lease::act(&shared.cx, &auth.0, (id, act, version.0), once).await?,
        ))
    })
    .await
}

fn event(e: &LeaseEventRecord) -> LeaseEvent {
    LeaseEvent {
        id: e.id.to_string(),
        at: to_text(e.at),
        from: e.from.map(|s| s.as_str().to_owned()),
        to: e.to.as_str().to_owned(),
        reason: e.reason.as_str().to_owned(),
        detail: e.detail.clone(),
        actor: e.actor_kind.clone(),
    }
}

/// List what happened to a lease, oldest first.
#[utoipa::path(tag = "leases", security(("bearer" = [])), params(("id" = String, Path), PageQuery),
    responses((status = 200, body = LeaseEventPage), Problems))]
#[get("/v1/leases/{id}/events")]
pub(crate) async fn list_lease_events(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let lease = Id::parse(&id)?;
    let found = app::lease::events(
        &shared.cx,
        &auth.0,
        lease,
        page::page("lease-events", &query.0)?,
    )
    .await?;
    let next_cursor = found.next.map(|id| page::encode("lease-events", id));
    let body = LeaseEventPage {
        data: found.rows.iter().map(event).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    let path = format!("/v1/leases/{}/events", id.as_str());
    Ok(page::reply(
        &body,
        (&path, &query.0),
        next_cursor.as_deref(),
    ))
}

/// Which lines of output.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// The last so many lines.
    #[param(minimum = 1, maximum = 1000, default = 200)]
    pub tail: Option<u32>,
    /// Only lines after this time: `next_after` of the reply before.
    #[param(max_length = 64)]
    pub after: Option<String>,
}

/// Read the container's output.
#[utoipa::path(tag = "leases", security(("bearer" = [])), params(("id" = String, Path), LogQuery),
    responses((status = 200, body = LeaseLogs), Problems))]
#[get("/v1/leases/{id}/logs")]
pub(crate) async fn read_lease_logs(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
    query: Query<LogQuery>,
) -> Result<HttpResponse, Fault> {
    let lease: domain::id::LeaseId = Id::parse(&id)?;
    let tail = within("query/tail", query.0.tail.unwrap_or(200), 1..=1_000)?;
    let after = query.0.after.clone();
    if after
        .as_ref()
        .is_some_and(|t| t.len() > 64 || from_text(t).is_none())
    {
        return Err(Fault::field(
            "query/after",
            "malformed",
            "Use `next_after` as it was given.",
        ));
    }
    let machine = app::lease::log_source(&shared.cx, &auth.0, lease).await?;
    let answer = shared
        .hub
        .logs(machine, lease.to_string(), (tail, after.clone()))
        .await;
    let (data, live) = answer
        .ok_or_else(|| {
            Fault::new(
                Code::MachineUnreachable,
                "The machine does not answer right now. The lease goes on.",
            )
            .retry_after(domain::clock::Span::from_secs(5))
        })?
        .map_err(|fault| Fault::new(Code::MachineUnreachable, fault))?;
    let next_after = data.last().map(|l| l.at.clone()).or(after);
    Ok(HttpResponse::Ok().json(LeaseLogs {
        data,
        next_after,
        live,
    }))
}

/// Get the signed statement: store it as it is, verify it with `gpumarket verify`.
#[utoipa::path(tag = "leases", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = serde_json::Value), Problems))]
#[get("/v1/leases/{id}/statement")]
pub(crate) async fn get_lease_statement(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let bytes = app::lease::statement(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .body(bytes))
}

/// The act, if it has the fields that belong to it and no others.
fn act_of(action: &LeaseAction) -> Result<LeaseAct, Fault> {
    let (kind, disk_gib) = (action.kind, action.disk_gib);
    if disk_gib.is_some() && kind != LeaseActionKind::Resize {
        let text = "Only a resize has a size.";
        return Err(Fault::field("/disk_gib", "unexpected", text));
    }
    if action.keep_gpus.is_some() && kind != LeaseActionKind::Stop {
        let text = "Only a stop keeps GPUs.";
        return Err(Fault::field("/keep_gpus", "unexpected", text));
    }
    Ok(match kind {
        LeaseActionKind::Stop => LeaseAct::Stop {
            keep_gpus: action.keep_gpus.unwrap_or(false),
        },
        LeaseActionKind::Resume => LeaseAct::Resume,
        LeaseActionKind::End => LeaseAct::End,
        LeaseActionKind::Resize => LeaseAct::Resize {
            disk_gib: disk_gib.ok_or_else(|| {
                Fault::field("/disk_gib", "missing", "A resize needs the new size.")
            })?,
        },
    })
}
