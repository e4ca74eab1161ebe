//! Charges that are on no invoice yet.
//!
//! Bounds are instants: the session's time zone does not enter. A charge belongs to the period in
//! which its range ends; a range that ends exactly at the end of a period holds only time before it.

use billing::account::AccountCode;
use billing::invoice::{InvoiceKind, Line};
use billing::meter::Resource;
use billing::month::Period as Bounds;
use billing::rating::{Due, Shares};
use diesel::QueryableByName;
use diesel::pg::data_types::PgTimestamp;
use diesel::sql_types::{
    BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MeterId, PartyId};
use domain::money::{Micros, Period, Rate};
use uuid::Uuid;

use super::line::side;
use crate::convert::{count, from_pg, parsed, to_pg, unsigned};
use crate::db::Ro;
use crate::error::Error;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    meter_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    lease_id: Uuid,
    #[diesel(sql_type = BigInt)]
    seq_from: i64,
    #[diesel(sql_type = BigInt)]
    seq_to: i64,
    #[diesel(sql_type = Timestamptz)]
    from_at: PgTimestamp,
    #[diesel(sql_type = Timestamptz)]
    to_at: PgTimestamp,
    #[diesel(sql_type = BigInt)]
    billable_ms: i64,
    #[diesel(sql_type = BigInt)]
    gross: i64,
    #[diesel(sql_type = BigInt)]
    fee: i64,
    #[diesel(sql_type = BigInt)]
    tax: i64,
    #[diesel(sql_type = Text)]
    resource: String,
    #[diesel(sql_type = BigInt)]
    price: i64,
    #[diesel(sql_type = BigInt)]
    per_ms: i64,
    #[diesel(sql_type = Integer)]
    fee_bps: i32,
    #[diesel(sql_type = Integer)]
    tax_bps: i32,
    #[diesel(sql_type = Text)]
    gpu_model: String,
    #[diesel(sql_type = SmallInt)]
    gpu_count: i16,
    #[diesel(sql_type = Integer)]
    disk_gib: i32,
    #[diesel(sql_type = Bool)]
    simulated: bool,
    #[diesel(sql_type = Nullable<Text>)]
    label: Option<String>,
}

/// Consecutive numbers less their rank are the same number: one group for each unbroken run at one
/// price. A disk's size is what its price is for. The account's column is written into the text, so
/// that its index is used.
fn open(column: &str) -> String {
    format!(
        "
WITH open AS (
    SELECT c.meter_id, c.segment, c.lease_id, c.seq, c.from_at, c.to_at, c.billable_ms,
           c.gross, c.fee, c.tax,
           c.seq - row_number() OVER (PARTITION BY c.meter_id, c.segment ORDER BY c.seq) AS run
      FROM charge c
      JOIN account a ON a.id = c.{column}
     WHERE a.owner = $1 AND a.code = $2 AND c.to_at > $3 AND c.to_at <= $4
       AND NOT EXISTS (SELECT 1 FROM invoice_line l
            WHERE l.meter_id = c.meter_id AND l.side = $5
              AND int8range(l.seq_from, l.seq_to, '[]') @> c.seq))
SELECT o.meter_id, o.lease_id, min(o.seq) AS seq_from, max(o.seq) AS seq_to,
       min(o.from_at) AS from_at, max(o.to_at) AS to_at, sum(o.billable_ms)::bigint AS billable_ms,
       sum(o.gross)::bigint AS gross, sum(o.fee)::bigint AS fee, sum(o.tax)::bigint AS tax,
       m.resource, s.price, m.per_ms, m.fee_bps, m.tax_bps, q.gpu_model, q.gpu_count,
       CASE WHEN m.resource = 'storage' AND q.storage_gib_month > 0
            THEN (s.price / q.storage_gib_month)::integer ELSE q.disk_gib END AS disk_gib,
       q.simulated, l.label
  FROM open o
  JOIN meter m ON m.id = o.meter_id
  JOIN meter_segment s ON s.meter_id = o.meter_id AND s.no = o.segment
  JOIN lease l ON l.id = o.lease_id
  JOIN quote q ON q.id = l.quote_id
 GROUP BY o.meter_id, o.segment, o.lease_id, o.run, m.id, s.price, q.id, l.id
 ORDER BY o.lease_id, m.resource, seq_from"
    )
}

