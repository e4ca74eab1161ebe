//! Booking: GPUs and money are held together with the lease, or nothing happens.

use billing::account::AccountCode;
use billing::hold::{Burn, Hold, HoldState, size};
use billing::ledger::Ledger;
use billing::meter::{Meter, NewMeter, Resource};
use billing::rating::Shares;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{HoldId, LeaseId, MeterId};
use domain::lease::{LeaseEvent, LeaseReason, LeaseState, PLACE_LIMIT};
use domain::money::Micros;
use domain::refusal::Code;
use matching::plan::{Placement, place};
use serde_json::json;
use store::db::Tx;
use store::error::Constraint;
use store::lease::LeaseRecord;
use store::quote::QuoteRecord;

use super::change::{Cause, record};
use super::{LeaseView, NewLease, view};
use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::offer::not_own;
use crate::quote::{refuse_miss, request_of};
use crate::wallet::refuse;

/// Books a quote: exactly its price, or 409 and nothing is charged.
pub async fn book(
    cx: &Cx,
    caller: &Caller,
    input: NewLease,
    once: Once<'_, LeaseView>,
) -> Result<Answer, Error> {
    caller.may(Scope::LeasesWrite, None)?;
    let now = cx.now();
    check(&input, now)?;
    let id = LeaseId::from_uuid(cx.id());
    let (input, once) = (&input, &once);
    let answer = mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let (quote, placed) = find_place(cx, caller, tx, (input, now)).await?;
        let provider = store::machine::get(tx, placed.machine)
            .await?
            .ok_or(Error::Fault("an offer without its machine"))?
            .party;
        not_own(provider, caller.actor.party)?;
        let mut lease = draft(cx, (id, now), (quote, &placed), input);
        lease.provider = provider;
        store::lease::insert(tx, &lease).await?;
        store::lease::take_gpus(tx, id, &placed.gpus, now).await?;
        open_meters(tx, &lease, now).await?;
        hold_money(cx, tx, &lease, now).await?;
        let mut cause = Cause::market(LeaseEvent::Placed, LeaseReason::Booked, now);
        cause.actor = caller.actor.who;
        record(cx, tx, &lease, (None, &cause)).await?;
        let what = Audited {
            action: "lease.book",
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        view::one(tx, lease, now).await
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::LeaseGpuOnce) => Error::refused(
            Code::CapacityTaken,
            "Somebody else has just booked these GPUs.",
        )
        .suggesting("Search again with POST /v1/offers/search."),
        Some(Constraint::QuoteUsed) => quote_used(),
        _ => error,
    })?;
    cx.wake.reconcile();
    Ok(answer)
}

fn quote_used() -> Error {
    Error::refused(Code::QuoteUsed, "This quote has become a lease already.")
        .suggesting("Ask for a new quote for another lease.")
}

fn check(input: &NewLease, now: Timestamp) -> Result<(), Error> {
    if input.max_spend.is_some_and(|most| most <= Micros::ZERO) {
        return Err(Error::field(
            "/max_spend",
            "out_of_range",
            "Must be above zero.",
        ));
    }
    if input.end_at.is_some_and(|end| end <= now) {
        return Err(Error::field(
            "/end_at",
            "in_the_past",
            "The end must be in the future.",
        ));
    }
    Ok(())
}

/// The quote, and where its lease goes. Bookings on one machine wait for one another here, so that
/// each sees the GPUs that are really left.
async fn find_place(
    cx: &Cx,
    caller: &Caller,
    tx: &mut Tx,
    (input, now): (&NewLease, Timestamp),
) -> Result<(QuoteRecord, Placement), Error> {
    let quote = store::quote::get(tx, caller.actor.party, input.quote)
        .await?
        .ok_or_else(|| Error::not_found("quote"))?;
    if quote.expires_at <= now {
        return Err(Error::refused(
            Code::QuoteExpired,
            "The quote has expired. Nothing was charged.",
        )
        .suggesting("Ask for a new quote."));
    }
    let offer = store::offer::get(tx, quote.offer)
        .await?
        .ok_or_else(|| Error::not_found("offer"))?;
    store::machine::get_for_update(tx, offer.machine).await?;
    if store::lease::of_quote(tx, quote.id).await?.is_some() {
        return Err(quote_used());
    }
    let supply = store::offer::supply_of(tx, quote.offer, now).await?;
    let request = request_of(cx, (quote.gpu_count, quote.disk_gib), quote.duration);
    let placed =
        place(supply.as_ref(), &request, quote.offer_version).map_err(|miss| refuse_miss(&miss))?;
    Ok((quote, placed))
}

