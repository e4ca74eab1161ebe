//! Usage and cost as FOCUS 1.2 (FinOps Open Cost and Usage Specification,
//! <https://focus.finops.org/focus-specification/v1-2/>): every mandatory column, and those of the
//! others that we can fill.
//!
//! A row is one meter on one UTC day: charges count on the day in which their range ends. Tax is a
//! row of its own (`ChargeCategory` = `Tax`), so the `BilledCost` of all rows adds up to what left
//! the wallet. In a provider's file the cost columns hold what it was credited, net of the fee; gross
//! and fee stand in `x_` columns.

use domain::id::{LeaseId, PartyId};
use domain::money::{Currency, Micros, MoneyError, Period as Per, Rate};

use crate::invoice::csv::seconds;
use crate::meter::Resource;
use crate::month::{Month, Period, second_text};
use crate::rating::Due;
use crate::sheet::{Sheet, SheetFault, cell};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A renter's cost.
    Cost,
    /// A provider's earnings.
    Earnings,
}

impl Side {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Earnings => "earnings",
        }
    }

    /// The side of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Cost, Self::Earnings]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

/// One meter on one UTC day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageDay {
    /// The lease.
    pub lease: LeaseId,
    /// What was counted.
    pub resource: Resource,
    /// The day.
    pub day: Period,
    /// Proven time.
    pub billable_ms: i64,
    /// What was charged.
    pub due: Due,
    /// Price per period for the whole lease.
    pub rate: Rate,
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
    /// Number of the invoice that it is on, if it is.
    pub invoice: Option<String>,
}

/// Whose file it is, and in which money.
#[derive(Clone, Debug)]
pub struct Account {
    /// The party.
    pub party: PartyId,
    /// Its name.
    pub name: String,
    /// Who runs the market.
    pub operator: String,
    /// Of all amounts.
    pub currency: Currency,
    /// Whose file.
    pub side: Side,
}

/// The columns, by name as the specification orders them; our own at the end.
pub const COLUMNS: [&str; 41] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceId",
    "Tags",
    "x_GrossAmount",
    "x_PlatformFee",
    "x_Simulated",
    "x_TaxAmount",
];

/// A sum, or a table, does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FocusFault {
    /// A sum.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// The table.
    #[error(transparent)]
    Sheet(#[from] SheetFault),
}

/// The values of one resource that do not depend on the charge.
struct Service {
    category: &'static str,
    subcategory: &'static str,
    name: &'static str,
    sku: String,
    units: i64,
    consumed_unit: &'static str,
    pricing_unit: &'static str,
}

fn service(day: &UsageDay) -> Service {
    match day.resource {
        Resource::Compute => Service {
            category: "Compute",
            subcategory: "Other (Compute)",
            name: "GPU rental",
            sku: day.gpu_model.clone(),
            units: i64::from(day.gpu_count),
            consumed_unit: "GPU-Seconds",
            pricing_unit: "GPU-Hours",
        },
        Resource::Storage => Service {
            category: "Storage",
            subcategory: "Block Storage",
            name: "Disk",
            sku: "disk".to_owned(),
            units: i64::from(day.disk_gib),
            consumed_unit: "GiB-Seconds",
            pricing_unit: "GiB-Months",
        },
    }
}

/// `millis × units / period` with nine decimals, rounded down.
fn quantity(millis: i64, units: i64, per: Per) -> String {
    let nano = 1_000_000_000;
    let wide = i128::from(millis)
        .saturating_mul(i128::from(units))
        .saturating_mul(nano)
        .div_euclid(i128::from(per.millis()));
    format!("{}.{:09}", wide.div_euclid(nano), wide.rem_euclid(nano))
}

/// The renter's words as JSON, which FOCUS wants for tags.
fn tags(day: &UsageDay) -> String {
    let label = day
        .label
        .iter()
        .map(|l| ("label", serde_json::Value::from(l.as_str())));
    let map: serde_json::Map<_, _> = label.map(|(n, v)| (n.to_owned(), v)).collect();
    serde_json::Value::Object(map).to_string()
}

/// Price of one unit.
fn unit_price(rate: Rate, units: i64) -> String {
    let one = rate.price.get().checked_div_euclid(units.max(1));
    Micros::new(one.unwrap_or(0)).to_string()
}

fn row(account: &Account, day: &UsageDay, tax: bool) -> Result<Vec<String>, FocusFault> {
    let service = service(day);
    let month = Month::of(day.day.from).period();
    let amount = match (account.side, tax) {
        (_, true) => day.due.tax,
        (Side::Cost, false) => day.due.gross,
        (Side::Earnings, false) => day.due.provider()?,
    };
    let amount = amount.to_string();
    let usage = |text: String| if tax { String::new() } else { text };
    let price = || usage(unit_price(day.rate, service.units));
    let consumed = day.billable_ms.saturating_mul(service.units);
    let lease = day.lease.to_string();
    let what = match (day.resource, tax) {
        (_, true) => format!("Tax on {} of {lease}", service.name),
        (Resource::Compute, false) => {
            format!("{} × {} of {lease}", day.gpu_count, day.gpu_model)
        }
        (Resource::Storage, false) => format!("{} GiB of disk of {lease}", day.disk_gib),
    };
    let fee = if tax { Micros::ZERO } else { day.due.fee };
    let gross = if tax { Micros::ZERO } else { day.due.gross };
    Ok(vec![
        amount.clone(),
        account.party.to_string(),
        cell(&account.name),
        "Party".to_owned(),
        account.currency.code().to_owned(),
        second_text(month.to),
        second_text(month.from),
        if tax { "Tax" } else { "Usage" }.to_owned(),
        String::new(),
        cell(&what),
        "Usage-Based".to_owned(),
        second_text(day.day.to),
        second_text(day.day.from),
        usage(seconds(consumed)),
        usage(service.consumed_unit.to_owned()),
        amount.clone(),
        price(),
        amount.clone(),
        day.invoice.clone().unwrap_or_default(),
        cell(&account.operator),
        amount,
        price(),
        usage("Standard".to_owned()),
        usage(quantity(day.billable_ms, service.units, day.rate.per)),
        usage(service.pricing_unit.to_owned()),
        cell(&account.operator),
        cell(&account.operator),
        lease,
        cell(day.label.as_deref().unwrap_or("")),
        "Lease".to_owned(),
        service.category.to_owned(),
        service.name.to_owned(),
        service.subcategory.to_owned(),
        usage(cell(&service.sku)),
        usage(day.resource.as_str().to_owned()),
        usage(cell(&format!("{}@{}", service.sku, day.rate.price))),
        tags(day),
        gross.to_string(),
        fee.to_string(),
        day.simulated.to_string(),
        if tax { day.due.tax } else { Micros::ZERO }.to_string(),
    ])
}

/// The file.
pub fn render(account: &Account, days: &[UsageDay]) -> Result<Vec<u8>, FocusFault> {
    let mut sheet = Sheet::new(&COLUMNS)?;
    for day in days {
        sheet.row(row(account, day, false)?)?;
        if account.side == Side::Cost && day.due.tax != Micros::ZERO {
            sheet.row(row(account, day, true)?)?;
        }
    }
    Ok(sheet.finish()?)
}

#[cfg(test)]
mod tests;
