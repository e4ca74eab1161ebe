//! Accounts, holds, transfers and top-ups: the rows behind `billing::ledger`.

use std::collections::BTreeSet;

use billing::account::{Account, AccountCode, AccountId};
use billing::hold::{Hold, HoldState};
use billing::ledger::Ledger;
use billing::transfer::{Transfer, TransferKind};
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Integer, SmallInt, Uuid as SqlUuid};
use diesel::upsert::excluded;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{HoldId, LeaseId, PartyId, TopUpId, TransferId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::journal::Key;
use crate::prepared::prepared;
use crate::schema::{account, hold, top_up, transfer};

#[derive(QueryableByName)]
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
    stripe: i16,
    version: i64,
}

impl AccountRow {
    /// The account, and its row's version.
    fn record(self) -> Result<(Account, i64), Error> {
        let account = Account {
            id: AccountId(self.id),
            code: parsed("account code", AccountCode::from_code(self.code))?,
            currency: currency(self.ledger)?,
            owner: self.owner,
            debits: Micros::new(self.debits),
            credits: Micros::new(self.credits),
            debits_pending: Micros::new(self.debits_pending),
            credits_pending: Micros::new(self.credits_pending),
        };
        Ok((account, self.version))
    }
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = hold)]
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

/// An account without locking it, as this transaction sees it; `None` if it has no movements yet.
/// A hot platform account is the sum of its stripes.
pub async fn account_of(
    ro: &mut Ro,
    currency: Currency,
    (code, owner): (AccountCode, Uuid),
) -> Result<Option<Account>, Error> {
    if let Some(account) = ro.journal().find(&(currency, code, owner, 0)) {
        return Ok(Some(account.clone()));
    }
    let rows: Vec<AccountRow> = prepared(
        diesel::sql_query(SUM)
            .bind::<Integer, _>(currency.ledger())
            .bind::<SmallInt, _>(code.code())
            .bind::<SqlUuid, _>(owner),
    )
    .load(ro.sql()?)
    .await?;
    rows.into_iter()
        .next()
        .map(|row| row.record().map(|(account, _version)| account))
        .transpose()
}

const SUM: &str = "
SELECT min(id) AS id, ledger, code, owner, 0::smallint AS stripe, 0::bigint AS version,
       sum(debits)::bigint AS debits, sum(credits)::bigint AS credits,
       sum(debits_pending)::bigint AS debits_pending, sum(credits_pending)::bigint AS credits_pending
  FROM account WHERE ledger = $1 AND code = $2 AND owner = $3 GROUP BY ledger, code, owner";

const PRESENT: &str = "SELECT a.* FROM account a
    JOIN unnest($2, $3, $4) AS w (code, owner, stripe)
      ON a.code = w.code AND a.owner = w.owner AND a.stripe = w.stripe
    WHERE a.ledger = $1 ORDER BY a.id";
const LOCKED: &str = "SELECT a.* FROM account a
    JOIN unnest($2, $3, $4) AS w (code, owner, stripe)
      ON a.code = w.code AND a.owner = w.owner AND a.stripe = w.stripe
    WHERE a.ledger = $1 ORDER BY a.id FOR UPDATE OF a";

/// Reads the accounts that are there into the transaction's journal.
async fn read(tx: &mut Tx, query: &str, wanted: &[Key]) -> Result<(), Error> {
    let Some((currency, ..)) = wanted.first().copied() else {
        return Ok(());
    };
    let rows: Vec<AccountRow> = prepared(
        diesel::sql_query(query)
            .bind::<Integer, _>(currency.ledger())
            .bind::<Array<SmallInt>, _>(wanted.iter().map(|w| w.1.code()).collect::<Vec<_>>())
            .bind::<Array<SqlUuid>, _>(wanted.iter().map(|w| w.2).collect::<Vec<_>>())
            .bind::<Array<SmallInt>, _>(wanted.iter().map(|w| w.3).collect::<Vec<_>>()),
    )
    .load(tx.sql()?)
    .await?;
    for row in rows {
        let stripe = row.stripe;
        let (account, version) = row.record()?;
        let key = (currency, account.code, account.owner, stripe);
        tx.journal().keep(key, account, version);
    }
    Ok(())
}

const MAKE: &str = "
INSERT INTO account (ledger, code, owner, constrained, stripe)
SELECT $1, w.* FROM unnest($2, $3, $4, $5) AS w ON CONFLICT DO NOTHING";

async fn make(tx: &mut Tx, missing: &[Key]) -> Result<(), Error> {
    let Some((currency, ..)) = missing.first().copied() else {
        return Ok(());
    };
    let ordered: BTreeSet<Key> = missing.iter().copied().collect();
    let each = || ordered.iter();
    prepared(
        diesel::sql_query(MAKE)
            .bind::<Integer, _>(currency.ledger())
            .bind::<Array<SmallInt>, _>(each().map(|w| w.1.code()).collect::<Vec<_>>())
            .bind::<Array<SqlUuid>, _>(each().map(|w| w.2).collect::<Vec<_>>())
            .bind::<Array<Bool>, _>(each().map(|w| w.1.is_constrained()).collect::<Vec<_>>())
            .bind::<Array<SmallInt>, _>(each().map(|w| w.3).collect::<Vec<_>>()),
    )
    .execute(tx.sql()?)
    .await?;
    Ok(())
}

