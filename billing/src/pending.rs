//! Two-phase transfers beside the holds of leases: pending, then posted, voided or expired.
//!
//! While it is pending, the amount stands in `debits_pending` of one account and in
//! `credits_pending` of the other: spendable by nobody, counted by nobody. It ends at most once.
//! Expiry is computed on read: a transfer whose time is over cannot be posted, whether or not a
//! sweep has booked that.

use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::Micros;
use thiserror::Error;

use crate::account::AccountId;
use crate::ledger::Ledger;
use crate::transfer::{Transfer, TransferRefusal};

/// How a two-phase transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingState {
    /// The money is set aside.
    Pending,
    /// It moved: so much of it.
    Posted(Micros),
    /// It was given up.
    Voided,
    /// Its time ran out.
    Expired,
}

/// A transfer in two phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Id of the transfer that it may become.
    pub id: TransferId,
    /// Account that will be debited.
    pub debit: AccountId,
    /// Account that will be credited.
    pub credit: AccountId,
    /// At most so much.
    pub amount: Micros,
    /// As recorded; see [`Pending::state_at`].
    pub state: PendingState,
    /// It ends by itself then.
    pub expires_at: Option<Timestamp>,
}

/// Why a two-phase transfer was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PendingRefusal {
    /// It was posted, voided or has expired.
    #[error("the transfer is not pending")]
    NotPending,
    /// More than was set aside.
    #[error("more than was set aside")]
    ExceedsPending,
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] TransferRefusal),
}

impl Pending {
    /// The state at `now`, expiry included.
    pub fn state_at(&self, now: Timestamp) -> PendingState {
        match self.state {
            PendingState::Pending if self.expires_at.is_some_and(|end| end <= now) => {
                PendingState::Expired
            }
            PendingState::Pending
            | PendingState::Posted(_)
            | PendingState::Voided
            | PendingState::Expired => self.state,
        }
    }

    /// Sets the money aside.
    pub fn open(self, ledger: &mut Ledger) -> Result<Self, PendingRefusal> {
        if self.state != PendingState::Pending {
            return Err(PendingRefusal::NotPending);
        }
        ledger.announce(self.debit, self.credit, self.amount)?;
        Ok(self)
    }

    /// Moves `transfer.amount` of it and releases the rest. Accounts and id of the transfer are the
    /// pending one's.
    pub fn post(self, ledger: &mut Ledger, transfer: &Transfer) -> Result<Self, PendingRefusal> {
        if self.state_at(transfer.at) != PendingState::Pending {
            return Err(PendingRefusal::NotPending);
        }
        let same =
            (transfer.id, transfer.debit, transfer.credit) == (self.id, self.debit, self.credit);
        if !same || transfer.amount > self.amount {
            return Err(PendingRefusal::ExceedsPending);
        }
        let mut next = ledger.clone();
        next.withdraw(self.debit, self.credit, self.amount)?;
        next.transfer(transfer)?;
        *ledger = next;
        Ok(Self {
            state: PendingState::Posted(transfer.amount),
            ..self
        })
    }

    /// Gives it up.
    pub fn void(self, ledger: &mut Ledger, now: Timestamp) -> Result<Self, PendingRefusal> {
        if self.state_at(now) != PendingState::Pending {
            return Err(PendingRefusal::NotPending);
        }
        self.end(ledger, PendingState::Voided)
    }

    /// Books that its time has run out.
    pub fn expire(self, ledger: &mut Ledger, now: Timestamp) -> Result<Self, PendingRefusal> {
        let recorded = self.state == PendingState::Pending;
        if !recorded || self.state_at(now) != PendingState::Expired {
            return Err(PendingRefusal::NotPending);
        }
        self.end(ledger, PendingState::Expired)
    }

    fn end(self, ledger: &mut Ledger, state: PendingState) -> Result<Self, PendingRefusal> {
        ledger.withdraw(self.debit, self.credit, self.amount)?;
        Ok(Self { state, ..self })
    }
}

#[cfg(test)]
mod tests;
