//! Adjustments of accounts by people: proposed, then applied or rejected.

use billing::account::AccountCode;
use billing::posting::adjustment::Direction;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{AdjustmentId, PartyId, UserId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::adjustment;

/// Where an adjustment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdjustmentState {
    /// It waits for a second person.
    Proposed,
    /// The money has moved.
    Applied,
    /// Somebody said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
}

impl AdjustmentState {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// The state of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Proposed, Self::Applied, Self::Rejected, Self::Expired]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

/// Who decided on an adjustment, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// `None`: nobody; it needed no second person, or its time ran out.
    pub by: Option<UserId>,
    /// When.
    pub at: Timestamp,
    /// In words.
    pub reason: Option<String>,
}

/// An adjustment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjustmentRecord {
    /// Its id; also the cause of its transfer.
    pub id: AdjustmentId,
    /// Whose account.
    pub party: PartyId,
    /// Of the amount.
    pub currency: Currency,
    /// Which way.
    pub direction: Direction,
    /// Which account of the party.
    pub account: AccountCode,
    /// Which account of the platform bears it.
    pub bearer: AccountCode,
    /// How much.
    pub amount: Micros,
    /// In words.
    pub reason: String,
    /// Above the limit: a second person must approve.
    pub needs_approval: bool,
    /// Where it is.
    pub state: AdjustmentState,
    /// By whom.
    pub proposed_by: UserId,
    /// When.
    pub proposed_at: Timestamp,
    /// It cannot be approved from then on.
    pub expires_at: Timestamp,
    /// How it ended, if it did.
    pub decision: Option<DecisionRecord>,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = adjustment, treat_none_as_null = true)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    ledger: i32,
    direction: String,
    account: i16,
    bearer: i16,
    amount: i64,
    reason: String,
    needs_approval: bool,
    state: String,
    proposed_by: Uuid,
    proposed_at: PgTimestamp,
    expires_at: PgTimestamp,
    decided_by: Option<Uuid>,
    decided_at: Option<PgTimestamp>,
    decision_reason: Option<String>,
}

impl Row {
    fn of(a: &AdjustmentRecord) -> Self {
        let decision = a.decision.as_ref();
        Self {
            id: a.id.uuid(),
            party_id: a.party.uuid(),
            ledger: a.currency.ledger(),
            direction: a.direction.as_str().to_owned(),
            account: a.account.code(),
            bearer: a.bearer.code(),
            amount: a.amount.get(),
            reason: a.reason.clone(),
            needs_approval: a.needs_approval,
            state: a.state.as_str().to_owned(),
            proposed_by: a.proposed_by.uuid(),
            proposed_at: to_pg(a.proposed_at),
            expires_at: to_pg(a.expires_at),
            decided_by: decision.and_then(|d| d.by).map(UserId::uuid),
            decided_at: decision.map(|d| to_pg(d.at)),
            decision_reason: decision.and_then(|d| d.reason.clone()),
        }
    }

    fn record(self) -> Result<AdjustmentRecord, Error> {
        let decision = self.decided_at.map(|at| DecisionRecord {
            by: self.decided_by.map(UserId::from_uuid),
            at: from_pg(at),
            reason: self.decision_reason,
        });
        Ok(AdjustmentRecord {
            id: AdjustmentId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            currency: currency(self.ledger)?,
            direction: parsed("direction", Direction::parse(&self.direction))?,
            account: parsed("account code", AccountCode::from_code(self.account))?,
            bearer: parsed("account code", AccountCode::from_code(self.bearer))?,
            amount: Micros::new(self.amount),
            reason: self.reason,
            needs_approval: self.needs_approval,
            state: parsed("adjustment state", AdjustmentState::parse(&self.state))?,
            proposed_by: UserId::from_uuid(self.proposed_by),
            proposed_at: from_pg(self.proposed_at),
            expires_at: from_pg(self.expires_at),
            decision,
        })
    }
}

/// Writes an adjustment, new or changed.
pub async fn save(tx: &mut Tx, record: &AdjustmentRecord) -> Result<(), Error> {
    let row = Row::of(record);
    diesel::insert_into(adjustment::table)
        .values(&row)
        .on_conflict(adjustment::id)
        .do_update()
        .set(&row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One adjustment.
pub async fn get(ro: &mut Ro, id: AdjustmentId) -> Result<Option<AdjustmentRecord>, Error> {
    let query = adjustment::table.find(id.uuid()).select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// One adjustment, locked.
pub async fn get_for_update(
    tx: &mut Tx,
    id: AdjustmentId,
) -> Result<Option<AdjustmentRecord>, Error> {
    let query = adjustment::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Proposed adjustments whose time is over at `now`.
pub async fn over(ro: &mut Ro, now: Timestamp) -> Result<Vec<AdjustmentId>, Error> {
    let ids: Vec<Uuid> = adjustment::table
        .filter(adjustment::state.eq(AdjustmentState::Proposed.as_str()))
        .filter(adjustment::expires_at.le(to_pg(now)))
        .order(adjustment::expires_at)
        .select(adjustment::id)
        .limit(500)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(AdjustmentId::from_uuid).collect())
}

/// All adjustments, newest first.
pub async fn list(ro: &mut Ro, page: Page) -> Result<Paged<AdjustmentRecord>, Error> {
    let mut query = adjustment::table
        .order(adjustment::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(adjustment::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |a: &AdjustmentRecord| a.id.uuid()))
}
