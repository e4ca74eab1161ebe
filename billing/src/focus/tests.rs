//! FOCUS files: columns, sums, and what spreadsheets do with them.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::*;
use crate::month::day_of;
use crate::rating::{Shares, due};

/// The mandatory columns of FOCUS 1.2.
const MANDATORY: [&str; 21] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
];

fn day(resource: Resource, millis: i64) -> UsageDay {
    let (price, per) = match resource {
        Resource::Compute => (4_200_000, Per::Hour),
        Resource::Storage => (10_000_000, Per::Month),
    };
    let rate = Rate {
        price: Micros::new(price),
        per,
    };
    let shares = Shares {
        fee_bps: 500,
        tax_bps: 1_900,
    };
    UsageDay {
        lease: LeaseId::from_uuid(Uuid::from_u128(7)),
        resource,
        day: day_of(domain::clock::Timestamp::from_micros(1_796_119_200_123_456)),
        billable_ms: millis,
        due: due(rate, shares, millis).unwrap(),
        rate,
        gpu_model: "h100-sxm-80gb".to_owned(),
        gpu_count: 2,
        disk_gib: 100,
        simulated: true,
        label: Some("=cmd()".to_owned()),
        invoice: None,
    }
}

fn account(side: Side) -> Account {
    Account {
        party: PartyId::from_uuid(Uuid::from_u128(3)),
        name: "@lab".to_owned(),
        operator: "gpumarket".to_owned(),
        currency: Currency::Usd,
        side,
    }
}

fn read(bytes: &[u8]) -> Vec<std::collections::BTreeMap<String, String>> {
    csv::Reader::from_reader(bytes)
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

fn sum(rows: &[std::collections::BTreeMap<String, String>], column: &str) -> i64 {
    let amounts = rows
        .iter()
        .map(|r| r[column].parse::<Micros>().unwrap().get());
    amounts.sum()
}

#[test]
fn every_mandatory_column_is_there_in_order() {
    let ours: BTreeSet<&str> = COLUMNS.into_iter().collect();
    assert_eq!(ours.len(), COLUMNS.len());
    assert!(MANDATORY.iter().all(|c| ours.contains(c)));
    assert!(COLUMNS.is_sorted());
}

#[test]
fn sums_are_what_left_the_wallet_and_what_the_provider_got() {
    let days = [
        day(Resource::Compute, 12_345_678),
        day(Resource::Storage, 86_400_000),
    ];
    let mut all = Due::default();
    for one in &days {
        all = all.plus(one.due).unwrap();
    }
    let cost = read(&render(&account(Side::Cost), &days).unwrap());
    assert_eq!(cost.len(), 4);
    for column in ["BilledCost", "EffectiveCost", "ContractedCost", "ListCost"] {
        assert_eq!(sum(&cost, column), all.renter().unwrap().get(), "{column}");
    }
    assert_eq!(sum(&cost, "x_GrossAmount"), all.gross.get());
    assert_eq!(sum(&cost, "x_TaxAmount"), all.tax.get());
    let earned = read(&render(&account(Side::Earnings), &days).unwrap());
    assert_eq!(sum(&earned, "BilledCost"), all.provider().unwrap().get());
    assert_eq!(sum(&earned, "x_PlatformFee"), all.fee.get());
}

#[test]
fn rows_say_what_when_and_how_much() {
    let rows = read(&render(&account(Side::Cost), &[day(Resource::Compute, 5_400_000)]).unwrap());
    let (usage, tax) = (&rows[0], &rows[1]);
    for (column, value) in [
        ("ChargeCategory", "Usage"),
        ("ConsumedQuantity", "10800.000"),
        ("ConsumedUnit", "GPU-Seconds"),
        ("PricingQuantity", "3.000000000"),
        ("PricingUnit", "GPU-Hours"),
        ("ListUnitPrice", "2.100000"),
        ("BilledCost", "6.300000"),
        ("BillingPeriodStart", "2026-12-01T00:00:00Z"),
        ("BillingPeriodEnd", "2027-01-01T00:00:00Z"),
        ("ResourceName", "'=cmd()"),
        ("BillingAccountName", "'@lab"),
        ("Tags", "{\"label\":\"=cmd()\"}"),
    ] {
        assert_eq!(usage[column], value, "{column}");
    }
    assert_eq!(
        (tax["ChargeCategory"].as_str(), tax["PricingUnit"].as_str()),
        ("Tax", "")
    );
    assert_eq!(tax["BilledCost"], "1.197000");
}
