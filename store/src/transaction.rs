//! Everything that moved on a party's accounts, transfers and charges in one list.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::PartyId;
use domain::money::Micros;
use uuid::Uuid;

use billing::account::AccountCode;
use billing::transfer::TransferKind;

use crate::convert::{from_pg, parsed};
use crate::db::Ro;
use crate::error::Error;
use crate::page::{Page, Paged};

/// One movement on one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    /// Of the transfer or charge.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// A transfer's kind; `None` for a charge.
    pub kind: Option<TransferKind>,
    /// Which account.
    pub account: AccountCode,
    /// Positive: the account grew.
    pub amount: Micros,
    /// The lease (charge) or operation (transfer) behind it.
    pub cause: Uuid,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    at: PgTimestamp,
    #[diesel(sql_type = Nullable<SmallInt>)]
    kind: Option<i16>,
    #[diesel(sql_type = SmallInt)]
    code: i16,
    #[diesel(sql_type = BigInt)]
    amount: i64,
    #[diesel(sql_type = SqlUuid)]
    cause: Uuid,
}

const LIST: &str = "
WITH own AS (SELECT id, code, CASE WHEN code IN (120, 130) THEN -1 ELSE 1 END AS side
               FROM account WHERE owner = $1)
SELECT id, at, kind, code, amount, coalesce(
           (SELECT u.credit_id FROM credit_use u WHERE u.id = moved.cause AND moved.kind BETWEEN 21 AND 23),
           cause) AS cause FROM (
    SELECT t.id, t.at, t.kind, own.code, -t.amount * own.side AS amount, t.cause
      FROM transfer t JOIN own ON own.id = t.debit
    UNION ALL
    SELECT t.id, t.at, t.kind, own.code, t.amount * own.side, t.cause
      FROM transfer t JOIN own ON own.id = t.credit
    UNION ALL
    SELECT c.id, c.at, NULL::smallint, own.code, -(c.gross + c.tax), c.lease_id
      FROM charge c JOIN own ON own.id = c.wallet
    UNION ALL
    SELECT c.id, c.at, NULL::smallint, own.code, c.gross - c.fee, c.lease_id
      FROM charge c JOIN own ON own.id = c.earned
) moved
WHERE $2 OR id < $3
ORDER BY id DESC, code
LIMIT $4";

/// The party's movements, newest first. A movement between two accounts of the party is two records
/// with one id, which come on one page: a page may be one record longer than its limit.
pub async fn list(
    ro: &mut Ro,
    party: PartyId,
    page: Page,
) -> Result<Paged<TransactionRecord>, Error> {
    let rows: Vec<Row> = diesel::sql_query(LIST)
        .bind::<SqlUuid, _>(party.uuid())
        .bind::<Bool, _>(page.after.is_none())
        .bind::<SqlUuid, _>(page.after.unwrap_or(Uuid::nil()))
        .bind::<BigInt, _>(page.fetch().saturating_add(1))
        .load(ro.sql()?)
        .await?;
    let record = |row: Row| {
        Ok(TransactionRecord {
            id: row.id,
            at: from_pg(row.at),
            kind: row
                .kind
                .map(|k| parsed("transfer kind", TransferKind::from_code(k)))
                .transpose()?,
            account: parsed("account code", AccountCode::from_code(row.code))?,
            amount: Micros::new(row.amount),
            cause: row.cause,
        })
    };
    let records = rows.into_iter().map(record).collect::<Result<_, Error>>()?;
    Ok(cut(records, page.limit))
}

/// Cuts the extra rows off, never between two records of one movement.
fn cut(mut records: Vec<TransactionRecord>, limit: u32) -> Paged<TransactionRecord> {
    let mut keep = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
    let id_at = |n: usize| records.get(n).map(|t| t.id);
    if id_at(keep).is_some() && id_at(keep) == id_at(keep.saturating_sub(1)) {
        keep = keep.saturating_add(1);
    }
    let more = records.len() > keep;
    records.truncate(keep);
    let next = records.last().filter(|_last| more).map(|t| t.id);
    Paged {
        rows: records,
        next,
    }
}
