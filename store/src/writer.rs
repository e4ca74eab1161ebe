//! Transfers by data: whole batches at once, or one by one through a group commit.

use std::collections::BTreeSet;

use billing::account::{Account, AccountCode};
use billing::ledger::Ledger;
use billing::transfer::{Transfer, TransferKind, TransferRefusal};
use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::db::{Db, Tx};
use crate::error::Error;
use crate::group::{Group, Served};
use crate::ledger::{insert_transfer, lock_accounts, save};

/// A transfer that is wanted: between accounts by chart and owner instead of by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Made by the caller.
    pub id: TransferId,
    /// What for.
    pub kind: TransferKind,
    /// Account that is debited.
    pub debit: (AccountCode, Uuid),
    /// Account that is credited.
    pub credit: (AccountCode, Uuid),
    /// More than zero.
    pub amount: Micros,
    /// The business operation behind it.
    pub cause: Uuid,
    /// When.
    pub at: Timestamp,
}

/// Books transfers in their order, each by the ledger's rules on what those before it left: what is
/// refused moves nothing and does not hinder the others.
pub async fn post(
    tx: &mut Tx,
    currency: Currency,
    wanted: &[Wanted],
) -> Result<Vec<Result<Transfer, TransferRefusal>>, Error> {
    let touched: BTreeSet<(AccountCode, Uuid)> =
        wanted.iter().flat_map(|w| [w.debit, w.credit]).collect();
    let touched: Vec<_> = touched.into_iter().collect();
    let accounts = lock_accounts(tx, currency, &touched).await?;
    let number = |key: &(AccountCode, Uuid)| {
        let at = touched.binary_search(key).ok();
        at.and_then(|n| accounts.get(n)).map(|a: &Account| a.id)
    };
    let before = Ledger::new(accounts.iter().cloned(), []);
    let mut after = before.clone();
    let mut results = Vec::with_capacity(wanted.len());
    for w in wanted {
        let (Some(debit), Some(credit)) = (number(&w.debit), number(&w.credit)) else {
            results.push(Err(TransferRefusal::AccountMissing));
            continue;
        };
        let transfer = Transfer {
            id: w.id,
            kind: w.kind,
            debit,
            credit,
            amount: w.amount,
            cause: w.cause,
            at: w.at,
        };
        let outcome = after.transfer(&transfer);
        if outcome.is_ok() {
            insert_transfer(tx, &transfer, currency);
        }
        results.push(outcome.map(|()| transfer));
    }
    save(tx, &before, &after).await?;
    Ok(results)
}

/// Most transfers in one transaction of a [`Writer`].
const MOST: usize = 1_000;

/// One transfer per caller, committed in groups.
#[derive(Debug)]
pub struct Writer(Group<Db, (Currency, Wanted), Result<Transfer, TransferRefusal>, Error>);

impl Default for Writer {
    fn default() -> Self {
        // The same id twice in one batch would refuse the batch.
        Self(Group::new(MOST, serve, |(_, w)| Some(w.cause.to_string())))
    }
}

impl Writer {
    /// Books one transfer; it is durable when this returns.
    pub async fn post(
        &self,
        db: &Db,
        currency: Currency,
        wanted: Wanted,
    ) -> Result<Result<Transfer, TransferRefusal>, Error> {
        self.0.run(db, (currency, wanted)).await
    }
}

fn serve<'a>(
    db: &'a Db,
    items: &'a [(Currency, Wanted)],
) -> Served<'a, Result<Transfer, TransferRefusal>, Error> {
    Box::pin(async move {
        db.write::<_, Error, _>(async |tx: &mut Tx| {
            if items.len() > 1 {
                tx.read_optimistically();
            }
            let mut results = Vec::with_capacity(items.len());
            for run in items.chunk_by(|a, b| a.0 == b.0) {
                let Some((currency, _)) = run.first().copied() else {
                    continue;
                };
                let wanted: Vec<Wanted> = run.iter().map(|(_, w)| *w).collect();
                results.extend(post(tx, currency, &wanted).await?.into_iter().map(Ok));
            }
            Ok(results)
        })
        .await
    })
}
