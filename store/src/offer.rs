//! Offers, and the supply behind them.

use std::collections::BTreeMap;

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{MachineId, OfferId, PartyId};
use domain::money::{Currency, Micros};
use matching::book::{Slot, Supply};
use matching::offer::{Offer, OfferTerms};
use uuid::Uuid;

use crate::convert::{count, currency, from_pg, money, small, to_pg, unsigned_big};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::machine::{self, GpuRecord, MachineRecord};
use crate::page::{Page, Paged};
use crate::schema::{lease, offer};

/// An offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferRecord {
    /// Its id.
    pub id: OfferId,
    /// Its provider.
    pub party: PartyId,
    /// Its machine.
    pub machine: MachineId,
    /// Counts up with each change.
    pub version: i64,
    /// Of all amounts.
    pub currency: Currency,
    /// What is asked.
    pub terms: OfferTerms,
    /// Can it be booked (else: withdrawn)?
    pub live: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = offer, treat_none_as_null = true)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    machine_id: Uuid,
    version: i64,
    ledger: i32,
    gpu_hour: i64,
    bid_floor: Option<i64>,
    storage_gib_month: i64,
    min_gpus: i16,
    max_gpus: i16,
    state: String,
    created_at: PgTimestamp,
    updated_at: PgTimestamp,
    keep_gpu_hour: Option<i64>,
}

impl Row {
    fn of(o: &OfferRecord) -> Self {
        Self {
            id: o.id.uuid(),
            party_id: o.party.uuid(),
            machine_id: o.machine.uuid(),
            version: o.version,
            ledger: o.currency.ledger(),
            gpu_hour: o.terms.gpu_hour.get(),
            bid_floor: o.terms.bid_floor.map(Micros::get),
            storage_gib_month: o.terms.storage_gib_month.get(),
            min_gpus: small(o.terms.min_gpus),
            max_gpus: small(o.terms.max_gpus),
            state: if o.live { "live" } else { "withdrawn" }.to_owned(),
            created_at: to_pg(o.created_at),
            updated_at: to_pg(o.updated_at),
            keep_gpu_hour: o.terms.keep_gpu_hour.map(Micros::get),
        }
    }

    fn record(self) -> Result<OfferRecord, Error> {
        Ok(OfferRecord {
            id: OfferId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            machine: MachineId::from_uuid(self.machine_id),
            version: self.version,
            currency: currency(self.ledger)?,
            terms: OfferTerms {
                gpu_hour: Micros::new(self.gpu_hour),
                bid_floor: money(self.bid_floor),
                keep_gpu_hour: money(self.keep_gpu_hour),
                storage_gib_month: Micros::new(self.storage_gib_month),
                min_gpus: count(self.min_gpus),
                max_gpus: count(self.max_gpus),
            },
            live: self.state == "live",
            created_at: from_pg(self.created_at),
            updated_at: from_pg(self.updated_at),
        })
    }
}

