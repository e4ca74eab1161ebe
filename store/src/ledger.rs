//! Accounts, holds, transfers and top-ups: the rows behind `billing::ledger`.

use std::collections::BTreeSet;

use billing::account::{Account, AccountCode, AccountId};
use billing::hold::{Hold, HoldState};
use billing::ledger::Ledger;
use billing::transfer::Transfer;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, SmallInt, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{HoldId, LeaseId, PartyId, TopUpId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{account, hold, top_up, transfer};

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = account)]
struct AccountRow {
    id: i64,
    ledger: i32,
    code: i16,
    owner: Uuid,
    debits: i64,
    credits: i64,
    debits_pending: i64,
    credits_pending: i64,
}

impl AccountRow {
    fn record(self) -> Result<Account, Error> {
        Ok(Account {
            id: AccountId(self.id),
            code: parsed("account code", AccountCode::from_code(self.code))?,
            currency: currency(self.ledger)?,
            owner: self.owner,
            debits: Micros::new(self.debits),
            credits: Micros::new(self.credits),
            debits_pending: Micros::new(self.debits_pending),
            credits_pending: Micros::new(self.credits_pending),
        })
    }
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = hold, treat_none_as_null = true)]
struct HoldRow {
    id: Uuid,
    account: i64,
    lease_id: Uuid,
    amount: i64,
    posted: i64,
    state: String,
    opened_at: PgTimestamp,
    expires_at: Option<PgTimestamp>,
}

impl HoldRow {
    fn of(h: &Hold) -> Self {
        Self {
            id: h.id.uuid(),
            account: h.account.0,
            lease_id: h.lease.uuid(),
            amount: h.amount.get(),
            posted: h.posted.get(),
            state: h.state.as_str().to_owned(),
            opened_at: to_pg(h.opened_at),
            expires_at: h.expires_at.map(to_pg),
        }
    }

    fn record(self) -> Result<Hold, Error> {
        Ok(Hold {
            id: HoldId::from_uuid(self.id),
            account: AccountId(self.account),
            lease: LeaseId::from_uuid(self.lease_id),
            amount: Micros::new(self.amount),
            posted: Micros::new(self.posted),
            state: parsed("hold state", HoldState::parse(&self.state))?,
            opened_at: from_pg(self.opened_at),
            expires_at: self.expires_at.map(from_pg),
        })
    }
}

/// An account without locking it; `None` if it has no movements yet.
pub async fn account_of(
    ro: &mut Ro,
    currency: Currency,
    (code, owner): (AccountCode, Uuid),
) -> Result<Option<Account>, Error> {
    let query = account::table
        .filter(account::ledger.eq(currency.ledger()))
        .filter(account::code.eq(code.code()).and(account::owner.eq(owner)))
        .select(AccountRow::as_select());
    let row: Option<AccountRow> = query.first(ro.sql()?).await.optional()?;
    row.map(AccountRow::record).transpose()
}

const PRESENT: &str = "SELECT a.* FROM account a
    JOIN unnest($2, $3) AS w (code, owner) ON a.code = w.code AND a.owner = w.owner
    WHERE a.ledger = $1 ORDER BY a.id";

async fn present(
    tx: &mut Tx,
    query: &str,
    currency: Currency,
    wanted: &[(AccountCode, Uuid)],
) -> Result<Vec<Account>, Error> {
    let codes: Vec<i16> = wanted.iter().map(|(code, _)| code.code()).collect();
    let owners: Vec<Uuid> = wanted.iter().map(|(_, owner)| *owner).collect();
    let rows: Vec<AccountRow> = diesel::sql_query(query)
        .bind::<Integer, _>(currency.ledger())
        .bind::<Array<SmallInt>, _>(codes)
        .bind::<Array<SqlUuid>, _>(owners)
        .load(tx.sql()?)
        .await?;
    rows.into_iter().map(AccountRow::record).collect()
}

