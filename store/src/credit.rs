//! Credit from the market, and what became of it.

use billing::posting::credit::{Credit, CreditKind, Part};
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{CreditId, HoldId, LeaseId, PartyId, UserId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::{credit, credit_use};

/// A credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditRecord {
    /// Its id; also the cause of the transfer that granted it.
    pub id: CreditId,
    /// Who has it.
    pub party: PartyId,
    /// Why it was given.
    pub kind: CreditKind,
    /// Of the amounts.
    pub currency: Currency,
    /// How much was given.
    pub amount: Micros,
    /// Neither used nor expired.
    pub remaining: Micros,
    /// In words.
    pub reason: String,
    /// The lease that it is for.
    pub lease: Option<LeaseId>,
    /// It cannot be used from then on.
    pub expires_at: Option<Timestamp>,
    /// By whom.
    pub granted_by: UserId,
    /// When.
    pub created_at: Timestamp,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = credit)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    kind: String,
    ledger: i32,
    amount: i64,
    remaining: i64,
    reason: String,
    lease_id: Option<Uuid>,
    expires_at: Option<PgTimestamp>,
    granted_by: Uuid,
    created_at: PgTimestamp,
}

impl Row {
    fn record(self) -> Result<CreditRecord, Error> {
        Ok(CreditRecord {
            id: CreditId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            kind: parsed("credit kind", CreditKind::parse(&self.kind))?,
            currency: currency(self.ledger)?,
            amount: Micros::new(self.amount),
            remaining: Micros::new(self.remaining),
            reason: self.reason,
            lease: self.lease_id.map(LeaseId::from_uuid),
            expires_at: self.expires_at.map(from_pg),
            granted_by: UserId::from_uuid(self.granted_by),
            created_at: from_pg(self.created_at),
        })
    }
}

/// What happened to a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// Into a hold.
    Released,
    /// Back from a hold.
    Returned,
    /// Over.
    Expired,
}

impl UseKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Returned => "returned",
            Self::Expired => "expired",
        }
    }
}

/// One change of what is left of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditUse {
    /// Its id; also the cause of its transfer.
    pub id: Uuid,
    /// Which credit, how much.
    pub part: Part,
    /// What happened.
    pub kind: UseKind,
    /// The hold, unless it expired.
    pub hold: Option<HoldId>,
    /// When.
    pub at: Timestamp,
}

