//! Lines of invoices.

use billing::invoice::{Invoice, InvoiceKind, Line};
use billing::meter::Resource;
use billing::rating::{Due, Shares};
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::id::{InvoiceId, LeaseId, MeterId};
use domain::money::{Micros, Period, Rate};
use uuid::Uuid;

use crate::convert::{count, from_pg, int, parsed, small, to_pg, unsigned};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::invoice_line;

/// Rows of one statement: PostgreSQL takes 65,535 values.
const AT_ONCE: usize = 1_000;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = invoice_line)]
struct Row {
    invoice_id: Uuid,
    position: i32,
    side: String,
    lease_id: Uuid,
    meter_id: Uuid,
    seq_from: i64,
    seq_to: i64,
    from_at: PgTimestamp,
    to_at: PgTimestamp,
    billable_ms: i64,
    gross: i64,
    fee: i64,
    tax: i64,
    resource: String,
    price: i64,
    per_ms: i64,
    fee_bps: i32,
    tax_bps: i32,
    gpu_model: String,
    gpu_count: i16,
    disk_gib: i32,
    simulated: bool,
    label: Option<String>,
}

/// The side of the books that a kind of invoice takes its charges from.
pub(super) const fn side(kind: InvoiceKind) -> &'static str {
    match kind {
        InvoiceKind::Sale | InvoiceKind::CreditNote => InvoiceKind::Sale.as_str(),
        InvoiceKind::SelfBilling => InvoiceKind::SelfBilling.as_str(),
    }
}

fn row(invoice: &Invoice, place: usize, l: &Line) -> Row {
    Row {
        invoice_id: invoice.id.uuid(),
        position: i32::try_from(place).unwrap_or(i32::MAX).saturating_add(1),
        side: side(invoice.kind).to_owned(),
        lease_id: l.lease.uuid(),
        meter_id: l.meter.uuid(),
        seq_from: l.seq.0,
        seq_to: l.seq.1,
        from_at: to_pg(l.from),
        to_at: to_pg(l.to),
        billable_ms: l.billable_ms,
        gross: l.due.gross.get(),
        fee: l.due.fee.get(),
        tax: l.due.tax.get(),
        resource: l.resource.as_str().to_owned(),
        price: l.rate.price.get(),
        per_ms: l.rate.per.millis(),
        fee_bps: int(l.shares.fee_bps),
        tax_bps: int(l.shares.tax_bps),
        gpu_model: l.gpu_model.clone(),
        gpu_count: small(l.gpu_count),
        disk_gib: int(l.disk_gib),
        simulated: l.simulated,
        label: l.label.clone(),
    }
}

impl Row {
    fn record(self) -> Result<Line, Error> {
        Ok(Line {
            lease: LeaseId::from_uuid(self.lease_id),
            meter: MeterId::from_uuid(self.meter_id),
            resource: parsed("resource", Resource::parse(&self.resource))?,
            seq: (self.seq_from, self.seq_to),
            from: from_pg(self.from_at),
            to: from_pg(self.to_at),
            billable_ms: self.billable_ms,
            due: Due {
                gross: Micros::new(self.gross),
                fee: Micros::new(self.fee),
                tax: Micros::new(self.tax),
            },
            rate: Rate {
                price: Micros::new(self.price),
                per: parsed("period", Period::from_millis(self.per_ms))?,
            },
            shares: Shares {
                fee_bps: unsigned(self.fee_bps),
                tax_bps: unsigned(self.tax_bps),
            },
            gpu_model: self.gpu_model,
            gpu_count: count(self.gpu_count),
            disk_gib: unsigned(self.disk_gib),
            simulated: self.simulated,
            label: self.label,
        })
    }
}

/// Writes the lines of an invoice.
pub(super) async fn insert(tx: &mut Tx, invoice: &Invoice) -> Result<(), Error> {
    let rows: Vec<Row> = invoice
        .lines
        .iter()
        .enumerate()
        .map(|(place, line)| row(invoice, place, line))
        .collect();
    for some in rows.chunks(AT_ONCE) {
        let some: Vec<&Row> = some.iter().collect();
        diesel::insert_into(invoice_line::table)
            .values(some)
            .execute(tx.sql()?)
            .await?;
    }
    Ok(())
}

/// The lines of an invoice, in order.
pub(super) async fn of_invoice(ro: &mut Ro, id: InvoiceId) -> Result<Vec<Line>, Error> {
    let query = invoice_line::table
        .filter(invoice_line::invoice_id.eq(id.uuid()))
        .order(invoice_line::position)
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    rows.into_iter().map(Row::record).collect()
}
