//! Wallets: what is posted, held, available; top-ups.

use billing::account::AccountCode;
use billing::exhaustion::Flame;
use billing::posting::{Operation, Rail, payment};
use billing::transfer::TransferRefusal;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{PartyId, TopUpId};
use domain::money::{Currency, Micros, Rate};
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::ledger::TopUpRecord;

use crate::burning::Burning;
use crate::context::{Answer, Audited, Caller, Cx, Once, PaymentsMode, mutate};
use crate::error::Error;
use crate::posting::post;

/// Smallest and largest top-up.
const TOP_UP_RANGE: std::ops::RangeInclusive<i64> = 1_000_000..=100_000_000_000;

/// A wallet: `posted − held = available`, always.
#[derive(Clone, Copy, Debug)]
pub struct WalletView {
    /// Booked.
    pub posted: Micros,
    /// Set aside for leases.
    pub held: Micros,
    /// Free to use.
    pub available: Micros,
    /// Credit that can be used beside it: spent first, never paid out.
    pub promo: Micros,
    /// What is owed after disputes.
    pub receivable: Micros,
    /// Nothing new can be booked: a dispute is open, or something is owed.
    pub frozen: bool,
    /// What all live leases cost per hour now, tax included.
    pub burn_per_hour: Micros,
    /// When nothing is left for running leases at this rate.
    pub runs_out_at: Option<Timestamp>,
    /// How money gets in.
    pub payments: PaymentsMode,
}

/// A top-up with the wallet after it.
#[derive(Clone, Copy, Debug)]
pub struct TopUpView {
    /// Its id.
    pub id: TopUpId,
    /// How much.
    pub amount: Micros,
    /// When.
    pub created_at: Timestamp,
    /// The wallet afterwards.
    pub wallet: WalletView,
}

/// What one hour at these rates costs, tax included.
pub(crate) fn per_hour(flames: &[Flame]) -> Result<Micros, Error> {
    let mut sum = Micros::ZERO;
    for flame in flames {
        sum = sum.plus(hour_of(flame.rate, flame.tax_bps)?)?;
    }
    Ok(sum)
}

/// What one hour at a rate costs, tax included.
pub(crate) fn hour_of(rate: Rate, tax_bps: u32) -> Result<Micros, Error> {
    let shares = billing::rating::Shares {
        fee_bps: 0,
        tax_bps,
    };
    let hour = domain::money::Period::Hour.millis();
    Ok(billing::rating::due(rate, shares, hour)?.renter()?)
}

async fn view(cx: &Cx, ro: &mut Ro, party: PartyId, now: Timestamp) -> Result<WalletView, Error> {
    let burning = Burning::load(ro, party, now).await?;
    let key = (AccountCode::RenterWallet, party.uuid());
    let account = store::ledger::account_of(ro, Currency::Usd, key).await?;
    let (posted, held, available) = match account {
        Some(a) => (a.posted()?, a.held(), a.available()?),
        None => (Micros::ZERO, Micros::ZERO, Micros::ZERO),
    };
    let key = (AccountCode::DisputeReceivable, party.uuid());
    let debt = store::ledger::account_of(ro, Currency::Usd, key).await?;
    let receivable = debt.map_or(Ok(Micros::ZERO), |a| a.worth())?;
    let promo = store::credit::usable(ro, party, now).await?;
    let disputed = store::dispute::is_disputed(ro, party).await?;
    Ok(WalletView {
        posted,
        held,
        available,
        promo,
        receivable,
        frozen: disputed || receivable > Micros::ZERO,
        burn_per_hour: per_hour(&burning.flames)?,
        runs_out_at: burning.runs_out_at(posted.plus(promo)?, now)?,
        payments: cx.policy.payments,
    })
}

/// The caller's wallet.
pub async fn get(cx: &Cx, caller: &Caller) -> Result<WalletView, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| view(cx, ro, party, now).await)
        .await
}

/// Puts play money into the caller's wallet. The sandbox only: no card is charged.
pub async fn top_up(
    cx: &Cx,
    caller: &Caller,
    amount: Micros,
    once: Once<'_, TopUpView>,
) -> Result<Answer, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    if cx.policy.payments != PaymentsMode::Sandbox {
        return Err(Error::refused(
            Code::PaymentsDisabled,
            "This market takes no top-ups.",
        ));
    }
    if !TOP_UP_RANGE.contains(&amount.get()) {
        return Err(Error::refused(
            Code::AmountOutOfRange,
            "A top-up is between 1 and 100,000 USD.",
        ));
    }
    let (now, party) = (cx.now(), caller.actor.party);
    let id = TopUpId::from_uuid(cx.id());
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let operation = Operation {
            cause: id.uuid(),
            at: now,
        };
        let debt = (AccountCode::DisputeReceivable, party.uuid());
        let owes = store::ledger::account_of(tx, Currency::Usd, debt).await?;
        let mut wanted = vec![
            Rail::Sandbox.clearing(),
            (AccountCode::RenterWallet, party.uuid()),
        ];
        wanted.extend(owes.map(|_owes| debt));
        let posted = post(cx, tx, (Currency::Usd, operation), &wanted, |books| {
            payment::top_up(books, Rail::Sandbox, party.uuid(), amount)
        })
        .await?;
        let booked = posted.transfers.first();
        let booked = booked.ok_or(Error::Fault("a top-up without a transfer"))?;
        let record = TopUpRecord {
            id,
            party,
            amount,
            currency: Currency::Usd,
            payments: PaymentsMode::Sandbox.as_str(),
            created_at: now,
        };
        store::ledger::insert_top_up(tx, &record, booked).await?;
        let what = Audited {
            action: "wallet.top_up",
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        let wallet = view(cx, tx, party, now).await?;
        Ok(TopUpView {
            id,
            amount,
            created_at: now,
            wallet,
        })
    })
    .await
}

/// A refusal of the ledger as a client sees it.
pub(crate) fn refuse(refusal: TransferRefusal) -> Error {
    match refusal {
        TransferRefusal::ExceedsCredits
        | TransferRefusal::ExceedsDebits
        | TransferRefusal::ExceedsHold => {
            Error::refused(Code::InsufficientFunds, "The wallet does not cover this.")
        }
        TransferRefusal::Overflow => {
            Error::refused(Code::AmountOutOfRange, "An account would overflow.")
        }
        TransferRefusal::AmountNotPositive
        | TransferRefusal::SameAccount
        | TransferRefusal::AccountMissing
        | TransferRefusal::CurrencyMismatch
        | TransferRefusal::HoldMissing
        | TransferRefusal::HoldNotOpen
        | TransferRefusal::HoldOfOther => Error::Fault("the ledger refused a booking of ours"),
    }
}
