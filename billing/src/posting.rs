//! Business operations as lists of transfers: what moves, decided from the state of the accounts.
//!
//! Each function is pure: it reads balances and gives legs, or says why nothing may move. [`book`]
//! turns legs into transfers and applies them all or none. Invariants: legs of one operation have
//! different kinds, so that `(cause, kind)` names each transfer; no leg is of zero; a sum is split
//! without rest; no function lets a covered account go below zero or a debt be paid twice.

use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Micros, MoneyError};
use thiserror::Error;
use uuid::Uuid;

use crate::account::{Account, AccountCode, PLATFORM};
use crate::ledger::Ledger;
use crate::transfer::{Transfer, TransferKind, TransferRefusal};

pub mod adjustment;
pub mod credit;
pub mod dispute;
pub mod earning;
pub mod payment;

/// An account by its place in the chart and its owner.
pub type Key = (AccountCode, Uuid);

/// An account of the platform.
pub const fn platform(code: AccountCode) -> Key {
    (code, PLATFORM)
}

/// Through which clearing account money from outside goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rail {
    /// The card processor.
    Stripe,
    /// Play money.
    Sandbox,
}

impl Rail {
    /// The clearing account.
    pub const fn clearing(self) -> Key {
        match self {
            Self::Stripe => platform(AccountCode::StripeClearing),
            Self::Sandbox => platform(AccountCode::SandboxClearing),
        }
    }
}

/// One movement of an operation, before it has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// What for.
    pub kind: TransferKind,
    /// Account that is debited.
    pub debit: Key,
    /// Account that is credited.
    pub credit: Key,
    /// More than zero.
    pub amount: Micros,
}

/// Why an operation moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostingRefusal {
    /// The amount is zero or negative.
    #[error("the amount must be more than zero")]
    AmountNotPositive,
    /// There is nothing to move.
    #[error("nothing is due")]
    NothingDue,
    /// The account has less.
    #[error("the account does not cover the amount")]
    NotCovered,
    /// Banks know whole cents only.
    #[error("the amount is not in whole cents")]
    NotWholeCents,
    /// Less than the least that is paid out.
    #[error("the amount is below the minimum")]
    BelowMinimum,
    /// The operation was done before.
    #[error("it was done before")]
    AlreadyDone,
    /// A sum would not fit into 64 bits.
    #[error("a sum would overflow")]
    Overflow,
}

impl From<MoneyError> for PostingRefusal {
    fn from(_cause: MoneyError) -> Self {
        Self::Overflow
    }
}

/// Legs, or why there are none.
pub type Legs = Result<Vec<Leg>, PostingRefusal>;

/// The balances that operations decide from.
#[derive(Clone, Copy, Debug)]
pub struct Books<'a>(pub &'a Ledger);

impl Books<'_> {
    fn find(&self, key: Key) -> Option<&Account> {
        find(self.0, key)
    }

    /// What an account can spend; nothing if it has no movements yet.
    pub fn available(&self, key: Key) -> Result<Micros, PostingRefusal> {
        Ok(self
            .find(key)
            .map_or(Ok(Micros::ZERO), Account::available)?)
    }

    /// The balance on the account's normal side; nothing if it has no movements yet.
    pub fn worth(&self, key: Key) -> Result<Micros, PostingRefusal> {
        Ok(self.find(key).map_or(Ok(Micros::ZERO), Account::worth)?)
    }
}

fn find(ledger: &Ledger, (code, owner): Key) -> Option<&Account> {
    ledger
        .accounts()
        .find(|a| a.code == code && a.owner == owner)
}

/// A leg, or none of nothing.
fn leg(kind: TransferKind, debit: Key, credit: Key, amount: Micros) -> Option<Leg> {
    (amount > Micros::ZERO).then_some(Leg {
        kind,
        debit,
        credit,
        amount,
    })
}

fn positive(amount: Micros) -> Result<Micros, PostingRefusal> {
    if amount > Micros::ZERO {
        Ok(amount)
    } else {
        Err(PostingRefusal::AmountNotPositive)
    }
}

/// The legs that are there, or [`PostingRefusal::NothingDue`].
fn some<const N: usize>(legs: [Option<Leg>; N]) -> Legs {
    let legs: Vec<Leg> = legs.into_iter().flatten().collect();
    if legs.is_empty() {
        Err(PostingRefusal::NothingDue)
    } else {
        Ok(legs)
    }
}

/// Moves a positive amount out of an account that covers it.
fn covered(books: Books<'_>, kind: TransferKind, (from, to): (Key, Key), amount: Micros) -> Legs {
    positive(amount)?;
    if amount > books.available(from)? {
        return Err(PostingRefusal::NotCovered);
    }
    some([leg(kind, from, to, amount)])
}

/// The operation behind transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub cause: Uuid,
    /// When.
    pub at: Timestamp,
}

/// Books all legs of an operation, or none of them. `id` makes the ids of the transfers.
pub fn book(
    ledger: &mut Ledger,
    legs: &[Leg],
    operation: Operation,
    mut id: impl FnMut() -> TransferId,
) -> Result<Vec<Transfer>, TransferRefusal> {
    let mut next = ledger.clone();
    let mut booked = Vec::new();
    for leg in legs {
        let number = |key| {
            find(ledger, key)
                .map(|a| a.id)
                .ok_or(TransferRefusal::AccountMissing)
        };
        let transfer = Transfer {
            id: id(),
            kind: leg.kind,
            debit: number(leg.debit)?,
            credit: number(leg.credit)?,
            amount: leg.amount,
            cause: operation.cause,
            at: operation.at,
        };
        next.transfer(&transfer)?;
        booked.push(transfer);
    }
    *ledger = next;
    Ok(booked)
}

#[cfg(test)]
mod tests;
