//! Who parties are on documents.

use billing::invoice::Identity;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::PartyId;
use uuid::Uuid;

use crate::convert::{from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{billing_profile, party};

/// A party's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRecord {
    /// The party.
    pub party: PartyId,
    /// What documents say of it.
    pub identity: Identity,
    /// Counts up with each change; 0: there is none yet, the party's name stands in.
    pub version: i64,
    /// When it last changed; when the party was made, if never.
    pub updated_at: Timestamp,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = billing_profile, treat_none_as_null = true)]
struct Row {
    party_id: Uuid,
    legal_name: String,
    address: Vec<String>,
    country: Option<String>,
    vat_id: Option<String>,
    version: i64,
    updated_at: PgTimestamp,
}

/// The profile of a party; made of the party's name if it has none. `None`: no such party.
pub async fn get(ro: &mut Ro, id: PartyId) -> Result<Option<ProfileRecord>, Error> {
    let row: Option<(String, PgTimestamp, Option<Row>)> = party::table
        .left_join(billing_profile::table)
        .filter(party::id.eq(id.uuid()))
        .select((party::name, party::created_at, Option::<Row>::as_select()))
        .first(ro.sql()?)
        .await
        .optional()?;
    Ok(row.map(|(name, created_at, row)| match row {
        Some(row) => ProfileRecord {
            party: id,
            identity: Identity {
                name: row.legal_name,
                address: row.address,
                country: row.country,
                vat_id: row.vat_id,
            },
            version: row.version,
            updated_at: from_pg(row.updated_at),
        },
        None => ProfileRecord {
            party: id,
            identity: Identity {
                name,
                ..Identity::default()
            },
            version: 0,
            updated_at: from_pg(created_at),
        },
    }))
}

/// Saves a profile at the version that it has.
pub async fn save(tx: &mut Tx, record: &ProfileRecord) -> Result<(), Error> {
    let identity = &record.identity;
    let row = Row {
        party_id: record.party.uuid(),
        legal_name: identity.name.clone(),
        address: identity.address.clone(),
        country: identity.country.clone(),
        vat_id: identity.vat_id.clone(),
        version: record.version,
        updated_at: to_pg(record.updated_at),
    };
    diesel::insert_into(billing_profile::table)
        .values(&row)
        .on_conflict(billing_profile::party_id)
        .do_update()
        .set(&row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
