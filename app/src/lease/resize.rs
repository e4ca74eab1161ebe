//! A disk that grows: held and priced anew from that second on, or nothing changes.
//!
//! Machines do not enforce disk sizes yet, so there is nothing to do there.

use billing::budget::Spender;
use billing::hold::grown;
use domain::clock::Timestamp;
use domain::lease::{LeaseEvent, LeaseReason, LeaseState};
use domain::money::Micros;
use domain::refusal::Code;
use matching::request::DISK_MAX_GIB;
use store::db::Tx;
use store::lease::LeaseRecord;

use super::change::{Cause, look_again, record};
use super::money::{LeaseMoney, burn};
use crate::budget::Gate;
use crate::context::{Audited, Caller, Cx};
use crate::error::Error;
use crate::wallet::refuse;

/// Grows the disk of a lease whose lock, and whose machine's, is held. A repeated request changes
/// nothing.
pub(super) async fn resize(
    cx: &Cx,
    caller: &Caller,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    (disk_gib, now): (u32, Timestamp),
) -> Result<(), Error> {
    let before = lease.terms.disk_gib;
    check(lease, disk_gib)?;
    if disk_gib == before {
        return Ok(());
    }
    fits(tx, lease, disk_gib).await?;
    let spender = Spender {
        lease: Some(lease.id),
        member: lease.booked_by,
        label: lease.label.as_deref(),
    };
    let gate = Gate::load(tx, &[lease.party], now).await?;
    gate.check(lease.party, spender)?;
    let old = burn(lease)?;
    lease.terms.disk_gib = disk_gib;
    let new = burn(lease)?;
    hold(tx, (lease, money), grown(old, new)?).await?;
    let (segment, storage) = money
        .storage
        .reprice(now, new.storage)
        .map_err(|refusal| Error::refused(Code::LeaseState, format!("{refusal}.")))?;
    money.storage = storage;
    store::segment::insert(tx, &[(money.storage.id, segment)]).await?;
    money.save_meters(tx).await?;
    // It burns more now.
    look_again(tx, money).await?;
    store::wallet::touch(tx, lease.party, lease.terms.currency).await?;
    *lease = store::lease::save(tx, lease).await?;
    let detail = format!("the disk grows from {before} to {disk_gib} GiB by request");
    // The state stays; what is recorded tells what happened, not by which move.
    let mut cause = Cause::market(LeaseEvent::Placed, LeaseReason::Renter, now).saying(detail);
    cause.actor = caller.actor.who;
    record(cx, tx, lease, (Some(lease.state), &cause)).await?;
    let what = Audited {
        action: "lease.resize",
        object: lease.id.to_string(),
        reason: &cause.detail,
    };
    store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
    Ok(())
}

fn check(lease: &LeaseRecord, disk_gib: u32) -> Result<(), Error> {
    let over = matches!(
        lease.state,
        LeaseState::Ending | LeaseState::Ended | LeaseState::Failed
    );
    if over {
        let text = format!("The lease is {}: it has no disk to grow.", lease.state);
        return Err(Error::refused(Code::LeaseState, text));
    }
    if disk_gib > DISK_MAX_GIB {
        let text = format!("At most {DISK_MAX_GIB} GiB.");
        return Err(Error::field("/disk_gib", "out_of_range", text));
    }
    if disk_gib < lease.terms.disk_gib {
        let text = format!("A disk only grows; it has {} GiB.", lease.terms.disk_gib);
        return Err(Error::field("/disk_gib", "out_of_range", text));
    }
    Ok(())
}

async fn fits(tx: &mut Tx, lease: &LeaseRecord, disk_gib: u32) -> Result<(), Error> {
    let machine = store::machine::get(tx, lease.machine)
        .await?
        .ok_or(Error::Fault("a lease without its machine"))?;
    let used = store::offer::disk_used_gib(tx, lease.machine).await?;
    let free = machine.facts.disk_gib.saturating_sub(used);
    let more = disk_gib.saturating_sub(lease.terms.disk_gib);
    if u64::from(more) <= free {
        return Ok(());
    }
    let text = format!("The machine has {free} GiB left; {more} more are wanted.");
    Err(Error::refused(Code::CapacityTaken, text))
}

/// Sets the larger promise aside, or refuses.
async fn hold(
    tx: &mut Tx,
    (lease, money): (&LeaseRecord, &mut LeaseMoney),
    more: Micros,
) -> Result<(), Error> {
    if more == Micros::ZERO {
        return Ok(());
    }
    money
        .change_hold(tx, lease, |book, hold| {
            let wallet = book
                .account(hold.account)
                .ok_or(Error::Fault("a hold without its wallet"))?;
            let free = wallet.available()?;
            if more > free {
                let text = format!(
                    "The larger disk needs {more} USD more set aside; {free} USD are available."
                );
                return Err(Error::refused(Code::InsufficientFunds, text)
                    .suggesting("Top up with POST /v1/wallet/top-ups."));
            }
            book.raise_hold(hold.id, more).map_err(refuse)
        })
        .await
}
