//! Earnings that became payable, with what was kept back of them.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{MaturingId, PartyId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::maturing;

/// One maturing of a provider's earnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaturingRecord {
    /// Its id; also the cause of its transfers.
    pub id: MaturingId,
    /// Whose earnings.
    pub party: PartyId,
    /// Of the amounts.
    pub currency: Currency,
    /// Everything earned before is mature.
    pub through: Timestamp,
    /// How much.
    pub amount: Micros,
    /// Kept back of it.
    pub reserve: Micros,
    /// When that is released.
    pub reserve_due_at: Timestamp,
    /// When it was.
    pub reserve_released_at: Option<Timestamp>,
    /// When.
    pub at: Timestamp,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = maturing)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    ledger: i32,
    through: PgTimestamp,
    amount: i64,
    reserve: i64,
    reserve_due_at: PgTimestamp,
    reserve_released_at: Option<PgTimestamp>,
    at: PgTimestamp,
}

impl Row {
    fn record(self) -> Result<MaturingRecord, Error> {
        Ok(MaturingRecord {
            id: MaturingId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            currency: currency(self.ledger)?,
            through: from_pg(self.through),
            amount: Micros::new(self.amount),
            reserve: Micros::new(self.reserve),
            reserve_due_at: from_pg(self.reserve_due_at),
            reserve_released_at: self.reserve_released_at.map(from_pg),
            at: from_pg(self.at),
        })
    }
}

/// Writes a maturing.
pub async fn insert(tx: &mut Tx, m: &MaturingRecord) -> Result<(), Error> {
    let row = Row {
        id: m.id.uuid(),
        party_id: m.party.uuid(),
        ledger: m.currency.ledger(),
        through: to_pg(m.through),
        amount: m.amount.get(),
        reserve: m.reserve.get(),
        reserve_due_at: to_pg(m.reserve_due_at),
        reserve_released_at: m.reserve_released_at.map(to_pg),
        at: to_pg(m.at),
    };
    diesel::insert_into(maturing::table)
        .values(row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

#[derive(QueryableByName)]
struct Owner {
    #[diesel(sql_type = SqlUuid)]
    owner: Uuid,
}

const UNMATURED: &str = "
SELECT owner FROM account a
 WHERE ledger = $1 AND code = 230 AND credits > debits AND NOT EXISTS
       (SELECT 1 FROM maturing m WHERE m.party_id = a.owner AND m.ledger = a.ledger AND m.through >= $2)
 LIMIT 500";

/// Providers who have earned something and whose earnings before `through` were not looked at since.
pub async fn unmatured(
    ro: &mut Ro,
    currency: Currency,
    through: Timestamp,
) -> Result<Vec<PartyId>, Error> {
    let rows: Vec<Owner> = diesel::sql_query(UNMATURED)
        .bind::<Integer, _>(currency.ledger())
        .bind::<Timestamptz, _>(to_pg(through))
        .load(ro.sql()?)
        .await?;
    Ok(rows
        .into_iter()
        .map(|r| PartyId::from_uuid(r.owner))
        .collect())
}

#[derive(QueryableByName)]
struct Sum {
    #[diesel(sql_type = BigInt)]
    sum: i64,
}

const RECENT: &str = "
SELECT (SELECT coalesce(sum(c.gross - c.fee), 0) FROM charge c WHERE c.earned = $1 AND c.at >= $2)::bigint
     + (SELECT coalesce(sum(t.amount), 0) FROM transfer t WHERE t.credit = $1 AND t.at >= $2)::bigint AS sum";

/// What came into an account at or after `since`.
pub async fn came_in(ro: &mut Ro, account: i64, since: Timestamp) -> Result<Micros, Error> {
    let row: Sum = diesel::sql_query(RECENT)
        .bind::<BigInt, _>(account)
        .bind::<Timestamptz, _>(to_pg(since))
        .get_result(ro.sql()?)
        .await?;
    Ok(Micros::new(row.sum))
}

/// Maturings whose reserve is due at `now`.
pub async fn reserves_due(ro: &mut Ro, now: Timestamp) -> Result<Vec<MaturingId>, Error> {
    let ids: Vec<Uuid> = maturing::table
        .filter(maturing::reserve.gt(0))
        .filter(maturing::reserve_released_at.is_null())
        .filter(maturing::reserve_due_at.le(to_pg(now)))
        .order(maturing::reserve_due_at)
        .select(maturing::id)
        .limit(500)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(MaturingId::from_uuid).collect())
}

/// One maturing, locked.
pub async fn get_for_update(tx: &mut Tx, id: MaturingId) -> Result<Option<MaturingRecord>, Error> {
    let query = maturing::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Notes that the reserve was released.
pub async fn released(tx: &mut Tx, id: MaturingId, now: Timestamp) -> Result<(), Error> {
    diesel::update(maturing::table.find(id.uuid()))
        .set(maturing::reserve_released_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
