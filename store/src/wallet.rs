//! When wallets must be looked at: only those that something burns from are here.

use billing::account::AccountCode;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::PartyId;
use domain::money::Currency;
use uuid::Uuid;

use crate::convert::{from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::prepared::prepared;
use crate::schema::wallet_watch;

/// What is noted of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalletWatch {
    /// Whose.
    pub party: PartyId,
    /// Of what.
    pub currency: Currency,
    /// When it must be looked at.
    pub due_at: Option<Timestamp>,
    /// When the money ends, as last worked out.
    pub runs_out_at: Option<Timestamp>,
    /// Notices given since there was time enough.
    pub warned: u8,
}

const AT_ONCE: Timestamp = Timestamp::from_micros(0);

/// The wallet's burn changed: look at it at once.
pub async fn touch(tx: &mut Tx, party: PartyId, currency: Currency) -> Result<(), Error> {
    let row = (
        wallet_watch::party_id.eq(party.uuid()),
        wallet_watch::ledger.eq(currency.ledger()),
        wallet_watch::due_at.eq(to_pg(AT_ONCE)),
    );
    diesel::insert_into(wallet_watch::table)
        .values(row)
        .on_conflict((wallet_watch::party_id, wallet_watch::ledger))
        .do_update()
        .set(wallet_watch::due_at.eq(to_pg(AT_ONCE)))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The party has more to spend beside its wallet: whoever waits for money looks again.
pub async fn grew(tx: &mut Tx, party: PartyId, currency: Currency) -> Result<(), Error> {
    let wallet = (AccountCode::RenterWallet, party.uuid());
    if let Some(wallet) = crate::ledger::account_of(tx, currency, wallet).await? {
        crate::hold::wake_short(tx, &[wallet.id.0]).await?;
    }
    wake(tx, &[party.uuid()]).await
}

/// Money came or went: look at those of these wallets that something burns from.
pub(crate) async fn wake(tx: &mut Tx, parties: &[Uuid]) -> Result<(), Error> {
    prepared(diesel::sql_query(
        "UPDATE wallet_watch SET due_at = 'epoch' WHERE party_id = ANY($1) AND due_at IS DISTINCT FROM 'epoch'",
    )
    .bind::<Array<SqlUuid>, _>(parties))
    .execute(tx.sql()?)
    .await?;
    Ok(())
}

/// Wallets that must be looked at, at most `most`.
pub async fn due(
    ro: &mut Ro,
    now: Timestamp,
    most: i64,
) -> Result<Vec<(PartyId, Currency)>, Error> {
    let rows: Vec<(Uuid, i32)> = wallet_watch::table
        .filter(wallet_watch::due_at.le(to_pg(now)))
        .order(wallet_watch::due_at)
        .limit(most)
        .select((wallet_watch::party_id, wallet_watch::ledger))
        .load(ro.sql()?)
        .await?;
    rows.into_iter()
        .map(|(party, ledger)| Ok((PartyId::from_uuid(party), crate::convert::currency(ledger)?)))
        .collect()
}

/// Locks and gives what is noted of a wallet.
pub async fn get_for_update(
    tx: &mut Tx,
    party: PartyId,
    currency: Currency,
) -> Result<Option<WalletWatch>, Error> {
    type Row = (Option<PgTimestamp>, Option<PgTimestamp>, i16);
    let row: Option<Row> = wallet_watch::table
        .find((party.uuid(), currency.ledger()))
        .select((
            wallet_watch::due_at,
            wallet_watch::runs_out_at,
            wallet_watch::warned,
        ))
        .for_update()
        .first(tx.sql()?)
        .await
        .optional()?;
    Ok(row.map(|(due, out, warned)| WalletWatch {
        party,
        currency,
        due_at: due.map(from_pg),
        runs_out_at: out.map(from_pg),
        warned: u8::try_from(warned).unwrap_or(0),
    }))
}

/// Notes it.
pub async fn save(tx: &mut Tx, watch: &WalletWatch) -> Result<(), Error> {
    diesel::update(wallet_watch::table.find((watch.party.uuid(), watch.currency.ledger())))
        .set((
            wallet_watch::due_at.eq(watch.due_at.map(to_pg)),
            wallet_watch::runs_out_at.eq(watch.runs_out_at.map(to_pg)),
            wallet_watch::warned.eq(i16::from(watch.warned)),
        ))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}
