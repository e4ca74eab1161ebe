//! Offers: listed, changed, withdrawn, and searched.

use billing::invoice::Identity;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{MachineId, OfferId, PartyId};
use domain::machine::{MachineEvent, MachineState};
use domain::money::{Currency, Micros};
use domain::refusal::Code;
use matching::book::Supply;
use matching::offer::{OfferFault, OfferTerms};
use matching::price::{AllIn, Fees};
use store::db::{Ro, Tx};
use store::error::Constraint;
use store::offer::OfferRecord;
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;

mod search;

pub use search::{SearchAsk, SearchView, search};

/// What a provider asks; absent GPU counts mean one and all.
#[derive(Clone, Copy, Debug)]
pub struct OfferAsk {
    /// Price of one GPU for one hour.
    pub gpu_hour: Micros,
    /// Lowest bid.
    pub bid_floor: Option<Micros>,
    /// Price of one GPU for one hour, kept for a stopped lease; absent: that of use.
    pub keep_gpu_hour: Option<Micros>,
    /// Price of one GiB for a month.
    pub storage_gib_month: Micros,
    /// Smallest lease.
    pub min_gpus: Option<u16>,
    /// Largest lease.
    pub max_gpus: Option<u16>,
}

/// A change of an offer; absent is not changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferPatch {
    /// New price.
    pub gpu_hour: Option<Micros>,
    /// New floor; `Some(None)` removes it.
    pub bid_floor: Option<Option<Micros>>,
    /// New price of keeping; `Some(None)` makes it that of use.
    pub keep_gpu_hour: Option<Option<Micros>>,
    /// New storage price.
    pub storage_gib_month: Option<Micros>,
    /// New smallest lease.
    pub min_gpus: Option<u16>,
    /// New largest lease.
    pub max_gpus: Option<u16>,
}

/// An offer with what its machine has.
#[derive(Clone, Debug)]
pub struct OfferView {
    /// The offer.
    pub offer: OfferRecord,
    /// Catalogue slug.
    pub gpu_model: String,
    /// All GPUs of the machine.
    pub gpu_count: u16,
    /// GPUs that can be booked now.
    pub gpus_free: u16,
    /// The GPUs are simulated.
    pub simulated: bool,
}

/// The market's fee, and the tax of a buyer.
pub(crate) fn fees(cx: &Cx, buyer: &Identity, now: Timestamp) -> Fees {
    Fees {
        fee_bps: cx.policy.fee_bps,
        tax_bps: cx.policy.tax.of(buyer, now).rate_bps,
    }
}

/// The whole price, as `matching` works it out.
pub type PriceView = AllIn;

fn refuse_terms(fault: OfferFault, gpus: u16) -> Error {
    let (pointer, detail) = match fault {
        OfferFault::Price => (
            "/price",
            "Must be above zero and at most 1,000 per GPU-hour.".to_owned(),
        ),
        OfferFault::FloorTooLow => ("/bid_floor", "Must be above zero.".to_owned()),
        OfferFault::FloorAbovePrice => {
            return Error::refused(
                Code::FloorAbovePrice,
                "The floor for bids must not exceed the on-demand price.",
            );
        }
        OfferFault::KeepPrice => (
            "/keep_price",
            "Must be between 0 and the on-demand price.".to_owned(),
        ),
        OfferFault::StoragePrice => (
            "/storage_price",
            "Must be between 0 and 100 per GiB-month.".to_owned(),
        ),
        OfferFault::MinGpus => ("/min_gpus", "Must be between 1 and `max_gpus`.".to_owned()),
        OfferFault::MaxGpus => ("/max_gpus", format!("The machine has {gpus} GPUs.")),
    };
    Error::field(pointer, "out_of_range", detail)
}

/// Lists a machine: one live offer for each.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    (machine_id, ask): (MachineId, OfferAsk),
    once: Once<'_, OfferView>,
) -> Result<Answer, Error> {
    caller.may(Scope::MachinesWrite, None)?;
    let now = cx.now();
    let id = OfferId::from_uuid(cx.id());
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let found = store::machine::get_for_update(tx, machine_id).await?;
        let mut machine = crate::machine::own(found, caller)?;
        let gpus = store::machine::gpus(tx, &[machine_id]).await?;
        let count = u16::try_from(gpus.len()).unwrap_or(u16::MAX);
        let terms = OfferTerms {
            gpu_hour: ask.gpu_hour,
            bid_floor: ask.bid_floor,
            keep_gpu_hour: ask.keep_gpu_hour,
            storage_gib_month: ask.storage_gib_month,
            min_gpus: ask.min_gpus.unwrap_or(1),
            max_gpus: ask.max_gpus.unwrap_or(count),
        };
        // Before verification there is nothing to offer yet: say that, not "it has 0 GPUs".
        let listed = machine
            .state
            .after(MachineEvent::ListRequested)
            .map_err(|_illegal| {
                Error::refused(
                    Code::MachineState,
                    format!(
                        "The machine is {}: it cannot be offered now.",
                        machine.state
                    ),
                )
            })?;
        terms
            .check(count)
            .map_err(|fault| refuse_terms(fault, count))?;
        let offer = OfferRecord {
            id,
            party: machine.party,
            machine: machine_id,
            version: 1,
            currency: Currency::Usd,
            terms,
            live: true,
            created_at: now,
            updated_at: now,
        };
        store::offer::insert(tx, &offer).await?;
        if machine.state == MachineState::Unlisted {
            machine.state = listed;
            machine.listed_before = true;
            machine.state_reason = "offered".to_owned();
            store::machine::save(tx, &machine).await?;
        }
        audit(cx, tx, (caller, now), ("offer.create", id)).await?;
        view(tx, offer, now).await
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::OfferLiveOnce) => {
            Error::refused(Code::OfferExists, "The machine has a live offer.")
                .suggesting("Change it with PATCH /v1/offers/{id}.")
        }
        _ => error,
    })
}

