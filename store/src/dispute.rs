//! Disputed payments.

use std::collections::BTreeSet;

use billing::posting::Rail;
use billing::posting::dispute::Disputed;
use diesel::dsl::exists;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{DisputeId, PartyId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::dispute;

/// Where a dispute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeState {
    /// The bank has not decided.
    Open,
    /// For the market.
    Won,
    /// For the card holder.
    Lost,
}

impl DisputeState {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Won => "won",
            Self::Lost => "lost",
        }
    }

    /// The state of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Won, Self::Lost]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

/// A dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisputeRecord {
    /// Its id; also the cause of its transfers.
    pub id: DisputeId,
    /// Whose payment.
    pub party: PartyId,
    /// Of the amounts.
    pub currency: Currency,
    /// How the money came.
    pub rail: Rail,
    /// What it took.
    pub disputed: Disputed,
    /// In words.
    pub reason: String,
    /// Where it is.
    pub state: DisputeState,
    /// When it began.
    pub opened_at: Timestamp,
    /// When it ended.
    pub decided_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = dispute)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    ledger: i32,
    payments: String,
    taken: i64,
    owed: i64,
    reason: String,
    state: String,
    opened_at: PgTimestamp,
    decided_at: Option<PgTimestamp>,
}

impl Row {
    fn of(d: &DisputeRecord) -> Self {
        let payments = match d.rail {
            Rail::Sandbox => "sandbox",
            Rail::Stripe => "live",
        };
        Self {
            id: d.id.uuid(),
            party_id: d.party.uuid(),
            ledger: d.currency.ledger(),
            payments: payments.to_owned(),
            taken: d.disputed.taken.get(),
            owed: d.disputed.owed.get(),
            reason: d.reason.clone(),
            state: d.state.as_str().to_owned(),
            opened_at: to_pg(d.opened_at),
            decided_at: d.decided_at.map(to_pg),
        }
    }

    fn record(self) -> Result<DisputeRecord, Error> {
        let rail = match self.payments.as_str() {
            "sandbox" => Some(Rail::Sandbox),
            "live" => Some(Rail::Stripe),
            _ => None,
        };
        Ok(DisputeRecord {
            id: DisputeId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            currency: currency(self.ledger)?,
            rail: parsed("payments", rail)?,
            disputed: Disputed {
                taken: Micros::new(self.taken),
                owed: Micros::new(self.owed),
            },
            reason: self.reason,
            state: parsed("dispute state", DisputeState::parse(&self.state))?,
            opened_at: from_pg(self.opened_at),
            decided_at: self.decided_at.map(from_pg),
        })
    }
}

/// Writes a dispute, new or changed.
pub async fn save(tx: &mut Tx, record: &DisputeRecord) -> Result<(), Error> {
    let row = Row::of(record);
    diesel::insert_into(dispute::table)
        .values(&row)
        .on_conflict(dispute::id)
        .do_update()
        .set(&row)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One dispute, locked.
pub async fn get_for_update(tx: &mut Tx, id: DisputeId) -> Result<Option<DisputeRecord>, Error> {
    let query = dispute::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Has the party a dispute that is not decided?
pub async fn is_disputed(ro: &mut Ro, party: PartyId) -> Result<bool, Error> {
    let open = dispute::table
        .filter(dispute::party_id.eq(party.uuid()))
        .filter(dispute::state.eq(DisputeState::Open.as_str()));
    Ok(diesel::select(exists(open)).get_result(ro.sql()?).await?)
}

#[derive(QueryableByName)]
struct Owner {
    #[diesel(sql_type = SqlUuid)]
    owner: Uuid,
}

const OWING: &str = "
SELECT r.owner FROM account r JOIN account w
    ON w.owner = r.owner AND w.ledger = r.ledger AND w.code = 200
 WHERE r.ledger = $1 AND r.code = 120 AND r.debits > r.credits
   AND w.credits > w.debits + w.debits_pending
 LIMIT 500";

/// Renters who owe something and whose wallet could pay some of it.
pub async fn owing(ro: &mut Ro, currency: Currency) -> Result<Vec<PartyId>, Error> {
    let rows: Vec<Owner> = diesel::sql_query(OWING)
        .bind::<Integer, _>(currency.ledger())
        .load(ro.sql()?)
        .await?;
    Ok(rows
        .into_iter()
        .map(|r| PartyId::from_uuid(r.owner))
        .collect())
}

const FROZEN: &str = "
SELECT party_id AS owner FROM dispute WHERE party_id = ANY($1) AND state = 'open'
UNION
SELECT owner FROM account WHERE owner = ANY($1) AND code = 120 AND debits > credits";

/// Which of these parties' wallets are frozen: a dispute is open, or something is owed.
pub async fn frozen(ro: &mut Ro, parties: &[PartyId]) -> Result<BTreeSet<PartyId>, Error> {
    let ids: Vec<Uuid> = parties.iter().map(|p| p.uuid()).collect();
    let rows: Vec<Owner> = diesel::sql_query(FROZEN)
        .bind::<Array<SqlUuid>, _>(ids)
        .load(ro.sql()?)
        .await?;
    let party = |r: Owner| PartyId::from_uuid(r.owner);
    Ok(rows.into_iter().map(party).collect())
}
