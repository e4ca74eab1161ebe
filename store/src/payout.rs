//! Payouts to providers, and their states.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{PartyId, PayoutId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::payout;

/// Where a payout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayoutState {
    /// The money is set aside; nobody was told yet.
    Requested,
    /// Told; the outcome is not known yet.
    InFlight,
    /// It has left.
    Paid,
    /// It did not leave; the money is payable again.
    Failed,
    /// The bank sent it back; the money is payable again.
    Returned,
}

impl PayoutState {
    const ALL: [Self; 5] = [
        Self::Requested,
        Self::InFlight,
        Self::Paid,
        Self::Failed,
        Self::Returned,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::InFlight => "in_flight",
            Self::Paid => "paid",
            Self::Failed => "failed",
            Self::Returned => "returned",
        }
    }

    /// The state of a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// A payout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayoutRecord {
    /// Its id; also the cause of its transfers.
    pub id: PayoutId,
    /// To whom.
    pub party: PartyId,
    /// Of the amount.
    pub currency: Currency,
    /// In whole cents.
    pub amount: Micros,
    /// Play money: no bank is told.
    pub sandbox: bool,
    /// Where it is.
    pub state: PayoutState,
    /// Why.
    pub state_reason: String,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it came into its state.
    pub state_at: Timestamp,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = payout)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    ledger: i32,
    amount: i64,
    payments: String,
    state: String,
    state_reason: String,
    requested_at: PgTimestamp,
    state_at: PgTimestamp,
}

impl Row {
    fn record(self) -> Result<PayoutRecord, Error> {
        Ok(PayoutRecord {
            id: PayoutId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            currency: currency(self.ledger)?,
            amount: Micros::new(self.amount),
            sandbox: self.payments == "sandbox",
            state: parsed("payout state", PayoutState::parse(&self.state))?,
            state_reason: self.state_reason,
            requested_at: from_pg(self.requested_at),
            state_at: from_pg(self.state_at),
        })
    }
}

/// Writes a new payout.
pub async fn insert(tx: &mut Tx, p: &PayoutRecord) -> Result<(), Error> {
    let row = Row {
        id: p.id.uuid(),
        party_id: p.party.uuid(),
        ledger: p.currency.ledger(),
        amount: p.amount.get(),
        payments: if p.sandbox { "sandbox" } else { "live" }.to_owned(),
        state: p.state.as_str().to_owned(),
        state_reason: p.state_reason.clone(),
        requested_at: to_pg(p.requested_at),
        state_at: to_pg(p.state_at),
    };
    diesel::insert_into(payout::table)
        .values(row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Moves a payout to its present state.
pub async fn save_state(tx: &mut Tx, p: &PayoutRecord) -> Result<(), Error> {
    diesel::update(payout::table.find(p.id.uuid()))
        .set((
            payout::state.eq(p.state.as_str()),
            payout::state_reason.eq(&p.state_reason),
            payout::state_at.eq(to_pg(p.state_at)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One payout of the party.
pub async fn get(ro: &mut Ro, id: PayoutId) -> Result<Option<PayoutRecord>, Error> {
    let query = payout::table.find(id.uuid()).select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// One payout, locked.
pub async fn get_for_update(tx: &mut Tx, id: PayoutId) -> Result<Option<PayoutRecord>, Error> {
    let query = payout::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Payouts that have not ended yet, oldest first.
pub async fn open(ro: &mut Ro) -> Result<Vec<PayoutId>, Error> {
    let ids: Vec<Uuid> = payout::table
        .filter(payout::state.eq_any(["requested", "in_flight"]))
        .order(payout::id)
        .select(payout::id)
        .limit(500)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(PayoutId::from_uuid).collect())
}

/// What was paid out to the party and has not come back.
pub async fn paid(ro: &mut Ro, party: PartyId) -> Result<Micros, Error> {
    let amounts: Vec<i64> = payout::table
        .filter(payout::party_id.eq(party.uuid()))
        .filter(payout::state.eq(PayoutState::Paid.as_str()))
        .select(payout::amount)
        .load(ro.sql()?)
        .await?;
    let sum = amounts.into_iter().map(i128::from).sum::<i128>();
    Micros::from_wide(sum).map_err(|_wide| Error::Corrupt("sum of payouts"))
}

/// The party's payouts, newest first.
pub async fn list(ro: &mut Ro, party: PartyId, page: Page) -> Result<Paged<PayoutRecord>, Error> {
    let mut query = payout::table
        .filter(payout::party_id.eq(party.uuid()))
        .order(payout::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(payout::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |p: &PayoutRecord| p.id.uuid()))
}