async fn audit(
    cx: &Cx,
    tx: &mut Tx,
    (caller, now): (&Caller, Timestamp),
    (action, id): (&'static str, OfferId),
) -> Result<(), Error> {
    let what = Audited {
        action,
        object: id.to_string(),
        reason: "by request",
    };
    Ok(store::audit::insert(tx, &cx.audit(caller, now, what)).await?)
}

fn own(found: Option<OfferRecord>, caller: &Caller) -> Result<OfferRecord, Error> {
    found
        .filter(|o| o.party == caller.actor.party)
        .ok_or_else(|| Error::not_found("offer"))
}

async fn view(ro: &mut Ro, offer: OfferRecord, now: Timestamp) -> Result<OfferView, Error> {
    let supply = store::offer::supply_of(ro, offer.id, now).await?;
    let gpus = store::machine::gpus(ro, &[offer.machine]).await?;
    let machine = store::machine::get(ro, offer.machine).await?;
    Ok(OfferView {
        offer,
        gpu_model: gpus
            .as_slice()
            .first()
            .map(|g| g.model.clone())
            .unwrap_or_default(),
        gpu_count: u16::try_from(gpus.len()).unwrap_or(u16::MAX),
        gpus_free: supply
            .as_ref()
            .filter(|s| s.bookable)
            .map_or(0, Supply::free),
        simulated: machine.is_some_and(|m| m.facts.simulated),
    })
}

/// One offer of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: OfferId) -> Result<OfferView, Error> {
    caller.may(Scope::MachinesRead, None)?;
    let now = cx.now();
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let offer = own(store::offer::get(ro, id).await?, caller)?;
            view(ro, offer, now).await
        })
        .await
}

/// The party's offers, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<OfferView>, Error> {
    caller.may(Scope::MachinesRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let found = store::offer::list(ro, party, page).await?;
            let mut rows = Vec::with_capacity(found.rows.len());
            for offer in found.rows {
                rows.push(view(ro, offer, now).await?);
            }
            Ok(Paged {
                rows,
                next: found.next,
            })
        })
        .await
}

fn at_version(offer: &OfferRecord, wanted: Option<i64>) -> Result<(), Error> {
    if wanted.is_some_and(|v| v != offer.version) {
        return Err(Error::refused(
            Code::StaleVersion,
            format!("The offer is at version {} now.", offer.version),
        ));
    }
    Ok(())
}

/// Changes an offer. Running leases keep their price.
pub async fn patch(
    cx: &Cx,
    caller: &Caller,
    (id, if_version): (OfferId, Option<i64>),
    patch: OfferPatch,
) -> Result<OfferView, Error> {
    caller.may(Scope::MachinesWrite, None)?;
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut offer = own(store::offer::get_for_update(tx, id).await?, caller)?;
            at_version(&offer, if_version)?;
            if !offer.live {
                return Err(Error::refused(
                    Code::MachineState,
                    "The offer is withdrawn.",
                ));
            }
            let gpus = store::machine::gpus(tx, &[offer.machine]).await?;
            let count = u16::try_from(gpus.len()).unwrap_or(u16::MAX);
            let old = offer.terms;
            offer.terms = OfferTerms {
                gpu_hour: patch.gpu_hour.unwrap_or(old.gpu_hour),
                bid_floor: patch.bid_floor.unwrap_or(old.bid_floor),
                keep_gpu_hour: patch.keep_gpu_hour.unwrap_or(old.keep_gpu_hour),
                storage_gib_month: patch.storage_gib_month.unwrap_or(old.storage_gib_month),
                min_gpus: patch.min_gpus.unwrap_or(old.min_gpus),
                max_gpus: patch.max_gpus.unwrap_or(old.max_gpus),
            };
            offer
                .terms
                .check(count)
                .map_err(|fault| refuse_terms(fault, count))?;
            if offer.terms != old {
                offer.updated_at = now;
                offer = store::offer::save(tx, &offer).await?;
                audit(cx, tx, (caller, now), ("offer.change", id)).await?;
            }
            view(tx, offer, now).await
        })
        .await
}

/// Withdraws an offer; running leases go on. Withdrawing again changes nothing.
pub async fn withdraw(
    cx: &Cx,
    caller: &Caller,
    (id, if_version): (OfferId, Option<i64>),
) -> Result<OfferView, Error> {
    caller.may(Scope::MachinesWrite, None)?;
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut offer = own(store::offer::get_for_update(tx, id).await?, caller)?;
            at_version(&offer, if_version)?;
            if offer.live {
                offer.live = false;
                offer.updated_at = now;
                offer = store::offer::save(tx, &offer).await?;
                audit(cx, tx, (caller, now), ("offer.withdraw", id)).await?;
                unlist(tx, offer.machine).await?;
            }
            view(tx, offer, now).await
        })
        .await
}

/// A machine without an offer is not listed.
async fn unlist(tx: &mut Tx, id: MachineId) -> Result<(), Error> {
    let Some(mut machine) = store::machine::get_for_update(tx, id).await? else {
        return Ok(());
    };
    machine.listed_before = false;
    if machine.state == MachineState::Listed {
        machine.state = MachineState::Unlisted;
        machine.state_reason = "its offer was withdrawn".to_owned();
    }
    store::machine::save(tx, &machine).await?;
    Ok(())
}

/// The caller's own party must not rent from itself: it would be wash trading.
pub(crate) fn not_own(provider: PartyId, renter: PartyId) -> Result<(), Error> {
    if provider == renter {
        return Err(Error::refused(
            Code::Forbidden,
            "A party cannot rent from itself.",
        ));
    }
    Ok(())
}
