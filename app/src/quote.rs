//! Quotes: a firm all-in price, signed, for two minutes.

use domain::access::Scope;
use domain::clock::{Span, Timestamp};
use domain::id::{OfferId, QuoteId};
use domain::money::Currency;
use domain::refusal::Code;
use matching::book::Supply;
use matching::plan::{Miss, place};
use matching::price::{Fees, Size, all_in};
use matching::request::Request;
use store::db::{Ro, Tx};
use store::quote::QuoteRecord;

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::offer::{PriceView, fees, not_own};

/// What is to be priced.
#[derive(Clone, Copy, Debug)]
pub struct QuoteAsk {
    /// The offer.
    pub offer: OfferId,
    /// Refuse if it is not at this version any more.
    pub offer_version: Option<i64>,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// For the total; the rates hold for any duration.
    pub duration: Span,
}

/// A quote with its price worked out.
#[derive(Clone, Debug)]
pub struct QuoteView {
    /// The quote.
    pub quote: QuoteRecord,
    /// The whole price.
    pub price: PriceView,
}

impl QuoteView {
    fn of(quote: QuoteRecord) -> Result<Self, Error> {
        let terms = matching::offer::OfferTerms {
            gpu_hour: quote.gpu_hour,
            bid_floor: None,
            keep_gpu_hour: Some(quote.keep_gpu_hour),
            storage_gib_month: quote.storage_gib_month,
            min_gpus: 1,
            max_gpus: quote.gpu_count,
        };
        let size = Size {
            gpus: quote.gpu_count,
            disk_gib: quote.disk_gib,
            duration_ms: quote.duration.millis(),
        };
        let fees = Fees {
            fee_bps: quote.fee_bps,
            tax_bps: quote.tax_bps,
        };
        let price = all_in(&terms, size, fees)?;
        Ok(Self { quote, price })
    }
}

/// The bytes that the market signs for a quote.
pub fn signed_bytes(q: &QuoteRecord) -> Vec<u8> {
    format!(
        "gpumarket-quote/2\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
        q.id,
        q.party,
        q.offer,
        q.offer_version,
        q.gpu_count,
        q.disk_gib,
        q.gpu_hour.get(),
        q.keep_gpu_hour.get(),
        q.storage_gib_month.get(),
        q.fee_bps,
        q.tax_bps,
        q.expires_at.micros(),
    )
    .into_bytes()
}

/// The engine's request for a quote's size.
pub(crate) fn request_of(
    cx: &Cx,
    (count, disk_gib): (u16, u32),
    duration: Span,
    fees: Fees,
) -> Request {
    Request {
        count,
        disk_gib,
        duration_ms: duration.millis(),
        simulated: cx.policy.allow_simulated,
        ..Request::any(fees)
    }
}

/// What a miss means to a renter.
pub(crate) fn refuse_miss(miss: &Miss) -> Error {
    match miss {
        Miss::OfferGone => Error::not_found("live offer"),
        Miss::OfferChanged { now } => Error::refused(
            Code::OfferChanged,
            format!("The offer is at version {now} now, with other terms. Nothing was charged."),
        )
        .suggesting("Ask for a new quote."),
        Miss::Broken(faults) => {
            let why = faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            Error::refused(
                Code::CapacityTaken,
                format!("It cannot be placed there: {why}."),
            )
            .suggesting("Search again with POST /v1/offers/search.")
        }
        Miss::Price => Error::refused(Code::AmountOutOfRange, "The price cannot be computed."),
    }
}

/// Makes a firm price. It does not take the GPUs: booking does, or says 409 and charges nothing.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    ask: QuoteAsk,
    once: Once<'_, QuoteView>,
) -> Result<Answer, Error> {
    caller.may(Scope::LeasesWrite, None)?;
    let now = cx.now();
    let id = QuoteId::from_uuid(cx.id());
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let supply = store::offer::supply_of(tx, ask.offer, now).await?;
        let buyer = store::billing_profile::get(tx, caller.actor.party).await?;
        let buyer = buyer.ok_or(Error::Fault("a caller without a party"))?;
        let fees = fees(cx, &buyer.identity, now);
        let quote = draft(cx, caller, (id, ask, fees), (supply.as_ref(), now))?;
        store::quote::insert(tx, &quote).await?;
        let what = Audited {
            action: "quote.create",
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        QuoteView::of(quote)
    })
    .await
}

fn draft(
    cx: &Cx,
    caller: &Caller,
    (id, ask, fees): (QuoteId, QuoteAsk, Fees),
    (supply, now): (Option<&Supply>, Timestamp),
) -> Result<QuoteRecord, Error> {
    let request = request_of(cx, (ask.gpu_count, ask.disk_gib), ask.duration, fees);
    let version = ask
        .offer_version
        .or(supply.map(|s| s.offer.version))
        .unwrap_or(0);
    let placed = place(supply, &request, version).map_err(|miss| refuse_miss(&miss))?;
    let supply = supply.ok_or_else(|| Error::not_found("live offer"))?;
    not_own(supply.offer.provider, caller.actor.party)?;
    let mut quote = QuoteRecord {
        id,
        party: caller.actor.party,
        offer: placed.offer,
        offer_version: version,
        gpu_model: supply.model.clone(),
        gpu_count: ask.gpu_count,
        disk_gib: ask.disk_gib,
        duration: ask.duration,
        currency: Currency::Usd,
        gpu_hour: supply.offer.terms.gpu_hour,
        keep_gpu_hour: supply.offer.terms.keep_gpu_hour(),
        storage_gib_month: supply.offer.terms.storage_gib_month,
        fee_bps: fees.fee_bps,
        tax_bps: fees.tax_bps,
        simulated: supply.simulated,
        signature: [0; 64],
        created_at: now,
        expires_at: now.plus(cx.policy.quote_ttl),
    };
    quote.signature = cx.signer.sign(&signed_bytes(&quote));
    Ok(quote)
}

/// One quote of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: QuoteId) -> Result<QuoteView, Error> {
    caller.may(Scope::LeasesRead, None)?;
    let party = caller.actor.party;
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::quote::get(ro, party, id).await?))
        .await?;
    QuoteView::of(found.ok_or_else(|| Error::not_found("quote"))?)
}
