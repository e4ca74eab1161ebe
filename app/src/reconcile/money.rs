//! Holds kept ahead of use, and proven time settled.

use billing::exhaustion::{Drainable, first_to_drain, look};
use billing::hold::{Renewal, is_short, next_look, renew};
use domain::clock::{Span, Timestamp};
use domain::id::LeaseId;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState, RETENTION};
use domain::money::Micros;
use serde_json::json;
use store::db::{Ro, Tx};
use store::hold::HoldWatch;
use store::lease::LeaseRecord;

use crate::burning::for_people;
use crate::context::Cx;
use crate::error::Error;
use crate::event::{Told, tell};
use crate::lease::change::{Cause, apply};
use crate::lease::money::LeaseMoney;

/// The beginning of a UTC day, in µs of it.
const DAY_US: i64 = 86_400_000_000;

/// Settles leases whose last settlement is old, or of yesterday (UTC): statements and invoices are
/// cut at the beginning of a day, and what was proven before it should be booked by then.
pub async fn settle(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let today = Timestamp::from_micros(now.micros().div_euclid(DAY_US).saturating_mul(DAY_US));
    let before = now.minus(cx.policy.settle_every).max(today);
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

/// Holds looked at in one run.
const MOST: i64 = 1_000;

/// What a look at a hold led to.
enum Looked {
    Nothing,
    Changed,
    /// This one must be stopped first, so that its money serves the others.
    Drain(LeaseId),
}

/// What a look led to, and when to look again: `None` where a change of state has said it.
type Seen = (Looked, Option<HoldWatch>);

/// Keeps the holds that are due ahead of their use; stops or ends what cannot be paid further.
pub async fn renew_holds(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let due = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::hold::due(ro, now, MOST).await?))
        .await?;
    let mut changed = 0;
    for id in due {
        changed += keep_going(cx, id, now).await?;
    }
    Ok(changed)
}

/// Looks at one hold; drains others of its wallet before its own lease.
async fn keep_going(cx: &Cx, id: LeaseId, now: Timestamp) -> Result<usize, Error> {
    let mut changed = 0;
    loop {
        match look_at(cx, id, now).await? {
            Looked::Nothing => return Ok(changed),
            Looked::Changed => return Ok(changed + 1),
            Looked::Drain(other) => {
                let stopped = drain(cx, other, now).await?;
                changed += stopped;
                if stopped == 0 {
                    // It stopped by itself meanwhile: the next run sees what that released.
                    return Ok(changed);
                }
            }
        }
    }
}

/// Stops a running lease, or gives back the GPUs that a stopped one keeps, for want of money.
async fn drain(cx: &Cx, id: LeaseId, now: Timestamp) -> Result<usize, Error> {
    super::lease::move_lease(cx, id, |lease, _money| Ok(exhausted(lease, now))).await
}

fn exhausted(lease: &LeaseRecord, now: Timestamp) -> Option<Cause> {
    let event = lease.state.yields_gpus(lease.keeps_gpus)?;
    let cause = Cause::market(event, LeaseReason::WalletExhausted, now);
    Some(cause.saying("the wallet cannot pay for more GPU time; the disk is kept for a while"))
}

async fn look_at(cx: &Cx, id: LeaseId, now: Timestamp) -> Result<Looked, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(mut lease) = store::lease::get_for_update(tx, id).await? else {
                return Ok(Looked::Nothing);
            };
            let mut money = LeaseMoney::load(tx, &lease).await?;
            let Some(hold) = money.hold.as_ref().map(|h| h.id) else {
                return Ok(Looked::Nothing);
            };
            let watch = store::hold::watch(tx, hold).await?;
            if watch.due_at.is_none_or(|due| due > now) {
                return Ok(Looked::Nothing);
            }
            let (looked, next) = match lease.state {
                LeaseState::Running | LeaseState::Interrupting => {
                    burning(cx, tx, (&mut lease, &mut money), now).await?
                }
                LeaseState::Stopped if lease.keeps_gpus => {
                    burning(cx, tx, (&mut lease, &mut money), now).await?
                }
                LeaseState::Stopped | LeaseState::Interrupted => {
                    stopped(cx, tx, (&mut lease, &mut money), (watch, now)).await?
                }
                // What changes the state makes it due again.
                LeaseState::Placing
                | LeaseState::Provisioning
                | LeaseState::Stopping
                | LeaseState::Resuming
                | LeaseState::Ending
                | LeaseState::Ended
                | LeaseState::Failed => (Looked::Nothing, Some(HoldWatch::default())),
            };
            if let Some(next) = next.filter(|next| *next != watch) {
                store::hold::set_watch(tx, hold, next).await?;
            }
            Ok(looked)
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

