//! The end of a transaction that moved money: balances in one update, rows in one insert each, and
//! the batch sealed into its shard's chain. Set-wise, so that a thousand movements cost little more
//! statements than one.

use billing::chain::{Hash, Row, seal};
use billing::charge::Charge;
use billing::transfer::Transfer;
use diesel::QueryableByName;
use diesel::pg::data_types::PgTimestamp;
use diesel::sql_types::{Array, BigInt, Bytea, Integer, Nullable, SmallInt, Text, Timestamptz};
use diesel_async::RunQueryDsl;
use domain::money::Currency;
use uuid::Uuid;

use crate::convert::{int, parsed, to_pg};
use crate::db::Tx;
use crate::error::Error;
use crate::journal::Kept;
use crate::prepared::prepared;
use crate::shard::Claim;
use crate::{hold, wallet};

type SqlUuid = diesel::sql_types::Uuid;

#[derive(QueryableByName)]
struct HeadRow {
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = BigInt)]
    batch_no: i64,
    #[diesel(sql_type = Bytea)]
    head: Vec<u8>,
}

#[derive(QueryableByName)]
struct Stop {
    #[diesel(sql_type = Text)]
    reason: String,
}

#[derive(QueryableByName)]
struct BatchId {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

const BALANCES: &str = "
UPDATE account a SET debits = v.d, credits = v.c, debits_pending = v.dp, credits_pending = v.cp,
       version = a.version + 1
  FROM unnest($1, $2, $3, $4, $5, $6) AS v (id, was, d, c, dp, cp)
 WHERE a.id = v.id AND a.version = v.was
   AND NOT EXISTS (SELECT 1 FROM writer WHERE shard = $7 AND stopped IS NOT NULL)";

const STOPPED: &str = "SELECT coalesce(stopped, '') AS reason FROM writer WHERE shard = $1";

const HEAD: &str = "SELECT epoch, batch_no, head FROM writer WHERE shard = $1 FOR UPDATE";

const SEAL: &str = "
WITH moved AS (UPDATE writer SET batch_no = $2, head = $6 WHERE shard = $1)
INSERT INTO batch (shard, no, epoch, rows, prev_hash, hash) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING id";

const TRANSFERS: &str = "
INSERT INTO transfer (id, kind, ledger, debit, credit, amount, cause, at, batch)
SELECT *, $9 FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)";

const CHARGES: &str = "
INSERT INTO charge (id, meter_id, lease_id, hold_id, seq, from_at, to_at, billable_ms, ledger,
                    gross, fee, tax, wallet, earned, fee_account, tax_account, at, segment, batch)
SELECT *, $19 FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                         $18)";

/// Writes what the transaction moved. [`Error::Contended`] if a balance changed since it was read or
/// another process has the shard now: nothing may be committed then.
pub(crate) async fn flush(tx: &mut Tx) -> Result<(), Error> {
    let journal = std::mem::take(tx.journal());
    if journal.is_empty() {
        return Ok(());
    }
    let claim = match journal.claim {
        Some(claim) => claim,
        None => tx.shards().next(journal.optimistic),
    };
    save_balances(tx, &journal.changed(), claim).await?;
    wake(tx, &journal.changed()).await?;
    if journal.transfers.is_empty() && journal.charges.is_empty() {
        return Ok(());
    }
    let batch = chain(tx, claim, (&journal.transfers, &journal.charges)).await?;
    insert_transfers(tx, batch, &journal.transfers).await?;
    insert_charges(tx, batch, &journal.charges).await
}

async fn save_balances(tx: &mut Tx, changed: &[&Kept], claim: Claim) -> Result<(), Error> {
    if changed.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&Kept) -> i64| changed.iter().map(|k| of(k)).collect::<Vec<i64>>();
    let rows = prepared(
        diesel::sql_query(BALANCES)
            .bind::<Array<BigInt>, _>(column(|k| k.account.id.0))
            .bind::<Array<BigInt>, _>(column(|k| k.version))
            .bind::<Array<BigInt>, _>(column(|k| k.account.debits.get()))
            .bind::<Array<BigInt>, _>(column(|k| k.account.credits.get()))
            .bind::<Array<BigInt>, _>(column(|k| k.account.debits_pending.get()))
            .bind::<Array<BigInt>, _>(column(|k| k.account.credits_pending.get()))
            .bind::<SmallInt, _>(claim.shard),
    )
    .execute(tx.sql()?)
    .await?;
    if rows == changed.len() {
        return Ok(());
    }
    let stop: Stop = prepared(diesel::sql_query(STOPPED).bind::<SmallInt, _>(claim.shard))
        .get_result(tx.sql()?)
        .await?;
    if stop.reason.is_empty() {
        tracing::debug!(rows, wanted = changed.len(), "a balance was stale");
        Err(Error::Contended)
    } else {
        Err(Error::LedgerStopped(stop.reason))
    }
}

/// Whoever waits for money in one of these wallets, or counts on it, looks again.
async fn wake(tx: &mut Tx, changed: &[&Kept]) -> Result<(), Error> {
    let grown: Vec<i64> = changed
        .iter()
        .filter(|k| k.grew())
        .map(|k| k.account.id.0)
        .collect();
    if !grown.is_empty() {
        hold::wake_short(tx, &grown).await?;
    }
    let moved: Vec<Uuid> = changed
        .iter()
        .filter(|k| k.moved())
        .map(|k| k.account.owner)
        .collect();
    if !moved.is_empty() {
        wallet::wake(tx, &moved).await?;
    }
    Ok(())
}

