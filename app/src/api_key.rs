//! API keys: made, listed, revoked.

use std::collections::BTreeSet;

use domain::access::Scope;
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::{ApiKeyId, UserId};
use domain::party::DisplayName;
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;

/// A new key. The secret itself never gets here, only its hash.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// For people.
    pub name: DisplayName,
    /// What it may do; `None` = all that the caller may.
    pub scopes: Option<BTreeSet<Scope>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// The findable beginning of the secret.
    pub prefix: String,
    /// Hash of the secret.
    pub secret_hash: [u8; 32],
}

/// A key as stored: never the secret.
pub type ApiKeyView = store::api_key::ApiKeyRecord;

/// Makes a key with at most the caller's scopes.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    input: NewKey,
    once: Once<'_, ApiKeyView>,
) -> Result<Answer, Error> {
    caller.may(Scope::KeysWrite, None)?;
    let now = cx.now();
    let scopes = input.scopes.unwrap_or_else(|| caller.actor.scopes.clone());
    if !scopes.is_subset(&caller.actor.scopes) {
        return Err(Error::refused(
            Code::Forbidden,
            "A key cannot have a scope that you lack.",
        ));
    }
    if input.expires_at.is_some_and(|end| end <= now) {
        return Err(Error::field(
            "/expires_at",
            "in_the_past",
            "The end must be in the future.",
        ));
    }
    let key = store::api_key::ApiKeyRecord {
        id: ApiKeyId::from_uuid(cx.id()),
        party: caller.actor.party,
        user: maker(caller)?,
        name: input.name.as_str().to_owned(),
        prefix: input.prefix,
        scopes,
        created_at: now,
        expires_at: input.expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let (key, hash) = (&key, &input.secret_hash);
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        store::api_key::insert(tx, key, hash).await?;
        let what = Audited {
            action: "api_key.create",
            object: key.id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        Ok(key.clone())
    })
    .await
}

/// Only people make keys: a key that makes keys would outlive its own revocation.
fn maker(caller: &Caller) -> Result<UserId, Error> {
    match caller.actor.who {
        ActorRef::User(user) => Ok(user),
        ActorRef::ApiKey(_) | ActorRef::Machine(_) | ActorRef::Market => Err(Error::refused(
            Code::Forbidden,
            "Log in as a person to make API keys.",
        )),
    }
}

/// The party's keys, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<ApiKeyView>, Error> {
    caller.may(Scope::KeysWrite, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::api_key::list(ro, party, page).await?))
        .await
}

/// Revokes a key; it stops working at once. Revoking again changes nothing.
pub async fn revoke(cx: &Cx, caller: &Caller, id: ApiKeyId) -> Result<ApiKeyView, Error> {
    caller.may(Scope::KeysWrite, None)?;
    let now = cx.now();
    let party = caller.actor.party;
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let key = store::api_key::revoke(tx, party, id, now)
                .await?
                .ok_or_else(|| Error::not_found("API key"))?;
            let what = Audited {
                action: "api_key.revoke",
                object: id.to_string(),
                reason: "by request",
            };
            store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
            Ok(key)
        })
        .await
}
