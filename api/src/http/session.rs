//! Registration, log-in, who one is, and the keys that tokens are verified with.

use actix_web::web::{Data, block};
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::party::{MeView, Register as RegisterInput};
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use domain::audit::ActorRef;
use domain::clock::Span;
use domain::id::UserId;
use domain::party::{DisplayName, Email};
use domain::refusal::Code;
use std::time::Duration;
use tokio::sync::Semaphore;
use web_openapi::session::{Login, Me, Register, Session};

use super::auth::Auth;
use super::body::Body;
use super::docs::Problems;
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{detached, request_id};
use crate::edge::keys::TOKEN_SECONDS;
use crate::state::Shared;

/// A hash that no password has: checking against it takes the time that checking always takes.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$YWFhYWFhYWFhYWFhYWFhYQ$\
    zC5jGqVTIMnDD3RQbWQRjOMmU3HVIsMzd5j0OaIUcuM";

fn me_view(shared: &Shared, view: &MeView) -> Me {
    let (user, key) = match view.who {
        ActorRef::User(id) => (Some(id.to_string()), None),
        ActorRef::ApiKey(id) => (None, Some(id.to_string())),
        ActorRef::Machine(_) | ActorRef::Market => (None, None),
    };
    Me {
        user_id: user,
        api_key_id: key,
        party_id: view.party.to_string(),
        party_name: view.party_name.clone(),
        role: view.role.as_str().to_owned(),
        scopes: view.scopes.iter().map(|s| s.as_str().to_owned()).collect(),
        staff_role: view.staff.map(|s| s.as_str().to_owned()),
        statement_key: shared.keys.public_hex(),
    }
}

fn session(shared: &Shared, user: UserId, me: Me) -> Result<Session, Fault> {
    let token = shared.keys.token(user, shared.cx.now());
    Ok(Session {
        access_token: token.map_err(|e| Fault::internal(&e))?,
        token_type: "Bearer".to_owned(),
        expires_in_seconds: TOKEN_SECONDS,
        me,
    })
}

/// Each takes 19 MiB for as long as it runs: so many at once, the others wait their turn.
static TURNS: Semaphore = Semaphore::const_new(4);

/// Runs slow work with a password away from the threads that serve.
async fn slowly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Fault> {
    let busy = |_late| {
        Fault::new(Code::Unavailable, "Too many log-ins at once.").retry_after(Span::from_secs(2))
    };
    let turn = tokio::time::timeout(Duration::from_secs(5), TURNS.acquire())
        .await
        .map_err(busy)?
        .map_err(|_closed| Fault::internal("no turn for a password"))?;
    let done = block(work).await;
    drop(turn);
    done.map_err(|_gone| Fault::internal("a password was not worked on"))
}

async fn hash(password: String) -> Result<String, Fault> {
    slowly(move || {
        Argon2::default()
            .hash_password(password.as_bytes())
            .map(|h| h.to_string())
    })
    .await?
    .map_err(|_bad| Fault::internal("a password was not hashed"))
}

fn is_right(password: &str, stored: &str) -> bool {
    PasswordHash::new(stored).is_ok_and(|hash| {
        Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok()
    })
}

/// Register a person with a party of its own.
#[utoipa::path(tag = "auth", request_body = Register,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Session), Problems))]
#[post("/v1/auth/register")]
pub(crate) async fn register(
    shared: Data<Shared>,
    key: IdempotencyKey,
    body: Body<Register>,
) -> Result<HttpResponse, Fault> {
    let (input, fingerprint) = (body.value, body.fingerprint);
    let email: Email = input
        .email
        .parse()
        .map_err(|e| Fault::field("/email", "malformed", format!("{e}")))?;
    let party_name: DisplayName = input
        .party_name
        .parse()
        .map_err(|e| Fault::field("/party_name", "malformed", format!("{e}")))?;
    if !(12..=200).contains(&input.password.chars().count()) {
        return Err(Fault::field(
            "/password",
            "out_of_range",
            "Must have 12 to 200 characters.",
        ));
    }
    let password_hash = hash(input.password).await?;
    // Keyed: the fingerprint is stored, and a bare hash of the body would tell guesses at the password.
    let fingerprint = shared.keys.derive(&fingerprint);
    detached(async move {
        let key = key.on("POST /v1/auth/register", fingerprint);
        let render = |view: &MeView| super::view::json(&me_view(&shared, view));
        let once = Once {
            key,
            status: 201,
            render: &render,
        };
        let new = RegisterInput {
            email,
            password_hash,
            party_name,
        };
        let answer = app::party::register(&shared.cx, &request_id(), new, once).await?;
        let me: Me = serde_json::from_value(answer.body)
            .map_err(|_never| Fault::internal("a stored answer cannot be read"))?;
        let user = me.user_id.as_deref().and_then(|id| id.parse().ok());
        let user = user.ok_or_else(|| Fault::internal("a user without an id"))?;
        Ok(HttpResponse::Created().json(session(&shared, user, me)?))
    })
    .await
}

/// Log in with e-mail address and password.
#[utoipa::path(tag = "auth", request_body = Login, responses((status = 200, body = Session), Problems))]
#[post("/v1/auth/login")]
pub(crate) async fn login(shared: Data<Shared>, body: Body<Login>) -> Result<HttpResponse, Fault> {
    let found = app::party::credentials(&shared.cx, &body.value.email).await?;
    let stored = found
        .as_ref()
        .map_or_else(|| NOBODY.to_owned(), |f| f.password_hash.clone());
    let password = body.value.password;
    let right = slowly(move || is_right(&password, &stored)).await?;
    let user = found
        .filter(|_| right)
        .map(|f| f.user)
        .ok_or_else(|| Fault::new(Code::BadLogin, "E-mail address or password is wrong."))?;
    let me = me_view(&shared, &app::party::me_of_user(&shared.cx, user).await?);
    Ok(HttpResponse::Ok().json(session(&shared, user, me)?))
}

/// The keys that access tokens are verified with (RFC 7517).
#[utoipa::path(tag = "auth", responses((status = 200, body = serde_json::Value), Problems))]
#[get("/v1/auth/jwks")]
pub(crate) async fn get_jwks(shared: Data<Shared>) -> HttpResponse {
    HttpResponse::Ok().json(shared.keys.jwks())
}

/// Who one is.
#[utoipa::path(tag = "auth", security(("bearer" = [])), responses((status = 200, body = Me), Problems))]
#[get("/v1/me")]
pub(crate) async fn get_me(shared: Data<Shared>, auth: Auth) -> Result<HttpResponse, Fault> {
    let view = app::party::me(&shared.cx, &auth.0).await?;
    Ok(HttpResponse::Ok().json(me_view(&shared, &view)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_costs_the_same_as_a_wrong_password() {
        let hash = PasswordHash::new(NOBODY).unwrap();
        let salt = argon2::password_hash::phc::Salt::from_b64("YWFhYWFhYWFhYWFhYWFhYQ").unwrap();
        let ours = Argon2::default()
            .hash_password_with_salt(b"any", salt.as_ref())
            .unwrap();
        assert_eq!(hash.algorithm, ours.algorithm);
        assert_eq!(hash.params, ours.params);
        assert_eq!(hash.version, ours.version);
        assert!(!is_right("", NOBODY));
    }

    #[actix_web::test]
    async fn a_password_is_right_or_wrong() {
        let stored = hash("correct horse battery".to_owned()).await.unwrap();
        assert!(is_right("correct horse battery", &stored));
        assert!(!is_right("correct horse batterz", &stored));
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
    }
}
