//! API keys.

use std::collections::BTreeSet;

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, delete, get, post};
use app::api_key::{ApiKeyView, NewKey};
use app::context::Once;
use domain::access::Scope;
use domain::party::DisplayName;
use web_openapi::api_key::{ApiKey, ApiKeyPage, CreateApiKey, CreatedApiKey};
use web_openapi::page::PageQuery;
use web_openapi::time::{from_text, to_text};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{detached, page};
use crate::edge::token;
use crate::state::Shared;

fn view(k: &ApiKeyView) -> ApiKey {
    ApiKey {
        id: k.id.to_string(),
        name: k.name.clone(),
        prefix: k.prefix.clone(),
        scopes: k.scopes.iter().map(|s| s.as_str().to_owned()).collect(),
        created_at: to_text(k.created_at),
        expires_at: k.expires_at.map(to_text),
        last_used_at: k.last_used_at.map(to_text),
        revoked_at: k.revoked_at.map(to_text),
    }
}

fn scopes(names: &[String]) -> Result<BTreeSet<Scope>, Fault> {
    let one = |(place, name): (usize, &String)| {
        name.parse().map_err(|()| {
            let known: Vec<&str> = Scope::ALL.iter().map(|s| s.as_str()).collect();
            let text = format!("Known scopes: {}.", known.join(", "));
            Fault::field(&format!("/scopes/{place}"), "unknown_value", text)
        })
    };
    names.iter().enumerate().map(one).collect()
}

/// Make an API key. Its secret is shown in this reply only.
#[utoipa::path(tag = "api-keys", security(("bearer" = [])), request_body = CreateApiKey,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = CreatedApiKey), Problems))]
#[post("/v1/api-keys")]
pub(crate) async fn create_api_key(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateApiKey>,
) -> Result<HttpResponse, Fault> {
    let once = key.on("POST /v1/api-keys", body.fingerprint);
    let secret = token::make(&shared.keys, token::API_KEY, &auth.0, once.as_ref())
        .map_err(|e| Fault::internal(&e))?;
    let name: DisplayName = body
        .value
        .name
        .parse()
        .map_err(|e| Fault::field("/name", "malformed", format!("{e}")))?;
    let ends = |text: &String| {
        from_text(text).ok_or_else(|| Fault::field("/expires_at", "malformed", "Must be RFC 3339."))
    };
    let new = NewKey {
        name,
        scopes: body.value.scopes.as_deref().map(scopes).transpose()?,
        expires_at: body.value.expires_at.as_ref().map(ends).transpose()?,
        prefix: secret.chars().take(12).collect(),
        secret_hash: token::hash(&secret),
    };
    detached(async move {
        let render = |k: &ApiKeyView| super::view::json(&view(k));
        let once = Once {
            key: once,
            status: 201,
            render: &render,
        };
        let answer = app::api_key::create(&shared.cx, &auth.0, new, once).await?;
        let key: ApiKey = serde_json::from_value(answer.body)
            .map_err(|_never| Fault::internal("a stored answer cannot be read"))?;
        Ok(HttpResponse::Created().json(CreatedApiKey { key, secret }))
    })
    .await
}

/// List the party's API keys.
#[utoipa::path(tag = "api-keys", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = ApiKeyPage), Problems))]
#[get("/v1/api-keys")]
pub(crate) async fn list_api_keys(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::api_key::list(&shared.cx, &auth.0, page::page("api-keys", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("api-keys", id));
    let body = ApiKeyPage {
        data: found.rows.iter().map(view).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/api-keys", &query.0),
        next_cursor.as_deref(),
    ))
}

/// Revoke an API key: it stops working at once.
#[utoipa::path(tag = "api-keys", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = ApiKey), Problems))]
#[delete("/v1/api-keys/{id}")]
pub(crate) async fn revoke_api_key(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let id = Id::parse(&id)?;
    detached(async move {
        let key = app::api_key::revoke(&shared.cx, &auth.0, id).await?;
        Ok(HttpResponse::Ok().json(view(&key)))
    })
    .await
}