/// Inserts an offer.
pub async fn insert(tx: &mut Tx, record: &OfferRecord) -> Result<(), Error> {
    diesel::insert_into(offer::table)
        .values(Row::of(record))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One offer.
pub async fn get(ro: &mut Ro, id: OfferId) -> Result<Option<OfferRecord>, Error> {
    let query = offer::table.find(id.uuid()).select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Locks and gives one offer.
pub async fn get_for_update(tx: &mut Tx, id: OfferId) -> Result<Option<OfferRecord>, Error> {
    let query = offer::table
        .find(id.uuid())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// The party's offers, newest first.
pub async fn list(ro: &mut Ro, party: PartyId, page: Page) -> Result<Paged<OfferRecord>, Error> {
    let mut query = offer::table
        .filter(offer::party_id.eq(party.uuid()))
        .order(offer::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(offer::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    Ok(page.cut(records, |o: &OfferRecord| o.id.uuid()))
}

/// Saves an offer; its version counts up.
pub async fn save(tx: &mut Tx, record: &OfferRecord) -> Result<OfferRecord, Error> {
    let next = OfferRecord {
        version: record.version.saturating_add(1),
        ..*record
    };
    diesel::update(offer::table.find(record.id.uuid()))
        .set(Row::of(&next))
        .execute(tx.sql()?)
        .await?;
    Ok(next)
}

/// The live offer of a machine.
pub async fn live_of_machine(ro: &mut Ro, id: MachineId) -> Result<Option<OfferRecord>, Error> {
    let query = offer::table
        .filter(offer::machine_id.eq(id.uuid()).and(offer::state.eq("live")))
        .select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Every live offer with its machine's facts at `now`.
pub async fn supplies(ro: &mut Ro, now: Timestamp) -> Result<Vec<Supply>, Error> {
    let query = offer::table
        .filter(offer::state.eq("live"))
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let offers: Vec<OfferRecord> = rows
        .into_iter()
        .map(Row::record)
        .collect::<Result<_, _>>()?;
    assemble(ro, offers, now).await
}

/// One live offer with its machine's facts at `now`.
pub async fn supply_of(ro: &mut Ro, id: OfferId, now: Timestamp) -> Result<Option<Supply>, Error> {
    let found = by_ids(ro, &[id]).await?;
    Ok(supplies_of(ro, found, now).await?.pop())
}

/// The live ones of these offers with their supply.
pub async fn supplies_of(
    ro: &mut Ro,
    mut offers: Vec<OfferRecord>,
    now: Timestamp,
) -> Result<Vec<Supply>, Error> {
    offers.retain(|o| o.live);
    if offers.is_empty() {
        return Ok(Vec::new());
    }
    assemble(ro, offers, now).await
}

/// These offers.
pub async fn by_ids(ro: &mut Ro, ids: &[OfferId]) -> Result<Vec<OfferRecord>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|o| o.uuid()).collect();
    let query = offer::table
        .filter(offer::id.eq_any(ids))
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    rows.into_iter().map(Row::record).collect()
}

async fn assemble(
    ro: &mut Ro,
    offers: Vec<OfferRecord>,
    now: Timestamp,
) -> Result<Vec<Supply>, Error> {
    let ids: Vec<MachineId> = offers.iter().map(|o| o.machine).collect();
    let machines = machine::by_ids(ro, &ids).await?.into_iter();
    let machines: BTreeMap<MachineId, MachineRecord> = machines.map(|m| (m.id, m)).collect();
    let mut gpus: BTreeMap<MachineId, Vec<GpuRecord>> = BTreeMap::new();
    for gpu in machine::gpus(ro, &ids).await? {
        gpus.entry(gpu.machine).or_default().push(gpu);
    }
    let disks = disk_in_use(ro, &ids).await?;
    let supply = |record: OfferRecord| {
        let machine = machines.get(&record.machine)?;
        let own = gpus.remove(&record.machine)?;
        let used = disks.get(&record.machine).copied().unwrap_or(0);
        let first = own.as_slice().first()?.clone();
        Some(supply(&record, machine, (&first, own), used, now))
    };
    Ok(offers.into_iter().filter_map(supply).collect())
}

fn supply(
    record: &OfferRecord,
    machine: &MachineRecord,
    (first, gpus): (&GpuRecord, Vec<GpuRecord>),
    disk_used_gib: u64,
    now: Timestamp,
) -> Supply {
    let facts = &machine.facts;
    Supply {
        offer: Offer {
            id: record.id,
            version: record.version,
            provider: record.party,
            machine: record.machine,
            terms: record.terms,
        },
        bookable: machine.state.bookable(machine.last_seen_at, now),
        simulated: facts.simulated,
        model: first.model.clone(),
        gpu_memory_mib: gpus.iter().map(|g| g.memory_mib).min().unwrap_or(0),
        cpu_cores: facts.cpu_cores,
        ram_mib: facts.ram_mib,
        disk_free_gib: facts.disk_gib.saturating_sub(disk_used_gib),
        country: facts.country.clone(),
        slots: gpus
            .iter()
            .map(|g| Slot {
                gpu: g.id,
                index: g.slot,
                island: g.island,
                // A GPU of another model than the offer shows is not offered.
                free: !g.leased && !g.busy_elsewhere && g.model == first.model,
            })
            .collect(),
    }
}

/// GiB promised to live leases on a machine.
pub async fn disk_used_gib(ro: &mut Ro, machine: MachineId) -> Result<u64, Error> {
    let used = disk_in_use(ro, &[machine]).await?;
    Ok(used.get(&machine).copied().unwrap_or(0))
}

/// GiB promised to live leases, by machine.
async fn disk_in_use(ro: &mut Ro, ids: &[MachineId]) -> Result<BTreeMap<MachineId, u64>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|m| m.uuid()).collect();
    let rows: Vec<(Uuid, Option<i64>)> = lease::table
        .filter(
            lease::machine_id
                .eq_any(ids)
                .and(lease::state.ne_all(["ended", "failed"])),
        )
        .group_by(lease::machine_id)
        .select((lease::machine_id, diesel::dsl::sum(lease::disk_gib)))
        .load(ro.sql()?)
        .await?;
    let sum =
        |(id, gib): (Uuid, Option<i64>)| (MachineId::from_uuid(id), unsigned_big(gib.unwrap_or(0)));
    Ok(rows.into_iter().map(sum).collect())
}
