//! The audit log: append-only.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::audit::AuditLine;

use crate::convert::to_pg;
use crate::db::Tx;
use crate::error::Error;
use crate::schema::audit_event;

/// Writes a line; it commits with the effect that it describes.
pub async fn insert(tx: &mut Tx, line: &AuditLine) -> Result<(), Error> {
    insert_all(tx, std::slice::from_ref(line)).await
}

/// Writes several lines.
pub async fn insert_all(tx: &mut Tx, lines: &[AuditLine]) -> Result<(), Error> {
    let row = |line: &AuditLine| {
        (
            audit_event::id.eq(line.id.uuid()),
            audit_event::at.eq(to_pg(line.at)),
            audit_event::party_id.eq(line.party.map(domain::id::PartyId::uuid)),
            audit_event::actor_kind.eq(line.actor.kind()),
            audit_event::actor_id.eq(line.actor.id()),
            audit_event::action.eq(line.action),
            audit_event::object.eq(line.object.clone()),
            audit_event::reason.eq(line.reason.clone()),
            audit_event::request_id.eq(line.request_id.clone()),
        )
    };
    diesel::insert_into(audit_event::table)
        .values(lines.iter().map(row).collect::<Vec<_>>())
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
