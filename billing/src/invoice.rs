//! Invoices: what a party was charged, or credited, in a period, line by line.
//!
//! Invariants: an invoice is made of charges that are booked already, so it moves no money; each
//! charge is on at most one invoice of each kind; the sums of the lines are the sums of the charges
//! to the micro-unit; numbers of a series have no gap; an invoice is never changed, a credit note
//! that names it is another document.

use domain::clock::Timestamp;
use domain::id::{InvoiceId, LeaseId, MeterId, PartyId, TransferId};
use domain::money::{Currency, Micros, MoneyError, Rate};
use serde::{Deserialize, Serialize};

use crate::meter::Resource;
use crate::month::Period;
use crate::rating::{Due, Shares};

pub mod csv;
pub mod pdf;

/// What sort of document it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvoiceKind {
    /// To a renter, for what was used: gross + tax, paid from the wallet.
    Sale,
    /// In a provider's name, for what its machines earned: gross − fee.
    SelfBilling,
    /// Takes back a part of an invoice.
    CreditNote,
}

impl InvoiceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Sale, Self::SelfBilling, Self::CreditNote];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sale => "sale",
            Self::SelfBilling => "self_billing",
            Self::CreditNote => "credit_note",
        }
    }

    /// The kind of a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == text)
    }

    /// The series that its numbers count in.
    pub const fn series(self) -> &'static str {
        match self {
            Self::Sale => "INV",
            Self::SelfBilling => "SBI",
            Self::CreditNote => "CRN",
        }
    }
}

/// A number of a series: `INV-2026-000001`. Counts from 1 in each year, without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// `INV`, `SBI` or `CRN`.
    pub series: String,
    /// The UTC year of issue.
    pub year: i16,
    /// From 1.
    pub no: i64,
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{:04}-{:06}", self.series, self.year, self.no)
    }
}

/// Who a party, or the operator, is on documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Legal name.
    pub name: String,
    /// Postal address, line by line.
    pub address: Vec<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
    /// VAT or other tax number; a party with one is a business.
    pub vat_id: Option<String>,
}

/// One meter's charges with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The lease.
    pub lease: LeaseId,
    /// The meter.
    pub meter: MeterId,
    /// What it counts.
    pub resource: Resource,
    /// First and last number of the meter's charges in it.
    pub seq: (i64, i64),
    /// Start of the first charge's range.
    pub from: Timestamp,
    /// End of the last charge's range.
    pub to: Timestamp,
    /// Proven time.
    pub billable_ms: i64,
    /// What was charged.
    pub due: Due,
    /// Price per period for the whole lease.
    pub rate: Rate,
    /// Fee and tax at which it was charged.
    pub shares: Shares,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// The renter's word for the lease.
    pub label: Option<String>,
}

/// The sums of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// Before tax; fee included.
    pub gross: Micros,
    /// The platform's share.
    pub fee: Micros,
    /// On top.
    pub tax: Micros,
    /// What was paid (sale), credited (self-billing) or taken back (credit note).
    pub total: Micros,
}

/// The part of the sums with one tax rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaxPart {
    /// In 1/10,000.
    pub tax_bps: u32,
    /// Before tax.
    pub net: Micros,
    /// The tax.
    pub tax: Micros,
}

/// What a credit note refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credited {
    /// The invoice.
    pub invoice: InvoiceId,
    /// Its number.
    pub number: String,
    /// Why.
    pub reason: String,
    /// The movement that gave the money back, if it has one.
    pub transfer: Option<TransferId>,
}

/// An issued document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    /// Its id.
    pub id: InvoiceId,
    /// What sort.
    pub kind: InvoiceKind,
    /// Its number.
    pub number: Number,
    /// Whose it is.
    pub party: PartyId,
    /// Charges whose range ends in it, and earlier ones that were on no invoice.
    pub period: Period,
    /// Of all amounts.
    pub currency: Currency,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Who sells: the operator; on a self-billing invoice, the provider.
    pub seller: Identity,
    /// Who buys.
    pub buyer: Identity,
    /// Words that the tax rule wants on it, e.g. on reverse charge.
    pub tax_note: Option<String>,
    /// Paid with play money.
    pub sandbox: bool,
    /// Set for credit notes.
    pub credited: Option<Credited>,
    /// The sums.
    pub totals: Totals,
    /// What they are made of.
    pub lines: Vec<Line>,
}

/// Adds the lines up for a document of `kind`.
pub fn total(kind: InvoiceKind, lines: &[Line]) -> Result<Totals, MoneyError> {
    let mut sum = Due::default();
    for line in lines {
        sum = sum.plus(line.due)?;
    }
    Ok(Totals {
        gross: sum.gross,
        fee: sum.fee,
        tax: sum.tax,
        total: match kind {
            InvoiceKind::Sale | InvoiceKind::CreditNote => sum.renter()?,
            InvoiceKind::SelfBilling => sum.provider()?,
        },
    })
}

/// The sums by tax rate, lowest rate first.
pub fn tax_parts(lines: &[Line]) -> Result<Vec<TaxPart>, MoneyError> {
    let mut parts = std::collections::BTreeMap::new();
    for line in lines {
        let (net, tax) = parts
            .get(&line.shares.tax_bps)
            .copied()
            .unwrap_or((Micros::ZERO, Micros::ZERO));
        let sums = (net.plus(line.due.gross)?, tax.plus(line.due.tax)?);
        parts.insert(line.shares.tax_bps, sums);
    }
    let part = |(tax_bps, (net, tax))| TaxPart { tax_bps, net, tax };
    Ok(parts.into_iter().map(part).collect())
}

/// An amount in whole cents, half to even, and what that adds: for showing, never for booking.
pub fn to_cents(amount: Micros) -> Result<(Micros, Micros), MoneyError> {
    const CENT: i128 = 10_000;
    let wide = i128::from(amount.get());
    let (cents, rest) = (wide.div_euclid(CENT), wide.rem_euclid(CENT));
    let up = match rest.saturating_mul(2).cmp(&CENT) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => cents.rem_euclid(2),
        std::cmp::Ordering::Greater => 1,
    };
    let rounded = Micros::from_wide(cents.saturating_add(up).saturating_mul(CENT))?;
    Ok((rounded, rounded.minus(amount)?))
}

/// The sums of a credit note over `net` and `tax`.
pub fn credit(net: Micros, tax: Micros) -> Result<Totals, MoneyError> {
    Ok(Totals {
        gross: net,
        fee: Micros::ZERO,
        tax,
        total: net.plus(tax)?,
    })
}

#[cfg(test)]
pub(crate) mod tests;
