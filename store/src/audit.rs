//! The audit log: append-only.

use diesel::sql_types as sql;
use domain::audit::AuditLine;

use crate::bulk::bulk;
use crate::convert::to_pg;
use crate::db::Tx;
use crate::error::Error;

/// Writes a line; it commits with the effect that it describes.
pub async fn insert(tx: &mut Tx, line: &AuditLine) -> Result<(), Error> {
    insert_all(tx, std::slice::from_ref(line)).await
}

/// Writes several lines.
pub async fn insert_all(tx: &mut Tx, lines: &[AuditLine]) -> Result<(), Error> {
    bulk!(tx, "audit_event", lines, {
        id: sql::Uuid = |line| line.id.uuid(),
        at: sql::Timestamptz = |line| to_pg(line.at),
        party_id: sql::Nullable<sql::Uuid> = |line| line.party.map(domain::id::PartyId::uuid),
        actor_kind: sql::Text = |line| line.actor.kind(),
        actor_id: sql::Text = |line| line.actor.id(),
        action: sql::Text = |line| line.action,
        object: sql::Text = |line| line.object.clone(),
        reason: sql::Text = |line| line.reason.clone(),
        request_id: sql::Nullable<sql::Text> = |line| line.request_id.clone(),
    });
    Ok(())
}
