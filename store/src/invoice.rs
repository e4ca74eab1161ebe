//! Invoices: append-only, numbered without a gap, each charge at most once on each side.

use billing::invoice::{Credited, Identity, Invoice, InvoiceKind, Number, Totals};
use billing::month::Period;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::id::{InvoiceId, PartyId, TransferId};
use domain::money::Micros;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::{invoice, invoice_series, party, transfer};

mod line;
mod open;

pub use open::{due_parties, open_lines};

/// How an invoice came to be, beside what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The market's run for a whole month: one for each party, kind and month.
    Month,
    /// On demand.
    Demand,
    /// A credit note over an invoice of this total, of which so much was credited before.
    Credit {
        /// Earlier notes' sum.
        before: Micros,
        /// The invoice's total.
        of: Micros,
    },
}

/// Seller, buyer and words, kept as they were.
#[derive(Serialize, Deserialize)]
struct Document {
    seller: Identity,
    buyer: Identity,
    tax_note: Option<String>,
    sandbox: bool,
    refers_to: Option<String>,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = invoice)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    kind: String,
    series: String,
    year: i32,
    no: i64,
    period_from: PgTimestamp,
    period_to: PgTimestamp,
    monthly: bool,
    ledger: i32,
    gross: i64,
    fee: i64,
    tax: i64,
    total: i64,
    document: Value,
    issued_at: PgTimestamp,
    refers_to: Option<Uuid>,
    credited_before: Option<i64>,
    credited_of: Option<i64>,
    reason: Option<String>,
    transfer_id: Option<Uuid>,
}

impl Row {
    fn of(i: &Invoice, occasion: Occasion) -> Result<Self, Error> {
        let document = Document {
            seller: i.seller.clone(),
            buyer: i.buyer.clone(),
            tax_note: i.tax_note.clone(),
            sandbox: i.sandbox,
            refers_to: i.credited.as_ref().map(|c| c.number.clone()),
        };
        let document = serde_json::to_value(document);
        let (before, of) = match occasion {
            Occasion::Credit { before, of } => (Some(before.get()), Some(of.get())),
            Occasion::Month | Occasion::Demand => (None, None),
        };
        let credited = i.credited.as_ref();
        Ok(Self {
            id: i.id.uuid(),
            party_id: i.party.uuid(),
            kind: i.kind.as_str().to_owned(),
            series: i.number.series.clone(),
            year: i32::from(i.number.year),
            no: i.number.no,
            period_from: to_pg(i.period.from),
            period_to: to_pg(i.period.to),
            monthly: occasion == Occasion::Month,
            ledger: i.currency.ledger(),
            gross: i.totals.gross.get(),
            fee: i.totals.fee.get(),
            tax: i.totals.tax.get(),
            total: i.totals.total.get(),
            document: document.map_err(|_never| Error::Corrupt("document"))?,
            issued_at: to_pg(i.issued_at),
            refers_to: credited.map(|c| c.invoice.uuid()),
            credited_before: before,
            credited_of: of,
            reason: credited.map(|c| c.reason.clone()),
            transfer_id: credited.and_then(|c| c.transfer).map(TransferId::uuid),
        })
    }

    fn record(self) -> Result<Invoice, Error> {
        let document: Document = parsed("document", serde_json::from_value(self.document).ok())?;
        let transfer = self.transfer_id.map(TransferId::from_uuid);
        let credited = self
            .refers_to
            .zip(self.reason)
            .map(|(invoice, reason)| Credited {
                invoice: InvoiceId::from_uuid(invoice),
                number: document.refers_to.clone().unwrap_or_default(),
                reason,
                transfer,
            });
        Ok(Invoice {
            id: InvoiceId::from_uuid(self.id),
            kind: parsed("invoice kind", InvoiceKind::parse(&self.kind))?,
            number: Number {
                series: self.series,
                year: parsed("year", i16::try_from(self.year).ok())?,
                no: self.no,
            },
            party: PartyId::from_uuid(self.party_id),
            period: Period {
                from: from_pg(self.period_from),
                to: from_pg(self.period_to),
            },
            currency: currency(self.ledger)?,
            issued_at: from_pg(self.issued_at),
            seller: document.seller,
            buyer: document.buyer,
            tax_note: document.tax_note,
            sandbox: document.sandbox,
            credited,
            totals: Totals {
                gross: Micros::new(self.gross),
                fee: Micros::new(self.fee),
                tax: Micros::new(self.tax),
                total: Micros::new(self.total),
            },
            lines: Vec::new(),
        })
    }
}

