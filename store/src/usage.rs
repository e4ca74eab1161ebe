//! What was charged, summed: by lease, label, resource or day, and day by day for FOCUS.
//!
//! Days are UTC days, whatever the session's time zone is. A charge counts where its range ends.

use billing::account::AccountCode;
use billing::focus::{Side, UsageDay};
use billing::invoice::InvoiceKind;
use billing::meter::Resource;
use billing::month::{Period as Bounds, day_of};
use billing::rating::Due;
use diesel::QueryableByName;
use diesel::pg::data_types::PgTimestamp;
use diesel::sql_types::{
    BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::RunQueryDsl;
use domain::id::{LeaseId, PartyId};
use domain::money::{Micros, Period, Rate};
use uuid::Uuid;

use crate::convert::{count, from_pg, parsed, to_pg, unsigned};
use crate::db::Ro;
use crate::error::Error;

/// What sums are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Each lease.
    Lease,
    /// Each label; leases without one together.
    Label,
    /// GPU time and disk.
    Resource,
    /// Each UTC day.
    Day,
}

/// One sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// UUID of the lease, the label, the resource, or the day's first instant in µs; empty: no label.
    pub key: String,
    /// Proven GPU time × GPUs.
    pub gpu_ms: i64,
    /// Proven disk time × GiB.
    pub gib_ms: i64,
    /// What was charged.
    pub due: Due,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = BigInt)]
    gpu_ms: i64,
    #[diesel(sql_type = BigInt)]
    gib_ms: i64,
    #[diesel(sql_type = BigInt)]
    gross: i64,
    #[diesel(sql_type = BigInt)]
    fee: i64,
    #[diesel(sql_type = BigInt)]
    tax: i64,
}

/// The charges of `$1`'s account `$2` that end in (`$3`, `$4`]. The account's column is written into
/// the text, so that its index is used; `more` joins more.
fn own(side: Side, more: &str) -> String {
    let column = match side {
        Side::Cost => "wallet",
        Side::Earnings => "earned",
    };
    format!(
        "
  FROM charge c
  JOIN account a ON a.id = c.{column}
  JOIN meter m ON m.id = c.meter_id
  JOIN meter_segment s ON s.meter_id = c.meter_id AND s.no = c.segment
  JOIN lease l ON l.id = c.lease_id
  JOIN quote q ON q.id = l.quote_id
  {more}
 WHERE a.owner = $1 AND a.code = $2 AND c.to_at > $3 AND c.to_at <= $4"
    )
}

/// The size of the disk that a charge is for.
const GIB: &str = "CASE WHEN m.resource = 'storage' AND q.storage_gib_month > 0
    THEN (s.price / q.storage_gib_month)::integer ELSE q.disk_gib END";

/// The UTC day in which a range ends: one that ends at midnight belongs to the day before.
const DAY: &str =
    "date_trunc('day', (c.to_at - interval '1 microsecond') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'";

const fn code(side: Side) -> AccountCode {
    match side {
        Side::Cost => AccountCode::RenterWallet,
        Side::Earnings => AccountCode::ProviderEarned,
    }
}

/// Sums of the party's charges within `bounds`: days in order, others by amount, at most `most`.
pub async fn sums(
    ro: &mut Ro,
    (party, side): (PartyId, Side),
    (bounds, group): (Bounds, GroupBy),
    most: u32,
) -> Result<Vec<UsageRow>, Error> {
    let (key, order) = match group {
        GroupBy::Lease => ("c.lease_id::text".to_owned(), "gross DESC, key"),
        GroupBy::Label => ("coalesce(l.label, '')".to_owned(), "gross DESC, key"),
        GroupBy::Resource => ("m.resource".to_owned(), "key"),
        GroupBy::Day => (
            format!("(extract(epoch FROM {DAY})::bigint * 1000000)::text"),
            "key",
        ),
    };
    let query = format!(
        "SELECT {key} AS key,
                coalesce(sum(c.billable_ms * q.gpu_count) FILTER (WHERE m.resource = 'compute'), 0)::bigint AS gpu_ms,
                coalesce(sum(c.billable_ms * {GIB}) FILTER (WHERE m.resource = 'storage'), 0)::bigint AS gib_ms,
                sum(c.gross)::bigint AS gross, sum(c.fee)::bigint AS fee, sum(c.tax)::bigint AS tax
         {} GROUP BY 1 ORDER BY {order} LIMIT $5",
        own(side, "")
    );
    let rows: Vec<Row> = diesel::sql_query(query)
        .bind::<SqlUuid, _>(party.uuid())
        .bind::<SmallInt, _>(code(side).code())
        .bind::<Timestamptz, _>(to_pg(bounds.from))
        .bind::<Timestamptz, _>(to_pg(bounds.to))
        .bind::<BigInt, _>(i64::from(most))
        .load(ro.sql()?)
        .await?;
    let record = |row: Row| UsageRow {
        key: row.key,
        gpu_ms: row.gpu_ms,
        gib_ms: row.gib_ms,
        due: Due {
            gross: Micros::new(row.gross),
            fee: Micros::new(row.fee),
            tax: Micros::new(row.tax),
        },
    };
    Ok(rows.into_iter().map(record).collect())
}