/// Locks accounts in the order of their numbers, after making those that are missing. They come
/// back in the order asked for. Call it once in a transaction.
///
/// Missing ones are made before any is locked, in one order for all, so that nobody who holds a
/// lock waits for a new row, and makers do not wait in a circle.
pub async fn lock_accounts(
    tx: &mut Tx,
    currency: Currency,
    wanted: &[(AccountCode, Uuid)],
) -> Result<Vec<Account>, Error> {
    let known = present(tx, PRESENT, currency, wanted).await?;
    let among = |accounts: &[Account], (code, owner): (AccountCode, Uuid)| {
        accounts
            .iter()
            .find(|a| a.code == code && a.owner == owner)
            .cloned()
    };
    let missing: BTreeSet<(AccountCode, Uuid)> = wanted
        .iter()
        .copied()
        .filter(|w| among(&known, *w).is_none())
        .collect();
    for (code, owner) in missing {
        diesel::insert_into(account::table)
            .values((
                account::ledger.eq(currency.ledger()),
                account::code.eq(code.code()),
                account::owner.eq(owner),
                account::constrained.eq(code.is_constrained()),
            ))
            .on_conflict_do_nothing()
            .execute(tx.sql()?)
            .await?;
    }
    let locking = format!("{PRESENT} FOR UPDATE OF a");
    let locked = present(tx, &locking, currency, wanted).await?;
    let found = wanted.iter().map(|w| parsed("account", among(&locked, *w)));
    found.collect()
}

/// Saves every account and hold of a ledger that `before` had otherwise.
pub async fn save(tx: &mut Tx, before: &Ledger, after: &Ledger) -> Result<(), Error> {
    for a in after.accounts().filter(|a| before.account(a.id) != Some(a)) {
        diesel::update(account::table.find(a.id.0))
            .set((
                account::debits.eq(a.debits.get()),
                account::credits.eq(a.credits.get()),
                account::debits_pending.eq(a.debits_pending.get()),
                account::credits_pending.eq(a.credits_pending.get()),
            ))
            .execute(tx.sql()?)
            .await?;
    }
    for h in after.holds().filter(|h| before.hold(h.id) != Some(h)) {
        let row = HoldRow::of(h);
        diesel::insert_into(hold::table)
            .values(&row)
            .on_conflict(hold::id)
            .do_update()
            .set(&row)
            .execute(tx.sql()?)
            .await?;
    }
    Ok(())
}

/// Writes a transfer.
pub async fn insert_transfer(tx: &mut Tx, t: &Transfer, currency: Currency) -> Result<(), Error> {
    diesel::insert_into(transfer::table)
        .values((
            transfer::id.eq(t.id.uuid()),
            transfer::kind.eq(t.kind.code()),
            transfer::ledger.eq(currency.ledger()),
            transfer::debit.eq(t.debit.0),
            transfer::credit.eq(t.credit.0),
            transfer::amount.eq(t.amount.get()),
            transfer::cause.eq(t.cause),
            transfer::at.eq(to_pg(t.at)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The open holds of these leases.
pub async fn open_holds(ro: &mut Ro, leases: &[LeaseId]) -> Result<Vec<Hold>, Error> {
    let ids: Vec<Uuid> = leases.iter().map(|l| l.uuid()).collect();
    let query = hold::table
        .filter(hold::lease_id.eq_any(ids).and(hold::state.eq("open")))
        .order(hold::id)
        .select(HoldRow::as_select());
    let rows: Vec<HoldRow> = query.load(ro.sql()?).await?;
    rows.into_iter().map(HoldRow::record).collect()
}

/// Open holds whose time is over at `now`.
pub async fn holds_over(ro: &mut Ro, now: Timestamp) -> Result<Vec<Hold>, Error> {
    let query = hold::table
        .filter(hold::state.eq("open").and(hold::expires_at.le(to_pg(now))))
        .order(hold::id)
        .select(HoldRow::as_select());
    let rows: Vec<HoldRow> = query.load(ro.sql()?).await?;
    rows.into_iter().map(HoldRow::record).collect()
}

/// A top-up of a wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopUpRecord {
    /// Its id.
    pub id: TopUpId,
    /// Whose wallet.
    pub party: PartyId,
    /// How much.
    pub amount: Micros,
    /// Of what.
    pub currency: Currency,
    /// `sandbox` or `live`.
    pub payments: &'static str,
    /// When.
    pub created_at: Timestamp,
}

/// Writes a top-up with the transfer that booked it.
pub async fn insert_top_up(tx: &mut Tx, t: &TopUpRecord, booked: &Transfer) -> Result<(), Error> {
    diesel::insert_into(top_up::table)
        .values((
            top_up::id.eq(t.id.uuid()),
            top_up::party_id.eq(t.party.uuid()),
            top_up::ledger.eq(t.currency.ledger()),
            top_up::amount.eq(t.amount.get()),
            top_up::payments.eq(t.payments),
            top_up::transfer_id.eq(booked.id.uuid()),
            top_up::created_at.eq(to_pg(t.created_at)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
