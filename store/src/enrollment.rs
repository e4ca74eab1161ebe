//! One-time enrolment tokens: the hash of the token, never the token.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{EnrollmentId, MachineId, PartyId};
use uuid::Uuid;

use crate::convert::{from_pg, to_pg};
use crate::db::Tx;
use crate::error::Error;
use crate::schema::enrollment;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrollmentRecord {
    /// Its id.
    pub id: EnrollmentId,
    /// Whose machine it makes.
    pub party: PartyId,
    /// Name of that machine.
    pub machine_name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// It can be used before this.
    pub expires_at: Timestamp,
    /// What it became.
    pub machine: Option<MachineId>,
}

/// Inserts a token with its hash.
pub async fn insert(tx: &mut Tx, record: &EnrollmentRecord, hash: &[u8]) -> Result<(), Error> {
    diesel::insert_into(enrollment::table)
        .values((
            enrollment::id.eq(record.id.uuid()),
            enrollment::party_id.eq(record.party.uuid()),
            enrollment::token_hash.eq(hash),
            enrollment::machine_name.eq(&record.machine_name),
            enrollment::created_at.eq(to_pg(record.created_at)),
            enrollment::expires_at.eq(to_pg(record.expires_at)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

type Row = (Uuid, Uuid, String, PgTimestamp, PgTimestamp, Option<Uuid>);

/// Locks and gives the token of a hash.
pub async fn by_token_hash_for_update(
    tx: &mut Tx,
    hash: &[u8],
) -> Result<Option<EnrollmentRecord>, Error> {
    let row: Option<Row> = enrollment::table
        .filter(enrollment::token_hash.eq(hash))
        .select((
            enrollment::id,
            enrollment::party_id,
            enrollment::machine_name,
            enrollment::created_at,
            enrollment::expires_at,
            enrollment::machine_id,
        ))
        .for_update()
        .first(tx.sql()?)
        .await
        .optional()?;
    Ok(row.map(
        |(id, party, machine_name, created_at, expires_at, machine)| EnrollmentRecord {
            id: EnrollmentId::from_uuid(id),
            party: PartyId::from_uuid(party),
            machine_name,
            created_at: from_pg(created_at),
            expires_at: from_pg(expires_at),
            machine: machine.map(MachineId::from_uuid),
        },
    ))
}

/// Notes what a token became.
pub async fn spend(tx: &mut Tx, id: EnrollmentId, machine: MachineId) -> Result<(), Error> {
    diesel::update(enrollment::table.find(id.uuid()))
        .set(enrollment::machine_id.eq(machine.uuid()))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
