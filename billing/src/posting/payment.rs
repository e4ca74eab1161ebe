//! Money from and to the outside: top-ups, refunds, fees of the processor, tax, unmatched money.

use domain::money::Micros;
use uuid::Uuid;

use super::{Books, Key, Leg, Legs, Rail, covered, leg, platform, positive, some};
use crate::account::AccountCode;
use crate::transfer::TransferKind;

const fn wallet(renter: Uuid) -> Key {
    (AccountCode::RenterWallet, renter)
}

/// A top-up: the money goes into the wallet, and what the renter owes is paid out of it at once.
pub fn top_up(books: Books<'_>, rail: Rail, renter: Uuid, amount: Micros) -> Legs {
    positive(amount)?;
    let kind = match rail {
        Rail::Stripe => TransferKind::Deposit,
        Rail::Sandbox => TransferKind::SandboxTopUp,
    };
    some([
        leg(kind, rail.clearing(), wallet(renter), amount),
        super::dispute::repayment(books, renter, amount)?,
    ])
}

/// The processor's fee, as the processor tells it.
pub fn stripe_fee(amount: Micros) -> Legs {
    move_positive(
        TransferKind::StripeFee,
        platform(AccountCode::StripeFees),
        Rail::Stripe.clearing(),
        amount,
    )
}

/// The processor has paid the market out.
pub fn bank_settled(amount: Micros) -> Legs {
    move_positive(
        TransferKind::BankSettled,
        platform(AccountCode::Bank),
        Rail::Stripe.clearing(),
        amount,
    )
}

/// Collected tax is paid to the authority.
pub fn tax_remitted(books: Books<'_>, amount: Micros) -> Legs {
    let tax = platform(AccountCode::TaxPayable);
    let paths = (tax, platform(AccountCode::Bank));
    covered(books, TransferKind::TaxRemitted, paths, amount)
}

/// Money came in that belongs to nobody yet.
pub fn suspense_in(amount: Micros) -> Legs {
    move_positive(
        TransferKind::SuspenseIn,
        Rail::Stripe.clearing(),
        platform(AccountCode::Suspense),
        amount,
    )
}

/// Unmatched money has found its renter.
pub fn suspense_out(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    let paths = (platform(AccountCode::Suspense), wallet(renter));
    covered(books, TransferKind::SuspenseOut, paths, amount)
}

/// A refund to the card: the money leaves the wallet before the processor is asked. Only what is
/// available can go, so neither held money nor credit of the market is ever refunded.
pub fn refund_requested(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    let paths = (wallet(renter), (AccountCode::RefundPending, renter));
    covered(books, TransferKind::RefundRequested, paths, amount)
}

/// The refund has reached the card.
pub fn refund_settled(books: Books<'_>, rail: Rail, renter: Uuid, amount: Micros) -> Legs {
    let paths = ((AccountCode::RefundPending, renter), rail.clearing());
    covered(books, TransferKind::RefundSettled, paths, amount)
}

/// The refund failed: the money is back.
pub fn refund_failed(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    let paths = ((AccountCode::RefundPending, renter), wallet(renter));
    covered(books, TransferKind::RefundFailed, paths, amount)
}

fn move_positive(kind: TransferKind, debit: Key, credit: Key, amount: Micros) -> Legs {
    let amount = positive(amount)?;
    Ok(vec![Leg {
        kind,
        debit,
        credit,
        amount,
    }])
}
