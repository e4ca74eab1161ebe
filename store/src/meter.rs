//! Meters.

use billing::meter::{Meter, Proof, Resource};
use billing::rating::{Due, Shares};
use billing::segment::Segment;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MeterId};
use domain::money::{Micros, Period, Rate};
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::{from_pg, int, parsed, to_pg, unsigned};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::meter;
use crate::segment;

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = meter, treat_none_as_null = true)]
struct Row {
    id: Uuid,
    lease_id: Uuid,
    resource: String,
    price: i64,
    per_ms: i64,
    fee_bps: i32,
    tax_bps: i32,
    opened_at: PgTimestamp,
    until: Option<PgTimestamp>,
    closed: bool,
    billable_ms: i64,
    through: PgTimestamp,
    charged: i64,
    fee: i64,
    tax: i64,
    seq: i64,
    settled_ms: i64,
    settled_through: PgTimestamp,
    segment: i64,
    segments: i64,
    rem_num: i64,
    skew_ms: i64,
    proof_boot: Option<String>,
    proof_run: Option<String>,
    proof_mono_ms: Option<i64>,
    proof_at: Option<PgTimestamp>,
}

impl Row {
    fn of(m: &Meter) -> Result<Self, Error> {
        if m.crosses() {
            // What is proven in which segment is not stored.
            return Err(Error::Corrupt(
                "settlement: a meter is stored unsettled beyond a price",
            ));
        }
        let proof = m.proof.as_ref();
        Ok(Self {
            id: m.id.uuid(),
            lease_id: m.lease.uuid(),
            resource: m.resource.as_str().to_owned(),
            price: m.rate.price.get(),
            per_ms: m.rate.per.millis(),
            fee_bps: int(m.shares.fee_bps),
            tax_bps: int(m.shares.tax_bps),
            opened_at: to_pg(m.opened_at),
            until: m.until.map(to_pg),
            closed: m.closed,
            billable_ms: m.billable_ms,
            through: to_pg(m.through),
            charged: m.charged.gross.get(),
            fee: m.charged.fee.get(),
            tax: m.charged.tax.get(),
            seq: m.seq,
            settled_ms: m.settled_ms,
            settled_through: to_pg(m.settled_through),
            segment: m.segment,
            segments: m.ahead.last().map_or(m.segment, |s| s.no),
            rem_num: m.rem_num,
            skew_ms: m.skew_ms,
            proof_boot: proof.map(|p| p.boot.clone()),
            proof_run: proof.map(|p| p.run.clone()),
            proof_mono_ms: proof.map(|p| p.mono_ms),
            proof_at: proof.map(|p| to_pg(p.at)),
        })
    }

    fn record(self, ahead: Vec<Segment>) -> Result<Meter, Error> {
        let proof = match (
            self.proof_boot,
            self.proof_run,
            self.proof_mono_ms,
            self.proof_at,
        ) {
            (Some(boot), Some(run), Some(mono_ms), Some(at)) => Some(Proof {
                boot,
                run,
                mono_ms,
                at: from_pg(at),
            }),
            _ => None,
        };
        Ok(Meter {
            id: MeterId::from_uuid(self.id),
            lease: LeaseId::from_uuid(self.lease_id),
            resource: parsed("resource", Resource::parse(&self.resource))?,
            rate: Rate {
                price: Micros::new(self.price),
                per: parsed("period", Period::from_millis(self.per_ms))?,
            },
            segment: self.segment,
            ahead,
            shares: Shares {
                fee_bps: unsigned(self.fee_bps),
                tax_bps: unsigned(self.tax_bps),
            },
            opened_at: from_pg(self.opened_at),
            until: self.until.map(from_pg),
            closed: self.closed,
            billable_ms: self.billable_ms,
            through: from_pg(self.through),
            charged: Due {
                gross: Micros::new(self.charged),
                fee: Micros::new(self.fee),
                tax: Micros::new(self.tax),
            },
            rem_num: self.rem_num,
            seq: self.seq,
            settled_ms: self.settled_ms,
            settled_through: from_pg(self.settled_through),
            skew_ms: self.skew_ms,
            proof,
        })
    }
}

