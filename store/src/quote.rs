//! Quotes: the terms that a lease gets.

use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::{Span, Timestamp};
use domain::id::{OfferId, PartyId, QuoteId};
use domain::money::{Currency, Micros, MoneyError, Period, Rate};
use uuid::Uuid;

use crate::convert::{count, currency, from_pg, int, parsed, small, to_pg, unsigned};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::quote;

/// A quote: firm until it expires, and the terms of the lease that it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuoteRecord {
    /// Its id.
    pub id: QuoteId,
    /// Who asked.
    pub party: PartyId,
    /// Of which offer.
    pub offer: OfferId,
    /// At which version.
    pub offer_version: i64,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk, GiB.
    pub disk_gib: u32,
    /// Duration that the total was worked out for.
    pub duration: Span,
    /// Of all amounts.
    pub currency: Currency,
    /// One GPU for one hour.
    pub gpu_hour: Micros,
    /// One GPU for one hour, kept while the lease is stopped.
    pub keep_gpu_hour: Micros,
    /// One GiB for a month.
    pub storage_gib_month: Micros,
    /// The platform's share, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, in 1/10,000.
    pub tax_bps: u32,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// The market's Ed25519 signature.
    pub signature: [u8; 64],
    /// When it was made.
    pub created_at: Timestamp,
    /// It can be booked before this.
    pub expires_at: Timestamp,
}

impl QuoteRecord {
    /// The rate of all GPUs.
    pub fn compute_rate(&self) -> Result<Rate, MoneyError> {
        Rate {
            price: self.gpu_hour,
            per: Period::Hour,
        }
        .times(i64::from(self.gpu_count))
    }

    /// The rate of all GPUs while they are kept.
    pub fn keep_rate(&self) -> Result<Rate, MoneyError> {
        Rate {
            price: self.keep_gpu_hour,
            per: Period::Hour,
        }
        .times(i64::from(self.gpu_count))
    }

    /// The rate of the whole disk.
    pub fn storage_rate(&self) -> Result<Rate, MoneyError> {
        Rate {
            price: self.storage_gib_month,
            per: Period::Month,
        }
        .times(i64::from(self.disk_gib))
    }
}

#[derive(Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = quote)]
pub(crate) struct Row {
    id: Uuid,
    party_id: Uuid,
    offer_id: Uuid,
    offer_version: i64,
    gpu_model: String,
    gpu_count: i16,
    disk_gib: i32,
    duration_seconds: i32,
    ledger: i32,
    gpu_hour: i64,
    storage_gib_month: i64,
    fee_bps: i32,
    tax_bps: i32,
    simulated: bool,
    signature: Vec<u8>,
    created_at: PgTimestamp,
    expires_at: PgTimestamp,
    keep_gpu_hour: i64,
}

impl Row {
    fn of(q: &QuoteRecord) -> Self {
        Self {
            id: q.id.uuid(),
            party_id: q.party.uuid(),
            offer_id: q.offer.uuid(),
            offer_version: q.offer_version,
            gpu_model: q.gpu_model.clone(),
            gpu_count: small(q.gpu_count),
            disk_gib: int(q.disk_gib),
            duration_seconds: i32::try_from(q.duration.secs()).unwrap_or(i32::MAX),
            ledger: q.currency.ledger(),
            gpu_hour: q.gpu_hour.get(),
            storage_gib_month: q.storage_gib_month.get(),
            fee_bps: int(q.fee_bps),
            tax_bps: int(q.tax_bps),
            simulated: q.simulated,
            signature: q.signature.to_vec(),
            created_at: to_pg(q.created_at),
            expires_at: to_pg(q.expires_at),
            keep_gpu_hour: q.keep_gpu_hour.get(),
        }
    }

    pub(crate) fn record(self) -> Result<QuoteRecord, Error> {
        Ok(QuoteRecord {
            id: QuoteId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            offer: OfferId::from_uuid(self.offer_id),
            offer_version: self.offer_version,
            gpu_model: self.gpu_model,
            gpu_count: count(self.gpu_count),
            disk_gib: unsigned(self.disk_gib),
            duration: Span::from_secs(i64::from(self.duration_seconds)),
            currency: currency(self.ledger)?,
            gpu_hour: Micros::new(self.gpu_hour),
            keep_gpu_hour: Micros::new(self.keep_gpu_hour),
            storage_gib_month: Micros::new(self.storage_gib_month),
            fee_bps: unsigned(self.fee_bps),
            tax_bps: unsigned(self.tax_bps),
            simulated: self.simulated,
            signature: parsed("signature", self.signature.try_into().ok())?,
            created_at: from_pg(self.created_at),
            expires_at: from_pg(self.expires_at),
        })
    }
}

/// Inserts a quote.
pub async fn insert(tx: &mut Tx, record: &QuoteRecord) -> Result<(), Error> {
    diesel::insert_into(quote::table)
        .values(Row::of(record))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// These quotes, whoever's they are: the caller looks at the party.
pub async fn by_ids(ro: &mut Ro, ids: &[QuoteId]) -> Result<Vec<QuoteRecord>, Error> {
    let ids: Vec<Uuid> = ids.iter().map(|q| q.uuid()).collect();
    let query = quote::table
        .filter(quote::id.eq_any(ids))
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    rows.into_iter().map(Row::record).collect()
}

/// One quote of the party.
pub async fn get(ro: &mut Ro, party: PartyId, id: QuoteId) -> Result<Option<QuoteRecord>, Error> {
    let query = quote::table
        .filter(
            quote::id
                .eq(id.uuid())
                .and(quote::party_id.eq(party.uuid())),
        )
        .select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}