/// Lets invoices of one party be made one after the other.
pub async fn lock_party(tx: &mut Tx, id: PartyId) -> Result<(), Error> {
    let lock = party::table
        .find(id.uuid())
        .select(party::id)
        .for_no_key_update();
    let _found: Uuid = lock.first(tx.sql()?).await?;
    Ok(())
}

/// Takes the next number of a kind's series. Nobody else gets one until this transaction ends.
pub async fn next_number(tx: &mut Tx, kind: InvoiceKind, year: i16) -> Result<Number, Error> {
    let no: i64 = diesel::insert_into(invoice_series::table)
        .values((
            invoice_series::series.eq(kind.series()),
            invoice_series::year.eq(i32::from(year)),
            invoice_series::last.eq(1),
        ))
        .on_conflict((invoice_series::series, invoice_series::year))
        .do_update()
        .set(invoice_series::last.eq(invoice_series::last + 1))
        .returning(invoice_series::last)
        .get_result(tx.sql()?)
        .await?;
    Ok(Number {
        series: kind.series().to_owned(),
        year,
        no,
    })
}

/// Writes an invoice with its lines.
pub async fn insert(tx: &mut Tx, record: &Invoice, occasion: Occasion) -> Result<(), Error> {
    diesel::insert_into(invoice::table)
        .values(Row::of(record, occasion)?)
        .execute(tx.sql()?)
        .await?;
    line::insert(tx, record).await
}

/// One invoice of the party (`None`: of anybody), with its lines.
pub async fn get(
    ro: &mut Ro,
    of: Option<PartyId>,
    id: InvoiceId,
) -> Result<Option<Invoice>, Error> {
    let mut query = invoice::table
        .filter(invoice::id.eq(id.uuid()))
        .select(Row::as_select())
        .into_boxed();
    if let Some(party) = of {
        query = query.filter(invoice::party_id.eq(party.uuid()));
    }
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    let Some(row) = row else {
        return Ok(None);
    };
    let mut record = row.record()?;
    record.lines = line::of_invoice(ro, id).await?;
    Ok(Some(record))
}

/// The party's invoices, newest first, without their lines.
pub async fn list(ro: &mut Ro, of: PartyId, page: Page) -> Result<Paged<Invoice>, Error> {
    let mut query = invoice::table
        .filter(invoice::party_id.eq(of.uuid()))
        .order(invoice::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(invoice::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows.into_iter().map(Row::record);
    Ok(page.cut(records.collect::<Result<_, _>>()?, |i: &Invoice| {
        i.id.uuid()
    }))
}

/// What was taken back of an invoice so far.
pub async fn credited(ro: &mut Ro, id: InvoiceId) -> Result<Micros, Error> {
    let totals: Vec<i64> = invoice::table
        .filter(invoice::refers_to.eq(id.uuid()))
        .select(invoice::total)
        .load(ro.sql()?)
        .await?;
    let mut all = Micros::ZERO;
    for total in totals {
        all = all
            .plus(Micros::new(total))
            .map_err(|_huge| Error::Corrupt("credit"))?;
    }
    Ok(all)
}

/// Is there such a movement?
pub async fn has_transfer(ro: &mut Ro, id: TransferId) -> Result<bool, Error> {
    let found: Option<Uuid> = transfer::table
        .find(id.uuid())
        .select(transfer::id)
        .first(ro.sql()?)
        .await
        .optional()?;
    Ok(found.is_some())
}
