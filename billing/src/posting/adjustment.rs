//! Movements by people: adjustments, corrections, and moves between databases.

use domain::money::Micros;

use super::{Books, Key, Leg, Legs, PostingRefusal, covered, leg, platform, positive, some};
use crate::account::AccountCode;
use crate::transfer::TransferKind;

/// Which way an adjustment goes, seen from the party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The party gets money.
    Credit,
    /// The party loses money.
    Debit,
}

impl Direction {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
        }
    }

    /// The direction of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Credit, Self::Debit]
            .into_iter()
            .find(|d| d.as_str() == text)
    }
}

/// Accounts of a party that people may adjust.
pub const ADJUSTABLE: [AccountCode; 3] = [
    AccountCode::RenterWallet,
    AccountCode::ProviderEarned,
    AccountCode::ProviderPayable,
];

/// Accounts of the platform that bear an adjustment. None is striped: a proposed debit is announced
/// on one row, and taken back from the same.
pub const BEARERS: [AccountCode; 4] = [
    AccountCode::SlaExpense,
    AccountCode::DisputeLoss,
    AccountCode::BadDebt,
    AccountCode::Suspense,
];

/// An adjustment of a party's account against an account of the platform.
pub fn adjust(
    books: Books<'_>,
    direction: Direction,
    (account, bearer): (Key, AccountCode),
    amount: Micros,
) -> Legs {
    match direction {
        Direction::Credit => some([leg(
            TransferKind::AdjustmentCredit,
            platform(bearer),
            account,
            positive(amount)?,
        )]),
        Direction::Debit => {
            let paths = (account, platform(bearer));
            covered(books, TransferKind::AdjustmentDebit, paths, amount)
        }
    }
}

/// The reverse of a recorded movement, once. Its cause is the transfer that it reverses.
pub fn correct(recorded: Leg, corrected_before: bool) -> Result<Leg, PostingRefusal> {
    if corrected_before {
        return Err(PostingRefusal::AlreadyDone);
    }
    Ok(Leg {
        kind: TransferKind::Correction,
        debit: recorded.credit,
        credit: recorded.debit,
        amount: recorded.amount,
    })
}

/// Money leaves for another database, which takes it with [`interbranch_in`] under the same cause.
pub fn interbranch_out(books: Books<'_>, from: Key, amount: Micros) -> Legs {
    let paths = (from, platform(AccountCode::Interbranch));
    covered(books, TransferKind::InterbranchOut, paths, amount)
}

/// Money comes from another database.
pub fn interbranch_in(to: Key, amount: Micros) -> Legs {
    some([leg(
        TransferKind::InterbranchIn,
        platform(AccountCode::Interbranch),
        to,
        positive(amount)?,
    )])
}