/// The account that a kind of invoice is about, and its column in a charge.
const fn account(kind: InvoiceKind) -> (AccountCode, &'static str) {
    match kind {
        InvoiceKind::Sale | InvoiceKind::CreditNote => (AccountCode::RenterWallet, "wallet"),
        InvoiceKind::SelfBilling => (AccountCode::ProviderEarned, "earned"),
    }
}

/// The party's charges within `bounds` that are on no invoice of this side, by meter.
pub async fn open_lines(
    ro: &mut Ro,
    party: PartyId,
    kind: InvoiceKind,
    bounds: Bounds,
) -> Result<Vec<Line>, Error> {
    let (code, column) = account(kind);
    let rows: Vec<Row> = diesel::sql_query(open(column))
        .bind::<SqlUuid, _>(party.uuid())
        .bind::<SmallInt, _>(code.code())
        .bind::<Timestamptz, _>(to_pg(bounds.from))
        .bind::<Timestamptz, _>(to_pg(bounds.to))
        .bind::<Text, _>(side(kind))
        .load(ro.sql()?)
        .await?;
    rows.into_iter().map(line).collect()
}

fn line(row: Row) -> Result<Line, Error> {
    Ok(Line {
        lease: LeaseId::from_uuid(row.lease_id),
        meter: MeterId::from_uuid(row.meter_id),
        resource: parsed("resource", Resource::parse(&row.resource))?,
        seq: (row.seq_from, row.seq_to),
        from: from_pg(row.from_at),
        to: from_pg(row.to_at),
        billable_ms: row.billable_ms,
        due: Due {
            gross: Micros::new(row.gross),
            fee: Micros::new(row.fee),
            tax: Micros::new(row.tax),
        },
        rate: Rate {
            price: Micros::new(row.price),
            per: parsed("period", Period::from_millis(row.per_ms))?,
        },
        shares: Shares {
            fee_bps: unsigned(row.fee_bps),
            tax_bps: unsigned(row.tax_bps),
        },
        gpu_model: row.gpu_model,
        gpu_count: count(row.gpu_count),
        disk_gib: unsigned(row.disk_gib),
        simulated: row.simulated,
        label: row.label,
    })
}

#[derive(QueryableByName)]
struct Owner {
    #[diesel(sql_type = SqlUuid)]
    owner: Uuid,
}

/// Parties with a lease that lived between `$1` and the month's end and has more charges than are
/// invoiced, and without this month's invoice of the market. Leases are looked at, not charges: there
/// are some thousand times fewer, and nothing is charged to one that is over.
fn due(column: &str) -> String {
    format!(
        "
SELECT DISTINCT l.{column} AS owner FROM lease l
 WHERE l.created_at < $3 AND (l.ended_at IS NULL OR l.ended_at >= $1)
   AND EXISTS (SELECT 1 FROM meter m WHERE m.lease_id = l.id AND m.seq >
        (SELECT coalesce(sum(il.seq_to - il.seq_from + 1), 0) FROM invoice_line il
          WHERE il.meter_id = m.id AND il.side = $4))
   AND NOT EXISTS (SELECT 1 FROM invoice i
        WHERE i.party_id = l.{column} AND i.kind = $4 AND i.monthly AND i.period_from = $2)
 ORDER BY owner"
    )
}

/// Who may lack the market's invoice of a month, with leases that lived since `lived_from`.
pub async fn due_parties(
    ro: &mut Ro,
    kind: InvoiceKind,
    month: Bounds,
    lived_from: Timestamp,
) -> Result<Vec<PartyId>, Error> {
    let column = match kind {
        InvoiceKind::Sale | InvoiceKind::CreditNote => "party_id",
        InvoiceKind::SelfBilling => "provider_id",
    };
    let rows: Vec<Owner> = diesel::sql_query(due(column))
        .bind::<Timestamptz, _>(to_pg(lived_from))
        .bind::<Timestamptz, _>(to_pg(month.from))
        .bind::<Timestamptz, _>(to_pg(month.to))
        .bind::<Text, _>(side(kind))
        .load(ro.sql()?)
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| PartyId::from_uuid(row.owner))
        .collect())
}
