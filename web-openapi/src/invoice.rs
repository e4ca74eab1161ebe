//! Invoices, credit notes, and who a party is on them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::{Money, Rate};

/// What sort of invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvoiceSide {
    /// For what the party used.
    Sale,
    /// For what the party's machines earned.
    SelfBilling,
}

/// Make an invoice now, of charges whose range ends in the period and that are on none yet.
/// Say either `month`, or `from` and `to`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInvoice {
    /// Absent = `sale`.
    #[serde(default)]
    pub kind: Option<InvoiceSide>,
    /// A UTC calendar month that is over.
    #[serde(default)]
    #[schema(example = "2026-11", pattern = "^[0-9]{4}-[0-9]{2}$")]
    pub month: Option<String>,
    /// Start.
    #[serde(default)]
    #[schema(format = "date-time")]
    pub from: Option<String>,
    /// End, not contained; not in the future.
    #[serde(default)]
    #[schema(format = "date-time")]
    pub to: Option<String>,
}

/// Who somebody is on a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvoiceParty {
    /// Legal name.
    pub name: String,
    /// Postal address, line by line.
    pub address: Vec<String>,
    /// ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub country: Option<String>,
    /// VAT or other tax number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vat_id: Option<String>,
}

/// One meter's charges with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvoiceLine {
    /// `lse_…`
    pub lease_id: String,
    /// The renter's word for the lease.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// `compute` or `storage`.
    pub resource: String,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// True if the GPUs are simulated.
    pub simulated: bool,
    /// Start of the first charge's range.
    #[schema(format = "date-time")]
    pub from: String,
    /// End of the last charge's range.
    #[schema(format = "date-time")]
    pub to: String,
    /// Number of the first charge of the meter in it.
    pub first_charge: i64,
    /// Number of the last.
    pub last_charge: i64,
    /// Proven time, exact.
    pub billable_milliseconds: i64,
    /// Price for the whole lease.
    pub rate: Rate,
    /// Tax rate, in 1/10,000.
    pub tax_bps: u32,
    /// Before tax; fee included.
    pub gross: Money,
    /// The platform's share.
    pub fee: Money,
    /// On top.
    pub tax: Money,
}

/// What a credit note refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreditReference {
    /// `inv_…`
    pub invoice_id: String,
    /// Its number.
    pub number: String,
    /// Why.
    pub reason: String,
    /// `txn_…` that gave the money back; absent: the note is a document only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transfer_id: Option<String>,
}

/// An invoice or credit note. It is never changed, and moves no money: it was paid as it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invoice {
    /// `inv_…`
    pub id: String,
    /// Without a gap in each series and UTC year.
    #[schema(example = "INV-2026-000001")]
    pub number: String,
    /// `sale`, `self_billing` or `credit_note`.
    pub kind: String,
    /// Start of the period.
    #[schema(format = "date-time")]
    pub period_from: String,
    /// End of the period, not contained.
    #[schema(format = "date-time")]
    pub period_to: String,
    /// When it was issued.
    #[schema(format = "date-time")]
    pub issued_at: String,
    /// Who sells.
    pub seller: InvoiceParty,
    /// Who buys.
    pub buyer: InvoiceParty,
    /// What the tax rule wants said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tax_note: Option<String>,
    /// `sandbox` (play money) or `live`.
    pub payments: String,
    /// Before tax; fee included.
    pub gross: Money,
    /// The platform's share.
    pub fee: Money,
    /// On top.
    pub tax: Money,
    /// Paid (`sale`: gross + tax), earned (`self_billing`: gross − fee), or taken back.
    pub total: Money,
    /// `total` in whole cents, half to even: for showing.
    pub total_in_cents: Money,
    /// Set for credit notes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub credits: Option<CreditReference>,
    /// What it is made of; empty in lists.
    pub lines: Vec<InvoiceLine>,
}

crate::page::page! {
    /// A page of invoices, without their lines.
    InvoicePage of Invoice
}

/// Take a part of an invoice back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCreditNote {
    /// Tax in it; at most what is left of the invoice.
    pub amount: Money,
    /// Stands on the note.
    #[schema(min_length = 1, max_length = 200)]
    pub reason: String,
    /// `txn_…` of the movement that gives the money back.
    #[serde(default)]
    pub transfer_id: Option<String>,
}

/// Who the party is on invoices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BillingProfile {
    /// Legal name; the party's name until it is set.
    pub legal_name: String,
    /// Postal address, line by line.
    pub address: Vec<String>,
    /// ISO 3166-1 alpha-2; decides the tax of quotes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub country: Option<String>,
    /// VAT or other tax number; a party with one is a business.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub vat_id: Option<String>,
    /// Counts up with each change; also the `ETag`.
    pub version: i64,
    /// When it last changed.
    #[schema(format = "date-time")]
    pub updated_at: String,
}

/// Changes who the party is on invoices; absent fields stay, `null` clears.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchBillingProfile {
    /// Legal name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 120)]
    pub legal_name: Option<String>,
    /// Postal address, line by line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 6)]
    pub address: Option<Vec<String>>,
    /// ISO 3166-1 alpha-2.
    #[serde(
        default,
        with = "crate::offer::double",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<String>, pattern = "^[A-Z]{2}$")]
    pub country: Option<Option<String>>,
    /// VAT or other tax number.
    #[serde(
        default,
        with = "crate::offer::double",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<String>, max_length = 32)]
    pub vat_id: Option<Option<String>>,
}
