//! Prices in a statement, and the form that had only one.

use super::*;
use crate::segment::Exact;

/// Four charges, of which the last two are dearer; the thirds of a micro-unit are carried.
pub(super) fn repriced() -> StatementBody {
    let mut all = super::body();
    let meter = &mut all.meters[0];
    meter.segments.push(SegmentLine {
        no: 2,
        from_us: 700_000_000,
        price_micros: 4_000_001,
    });
    let mut worth = Exact::default();
    let mut before = worth.whole;
    let rate = |price| Rate {
        price: Micros::new(price),
        per: Period::Hour,
    };
    let shares = |gross: Micros| {
        let of = |bps| gross.get() * bps / 10_000;
        (of(500), of(1_900))
    };
    worth = worth.plus(rate(2_100_000), 700_000).unwrap();
    before = Micros::new(before.get() + worth.whole.get());
    for (seq, from_s, to_s) in [(4, 700, 711), (5, 800, 813)] {
        worth = worth
            .plus(rate(4_000_001), (to_s - from_s) * 1_000)
            .unwrap();
        let (was, is) = (shares(before), shares(worth.whole));
        meter.charges.push(ChargeLine {
            seq,
            segment: Some(2),
            from_us: from_s * 1_000_000,
            to_us: to_s * 1_000_000,
            billable_ms: (to_s - from_s) * 1_000,
            gross_micros: worth.whole.get() - before.get(),
            fee_micros: is.0 - was.0,
            tax_micros: is.1 - was.1,
            booked_at_us: Some(to_s * 1_000_000),
            hash: String::new(),
        });
        before = worth.whole;
        meter.billable_ms += (to_s - from_s) * 1_000;
    }
    all
}

/// The same as a document of format 1.
fn first_form() -> StatementBody {
    let mut old = super::body();
    old.format = FORMAT_1.to_owned();
    let meter = &mut old.meters[0];
    meter.segments.clear();
    meter.price_micros = Some(2_100_000);
    for line in &mut meter.charges {
        line.segment = None;
        line.booked_at_us = None;
    }
    old
}

#[test]
fn a_price_that_changes_is_recomputed_with_its_remainder() {
    let bytes = sign(repriced(), &key()).unwrap();
    let found = verify(&bytes, None).unwrap();
    assert_eq!(found.charges, 5);
    // 2.1 × 700 s = 408,333.3…; 4.000001 × 24 s = 26,666.67…: together 435,000.0…
    let total = found.statement.body.total;
    let gross = total.provider_gets_micros + total.fee_micros;
    assert_eq!(gross, 435_000);
}

#[test]
fn a_document_of_the_first_form_still_verifies() {
    let bytes = sign(first_form(), &key()).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains("\"price_micros\": 2100000,\n") && !text.contains("segment"));
    assert_eq!(verify(&bytes, None).unwrap().charges, 3);
    // A document as it was signed then, byte for byte.
    let kept = include_bytes!("lease-statement-1.json");
    let found = verify(kept, None).unwrap();
    assert_eq!(found.charges, 2);
    for place in (0..kept.len()).step_by(7) {
        let mut changed = kept.to_vec();
        changed[place] ^= 1;
        assert!(verify(&changed, None).is_err(), "byte {place}");
    }
}

#[test]
fn the_forms_do_not_mix() {
    for spoil in [
        |b: &mut StatementBody| b.format = FORMAT_1.to_owned(),
        |b: &mut StatementBody| b.meters[0].price_micros = Some(2_100_000),
        |b: &mut StatementBody| b.meters[0].segments.clear(),
        |b: &mut StatementBody| b.meters[0].charges[1].segment = None,
        |b: &mut StatementBody| b.meters[0].charges[1].booked_at_us = None,
    ] {
        let mut body = repriced();
        spoil(&mut body);
        let refused = sign(body, &key());
        assert!(
            matches!(refused, Err(StatementFault::Form(_))),
            "{:?}",
            refused.err()
        );
    }
}

#[test]
fn a_charge_keeps_to_its_price() {
    type Spoil = fn(&mut MeterLines);
    let out_of_its_segment: [Spoil; 7] = [
        |m| m.charges[3].segment = Some(1),
        |m| m.charges[3].segment = Some(3),
        |m| m.charges[2].segment = Some(2),
        |m| m.charges[2].to_us += 1,
        |m| m.segments[1].from_us += 1,
        |m| m.charges[4].booked_at_us = Some(812_999_999),
        |m| m.charges[3].booked_at_us = Some(999_000_000),
    ];
    for spoil in out_of_its_segment {
        let mut body = repriced();
        spoil(&mut body.meters[0]);
        let refused = sign(body, &key());
        assert!(
            matches!(refused, Err(StatementFault::Range { .. })),
            "{:?}",
            refused.err()
        );
    }
    let other_forms: [Spoil; 3] = [
        |m| m.segments[1].no = 3,
        |m| m.segments[0].from_us = 701_000_000,
        |m| m.segments[1].price_micros = -4,
    ];
    for spoil in other_forms {
        let mut body = repriced();
        spoil(&mut body.meters[0]);
        assert!(matches!(sign(body, &key()), Err(StatementFault::Form(_))));
    }
    let mut dearer = repriced();
    dearer.meters[0].segments[1].price_micros += 1_000_000;
    let refused = sign(dearer, &key());
    assert!(
        matches!(refused, Err(StatementFault::Amount { .. })),
        "{:?}",
        refused.err()
    );
}
