//! Transfers: one debit, one credit, one positive amount, immutable.

use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Micros, MoneyError};
use thiserror::Error;
use uuid::Uuid;

use crate::account::AccountId;

/// What a transfer is for. Each cause has at most one transfer of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// `sandbox_clearing` → `renter_wallet`; cause: the top-up.
    SandboxTopUp,
}

impl TransferKind {
    /// Every kind.
    pub const ALL: [Self; 1] = [Self::SandboxTopUp];

    /// The number in the database.
    pub const fn code(self) -> i16 {
        match self {
            Self::SandboxTopUp => 1,
        }
    }

    /// The kind of a number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.code() == code)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SandboxTopUp => "sandbox_top_up",
        }
    }
}

/// A movement of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Made by the caller.
    pub id: TransferId,
    /// What for.
    pub kind: TransferKind,
    /// Account that is debited.
    pub debit: AccountId,
    /// Account that is credited.
    pub credit: AccountId,
    /// More than zero.
    pub amount: Micros,
    /// The business operation behind it.
    pub cause: Uuid,
    /// When.
    pub at: Timestamp,
}

/// Why money did not move. Tested in this order; the first rule that refuses is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum TransferRefusal {
    /// The amount is zero or negative.
    #[error("the amount must be more than zero")]
    AmountNotPositive,
    /// Both sides are one account.
    #[error("debit and credit are the same account")]
    SameAccount,
    /// An account is not there.
    #[error("an account does not exist")]
    AccountMissing,
    /// The accounts have different currencies.
    #[error("the accounts have different currencies")]
    CurrencyMismatch,
    /// The hold is not there.
    #[error("the hold does not exist")]
    HoldMissing,
    /// The hold is closed, or its time is over.
    #[error("the hold is not open")]
    HoldNotOpen,
    /// The hold was taken on another account or for another lease, or (on opening) its id or its
    /// lease has a hold already.
    #[error("the hold belongs to another account or lease")]
    HoldOfOther,
    /// More than is left in the hold.
    #[error("the hold does not cover the amount")]
    ExceedsHold,
    /// More than is available.
    #[error("the account does not cover the amount")]
    ExceedsCredits,
    /// A sum would not fit into 64 bits.
    #[error("an account would overflow")]
    Overflow,
}

impl From<MoneyError> for TransferRefusal {
    fn from(_cause: MoneyError) -> Self {
        Self::Overflow
    }
}
