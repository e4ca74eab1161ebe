//! Disputed card payments: the wallet pays as much as it has, the rest is owed, and nothing goes
//! below zero.

use domain::money::Micros;
use uuid::Uuid;

use super::{Books, Key, Leg, Legs, PostingRefusal, Rail, leg, platform, positive, some};
use crate::account::AccountCode;
use crate::transfer::TransferKind;

const RESERVE: Key = platform(AccountCode::DisputeReserve);

const fn wallet(renter: Uuid) -> Key {
    (AccountCode::RenterWallet, renter)
}

const fn receivable(renter: Uuid) -> Key {
    (AccountCode::DisputeReceivable, renter)
}

/// What an opened dispute took, by record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disputed {
    /// Out of the wallet.
    pub taken: Micros,
    /// Owed by the renter.
    pub owed: Micros,
}

impl Disputed {
    /// Both.
    pub fn amount(self) -> Result<Micros, PostingRefusal> {
        Ok(self.taken.plus(self.owed)?)
    }

    /// What the legs of [`opened`] took.
    pub fn of(legs: &[Leg]) -> Result<Self, PostingRefusal> {
        let sum = |kind| {
            legs.iter()
                .filter(|l| l.kind == kind)
                .try_fold(Micros::ZERO, |sum, l| sum.plus(l.amount))
        };
        Ok(Self {
            taken: sum(TransferKind::DisputeOpened)?,
            owed: sum(TransferKind::DisputeOwed)?,
        })
    }
}

/// A dispute is opened: wallet as much as there is, the rest to the receivable; all of it waits in
/// the reserve. What leases hold stays theirs.
pub fn opened(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    positive(amount)?;
    let taken = books.available(wallet(renter))?.min(amount);
    let taken = taken.max(Micros::ZERO);
    some([
        leg(TransferKind::DisputeOpened, wallet(renter), RESERVE, taken),
        leg(
            TransferKind::DisputeOwed,
            receivable(renter),
            RESERVE,
            amount.minus(taken)?,
        ),
    ])
}

/// The market won: the recorded legs are reversed. What was owed and has been paid since goes into
/// the wallet, and out of the wallet other debts are paid.
pub fn won(books: Books<'_>, renter: Uuid, disputed: Disputed) -> Legs {
    let owes = books.worth(receivable(renter))?;
    let forgiven = disputed.owed.min(owes);
    let back = disputed.amount()?.minus(forgiven)?;
    let others = owes.minus(forgiven)?;
    let money = books.available(wallet(renter))?.plus(back)?;
    some([
        leg(TransferKind::DisputeWon, RESERVE, wallet(renter), back),
        leg(
            TransferKind::DisputeOwedWon,
            RESERVE,
            receivable(renter),
            forgiven,
        ),
        leg(
            TransferKind::ReceivableSettled,
            wallet(renter),
            receivable(renter),
            money.min(others),
        ),
    ])
}

/// The market lost: the money leaves for good. What the renter owes stays owed.
pub fn lost(rail: Rail, disputed: Disputed) -> Legs {
    some([leg(
        TransferKind::DisputeLost,
        RESERVE,
        rail.clearing(),
        disputed.amount()?,
    )])
}

/// The bank's fee for a dispute.
pub fn fee(rail: Rail, amount: Micros) -> Legs {
    positive(amount)?;
    some([leg(
        TransferKind::DisputeFee,
        platform(AccountCode::DisputeLoss),
        rail.clearing(),
        amount,
    )])
}

/// Pays what a renter owes out of what its wallet can spend, e.g. after a lease gave its hold back.
pub fn repay(books: Books<'_>, renter: Uuid) -> Legs {
    let kind = TransferKind::ReceivableCollected;
    let paid = repayment(books, renter, Micros::ZERO)?;
    some([paid.map(|leg| Leg { kind, ..leg })])
}

/// Gives up what a renter owes.
pub fn write_off(books: Books<'_>, renter: Uuid) -> Legs {
    some([leg(
        TransferKind::WrittenOff,
        platform(AccountCode::BadDebt),
        receivable(renter),
        books.worth(receivable(renter))?,
    )])
}

/// The repayment out of a wallet that has just got `incoming`.
pub(super) fn repayment(
    books: Books<'_>,
    renter: Uuid,
    incoming: Micros,
) -> Result<Option<Leg>, PostingRefusal> {
    let money = books.available(wallet(renter))?.plus(incoming)?;
    let paid = money.min(books.worth(receivable(renter))?);
    Ok(leg(
        TransferKind::ReceivableRepaid,
        wallet(renter),
        receivable(renter),
        paid,
    ))
}
