//! Who asks: a bearer token of a person, or an API key.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use app::Caller;
use domain::id::PartyId;
use domain::refusal::Code;

use super::fault::Fault;
use super::request_id;
use crate::edge::token;
use crate::state::Shared;

/// Left on a request by [`Auth`]: the party whose credential is good.
#[derive(Clone, Copy, Debug)]
pub struct Proven(pub PartyId);

/// The credential of an `Authorization: Bearer` header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credential) = text.split_once(' ')?;
    let credential = credential.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !credential.is_empty()).then_some(credential)
}

/// The caller, proven.
#[derive(Clone, Debug)]
pub struct Auth(pub Caller);

impl FromRequest for Auth {
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Fault>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let shared = request.app_data::<web::Data<Shared>>().cloned();
        let credential = bearer(request.headers()).map(str::to_owned);
        let request = request.clone();
        Box::pin(async move {
            let shared = shared.ok_or_else(|| Fault::internal("no state"))?;
            let bearer = credential.as_deref().ok_or_else(missing)?;
            let actor = if bearer.starts_with(token::API_KEY) {
                app::party::actor_of_key(&shared.cx, &token::hash(bearer)).await?
            } else {
                match shared.keys.user_of(bearer, shared.cx.now()) {
                    Some(user) => app::party::actor_of_user(&shared.cx, user).await?,
                    None => None,
                }
            };
            let actor = actor.ok_or_else(|| {
                Fault::new(
                    Code::Unauthenticated,
                    "The credential is not known, over or revoked.",
                )
                .suggesting("Log in with POST /v1/auth/login, or make an API key.")
            })?;
            request.extensions_mut().insert(Proven(actor.party));
            Ok(Self(Caller {
                actor,
                request_id: request_id(),
            }))
        })
    }
}

fn missing() -> Fault {
    Fault::new(
        Code::Unauthenticated,
        "Send `Authorization: Bearer …` with a token or an API key.",
    )
    .suggesting("Log in with POST /v1/auth/login.")
}
