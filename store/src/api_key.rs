//! API keys: the hash of the secret, never the secret.

use std::collections::BTreeSet;

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::access::Scope;
use domain::clock::{Span, Timestamp};
use domain::id::{ApiKeyId, PartyId, UserId};
use domain::party::Role;
use uuid::Uuid;

use crate::convert::{from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::{api_key, membership};

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// Its id.
    pub id: ApiKeyId,
    /// Whose it is.
    pub party: PartyId,
    /// Who made it.
    pub user: UserId,
    /// For people.
    pub name: String,
    /// The findable beginning of the secret.
    pub prefix: String,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A key with the present role of its maker.
#[derive(Clone, Debug)]
pub struct ApiKeyWithRole {
    /// The key.
    pub key: ApiKeyRecord,
    /// Its maker's role in the party now.
    pub role: Role,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_key)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    user_id: Uuid,
    name: String,
    prefix: String,
    scopes: Vec<String>,
    created_at: PgTimestamp,
    expires_at: Option<PgTimestamp>,
    last_used_at: Option<PgTimestamp>,
    revoked_at: Option<PgTimestamp>,
}

impl Row {
    fn record(self) -> Result<ApiKeyRecord, Error> {
        let scopes = self.scopes.iter().map(|s| parsed("scope", s.parse().ok()));
        Ok(ApiKeyRecord {
            id: ApiKeyId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            user: UserId::from_uuid(self.user_id),
            name: self.name,
            prefix: self.prefix,
            scopes: scopes.collect::<Result<_, _>>()?,
            created_at: from_pg(self.created_at),
            expires_at: self.expires_at.map(from_pg),
            last_used_at: self.last_used_at.map(from_pg),
            revoked_at: self.revoked_at.map(from_pg),
        })
    }
}

/// Inserts a key with the hash of its secret.
pub async fn insert(tx: &mut Tx, key: &ApiKeyRecord, secret_hash: &[u8]) -> Result<(), Error> {
    let scopes: Vec<&str> = key.scopes.iter().map(|s| s.as_str()).collect();
    diesel::insert_into(api_key::table)
        .values((
            api_key::id.eq(key.id.uuid()),
            api_key::party_id.eq(key.party.uuid()),
            api_key::user_id.eq(key.user.uuid()),
            api_key::name.eq(&key.name),
            api_key::prefix.eq(&key.prefix),
            api_key::secret_hash.eq(secret_hash),
            api_key::scopes.eq(scopes),
            api_key::created_at.eq(to_pg(key.created_at)),
            api_key::expires_at.eq(key.expires_at.map(to_pg)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The key of a secret's hash.
pub async fn by_hash(ro: &mut Ro, secret_hash: &[u8]) -> Result<Option<ApiKeyWithRole>, Error> {
    let row: Option<(Row, String)> = api_key::table
        .inner_join(
            membership::table.on(membership::user_id
                .eq(api_key::user_id)
                .and(membership::party_id.eq(api_key::party_id))),
        )
        .filter(api_key::secret_hash.eq(secret_hash))
        .select((Row::as_select(), membership::role))
        .first(ro.sql()?)
        .await
        .optional()?;
    row.map(|(row, role)| {
        Ok(ApiKeyWithRole {
            key: row.record()?,
            role: parsed("role", role.parse().ok())?,
        })
    })
    .transpose()
}

/// The party's keys, newest first.
pub async fn list(ro: &mut Ro, party: PartyId, page: Page) -> Result<Paged<ApiKeyRecord>, Error> {
    let mut query = api_key::table
        .filter(api_key::party_id.eq(party.uuid()))
        .order(api_key::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(api_key::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |k: &ApiKeyRecord| k.id.uuid()))
}

/// Revokes a key of the party; the first time counts.
pub async fn revoke(
    tx: &mut Tx,
    party: PartyId,
    id: ApiKeyId,
    now: Timestamp,
) -> Result<Option<ApiKeyRecord>, Error> {
    let own = api_key::table.filter(
        api_key::id
            .eq(id.uuid())
            .and(api_key::party_id.eq(party.uuid())),
    );
    diesel::update(own.filter(api_key::revoked_at.is_null()))
        .set(api_key::revoked_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    let row: Option<Row> = own
        .select(Row::as_select())
        .first(tx.sql()?)
        .await
        .optional()?;
    row.map(Row::record).transpose()
}

/// Notes the use of a key, at most once a minute: the row is read with every request.
pub async fn touch(tx: &mut Tx, id: ApiKeyId, now: Timestamp) -> Result<(), Error> {
    let minute_ago = to_pg(now.minus(Span::from_mins(1)));
    let stale = api_key::last_used_at
        .is_null()
        .or(api_key::last_used_at.lt(minute_ago));
    diesel::update(
        api_key::table
            .filter(api_key::id.eq(id.uuid()))
            .filter(stale),
    )
    .set(api_key::last_used_at.eq(to_pg(now)))
    .execute(tx.sql()?)
    .await?;
    Ok(())
}