/// Inserts meters, each with its first price.
pub async fn insert(tx: &mut Tx, records: &[Meter]) -> Result<(), Error> {
    let rows = records.iter().map(Row::of).collect::<Result<Vec<_>, _>>()?;
    bulk!(tx, "meter", &rows, {
        id: sql::Uuid = |r| r.id,
        lease_id: sql::Uuid = |r| r.lease_id,
        resource: sql::Text = |r| r.resource.clone(),
        price: sql::BigInt = |r| r.price,
        per_ms: sql::BigInt = |r| r.per_ms,
        fee_bps: sql::Integer = |r| r.fee_bps,
        tax_bps: sql::Integer = |r| r.tax_bps,
        opened_at: sql::Timestamptz = |r| r.opened_at,
        until: sql::Nullable<sql::Timestamptz> = |r| r.until,
        closed: sql::Bool = |r| r.closed,
        billable_ms: sql::BigInt = |r| r.billable_ms,
        through: sql::Timestamptz = |r| r.through,
        charged: sql::BigInt = |r| r.charged,
        fee: sql::BigInt = |r| r.fee,
        tax: sql::BigInt = |r| r.tax,
        seq: sql::BigInt = |r| r.seq,
        settled_ms: sql::BigInt = |r| r.settled_ms,
        settled_through: sql::Timestamptz = |r| r.settled_through,
        segment: sql::BigInt = |r| r.segment,
        segments: sql::BigInt = |r| r.segments,
        rem_num: sql::BigInt = |r| r.rem_num,
        skew_ms: sql::BigInt = |r| r.skew_ms,
        proof_boot: sql::Nullable<sql::Text> = |r| r.proof_boot.clone(),
        proof_run: sql::Nullable<sql::Text> = |r| r.proof_run.clone(),
        proof_mono_ms: sql::Nullable<sql::BigInt> = |r| r.proof_mono_ms,
        proof_at: sql::Nullable<sql::Timestamptz> = |r| r.proof_at,
    });
    let first = |m: &Meter| {
        let segment = Segment {
            no: m.segment,
            from: m.opened_at,
            rate: m.rate,
            unsettled_ms: 0,
        };
        (m.id, segment)
    };
    let segments: Vec<_> = records.iter().map(first).collect();
    segment::insert(tx, &segments).await
}

/// Saves a meter; one that crosses a price must be settled before. The caller holds the lease's
/// lock.
pub async fn save(tx: &mut Tx, record: &Meter) -> Result<(), Error> {
    diesel::update(meter::table.find(record.id.uuid()))
        .set(Row::of(record)?)
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// The meters of these leases, compute first.
pub async fn of_leases(ro: &mut Ro, leases: &[LeaseId]) -> Result<Vec<Meter>, Error> {
    let ids: Vec<Uuid> = leases.iter().map(|l| l.uuid()).collect();
    let query = meter::table
        .filter(meter::lease_id.eq_any(ids))
        .order((meter::lease_id, meter::resource))
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let coming = rows.iter().filter(|r| r.segments > r.segment);
    let coming: Vec<Uuid> = coming.map(|r| r.id).collect();
    // Prices seldom change: most reads need no second query.
    let mut ahead = if coming.is_empty() {
        segment::Segments::new()
    } else {
        segment::ahead_of(ro, &coming).await?
    };
    rows.into_iter()
        .map(|row| {
            let later = ahead.remove(&MeterId::from_uuid(row.id));
            row.record(later.unwrap_or_default())
        })
        .collect()
}

/// The meters of one lease, compute first.
pub async fn of_lease(ro: &mut Ro, lease: LeaseId) -> Result<Vec<Meter>, Error> {
    of_leases(ro, &[lease]).await
}

/// Leases with proven time that is not charged and that were last settled before `before`.
pub async fn unsettled(ro: &mut Ro, before: Timestamp, most: i64) -> Result<Vec<LeaseId>, Error> {
    let ids: Vec<Uuid> = meter::table
        .filter(meter::settled_through.lt(meter::through))
        .filter(meter::settled_through.lt(to_pg(before)))
        .select(meter::lease_id)
        .distinct()
        .order(meter::lease_id)
        .limit(most)
        .load(ro.sql()?)
        .await?;
    Ok(ids.into_iter().map(LeaseId::from_uuid).collect())
}
