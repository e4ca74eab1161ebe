//! Holds kept ahead of use, and proven time settled.

use billing::hold::{Renewal, renew};
use domain::clock::Timestamp;
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState, RETENTION};
use domain::money::Micros;
use store::db::{Ro, Tx};
use store::lease::LeaseRecord;

use crate::context::Cx;
use crate::error::Error;
use crate::lease::change::{Cause, apply};
use crate::lease::money::{LeaseMoney, burn};

/// Settles leases whose last settlement is old.
pub async fn settle(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let before = now.minus(cx.policy.settle_every);
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok(store::meter::unsettled(ro, before, 1_000).await?)
        })
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += settle_one(cx, id, now).await?;
    }
    Ok(changed)
}

async fn settle_one(cx: &Cx, id: LeaseId, now: Timestamp) -> Result<usize, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(lease) = store::lease::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            let mut money = LeaseMoney::load(tx, &lease).await?;
            Ok(usize::from(money.settle(cx, tx, &lease, now).await?))
        })
        .await
}

/// Keeps the holds of live leases ahead of their use; stops or ends what cannot be paid further.
pub async fn renew_holds(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let mut changed = 0;
    for id in super::live(cx).await? {
        changed += renew_one(cx, id, now).await?;
    }
    Ok(changed)
}

async fn renew_one(cx: &Cx, id: LeaseId, now: Timestamp) -> Result<usize, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(mut lease) = store::lease::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            let mut money = LeaseMoney::load(tx, &lease).await?;
            match lease.state {
                LeaseState::Running | LeaseState::Interrupting => {
                    running(cx, tx, (&mut lease, &mut money), now).await
                }
                LeaseState::Stopped | LeaseState::Interrupted => {
                    stopped(cx, tx, (&mut lease, &mut money), now).await
                }
                LeaseState::Placing
                | LeaseState::Provisioning
                | LeaseState::Stopping
                | LeaseState::Resuming
                | LeaseState::Ending
                | LeaseState::Ended
                | LeaseState::Failed => Ok(0),
            }
        })
        .await
}

/// What the hold has left once everything proven is charged.
fn left(money: &LeaseMoney) -> Result<Micros, Error> {
    let open = money
        .compute
        .unsettled()?
        .renter()?
        .plus(money.storage.unsettled()?.renter()?)?;
    let hold = money
        .hold
        .as_ref()
        .map_or(Micros::ZERO, billing::hold::Hold::remaining);
    Ok(hold.minus(open)?)
}

/// Money and credit that holds can be raised from.
async fn available(tx: &mut Tx, lease: &LeaseRecord, now: Timestamp) -> Result<Micros, Error> {
    let key = (
        billing::account::AccountCode::RenterWallet,
        lease.party.uuid(),
    );
    let wallet = store::ledger::account_of(tx, lease.terms.currency, key).await?;
    let money = wallet.map_or(Ok(Micros::ZERO), |a| a.available())?;
    let credit = store::credit::usable(tx, lease.party, now).await?;
    Ok(money.plus(credit)?)
}

async fn running(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    now: Timestamp,
) -> Result<usize, Error> {
    let free = available(tx, lease, now).await?;
    match renew(burn(lease)?, left(money)?, free)? {
        Renewal::Enough => Ok(0),
        Renewal::Raise(more) => {
            money.settle(cx, tx, lease, now).await?;
            money
                .raise_hold(cx, tx, (lease, now), |there| Ok(more.min(there)))
                .await?;
            Ok(1)
        }
        Renewal::Stop => {
            let cause = Cause::market(LeaseEvent::StopRequested, LeaseReason::WalletExhausted, now)
                .saying("the wallet cannot pay for more; the disk is kept for a while");
            apply(cx, tx, (lease, money), &cause).await?;
            Ok(1)
        }
    }
}

async fn stopped(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    now: Timestamp,
) -> Result<usize, Error> {
    let tax_bps = lease.terms.tax_bps;
    let disk = billing::hold::Burn {
        compute: burn(lease)?.storage,
        storage: burn(lease)?.storage,
        tax_bps,
    };
    let free_disk = money.storage.rate.price == Micros::ZERO;
    if !free_disk && left(money)? < disk.retention()? {
        let missing = disk.retention()?.minus(left(money)?)?;
        let step = missing.min(available(tx, lease, now).await?);
        if step > Micros::ZERO {
            money.settle(cx, tx, lease, now).await?;
            money
                .raise_hold(cx, tx, (lease, now), |there| Ok(step.min(there)))
                .await?;
            return Ok(1);
        }
    }
    let over = if free_disk {
        now.since(lease.state_at) > RETENTION
    } else {
        money.storage_is_spent()?
    };
    if !over {
        return Ok(0);
    }
    let cause = Cause::market(LeaseEvent::EndRequested, LeaseReason::WalletExhausted, now)
        .saying("the paid time of the disk is over");
    apply(cx, tx, (lease, money), &cause).await?;
    Ok(1)
}
