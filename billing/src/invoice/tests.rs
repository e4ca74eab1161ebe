//! Sums, rounding and tables of invoices.

use domain::id::{InvoiceId, LeaseId, MeterId, PartyId};
use domain::money::{Currency, Period as Per};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::month::Month;
use crate::rating::due;

/// An invoice of November with `count` lines.
pub(crate) fn invoice(kind: InvoiceKind, count: u32) -> Invoice {
    let period = "2026-11".parse::<Month>().unwrap().period();
    let shares = Shares {
        fee_bps: 500,
        tax_bps: 1_900,
    };
    let line = |n: u32| {
        let compute = n.is_multiple_of(2);
        let rate = Rate {
            price: Micros::new(if compute { 4_200_000 } else { 10_000_000 }),
            per: if compute { Per::Hour } else { Per::Month },
        };
        let millis = 3_725_007 + i64::from(n) * 86_399_999;
        Line {
            lease: LeaseId::from_uuid(Uuid::from_u128(u128::from(n / 2) + (7 << 100))),
            meter: MeterId::from_uuid(Uuid::from_u128(u128::from(n))),
            resource: if compute {
                Resource::Compute
            } else {
                Resource::Storage
            },
            seq: (1, 144),
            from: period.from,
            to: period.to,
            billable_ms: millis,
            due: due(rate, shares, millis).unwrap(),
            rate,
            shares,
            gpu_model: "h100-sxm-80gb".to_owned(),
            gpu_count: 2,
            disk_gib: 100,
            simulated: n % 4 < 2,
            label: (n % 4 < 2).then(|| "=training run, \"Ω\"".to_owned()),
        }
    };
    let lines: Vec<Line> = (0..count).map(line).collect();
    Invoice {
        id: InvoiceId::from_uuid(Uuid::from_u128(9)),
        kind,
        number: Number {
            series: kind.series().to_owned(),
            year: 2026,
            no: 42,
        },
        party: PartyId::from_uuid(Uuid::from_u128(5 << 100)),
        period,
        currency: Currency::Usd,
        issued_at: period.to,
        seller: Identity {
            name: "GPU Market Operator GmbH".to_owned(),
            address: vec!["Musterstraße 1".to_owned(), "10115 Berlin".to_owned()],
            country: Some("DE".to_owned()),
            vat_id: Some("DE123456789".to_owned()),
        },
        buyer: Identity {
            name: "Łódź Robotics Sp. z o.o. / Ελληνικά / Кириллица / 漢字".to_owned(),
            address: vec!["ul. Piotrkowska 100".to_owned(), "90-001 Łódź".to_owned()],
            country: Some("PL".to_owned()),
            vat_id: Some("PL9876543210".to_owned()),
        },
        tax_note: Some(
            "Reverse charge: the recipient accounts for VAT (Art. 196 of Directive 2006/112/EC)."
                .to_owned(),
        ),
        sandbox: true,
        credited: None,
        totals: total(kind, &lines).unwrap(),
        lines,
    }
}

proptest! {
    #[test]
    fn sums_are_those_of_the_lines(count in 0u32..60) {
        for kind in [InvoiceKind::Sale, InvoiceKind::SelfBilling] {
            let made = invoice(kind, count);
            let sum = |of: fn(&Line) -> Micros| made.lines.iter().map(|l| of(l).get()).sum::<i64>();
            let (gross, fee, tax) = (sum(|l| l.due.gross), sum(|l| l.due.fee), sum(|l| l.due.tax));
            prop_assert_eq!(made.totals.gross.get(), gross);
            prop_assert_eq!(made.totals.tax.get(), tax);
            let expected = if kind == InvoiceKind::Sale { gross + tax } else { gross - fee };
            prop_assert_eq!(made.totals.total.get(), expected);
            let parts = tax_parts(&made.lines).unwrap();
            prop_assert_eq!(parts.iter().map(|p| p.net.get()).sum::<i64>(), gross);
            prop_assert_eq!(parts.iter().map(|p| p.tax.get()).sum::<i64>(), tax);
        }
    }

    #[test]
    fn rounding_is_at_most_half_a_cent_and_said(micros in -9_000_000_000i64..9_000_000_000) {
        let (rounded, added) = to_cents(Micros::new(micros)).unwrap();
        prop_assert_eq!(rounded.get() % 10_000, 0);
        prop_assert_eq!(rounded.get(), micros + added.get());
        prop_assert!(added.get().abs() <= 5_000);
    }
}

#[test]
fn halves_go_to_even() {
    let cents = |micros| to_cents(Micros::new(micros)).unwrap().0.get();
    assert_eq!(cents(5_000), 0);
    assert_eq!(cents(15_000), 20_000);
    assert_eq!(cents(25_000), 20_000);
    assert_eq!(cents(25_001), 30_000);
    assert_eq!(cents(-15_000), -20_000);
}

#[test]
fn numbers_read_well() {
    let number = invoice(InvoiceKind::Sale, 0).number;
    assert_eq!(number.to_string(), "INV-2026-000042");
    for kind in InvoiceKind::ALL {
        assert_eq!(InvoiceKind::parse(kind.as_str()), Some(kind));
    }
}

#[test]
fn the_table_has_the_exact_amounts_and_no_formula() {
    let made = invoice(InvoiceKind::Sale, 5);
    let text = String::from_utf8(csv::render(&made).unwrap()).unwrap();
    assert!(text.contains("\"'=training run, \"\"Ω\"\"\""), "{text}");
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let place = reader
        .headers()
        .unwrap()
        .iter()
        .position(|h| h == "total")
        .unwrap();
    let sum: i64 = reader
        .records()
        .map(|r| r.unwrap()[place].parse::<Micros>().unwrap().get())
        .sum();
    assert_eq!(sum, made.totals.total.get());
}