fn draft(
    cx: &Cx,
    (id, now): (LeaseId, Timestamp),
    (quote, placed): (QuoteRecord, &Placement),
    input: &NewLease,
) -> LeaseRecord {
    let why = &placed.explanation;
    LeaseRecord {
        id,
        party: quote.party,
        provider: quote.party,
        offer: quote.offer,
        machine: placed.machine,
        workload: input.workload.clone(),
        placement: json!({
            "chosen": why.chosen.to_string(),
            "version": why.version,
            "total": why.total.to_string(),
            "free_before": why.free_before,
            "why": why.why,
        }),
        label: input.label.clone(),
        max_spend: input.max_spend,
        end_at: input.end_at,
        state: LeaseState::Placing,
        reason: LeaseReason::Booked,
        detail: "waiting for the machine to take the order".to_owned(),
        state_at: now,
        progress: 0,
        progress_at: now,
        start_no: 1,
        version: 1,
        created_at: now,
        started_at: None,
        end_requested_at: None,
        ended_at: None,
        container: None,
        compute_meter: MeterId::from_uuid(cx.id()),
        storage_meter: MeterId::from_uuid(cx.id()),
        terms: quote,
    }
}

async fn open_meters(tx: &mut Tx, lease: &LeaseRecord, now: Timestamp) -> Result<(), Error> {
    let shares = Shares {
        fee_bps: lease.terms.fee_bps,
        tax_bps: lease.terms.tax_bps,
    };
    let meters = [
        (
            lease.compute_meter,
            Resource::Compute,
            lease.terms.compute_rate()?,
        ),
        (
            lease.storage_meter,
            Resource::Storage,
            lease.terms.storage_rate()?,
        ),
    ];
    for (id, resource, rate) in meters {
        let new = NewMeter {
            id,
            lease: lease.id,
            resource,
            rate,
            shares,
        };
        store::meter::insert(tx, &Meter::open(new, now)).await?;
    }
    Ok(())
}

async fn hold_money(
    cx: &Cx,
    tx: &mut Tx,
    lease: &LeaseRecord,
    now: Timestamp,
) -> Result<(), Error> {
    let wanted = [(AccountCode::RenterWallet, lease.party.uuid())];
    let accounts = store::ledger::lock_accounts(tx, lease.terms.currency, &wanted).await?;
    let [wallet] = accounts.as_slice() else {
        return Err(Error::Fault("one account was locked, others came"));
    };
    let burn: Burn = super::money::burn(lease)?;
    let available = wallet.available()?;
    let sized = size(burn, available)?.map_err(|least| {
        Error::refused(
            Code::InsufficientFunds,
            format!("The wallet has {available} USD available; the first hold needs at least {least} USD."),
        )
        .suggesting("Top up with POST /v1/wallet/top-ups.")
    })?;
    let hold = Hold {
        id: HoldId::from_uuid(cx.id()),
        account: wallet.id,
        lease: lease.id,
        amount: sized.amount,
        posted: Micros::ZERO,
        state: HoldState::Open,
        opened_at: now,
        expires_at: Some(now.plus(PLACE_LIMIT)),
    };
    let before = Ledger::new(accounts, []);
    let mut after = before.clone();
    after.open_hold(hold).map_err(refuse)?;
    store::ledger::save(tx, &before, &after).await?;
    Ok(())
}
