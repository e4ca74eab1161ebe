//! Accounts: register, log in, log out, and who one is.

use web_openapi::api_key::{CreateApiKey, CreatedApiKey};
use web_openapi::session::{Login, Me, Register, Session};

use crate::client::is_local;
use crate::command::{Login as LoginArgs, LoginHow, Register as RegisterArgs};
use crate::config::Profile;
use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::output::{Output, facts};
use crate::password;

/// Makes an account, then does what a log-in does.
pub(crate) async fn register(
    cx: &mut Context,
    output: &mut Output<'_>,
    args: RegisterArgs,
) -> Result<(), Fault> {
    warn_if_open(cx, output)?;
    let password = password::take(cx, output, args.how.password_stdin)?;
    let request = Register {
        email: args.email,
        password,
        party_name: args.name,
    };
    let anonymous = cx.client.with_key(None);
    let session: Session = anonymous
        .post("/v1/auth/register", &request)
        .await?
        .read()?;
    output.say(&format!("Registered {}.", session.me.party_name))?;
    keep(cx, output, session, &args.how, false).await
}

/// Logs in, makes an API key, stores it, and pins the market's statement key.
pub(crate) async fn login(
    cx: &mut Context,
    output: &mut Output<'_>,
    args: LoginArgs,
) -> Result<(), Fault> {
    warn_if_open(cx, output)?;
    let password = password::take(cx, output, args.how.password_stdin)?;
    let request = Login {
        email: args.email,
        password,
    };
    let anonymous = cx.client.with_key(None);
    let session: Session = anonymous.post("/v1/auth/login", &request).await?.read()?;
    keep(cx, output, session, &args.how, args.trust_new_key).await
}

/// Warns before a password goes over an open line.
pub(crate) fn warn_if_open(cx: &Context, output: &mut Output<'_>) -> Result<(), Fault> {
    let server = cx.client.server();
    if server.starts_with("http://") && !is_local(server) {
        output.note(&format!(
            "warning: {server} is not encrypted: others can read the password on its way"
        ))?;
    }
    Ok(())
}

async fn keep(
    cx: &mut Context,
    output: &mut Output<'_>,
    session: Session,
    how: &LoginHow,
    trust_new_key: bool,
) -> Result<(), Fault> {
    let named = how.key_name.clone();
    let name = named.unwrap_or_else(|| format!("gpumarket on {}", cx.environment.host));
    let request = CreateApiKey {
        name,
        scopes: None,
        expires_at: None,
    };
    let person = cx.client.with_key(Some(session.access_token));
    let made: CreatedApiKey = person.post("/v1/api-keys", &request).await?.read()?;
    let as_key = cx.client.with_key(Some(made.secret.clone()));
    let answer = as_key.get("/v1/me", &[]).await?;
    let me: Me = answer.read()?;
    let pinned = pin(cx, output, &me.statement_key, trust_new_key)?;
    let profile = Profile {
        server: Some(cx.client.server().to_owned()),
        api_key: Some(made.secret),
        statement_key: Some(pinned),
    };
    cx.config.store(&cx.profile_name, &profile)?;
    if cx.is_key_from_environment {
        output.note("warning: GPUMARKET_API_KEY is set and goes before the stored key")?;
    }
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&format!(
        "Logged in to {} as {} ({}). API key {}… is stored in {} (profile `{}`).",
        cx.client.server(),
        me.party_name,
        me.role,
        made.key.prefix,
        cx.config.shown_path(),
        cx.profile_name,
    ))
}

/// The key to pin: the first one seen stays, unless the user says otherwise.
fn pin(
    cx: &Context,
    output: &mut Output<'_>,
    shown: &str,
    trust_new_key: bool,
) -> Result<String, Fault> {
    let pinned = cx.profile.statement_key.as_ref();
    match pinned.filter(|_key| cx.is_own_market() && !trust_new_key) {
        Some(pinned) if pinned != shown => {
            output.note(&format!(
                "warning: the market's statement key is not the pinned one.\n\
                 \x20 pinned: {pinned}\n  shown:  {shown}\n\
                 The pinned one stays. If the operator confirms the new one: login --trust-new-key"
            ))?;
            Ok(pinned.clone())
        }
        Some(_) | None => Ok(shown.to_owned()),
    }
}

/// Revokes the stored key and forgets it.
pub(crate) async fn logout(cx: &mut Context, output: &mut Output<'_>) -> Result<(), Fault> {
    let stored = cx.profile.api_key.clone().filter(|_key| cx.is_own_market());
    let Some(key) = stored else {
        let name = &cx.profile_name;
        return Err(Local::new(
            "not_logged_in",
            format!(
                "Profile `{name}` has no API key for {}.",
                cx.client.server()
            ),
        )
        .into());
    };
    let revoked = revoke_own(cx, key).await;
    let profile = Profile {
        api_key: None,
        ..cx.profile.clone()
    };
    let body = match revoked {
        Ok(body) => body,
        // A key that the market does not know any more needs no revoking.
        Err(fault) if fault.code() == Some("unauthenticated") => Vec::new(),
        Err(fault) => return Err(fault),
    };
    cx.config.store(&cx.profile_name, &profile)?;
    if output.json() {
        return output.document(&body);
    }
    output.say(&format!(
        "Logged out of {}: the API key is revoked.",
        cx.client.server()
    ))
}

async fn revoke_own(cx: &Context, key: String) -> Result<Vec<u8>, Fault> {
    let client = cx.client.with_key(Some(key));
    let me: Me = client.get("/v1/me", &[]).await?.read()?;
    match me.api_key_id {
        Some(id) => Ok(client.delete(&format!("/v1/api-keys/{id}")).await?.body),
        None => Ok(Vec::new()),
    }
}

/// Shows who one is.
pub(crate) async fn whoami(cx: &Context, output: &mut Output<'_>) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/me", &[]).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let me: Me = answer.read()?;
    let pinned = match &cx.profile.statement_key {
        Some(key) if *key == me.statement_key => "pinned",
        Some(_) => "NOT the pinned one",
        None => "not pinned",
    };
    output.table(&facts([
        ("market", Some(cx.client.server().to_owned())),
        ("profile", Some(cx.profile_name.clone())),
        (
            "party",
            Some(format!("{} ({})", me.party_name, me.party_id)),
        ),
        ("user", me.user_id),
        ("API key", me.api_key_id),
        ("role", Some(me.role)),
        ("staff role", me.staff_role),
        ("scopes", Some(me.scopes.join(" "))),
        (
            "statement key",
            Some(format!("{} ({pinned})", me.statement_key)),
        ),
    ]))
}
