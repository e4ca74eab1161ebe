//! An invoice's lines as CSV: exact amounts, times in UTC.

use domain::money::Period as Per;

use super::{Invoice, InvoiceKind, Line};
use crate::month::milli_text;
use crate::sheet::{Sheet, SheetFault, cell};

const HEADING: [&str; 24] = [
    "invoice",
    "kind",
    "issued_at",
    "line",
    "lease_id",
    "label",
    "resource",
    "gpu_model",
    "gpu_count",
    "disk_gib",
    "simulated",
    "from_at",
    "to_at",
    "first_charge",
    "last_charge",
    "billable_seconds",
    "rate",
    "rate_per",
    "tax_bps",
    "gross",
    "fee",
    "tax",
    "total",
    "currency",
];

/// Milliseconds as seconds with three decimals.
pub(crate) fn seconds(millis: i64) -> String {
    format!(
        "{}.{:03}",
        millis.div_euclid(1_000),
        millis.rem_euclid(1_000)
    )
}

fn row(invoice: &Invoice, place: usize, line: &Line) -> Result<[String; 24], SheetFault> {
    let due = line.due;
    let total = match invoice.kind {
        InvoiceKind::Sale | InvoiceKind::CreditNote => due.renter(),
        InvoiceKind::SelfBilling => due.provider(),
    };
    let per = match line.rate.per {
        Per::Hour => "hour",
        Per::Month => "month",
    };
    Ok([
        invoice.number.to_string(),
        invoice.kind.as_str().to_owned(),
        milli_text(invoice.issued_at),
        place.saturating_add(1).to_string(),
        line.lease.to_string(),
        cell(line.label.as_deref().unwrap_or("")),
        line.resource.as_str().to_owned(),
        cell(&line.gpu_model),
        line.gpu_count.to_string(),
        line.disk_gib.to_string(),
        line.simulated.to_string(),
        milli_text(line.from),
        milli_text(line.to),
        line.seq.0.to_string(),
        line.seq.1.to_string(),
        seconds(line.billable_ms),
        line.rate.price.to_string(),
        per.to_owned(),
        line.shares.tax_bps.to_string(),
        due.gross.to_string(),
        due.fee.to_string(),
        due.tax.to_string(),
        total.map_err(|_huge| SheetFault)?.to_string(),
        invoice.currency.code().to_owned(),
    ])
}

/// A credit note has no lines of time: one row with its sums.
fn note(invoice: &Invoice) -> [String; 24] {
    let sums = invoice.totals;
    let mut row: [String; 24] = std::array::from_fn(|_empty| String::new());
    let reason = invoice.credited.as_ref().map_or("", |c| c.reason.as_str());
    let cells = [
        (0, invoice.number.to_string()),
        (1, invoice.kind.as_str().to_owned()),
        (2, milli_text(invoice.issued_at)),
        (3, "1".to_owned()),
        (5, cell(reason)),
        (19, sums.gross.to_string()),
        (20, sums.fee.to_string()),
        (21, sums.tax.to_string()),
        (22, sums.total.to_string()),
        (23, invoice.currency.code().to_owned()),
    ];
    for (place, text) in cells {
        if let Some(slot) = row.get_mut(place) {
            *slot = text;
        }
    }
    row
}

/// The lines of an invoice, or the one of a credit note.
pub fn render(invoice: &Invoice) -> Result<Vec<u8>, SheetFault> {
    let mut sheet = Sheet::new(&HEADING)?;
    if invoice.kind == InvoiceKind::CreditNote {
        sheet.row(note(invoice))?;
    }
    for (place, line) in invoice.lines.iter().enumerate() {
        sheet.row(row(invoice, place, line)?)?;
    }
    sheet.finish()
}
