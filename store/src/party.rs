//! Parties, users, memberships.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{PartyId, UserId};
use domain::party::{Role, StaffRole};
use uuid::Uuid;

use crate::convert::{parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{app_user, membership as member, party};

/// A new user with a party of its own.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The user.
    pub user: UserId,
    /// In lower case.
    pub email: String,
    /// argon2id, as a PHC string.
    pub password_hash: String,
    /// The party.
    pub party: PartyId,
    /// Its name.
    pub party_name: String,
    /// The user's role in it.
    pub role: Role,
    /// When.
    pub at: Timestamp,
}

/// A user as log-in needs it.
#[derive(Clone, Debug)]
pub struct UserRecord {
    /// The user.
    pub id: UserId,
    /// argon2id, as a PHC string.
    pub password_hash: String,
}

/// A user's place.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// The party.
    pub party: PartyId,
    /// Role in it.
    pub role: Role,
    /// Role for the operator.
    pub staff: Option<StaffRole>,
}

/// Inserts user, party and membership.
pub async fn insert_user(tx: &mut Tx, new: &NewUser) -> Result<(), Error> {
    let (user, own, at) = (new.user.uuid(), new.party.uuid(), to_pg(new.at));
    diesel::insert_into(app_user::table)
        .values((
            app_user::id.eq(user),
            app_user::email.eq(&new.email),
            app_user::password_hash.eq(&new.password_hash),
            app_user::created_at.eq(at),
        ))
        .execute(tx.sql()?)
        .await?;
    diesel::insert_into(party::table)
        .values((
            party::id.eq(own),
            party::name.eq(&new.party_name),
            party::created_at.eq(at),
        ))
        .execute(tx.sql()?)
        .await?;
    diesel::insert_into(member::table)
        .values((
            member::user_id.eq(user),
            member::party_id.eq(own),
            member::role.eq(new.role.as_str()),
            member::created_at.eq(at),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The user of an e-mail address (lower case).
pub async fn user_by_email(ro: &mut Ro, email: &str) -> Result<Option<UserRecord>, Error> {
    let row: Option<(Uuid, String)> = app_user::table
        .filter(app_user::email.eq(email))
        .select((app_user::id, app_user::password_hash))
        .first(ro.sql()?)
        .await
        .optional()?;
    Ok(row.map(|(id, password_hash)| UserRecord {
        id: UserId::from_uuid(id),
        password_hash,
    }))
}

/// The party and role of a user.
pub async fn membership(ro: &mut Ro, user: UserId) -> Result<Option<Membership>, Error> {
    let row: Option<(Uuid, String, Option<String>)> = member::table
        .inner_join(app_user::table)
        .filter(member::user_id.eq(user.uuid()))
        .order(member::created_at)
        .select((member::party_id, member::role, app_user::staff_role))
        .first(ro.sql()?)
        .await
        .optional()?;
    row.map(|(party, role, staff)| {
        Ok(Membership {
            party: PartyId::from_uuid(party),
            role: parsed("role", role.parse().ok())?,
            staff: staff
                .map(|s| parsed("staff role", s.parse().ok()))
                .transpose()?,
        })
    })
    .transpose()
}

/// The name of a party.
pub async fn party_name(ro: &mut Ro, id: PartyId) -> Result<Option<String>, Error> {
    Ok(party::table
        .find(id.uuid())
        .select(party::name)
        .first(ro.sql()?)
        .await
        .optional()?)
}

/// Gives the user of an e-mail address a role for the operator.
pub async fn set_staff_role(
    tx: &mut Tx,
    email: &str,
    role: StaffRole,
) -> Result<Option<UserId>, Error> {
    let row: Option<Uuid> = diesel::update(app_user::table.filter(app_user::email.eq(email)))
        .set(app_user::staff_role.eq(role.as_str()))
        .returning(app_user::id)
        .get_result(tx.sql()?)
        .await
        .optional()?;
    Ok(row.map(UserId::from_uuid))
}