/// The party's lease whose GPUs are given back first when money is short.
async fn first_to_stop(tx: &mut Tx, lease: &LeaseRecord) -> Result<Option<LeaseId>, Error> {
    let live = store::lease::renter_live(tx, lease.party).await?;
    let gives = |l: &&LeaseRecord| l.state.yields_gpus(l.keeps_gpus).is_some();
    let candidates: Vec<Drainable> = live
        .iter()
        .filter(gives)
        .map(|l| Drainable {
            lease: l.id,
            idle: l.keeps_gpus,
            booked_at: l.created_at,
        })
        .collect();
    Ok(first_to_drain(&candidates))
}

/// A lease that uses or keeps GPUs: its hold stays ahead of use, or its GPUs are given back.
async fn burning(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    now: Timestamp,
) -> Result<Seen, Error> {
    let burn = money.burn(lease)?;
    let free = available(tx, lease, now).await?;
    let looked = match renew(burn, left(money)?, free)? {
        Renewal::Enough => Looked::Nothing,
        Renewal::Raise(more) => {
            money.settle(cx, tx, lease, now).await?;
            money
                .raise_hold(cx, tx, (lease, now), |there| Ok(more.min(there)))
                .await?;
            Looked::Changed
        }
        Renewal::Stop => {
            let first = first_to_stop(tx, lease).await?.filter(|id| *id != lease.id);
            if let Some(other) = first {
                return Ok((Looked::Drain(other), Some(again(now))));
            }
            // A notice that runs already ends the use.
            let Some(cause) = exhausted(lease, now) else {
                return Ok((Looked::Nothing, Some(again(now))));
            };
            apply(cx, tx, (lease, money), &cause).await?;
            return Ok((Looked::Changed, None));
        }
    };
    let left = left(money)?;
    let watch = HoldWatch {
        due_at: Some(next_look(burn, left, now)?),
        short: is_short(burn, left)?,
        warned: 0,
    };
    Ok((looked, Some(watch)))
}

/// Look again in the next run.
fn again(now: Timestamp) -> HoldWatch {
    HoldWatch {
        due_at: Some(now),
        short: true,
        warned: 0,
    }
}

/// The disk of a stopped lease: its retention is kept full while the wallet allows it, its owner is
/// told before it is deleted, and it is deleted when its money is over.
async fn stopped(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    (watch, now): (HoldWatch, Timestamp),
) -> Result<Seen, Error> {
    let free_disk = money.storage.last_rate().price == Micros::ZERO;
    let mut looked = Looked::Nothing;
    if !free_disk {
        let missing = money.retention()?.minus(left(money)?)?.max(Micros::ZERO);
        let more = missing.min(available(tx, lease, now).await?);
        if more > Micros::ZERO {
            money.settle(cx, tx, lease, now).await?;
            money
                .raise_hold(cx, tx, (lease, now), |there| Ok(more.min(there)))
                .await?;
            looked = Looked::Changed;
        }
    }
    let over = if free_disk {
        now.since(lease.state_at) > RETENTION
    } else {
        money.storage_is_spent()?
    };
    if over {
        let cause = Cause::market(LeaseEvent::EndRequested, LeaseReason::WalletExhausted, now)
            .saying("the paid time of the disk is over");
        apply(cx, tx, (lease, money), &cause).await?;
        return Ok((Looked::Changed, None));
    }
    let delete_at = money.delete_at(lease.state_at)?;
    let full = !free_disk && left(money)? >= money.retention()?;
    // A disk whose retention can be kept full is not about to be deleted.
    let seen = look((!full).then_some(delete_at), watch.warned, now);
    if seen.warn.is_some() {
        tell_deletion(cx, tx, lease, (delete_at, now)).await?;
        looked = Looked::Changed;
    }
    let hourly = now.plus(Span::from_hours(1));
    let sooner = delete_at.min(seen.next.unwrap_or(hourly)).min(hourly);
    let watch = HoldWatch {
        due_at: Some(sooner.max(now.plus(Span::from_secs(1)))),
        short: !full && !free_disk,
        warned: seen.warned,
    };
    Ok((looked, Some(watch)))
}

async fn tell_deletion(
    cx: &Cx,
    tx: &mut Tx,
    lease: &LeaseRecord,
    (delete_at, now): (Timestamp, Timestamp),
) -> Result<(), Error> {
    let left = for_people(delete_at.since(now));
    let told = Told {
        kind: "lease.disk_ends",
        object: lease.id.to_string(),
        detail: format!(
            "The disk of this stopped lease is deleted in {left} unless it is resumed or money comes."
        ),
        data: json!({"delete_at_us": delete_at.micros()}),
    };
    tell(cx, tx, (lease.party, now), told).await
}