/// Locks accounts in the order of their numbers, after making those that are missing, and gives them
/// as this transaction left them so far, in the order asked for. A hot platform account is the
/// writer's stripe of it. In a transaction that reads optimistically nothing is locked.
///
/// Missing ones are made before any is locked, in one order for all, so that nobody who holds a
/// lock waits for a new row, and makers do not wait in a circle.
pub async fn lock_accounts(
    tx: &mut Tx,
    currency: Currency,
    wanted: &[(AccountCode, Uuid)],
) -> Result<Vec<Account>, Error> {
    let optimistic = tx.journal().optimistic;
    let claim = match tx.journal().claim {
        Some(claim) => claim,
        None => tx.shards().next(optimistic),
    };
    tx.journal().claim = Some(claim);
    let key = |(code, owner): (AccountCode, Uuid)| {
        let stripe = if code.is_striped() { claim.shard } else { 0 };
        (currency, code, owner, stripe)
    };
    let keys: Vec<Key> = wanted.iter().copied().map(key).collect();
    let unread = |tx: &mut Tx| -> Vec<Key> {
        let journal = tx.journal();
        let unread = keys.iter().filter(|k| journal.find(k).is_none());
        unread.copied().collect()
    };
    let asked = unread(tx);
    if optimistic {
        read(tx, PRESENT, &asked).await?;
        let missing = unread(tx);
        make(tx, &missing).await?;
        read(tx, PRESENT, &missing).await?;
    } else if !asked.is_empty() {
        if present(tx, &asked).await? < asked.len() {
            make(tx, &asked).await?;
        }
        read(tx, LOCKED, &asked).await?;
    }
    let journal = tx.journal();
    let found = keys
        .iter()
        .map(|k| parsed("account", journal.find(k).cloned()));
    found.collect()
}

const COUNT: &str = "SELECT count(*) AS n FROM account a
    JOIN unnest($2, $3, $4) AS w (code, owner, stripe)
      ON a.code = w.code AND a.owner = w.owner AND a.stripe = w.stripe
    WHERE a.ledger = $1";

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

async fn present(tx: &mut Tx, wanted: &[Key]) -> Result<usize, Error> {
    let Some((currency, ..)) = wanted.first().copied() else {
        return Ok(0);
    };
    let count: Count = prepared(
        diesel::sql_query(COUNT)
            .bind::<Integer, _>(currency.ledger())
            .bind::<Array<SmallInt>, _>(wanted.iter().map(|w| w.1.code()).collect::<Vec<_>>())
            .bind::<Array<SqlUuid>, _>(wanted.iter().map(|w| w.2).collect::<Vec<_>>())
            .bind::<Array<SmallInt>, _>(wanted.iter().map(|w| w.3).collect::<Vec<_>>()),
    )
    .get_result(tx.sql()?)
    .await?;
    Ok(usize::try_from(count.n).unwrap_or(0))
}

/// Takes every account of a ledger that `before` had otherwise: balances are written at the end of
/// the transaction. Holds are written now.
pub async fn save(tx: &mut Tx, before: &Ledger, after: &Ledger) -> Result<(), Error> {
    for a in after.accounts().filter(|a| before.account(a.id) != Some(a)) {
        tx.journal().change(a)?;
    }
    let changed = after.holds().filter(|h| before.hold(h.id) != Some(h));
    let rows: Vec<HoldRow> = changed.map(HoldRow::of).collect();
    if rows.is_empty() {
        return Ok(());
    }
    diesel::insert_into(hold::table)
        .values(rows)
        .on_conflict(hold::id)
        .do_update()
        .set((
            hold::amount.eq(excluded(hold::amount)),
            hold::posted.eq(excluded(hold::posted)),
            hold::state.eq(excluded(hold::state)),
            hold::expires_at.eq(excluded(hold::expires_at)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Books a transfer: it is written at the end of the transaction.
pub fn insert_transfer(tx: &mut Tx, t: &Transfer, currency: Currency) {
    tx.journal().transfers.push((*t, currency));
}

/// The transfers of the batches after the first number up to the second.
pub(crate) async fn of_batches(
    ro: &mut Ro,
    (after, up_to): (i64, i64),
) -> Result<Vec<(i64, Transfer, Currency)>, Error> {
    type Columns = (i64, Uuid, i16, i32, i64, i64, i64, Uuid, PgTimestamp);
    let rows: Vec<Columns> = transfer::table
        .filter(transfer::batch.gt(after).and(transfer::batch.le(up_to)))
        .select((
            transfer::batch.assume_not_null(),
            transfer::id,
            transfer::kind,
            transfer::ledger,
            transfer::debit,
            transfer::credit,
            transfer::amount,
            transfer::cause,
            transfer::at,
        ))
        .load(ro.sql()?)
        .await?;
    let record = |(batch, id, kind, ledger, debit, credit, amount, cause, at): Columns| {
        let transfer = Transfer {
            id: TransferId::from_uuid(id),
            kind: parsed("transfer kind", TransferKind::from_code(kind))?,
            debit: AccountId(debit),
            credit: AccountId(credit),
            amount: Micros::new(amount),
            cause,
            at: from_pg(at),
        };
        Ok((batch, transfer, currency(ledger)?))
    };
    rows.into_iter().map(record).collect()
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
