//! Wallets: what is posted, held, available; top-ups; movements.

use billing::account::{Account, AccountCode, PLATFORM};
use billing::exhaustion::{Flame, dry_at};
use billing::ledger::Ledger;
use billing::transfer::{Transfer, TransferKind, TransferRefusal};
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{ChargeId, LeaseId, PartyId, TopUpId, TransferId};
use domain::money::{Currency, Micros, Rate};
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::ledger::TopUpRecord;
use store::page::{Page, Paged};
use store::transaction::TransactionRecord;

use crate::context::{Answer, Audited, Caller, Cx, Once, PaymentsMode, mutate};
use crate::error::Error;

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
    /// What all live leases cost per hour now, tax included.
    pub burn_per_hour: Micros,
    /// When `posted` is used up at this rate.
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

/// One movement on an account of the party.
#[derive(Clone, Debug)]
pub struct TransactionView {
    /// `txn_…` or `chg_…`
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// `sandbox_top_up`, `charge`, …
    pub kind: &'static str,
    /// Which account.
    pub account: &'static str,
    /// Positive: the account grew.
    pub amount: Micros,
    /// What caused it.
    pub cause: String,
    /// For people.
    pub description: String,
}

/// What burns a party's money now: the rates of its leases that are billed.
async fn flames(ro: &mut Ro, party: PartyId) -> Result<Vec<Flame>, Error> {
    let mut flames = Vec::new();
    for lease in store::lease::renter_live(ro, party).await? {
        let (billed, tax_bps) = (lease.state.billed(), lease.terms.tax_bps);
        if billed.compute {
            flames.push(Flame {
                rate: lease.terms.compute_rate()?,
                tax_bps,
            });
        }
        if billed.storage {
            flames.push(Flame {
                rate: lease.terms.storage_rate()?,
                tax_bps,
            });
        }
    }
    Ok(flames)
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

async fn view(
    cx: &Cx,
    ro: &mut Ro,
    party: PartyId,
    (account, now): (Option<&Account>, Timestamp),
) -> Result<WalletView, Error> {
    let flames = flames(ro, party).await?;
    let (posted, held, available) = match account {
        Some(a) => (a.posted()?, a.held(), a.available()?),
        None => (Micros::ZERO, Micros::ZERO, Micros::ZERO),
    };
    Ok(WalletView {
        posted,
        held,
        available,
        burn_per_hour: per_hour(&flames)?,
        runs_out_at: dry_at(posted, &flames, now),
        payments: cx.policy.payments,
    })
}

/// The caller's wallet.
pub async fn get(cx: &Cx, caller: &Caller) -> Result<WalletView, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let key = (AccountCode::RenterWallet, party.uuid());
            let account = store::ledger::account_of(ro, Currency::Usd, key).await?;
            view(cx, ro, party, (account.as_ref(), now)).await
        })
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
    let (id, transfer) = (TopUpId::from_uuid(cx.id()), TransferId::from_uuid(cx.id()));
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let wanted = [
            (AccountCode::SandboxClearing, PLATFORM),
            (AccountCode::RenterWallet, party.uuid()),
        ];
        let accounts = store::ledger::lock_accounts(tx, Currency::Usd, &wanted).await?;
        let [clearing, wallet] = accounts.as_slice() else {
            return Err(Error::Fault("two accounts were locked, others came"));
        };
        let booked = Transfer {
            id: transfer,
            kind: TransferKind::SandboxTopUp,
            debit: clearing.id,
            credit: wallet.id,
            amount,
            cause: id.uuid(),
            at: now,
        };
        let wallet = wallet.id;
        let before = Ledger::new(accounts.iter().cloned(), []);
        let mut after = before.clone();
        after.transfer(&booked).map_err(refuse)?;
        store::ledger::save(tx, &before, &after).await?;
        store::ledger::insert_transfer(tx, &booked, Currency::Usd);
        let record = TopUpRecord {
            id,
            party,
            amount,
            currency: Currency::Usd,
            payments: PaymentsMode::Sandbox.as_str(),
            created_at: now,
        };
        store::ledger::insert_top_up(tx, &record, &booked).await?;
        let what = Audited {
            action: "wallet.top_up",
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        let wallet = view(cx, tx, party, (after.account(wallet), now)).await?;
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

fn transaction(record: &TransactionRecord) -> TransactionView {
    let (id, kind, cause, description) = match record.kind {
        Some(kind @ TransferKind::SandboxTopUp) => (
            TransferId::from_uuid(record.id).to_string(),
            kind.as_str(),
            TopUpId::from_uuid(record.cause).to_string(),
            "top-up with play money (sandbox)".to_owned(),
        ),
        None => {
            let lease = LeaseId::from_uuid(record.cause).to_string();
            let text = format!("settlement of {lease}");
            (
                ChargeId::from_uuid(record.id).to_string(),
                "charge",
                lease,
                text,
            )
        }
    };
    TransactionView {
        id,
        at: record.at,
        kind,
        account: record.account.as_str(),
        amount: record.amount,
        cause,
        description,
    }
}

/// Everything that moved on the party's accounts, newest first.
pub async fn transactions(
    cx: &Cx,
    caller: &Caller,
    page: Page,
) -> Result<Paged<TransactionView>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok(store::transaction::list(ro, party, page).await?)
        })
        .await?;
    Ok(Paged {
        rows: found.rows.iter().map(transaction).collect(),
        next: found.next,
    })
}
