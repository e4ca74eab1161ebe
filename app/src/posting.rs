//! Operations of `billing::posting` inside a transaction: accounts locked, legs decided, booked, saved.

use billing::ledger::Ledger;
use billing::posting::{Books, Key, Leg, Legs, Operation, PostingRefusal, Rail, book};
use billing::transfer::Transfer;
use domain::id::TransferId;
use domain::money::Currency;
use domain::refusal::Code;
use store::db::Tx;

use crate::context::{Cx, PaymentsMode};
use crate::error::Error;
use crate::wallet::refuse;

/// How money moves between the market and the outside, if it does.
pub(crate) const fn rail(payments: PaymentsMode) -> Option<Rail> {
    match payments {
        PaymentsMode::Sandbox => Some(Rail::Sandbox),
        PaymentsMode::Disabled => None,
    }
}

/// What an operation has moved.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    /// As decided.
    pub(crate) legs: Vec<Leg>,
    /// As booked, in the same order.
    pub(crate) transfers: Vec<Transfer>,
}

/// Locks `wanted`, books what `decide` says. Every account of a leg must be
/// among `wanted`.
pub(crate) async fn post(
    cx: &Cx,
    tx: &mut Tx,
    (currency, operation): (Currency, Operation),
    wanted: &[Key],
    decide: impl Fn(Books<'_>) -> Legs + Send + Sync,
) -> Result<Posted, Error> {
    let posted = try_post(cx, tx, (currency, operation), wanted, decide).await?;
    posted.ok_or_else(|| refuse_posting(PostingRefusal::NothingDue))
}

/// The same where nothing may be due.
pub(crate) async fn try_post(
    cx: &Cx,
    tx: &mut Tx,
    (currency, operation): (Currency, Operation),
    wanted: &[Key],
    decide: impl Fn(Books<'_>) -> Legs + Send + Sync,
) -> Result<Option<Posted>, Error> {
    let accounts = store::ledger::lock_accounts(tx, currency, wanted).await?;
    let before = Ledger::new(accounts, []);
    let legs = match decide(Books(&before)) {
        Ok(legs) => legs,
        Err(PostingRefusal::NothingDue) => return Ok(None),
        Err(refusal) => return Err(refuse_posting(refusal)),
    };
    let mut after = before.clone();
    let id = || TransferId::from_uuid(cx.id());
    let transfers = book(&mut after, &legs, operation, id).map_err(refuse)?;
    store::ledger::save(tx, &before, &after).await?;
    for transfer in &transfers {
        store::ledger::insert_transfer(tx, transfer, currency);
    }
    Ok(Some(Posted { legs, transfers }))
}

/// A refusal of an operation as a client sees it.
pub(crate) fn refuse_posting(refusal: PostingRefusal) -> Error {
    match refusal {
        PostingRefusal::NothingDue => Error::refused(Code::NothingDue, "There is nothing to move."),
        PostingRefusal::NotCovered => {
            Error::refused(Code::InsufficientFunds, "The account does not cover this.")
        }
        PostingRefusal::NotWholeCents => Error::refused(
            Code::AmountOutOfRange,
            "Banks move whole cents: use at most two decimals.",
        ),
        PostingRefusal::BelowMinimum => {
            Error::refused(Code::AmountOutOfRange, "Less than the minimum.")
        }
        PostingRefusal::AmountNotPositive => {
            Error::refused(Code::AmountOutOfRange, "The amount must be above zero.")
        }
        PostingRefusal::Overflow => {
            Error::refused(Code::AmountOutOfRange, "An account would overflow.")
        }
        PostingRefusal::AlreadyDone => Error::Fault("an operation was done twice"),
    }
}