/// Writes a new credit.
pub async fn insert(tx: &mut Tx, c: &CreditRecord) -> Result<(), Error> {
    let row = Row {
        id: c.id.uuid(),
        party_id: c.party.uuid(),
        kind: c.kind.as_str().to_owned(),
        ledger: c.currency.ledger(),
        amount: c.amount.get(),
        remaining: c.remaining.get(),
        reason: c.reason.clone(),
        lease_id: c.lease.map(LeaseId::uuid),
        expires_at: c.expires_at.map(to_pg),
        granted_by: c.granted_by.uuid(),
        created_at: to_pg(c.created_at),
    };
    diesel::insert_into(credit::table)
        .values(row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The credits of these parties of which something is left.
pub async fn left(
    ro: &mut Ro,
    parties: &[PartyId],
    currency: Currency,
) -> Result<Vec<(PartyId, Credit)>, Error> {
    let ids: Vec<Uuid> = parties.iter().map(|p| p.uuid()).collect();
    let rows: Vec<(Uuid, Uuid, i64, Option<PgTimestamp>)> = credit::table
        .filter(credit::party_id.eq_any(ids))
        .filter(credit::ledger.eq(currency.ledger()))
        .filter(credit::remaining.gt(0))
        .order(credit::id)
        .select((
            credit::party_id,
            credit::id,
            credit::remaining,
            credit::expires_at,
        ))
        .load(ro.sql()?)
        .await?;
    let one = |(party, id, left, expires_at): (Uuid, Uuid, i64, Option<PgTimestamp>)| {
        let credit = Credit {
            id,
            left: Micros::new(left),
            expires_at: expires_at.map(from_pg),
        };
        (PartyId::from_uuid(party), credit)
    };
    Ok(rows.into_iter().map(one).collect())
}

/// The sum of those that can be used at `now`.
pub async fn usable(ro: &mut Ro, party: PartyId, now: Timestamp) -> Result<Micros, Error> {
    let over = credit::expires_at
        .is_null()
        .or(credit::expires_at.gt(to_pg(now)));
    let left: Vec<i64> = credit::table
        .filter(credit::party_id.eq(party.uuid()))
        .filter(credit::remaining.gt(0))
        .filter(over)
        .select(credit::remaining)
        .load(ro.sql()?)
        .await?;
    let sum = left.into_iter().map(i128::from).sum::<i128>();
    Micros::from_wide(sum).map_err(|_wide| Error::Corrupt("sum of credits"))
}

/// Writes what happened to a credit and changes what is left of it.
pub async fn record_use(tx: &mut Tx, u: &CreditUse) -> Result<(), Error> {
    let change = match u.kind {
        UseKind::Released | UseKind::Expired => u.part.amount.get().saturating_neg(),
        UseKind::Returned => u.part.amount.get(),
    };
    diesel::insert_into(credit_use::table)
        .values((
            credit_use::id.eq(u.id),
            credit_use::credit_id.eq(u.part.credit),
            credit_use::kind.eq(u.kind.as_str()),
            credit_use::hold_id.eq(u.hold.map(HoldId::uuid)),
            credit_use::amount.eq(u.part.amount.get()),
            credit_use::at.eq(to_pg(u.at)),
        ))
        .execute(tx.sql()?)
        .await?;
    diesel::update(credit::table.find(u.part.credit))
        .set(credit::remaining.eq(credit::remaining + change))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

#[derive(QueryableByName)]
struct TakenRow {
    #[diesel(sql_type = SqlUuid)]
    credit: Uuid,
    #[diesel(sql_type = BigInt)]
    amount: i64,
}

const TAKEN: &str = "
SELECT credit_id AS credit,
       sum(CASE kind WHEN 'returned' THEN -amount ELSE amount END)::bigint AS amount
  FROM credit_use WHERE hold_id = $1 GROUP BY credit_id ORDER BY min(at), min(id::text)";

/// What a hold has of each credit, in the order in which it took it.
pub async fn taken_by(ro: &mut Ro, hold: HoldId) -> Result<Vec<Part>, Error> {
    let rows: Vec<TakenRow> = diesel::sql_query(TAKEN)
        .bind::<SqlUuid, _>(hold.uuid())
        .load(ro.sql()?)
        .await?;
    let one = |r: TakenRow| Part {
        credit: r.credit,
        amount: Micros::new(r.amount),
    };
    Ok(rows.into_iter().map(one).collect())
}

/// Parties with credits that are over and of which something is left.
pub async fn parties_with_expired(ro: &mut Ro, now: Timestamp) -> Result<Vec<PartyId>, Error> {
    let ids: Vec<Uuid> = credit::table
        .filter(credit::expires_at.le(to_pg(now)))
        .filter(credit::remaining.gt(0))
        .select(credit::party_id)
        .distinct()
        .limit(500)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(PartyId::from_uuid).collect())
}

/// What was credited for lost service of a lease so far. Locks nothing: the caller has the lease.
pub async fn sla_of_lease(ro: &mut Ro, lease: LeaseId) -> Result<Micros, Error> {
    let amounts: Vec<i64> = credit::table
        .filter(credit::lease_id.eq(lease.uuid()))
        .filter(credit::kind.eq(CreditKind::Sla.as_str()))
        .select(credit::amount)
        .load(ro.sql()?)
        .await?;
    let sum = amounts.into_iter().map(i128::from).sum::<i128>();
    Micros::from_wide(sum).map_err(|_wide| Error::Corrupt("sum of credits"))
}

/// Credits, newest first; of one party or of all.
pub async fn list(
    ro: &mut Ro,
    party: Option<PartyId>,
    page: Page,
) -> Result<Paged<CreditRecord>, Error> {
    let mut query = credit::table
        .order(credit::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(party) = party {
        query = query.filter(credit::party_id.eq(party.uuid()));
    }
    if let Some(after) = page.after {
        query = query.filter(credit::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |c: &CreditRecord| c.id.uuid()))
}