#[derive(QueryableByName)]
struct DayRow {
    #[diesel(sql_type = SqlUuid)]
    lease_id: Uuid,
    #[diesel(sql_type = Text)]
    resource: String,
    #[diesel(sql_type = Timestamptz)]
    day: PgTimestamp,
    #[diesel(sql_type = BigInt)]
    billable_ms: i64,
    #[diesel(sql_type = BigInt)]
    gross: i64,
    #[diesel(sql_type = BigInt)]
    fee: i64,
    #[diesel(sql_type = BigInt)]
    tax: i64,
    #[diesel(sql_type = BigInt)]
    price: i64,
    #[diesel(sql_type = BigInt)]
    per_ms: i64,
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
    #[diesel(sql_type = Nullable<Text>)]
    invoice: Option<String>,
}

/// Each meter on each UTC day, split by the invoice that its charges are on; at most `most` rows.
pub async fn days(
    ro: &mut Ro,
    (party, side): (PartyId, Side),
    bounds: Bounds,
    most: u32,
) -> Result<Vec<UsageDay>, Error> {
    let invoiced = format!(
        "LEFT JOIN invoice_line il ON il.meter_id = c.meter_id AND il.side = '{}'
              AND int8range(il.seq_from, il.seq_to, '[]') @> c.seq
         LEFT JOIN invoice i ON i.id = il.invoice_id",
        match side {
            Side::Cost => InvoiceKind::Sale.as_str(),
            Side::Earnings => InvoiceKind::SelfBilling.as_str(),
        }
    );
    let query = format!(
        "SELECT c.lease_id, m.resource, {DAY} AS day, sum(c.billable_ms)::bigint AS billable_ms,
                sum(c.gross)::bigint AS gross, sum(c.fee)::bigint AS fee, sum(c.tax)::bigint AS tax,
                s.price, m.per_ms, q.gpu_model, q.gpu_count, {GIB} AS disk_gib, q.simulated, l.label,
                i.series || '-' || lpad(i.year::text, 4, '0') || '-'
                    || lpad(i.no::text, greatest(6, length(i.no::text)), '0') AS invoice
         {}
          GROUP BY c.lease_id, 3, m.id, s.price, q.id, l.id, i.id
          ORDER BY day, c.lease_id, m.resource, invoice, s.price LIMIT $5",
        own(side, &invoiced)
    );
    let rows: Vec<DayRow> = diesel::sql_query(query)
        .bind::<SqlUuid, _>(party.uuid())
        .bind::<SmallInt, _>(code(side).code())
        .bind::<Timestamptz, _>(to_pg(bounds.from))
        .bind::<Timestamptz, _>(to_pg(bounds.to))
        .bind::<BigInt, _>(i64::from(most))
        .load(ro.sql()?)
        .await?;
    rows.into_iter().map(usage_day).collect()
}

fn usage_day(row: DayRow) -> Result<UsageDay, Error> {
    Ok(UsageDay {
        lease: LeaseId::from_uuid(row.lease_id),
        resource: parsed("resource", Resource::parse(&row.resource))?,
        day: day_of(from_pg(row.day)),
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
        gpu_model: row.gpu_model,
        gpu_count: count(row.gpu_count),
        disk_gib: unsigned(row.disk_gib),
        simulated: row.simulated,
        label: row.label,
        invoice: row.invoice,
    })
}
