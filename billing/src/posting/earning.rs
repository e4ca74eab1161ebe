//! A provider's money: earned, matured, kept back, paid out, taken back.

use domain::clock::{Span, Timestamp};
use domain::money::Micros;
use uuid::Uuid;

use super::{Books, Key, Legs, PostingRefusal, Rail, covered, leg, positive, some};
use crate::account::AccountCode;
use crate::rating::{Due, share};
use crate::transfer::TransferKind;

/// Banks move whole cents: so many micro-units.
pub const CENT: i64 = 10_000;

/// A whole day (UTC).
pub const DAY: Span = Span::from_hours(24);

const fn earned(provider: Uuid) -> Key {
    (AccountCode::ProviderEarned, provider)
}

const fn payable(provider: Uuid) -> Key {
    (AccountCode::ProviderPayable, provider)
}

const fn reserve(provider: Uuid) -> Key {
    (AccountCode::ProviderReserve, provider)
}

const fn in_flight(provider: Uuid) -> Key {
    (AccountCode::PayoutInFlight, provider)
}

const fn receivable(provider: Uuid) -> Key {
    (AccountCode::ProviderReceivable, provider)
}

/// Earnings before this instant are mature at `now`. A period of a day or more is cut to whole days
/// (UTC), so that a provider's earnings mature once a day.
pub fn matures_before(now: Timestamp, maturing: Span) -> Timestamp {
    let edge = now.minus(maturing);
    if maturing < DAY {
        return edge;
    }
    let into_the_day = edge.micros().rem_euclid(DAY.micros());
    edge.minus(Span::from_micros(into_the_day))
}

/// Earnings mature: all that was earned but for `recent`, what came in within the maturing period.
/// What was taken back since counts against the oldest. A debt is paid first; of the rest,
/// `reserve_bps` are kept back.
pub fn mature(books: Books<'_>, provider: Uuid, recent: Micros, reserve_bps: u32) -> Legs {
    let due = books.available(earned(provider))?.minus(recent)?;
    if due <= Micros::ZERO {
        return Err(PostingRefusal::NothingDue);
    }
    let owes = books.worth(receivable(provider))?;
    let repaid = owes.min(books.available(payable(provider))?.plus(due)?);
    let rest = due.minus(repaid)?.max(Micros::ZERO);
    some([
        leg(
            TransferKind::Matured,
            earned(provider),
            payable(provider),
            due,
        ),
        leg(
            TransferKind::ClawbackRepaid,
            payable(provider),
            receivable(provider),
            repaid,
        ),
        leg(
            TransferKind::ReserveWithheld,
            payable(provider),
            reserve(provider),
            share(rest, reserve_bps)?,
        ),
    ])
}

/// What a maturing kept back is released, as far as nothing was taken back out of it.
pub fn release_reserve(books: Books<'_>, provider: Uuid, withheld: Micros) -> Legs {
    let amount = withheld.min(books.available(reserve(provider))?);
    some([leg(
        TransferKind::ReserveReleased,
        reserve(provider),
        payable(provider),
        amount,
    )])
}

/// A payout is asked for: `wanted`, or all that is payable in whole cents; the rest stays. A debt is
/// paid first. The last leg is the payout.
pub fn payout_requested(
    books: Books<'_>,
    provider: Uuid,
    wanted: Option<Micros>,
    least: Micros,
) -> Legs {
    let payable_now = books.available(payable(provider))?;
    let repaid = books.worth(receivable(provider))?.min(payable_now);
    let free = payable_now.minus(repaid)?;
    let odd = |amount: Micros| Micros::new(amount.get().rem_euclid(CENT));
    let amount = match wanted {
        Some(amount) => positive(amount)?,
        None => free.minus(odd(free))?,
    };
    if odd(amount) != Micros::ZERO {
        return Err(PostingRefusal::NotWholeCents);
    }
    if amount > free {
        return Err(PostingRefusal::NotCovered);
    }
    if amount < least {
        return Err(PostingRefusal::BelowMinimum);
    }
    some([
        leg(
            TransferKind::ClawbackSettled,
            payable(provider),
            receivable(provider),
            repaid,
        ),
        leg(
            TransferKind::PayoutRequested,
            payable(provider),
            in_flight(provider),
            amount,
        ),
    ])
}

/// A payout has left.
pub fn payout_sent(books: Books<'_>, rail: Rail, provider: Uuid, amount: Micros) -> Legs {
    let paths = (in_flight(provider), rail.clearing());
    covered(books, TransferKind::PayoutSent, paths, amount)
}

/// A payout did not leave.
pub fn payout_failed(books: Books<'_>, provider: Uuid, amount: Micros) -> Legs {
    let paths = (in_flight(provider), payable(provider));
    covered(books, TransferKind::PayoutFailed, paths, amount)
}

/// The bank sent a payout back.
pub fn payout_returned(rail: Rail, provider: Uuid, amount: Micros) -> Legs {
    some([leg(
        TransferKind::PayoutReturned,
        rail.clearing(),
        payable(provider),
        positive(amount)?,
    )])
}

/// A charge is reversed: the renter gets all of it back. The provider's part comes out of earnings,
/// then the reserve, then what is payable; the rest the provider owes.
pub fn charge_reversed(books: Books<'_>, provider: Uuid, renter: Uuid, due: Due) -> Legs {
    let wallet = (AccountCode::RenterWallet, renter);
    let mut rest = due.provider()?;
    let mut take = |key: Key| -> Result<Micros, PostingRefusal> {
        let part = books.available(key)?.min(rest);
        rest = rest.minus(part)?;
        Ok(part)
    };
    let out_of_earned = take(earned(provider))?;
    let out_of_reserve = take(reserve(provider))?;
    let out_of_payable = take(payable(provider))?;
    let fee = super::platform(AccountCode::FeeRevenue);
    let tax = super::platform(AccountCode::TaxPayable);
    some([
        leg(
            TransferKind::ChargeNetReversed,
            earned(provider),
            wallet,
            out_of_earned,
        ),
        leg(
            TransferKind::ClawbackReserve,
            reserve(provider),
            wallet,
            out_of_reserve,
        ),
        leg(
            TransferKind::ClawbackPayable,
            payable(provider),
            wallet,
            out_of_payable,
        ),
        leg(
            TransferKind::ClawbackOwed,
            receivable(provider),
            wallet,
            rest,
        ),
        leg(TransferKind::ChargeFeeReversed, fee, wallet, due.fee),
        leg(TransferKind::ChargeTaxReversed, tax, wallet, due.tax),
    ])
}