type Entries<'a, T> = &'a [(T, Currency)];

/// Seals the batch; gives its number in the database.
async fn chain(
    tx: &mut Tx,
    claim: Claim,
    (transfers, charges): (Entries<'_, Transfer>, Entries<'_, Charge>),
) -> Result<i64, Error> {
    let head: HeadRow = prepared(diesel::sql_query(HEAD).bind::<SmallInt, _>(claim.shard))
        .get_result(tx.sql()?)
        .await?;
    if claim.epoch.is_some_and(|mine| mine != head.epoch) {
        tracing::warn!(shard = claim.shard, "another process has this shard now");
        tx.shards().lose(claim);
        return Err(Error::Contended);
    }
    let prev: Hash = parsed("head", head.head.try_into().ok())?;
    let no = head.batch_no.saturating_add(1);
    let transfers = transfers.iter().map(|(t, c)| Row::Transfer(t, *c));
    let charges = charges.iter().map(|(ch, c)| Row::Charge(ch, *c));
    let mut rows: Vec<Row<'_>> = transfers.chain(charges).collect();
    let count = int(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let hash = seal(&prev, (claim.shard, no), &mut rows);
    drop(rows);
    let batch: BatchId = prepared(
        diesel::sql_query(SEAL)
            .bind::<SmallInt, _>(claim.shard)
            .bind::<BigInt, _>(no)
            .bind::<BigInt, _>(head.epoch)
            .bind::<Integer, _>(count)
            .bind::<Bytea, _>(prev.to_vec())
            .bind::<Bytea, _>(hash.to_vec()),
    )
    .get_result(tx.sql()?)
    .await?;
    Ok(batch.id)
}

async fn insert_transfers(
    tx: &mut Tx,
    batch: i64,
    transfers: &[(Transfer, Currency)],
) -> Result<(), Error> {
    if transfers.is_empty() {
        return Ok(());
    }
    let each = || transfers.iter();
    prepared(
        diesel::sql_query(TRANSFERS)
            .bind::<Array<SqlUuid>, _>(each().map(|(t, _)| t.id.uuid()).collect::<Vec<_>>())
            .bind::<Array<SmallInt>, _>(each().map(|(t, _)| t.kind.code()).collect::<Vec<_>>())
            .bind::<Array<Integer>, _>(each().map(|(_, c)| c.ledger()).collect::<Vec<_>>())
            .bind::<Array<BigInt>, _>(each().map(|(t, _)| t.debit.0).collect::<Vec<_>>())
            .bind::<Array<BigInt>, _>(each().map(|(t, _)| t.credit.0).collect::<Vec<_>>())
            .bind::<Array<BigInt>, _>(each().map(|(t, _)| t.amount.get()).collect::<Vec<_>>())
            .bind::<Array<SqlUuid>, _>(each().map(|(t, _)| t.cause).collect::<Vec<_>>())
            .bind::<Array<Timestamptz>, _>(each().map(|(t, _)| to_pg(t.at)).collect::<Vec<_>>())
            .bind::<Nullable<BigInt>, _>(Some(batch)),
    )
    .execute(tx.sql()?)
    .await?;
    Ok(())
}

async fn insert_charges(
    tx: &mut Tx,
    batch: i64,
    charges: &[(Charge, Currency)],
) -> Result<(), Error> {
    if charges.is_empty() {
        return Ok(());
    }
    let ids = |of: fn(&Charge) -> Uuid| charges.iter().map(|(c, _)| of(c)).collect::<Vec<Uuid>>();
    let bigs = |of: fn(&Charge) -> i64| charges.iter().map(|(c, _)| of(c)).collect::<Vec<i64>>();
    let times = |of: fn(&Charge) -> PgTimestamp| charges.iter().map(|(c, _)| of(c)).collect();
    let (from, to, at): (Vec<_>, Vec<_>, Vec<_>) = (
        times(|c| to_pg(c.settlement.from)),
        times(|c| to_pg(c.settlement.to)),
        times(|c| to_pg(c.at)),
    );
    let ledgers: Vec<i32> = charges.iter().map(|(_, c)| c.ledger()).collect();
    prepared(
        diesel::sql_query(CHARGES)
            .bind::<Array<SqlUuid>, _>(ids(|c| c.id.uuid()))
            .bind::<Array<SqlUuid>, _>(ids(|c| c.settlement.meter.uuid()))
            .bind::<Array<SqlUuid>, _>(ids(|c| c.settlement.lease.uuid()))
            .bind::<Array<SqlUuid>, _>(ids(|c| c.hold.uuid()))
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.seq))
            .bind::<Array<Timestamptz>, _>(from)
            .bind::<Array<Timestamptz>, _>(to)
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.billable_ms))
            .bind::<Array<Integer>, _>(ledgers)
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.due.gross.get()))
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.due.fee.get()))
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.due.tax.get()))
            .bind::<Array<BigInt>, _>(bigs(|c| c.accounts.wallet.0))
            .bind::<Array<BigInt>, _>(bigs(|c| c.accounts.earned.0))
            .bind::<Array<BigInt>, _>(bigs(|c| c.accounts.fee.0))
            .bind::<Array<BigInt>, _>(bigs(|c| c.accounts.tax.0))
            .bind::<Array<Timestamptz>, _>(at)
            .bind::<Array<BigInt>, _>(bigs(|c| c.settlement.segment))
            .bind::<Nullable<BigInt>, _>(Some(batch)),
    )
    .execute(tx.sql()?)
    .await?;
    Ok(())
}
