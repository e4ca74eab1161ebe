//! The pages of an invoice. To look at them: `GPUMARKET_PAGES=DIR` writes them there.

use super::*;
use crate::invoice::tests::invoice;
use crate::invoice::{Credited, credit};

fn kept(name: &str, bytes: &[u8]) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a person who looks at the pages says where"
    )]
    if let Ok(folder) = std::env::var("GPUMARKET_PAGES") {
        std::fs::write(format!("{folder}/{name}.pdf"), bytes).unwrap();
    }
}

fn pages(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    text.matches("/Type /Page\n").count()
}

#[test]
fn the_same_invoice_is_the_same_bytes() {
    let made = invoice(InvoiceKind::Sale, 3);
    let bytes = render(&made).unwrap();
    assert_eq!(bytes, render(&made).unwrap());
    assert!(bytes.starts_with(b"%PDF-1.7"));
    assert_eq!(pages(&bytes), 1);
    // Only what is used of the typefaces is in it.
    assert!(bytes.len() < 80_000, "{}", bytes.len());
    kept("sale", &bytes);
}

#[test]
fn a_long_invoice_has_as_many_pages_as_it_needs() {
    let bytes = render(&invoice(InvoiceKind::Sale, 120)).unwrap();
    assert_eq!(pages(&bytes), 7);
    kept("long", &bytes);
}

#[test]
fn other_kinds_are_drawn_too() {
    let earned = invoice(InvoiceKind::SelfBilling, 4);
    kept("self_billing", &render(&earned).unwrap());
    let mut note = invoice(InvoiceKind::CreditNote, 0);
    note.credited = Some(Credited {
        invoice: note.id,
        number: "INV-2026-000042".to_owned(),
        reason: "The machine was down on 3 November, as agreed with the renter".to_owned(),
        transfer: Some(domain::id::TransferId::from_uuid(uuid::Uuid::from_u128(8))),
    });
    note.totals = credit(Micros::new(10_000_000), Micros::new(1_900_000)).unwrap();
    let bytes = render(&note).unwrap();
    assert_eq!(pages(&bytes), 1);
    kept("credit_note", &bytes);
}

#[test]
fn words_that_do_not_fit_are_cut() {
    let mut made = invoice(InvoiceKind::Sale, 1);
    made.buyer.name = "wide ".repeat(400);
    made.buyer.address = vec!["\u{0}\n\t".to_owned(), "🦀".repeat(300)];
    made.tax_note = Some("word ".repeat(3_000));
    assert!(pages(&render(&made).unwrap()) >= 2);
}

#[test]
fn times_are_exact() {
    assert_eq!(duration(0), "0:00:00.000");
    assert_eq!(duration(2_628_000_001), "730:00:00.001");
    assert_eq!(percent(1_900), "19.00 %");
}
