//! Registration, log-in, and who acts.

use std::collections::BTreeSet;

use domain::access::{Actor, Scope};
use domain::audit::{ActorRef, AuditLine};
use domain::id::{AuditId, PartyId, UserId};
use domain::party::{DisplayName, Email, Role, StaffRole};
use domain::refusal::Code;
use store::db::Tx;
use store::error::Constraint;

use crate::context::{Answer, Audited, Caller, Cx, Once};
use crate::error::Error;

/// A new user with a party of its own.
#[derive(Clone, Debug)]
pub struct Register {
    /// Log-in name.
    pub email: Email,
    /// argon2id, as a PHC string.
    pub password_hash: String,
    /// Name of the party.
    pub party_name: DisplayName,
}

/// What checking a password needs.
#[derive(Clone, Debug)]
pub struct LoginView {
    /// The user.
    pub user: UserId,
    /// argon2id, as a PHC string.
    pub password_hash: String,
}

/// Who one is.
#[derive(Clone, Debug)]
pub struct MeView {
    /// Person or key.
    pub who: ActorRef,
    /// The party acted for.
    pub party: PartyId,
    /// Its name.
    pub party_name: String,
    /// Role in it.
    pub role: Role,
    /// What the credential may do.
    pub scopes: BTreeSet<Scope>,
    /// The operator's person?
    pub staff: Option<StaffRole>,
}

impl MeView {
    fn of(actor: Actor, party_name: String) -> Self {
        Self {
            who: actor.who,
            party: actor.party,
            party_name,
            role: actor.role,
            scopes: actor.scopes,
            staff: actor.staff,
        }
    }
}

/// Makes a user and its party. The wallet is made with the first top-up.
pub async fn register(
    cx: &Cx,
    request_id: &str,
    input: Register,
    once: Once<'_, MeView>,
) -> Result<Answer, Error> {
    let now = cx.now();
    let (user, party) = (UserId::from_uuid(cx.id()), PartyId::from_uuid(cx.id()));
    let audit = AuditLine {
        id: AuditId::from_uuid(cx.id()),
        at: now,
        party: Some(party),
        actor: ActorRef::User(user),
        action: "party.register",
        object: party.to_string(),
        reason: "registration".to_owned(),
        request_id: Some(request_id.to_owned()),
    };
    let new = store::party::NewUser {
        user,
        email: input.email.as_str().to_owned(),
        password_hash: input.password_hash,
        party,
        party_name: input.party_name.as_str().to_owned(),
        role: Role::Owner,
        at: now,
    };
    let (new, audit, once) = (&new, &audit, &once);
    crate::context::mutate(cx, None, once, now, async |tx: &mut Tx| {
        store::party::insert_user(tx, new).await?;
        store::audit::insert(tx, audit).await?;
        let actor = person(user, party, Role::Owner, None);
        Ok(MeView::of(actor, new.party_name.clone()))
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::EmailTaken) => Error::refused(
            Code::EmailTaken,
            "Log in, or register with another e-mail address.",
        ),
        _ => error,
    })
}

/// The stored password hash for an e-mail address, if there is such a user.
pub async fn credentials(cx: &Cx, email: &str) -> Result<Option<LoginView>, Error> {
    let email = email.to_lowercase();
    let email = &email;
    let user = cx
        .db
        .read::<_, Error, _>(async |ro: &mut store::db::Ro| {
            Ok(store::party::user_by_email(ro, email).await?)
        })
        .await?;
    Ok(user.map(|u| LoginView {
        user: u.id,
        password_hash: u.password_hash,
    }))
}

fn person(user: UserId, party: PartyId, role: Role, staff: Option<StaffRole>) -> Actor {
    let scopes = Scope::of(role).iter().copied().collect();
    Actor {
        who: ActorRef::User(user),
        user,
        party,
        role,
        scopes,
        staff,
    }
}

/// The actor that a logged-in user is.
pub async fn actor_of_user(cx: &Cx, user: UserId) -> Result<Option<Actor>, Error> {
    let member = cx
        .db
        .glance::<_, Error, _>(async |ro: &mut store::db::Ro| {
            Ok(store::party::membership(ro, user).await?)
        })
        .await?;
    Ok(member.map(|m| person(user, m.party, m.role, m.staff)))
}

/// The actor that an API key is, by the hash of its secret; `None` if unknown, revoked or expired.
///
/// A key never has more than the present role of its maker, and never a staff role.
pub async fn actor_of_key(cx: &Cx, secret_hash: &[u8]) -> Result<Option<Actor>, Error> {
    let now = cx.now();
    let found = cx
        .db
        .glance::<_, Error, _>(async |ro: &mut store::db::Ro| {
            Ok(store::api_key::by_hash(ro, secret_hash).await?)
        })
        .await?;
    let Some(key) = found else { return Ok(None) };
    let expired = key.key.expires_at.is_some_and(|end| end <= now);
    if expired || key.key.revoked_at.is_some() {
        return Ok(None);
    }
    let stale = key
        .key
        .last_used_at
        .is_none_or(|used| now.since(used).secs() >= 60);
    if stale {
        let id = key.key.id;
        cx.db
            .write::<_, Error, _>(async |tx: &mut Tx| Ok(store::api_key::touch(tx, id, now).await?))
            .await?;
    }
    let of_role: BTreeSet<Scope> = Scope::of(key.role).iter().copied().collect();
    Ok(Some(Actor {
        who: ActorRef::ApiKey(key.key.id),
        user: key.key.user,
        party: key.key.party,
        role: key.role,
        scopes: key.key.scopes.intersection(&of_role).copied().collect(),
        staff: None,
    }))
}

/// Who the caller is.
pub async fn me(cx: &Cx, caller: &Caller) -> Result<MeView, Error> {
    let party = caller.actor.party;
    let name = cx
        .db
        .read::<_, Error, _>(async |ro: &mut store::db::Ro| {
            Ok(store::party::party_name(ro, party).await?)
        })
        .await?
        .ok_or_else(|| Error::not_found("party"))?;
    Ok(MeView::of(caller.actor.clone(), name))
}

/// Who a user is, after log-in.
pub async fn me_of_user(cx: &Cx, user: UserId) -> Result<MeView, Error> {
    let actor = actor_of_user(cx, user)
        .await?
        .ok_or(Error::Fault("a user without a party"))?;
    me(
        cx,
        &Caller {
            actor,
            request_id: String::new(),
        },
    )
    .await
}

/// Gives a person a role for the operator, with a reason on the record.
pub async fn grant(cx: &Cx, email: &str, role: StaffRole, reason: &str) -> Result<UserId, Error> {
    if reason.trim().is_empty() {
        return Err(Error::field("/reason", "missing", "A reason is needed."));
    }
    let now = cx.now();
    let email = email.to_lowercase();
    let email = &email;
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let user = store::party::set_staff_role(tx, email, role)
                .await?
                .ok_or_else(|| Error::not_found("user"))?;
            let what = Audited {
                action: "staff.grant",
                object: user.to_string(),
                reason,
            };
            store::audit::insert(tx, &cx.audit_by(ActorRef::Market, now, what)).await?;
            Ok(user)
        })
        .await
}
