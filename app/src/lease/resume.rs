//! A resume: GPUs and money for another start on the machine where the disk is.

use billing::hold::size;
use domain::clock::Timestamp;
use domain::lease::LeaseEvent;
use domain::money::Micros;
use domain::refusal::Code;
use matching::book::{Book, Slot};
use matching::plan::Part;
use matching::price::Fees;
use matching::request::Request;
use matching::score::pick;
use store::db::Tx;
use store::lease::LeaseRecord;

use super::money::{LeaseMoney, burn};
use crate::context::Cx;
use crate::error::Error;
use crate::quote::request_of;

/// Takes money, and GPUs unless the stop kept them, for another start.
pub(super) async fn prepare_resume(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&mut LeaseRecord, &mut LeaseMoney),
    now: Timestamp,
) -> Result<(), Error> {
    lease
        .state
        .after(LeaseEvent::ResumeRequested)
        .map_err(|illegal| Error::refused(Code::LeaseState, format!("{illegal}.")))?;
    let machine = store::machine::get(tx, lease.machine)
        .await?
        .ok_or(Error::Fault("a lease without its machine"))?;
    // A drained machine takes no new leases, but this one lives there: only trust matters.
    let reachable = machine
        .last_seen_at
        .is_some_and(|seen| now.since(seen) <= domain::machine::STALE_AFTER);
    if !reachable {
        return Err(
            Error::refused(Code::MachineUnreachable, "The machine does not report now.")
                .suggesting("Try again in a minute. The disk stays."),
        );
    }
    if !lease.keeps_gpus {
        take_again(cx, tx, lease, now).await?;
    }
    crate::dispute::refuse_frozen(tx, lease.party).await?;
    let burn = burn(lease)?;
    let left = money.remaining();
    let wanted = |available: Micros| {
        let free = available.plus(left)?;
        let sized = size(burn, free)?.map_err(|least| {
            Error::refused(
                Code::InsufficientFunds,
                format!("Resuming needs {least} USD; {free} USD are there."),
            )
            .suggesting("Top up with POST /v1/wallet/top-ups.")
        })?;
        Ok(sized.amount.minus(left)?.max(Micros::ZERO))
    };
    money.raise_hold(cx, tx, (lease, now), wanted).await?;
    lease.start_no = lease.start_no.saturating_add(1);
    lease.progress = 0;
    Ok(())
}

/// Takes GPUs that a stop gave back. If they are gone, says where the like are.
async fn take_again(
    cx: &Cx,
    tx: &mut Tx,
    lease: &LeaseRecord,
    now: Timestamp,
) -> Result<(), Error> {
    let gpus = store::machine::gpus(tx, &[lease.machine]).await?;
    let slots = gpus.iter().map(|g| Slot {
        gpu: g.id,
        index: g.slot,
        island: g.island,
        free: !g.leased && !g.busy_elsewhere,
    });
    let Some(picked) = pick(&slots.collect::<Vec<_>>(), lease.terms.gpu_count) else {
        return Err(elsewhere(cx, tx, lease, now).await?);
    };
    let taken: Vec<_> = picked.into_iter().map(|gpu| (lease.id, gpu)).collect();
    store::lease::take_gpus(tx, &taken, now).await?;
    Ok(())
}

/// The machine's GPUs are taken.
pub(super) fn gpus_gone() -> Error {
    Error::refused(
        Code::CapacityTaken,
        "The machine's GPUs are taken by others now.",
    )
    .suggesting("Try again later, or end this lease and book elsewhere; the disk stays until then.")
}

/// The refusal with the best offer of the like to move to, if there is one.
async fn elsewhere(
    cx: &Cx,
    tx: &mut Tx,
    lease: &LeaseRecord,
    now: Timestamp,
) -> Result<Error, Error> {
    let terms = &lease.terms;
    let fees = Fees {
        fee_bps: terms.fee_bps,
        tax_bps: terms.tax_bps,
    };
    let request = Request {
        models: [terms.gpu_model.clone()].into(),
        simulated: terms.simulated,
        ..request_of(cx, (terms.gpu_count, terms.disk_gib), terms.duration, fees)
    };
    let supplies = store::offer::supplies(tx, now).await?;
    let others = supplies
        .into_iter()
        .filter(|s| s.offer.machine != lease.machine && s.offer.provider != lease.party);
    let found = matching::plan::search(&Book::new(others), &request, &Part::first(1))?;
    let Some(best) = found.matches.as_slice().first() else {
        return Ok(gpus_gone());
    };
    let text = format!(
        "Move: offer {} has {} {} at {} USD per GPU-hour (POST /v1/quotes). The disk does not move: \
         it stays here until this lease ends. Next time, stop with `keep_gpus`.",
        best.supply.offer.id, terms.gpu_count, terms.gpu_model, best.price.gpu.price
    );
    Ok(gpus_gone().suggesting(text))
}
