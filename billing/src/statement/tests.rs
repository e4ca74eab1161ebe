//! A statement holds exactly as it was signed.

use domain::money::{Micros, Period, Rate};

use super::*;
use crate::rating::{Shares, due};

mod earnings;
mod segments;

fn verify(
    bytes: &[u8],
    trusted: Option<[u8; 32]>,
) -> Result<Verified<StatementBody>, StatementFault> {
    super::verify(bytes, trusted)
}

fn body() -> StatementBody {
    let line = |seq: i64, from_s: i64, to_s: i64| {
        let due_at = |s: i64| {
            let rate = Rate {
                price: Micros::new(2_100_000),
                per: Period::Hour,
            };
            due(
                rate,
                Shares {
                    fee_bps: 500,
                    tax_bps: 1_900,
                },
                s * 1_000,
            )
            .unwrap()
        };
        let part = due_at(to_s).minus(due_at(from_s)).unwrap();
        ChargeLine {
            seq,
            segment: Some(1),
            from_us: from_s * 1_000_000,
            to_us: to_s * 1_000_000,
            billable_ms: (to_s - from_s) * 1_000,
            gross_micros: part.gross.get(),
            fee_micros: part.fee.get(),
            tax_micros: part.tax.get(),
            booked_at_us: Some(to_s * 1_000_000 + 5),
            hash: String::new(),
        }
    };
    StatementBody {
        format: FORMAT.to_owned(),
        lease: "lse_x".to_owned(),
        renter: "pty_r".to_owned(),
        provider: "pty_p".to_owned(),
        machine: "mch_m".to_owned(),
        gpu_model: "h100-sxm-80gb".to_owned(),
        gpu_count: 1,
        disk_gib: 10,
        simulated: true,
        currency: "USD".to_owned(),
        state: "ended".to_owned(),
        issued_at_us: 1,
        meters: vec![MeterLines {
            meter: "mtr_a".to_owned(),
            resource: "compute".to_owned(),
            price_micros: None,
            segments: vec![SegmentLine {
                no: 1,
                from_us: 0,
                price_micros: 2_100_000,
            }],
            period_ms: 3_600_000,
            fee_bps: 500,
            tax_bps: 1_900,
            charges: vec![line(1, 0, 61), line(2, 61, 75), line(3, 75, 700)],
            billable_ms: 700_000,
        }],
        total: Totals::default(),
    }
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

#[test]
fn a_signed_statement_verifies_and_adds_up() {
    let bytes = sign(body(), &key()).unwrap();
    let found = verify(&bytes, Some(key().verifying_key().to_bytes())).unwrap();
    assert_eq!((found.charges, found.key_is_trusted), (3, true));
    let total = found.statement.body.total;
    assert_eq!(
        total.renter_pays_micros,
        total.provider_gets_micros + total.fee_micros + total.tax_micros
    );
    assert!(!verify(&bytes, None).unwrap().key_is_trusted);
}

#[test]
fn totals_are_the_sums_of_both_meters() {
    let mut both = body();
    let mut disk = both.meters[0].clone();
    disk.meter = "mtr_b".to_owned();
    disk.resource = "storage".to_owned();
    both.meters.push(disk);
    let bytes = sign(both, &key()).unwrap();
    let found = verify(&bytes, None).unwrap();
    // Each: 700 s at 2.10 an hour = 408,333; fee 5 % = 20,416; tax 19 % = 77,583; all rounded down.
    let expected = Totals {
        renter_pays_micros: 2 * (408_333 + 77_583),
        provider_gets_micros: 2 * (408_333 - 20_416),
        fee_micros: 2 * 20_416,
        tax_micros: 2 * 77_583,
    };
    assert_eq!(found.statement.body.total, expected);
    assert_eq!(found.charges, 6);
}

#[test]
fn any_changed_byte_fails() {
    let bytes = sign(body(), &key()).unwrap();
    for place in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= flip;
            assert!(
                verify(&changed, None).is_err(),
                "byte {place} ^ {flip:#x} went unseen"
            );
        }
    }
    assert!(verify(&bytes[..bytes.len() - 1], None).is_err());
    assert!(verify(&[&bytes[..], b"\n"].concat(), None).is_err());
}

/// Signs whatever is given: what a dishonest market could send.
fn forged(body: StatementBody) -> Vec<u8> {
    let body_hash = blake3::hash(&render(&body).unwrap()).to_hex().to_string();
    let signature = hex::encode(
        key()
            .sign(&signed_bytes(&body.format, &body_hash))
            .to_bytes(),
    );
    let mut bytes = render(&Statement {
        body,
        body_hash,
        signed_by: hex::encode(key().verifying_key().to_bytes()),
        signature,
    })
    .unwrap();
    bytes.push(b'\n');
    bytes
}

#[test]
fn a_valid_signature_does_not_excuse_wrong_contents() {
    let honest = verify(&sign(body(), &key()).unwrap(), None).unwrap();
    let spoilt = |change: fn(&mut StatementBody)| {
        let mut body = honest.statement.body.clone();
        change(&mut body);
        verify(&forged(body), None)
    };
    assert_eq!(spoilt(|_| ()), Ok(honest.clone()));
    let chain = spoilt(|b| b.meters[0].charges[1].hash = "00".repeat(32));
    assert!(matches!(chain, Err(StatementFault::Chain { seq: 2, .. })));
    let other_meter = spoilt(|b| b.meters[0].meter = "mtr_b".to_owned());
    assert!(matches!(
        other_meter,
        Err(StatementFault::Chain { seq: 1, .. })
    ));
    for wrong in [
        |b: &mut StatementBody| b.total.renter_pays_micros += 1,
        |b: &mut StatementBody| b.total.provider_gets_micros -= 1,
        |b: &mut StatementBody| b.total.fee_micros += 1,
        |b: &mut StatementBody| b.total.tax_micros += 1,
    ] {
        assert_eq!(spoilt(wrong), Err(StatementFault::Total));
    }
    for wrong in [
        |b: &mut StatementBody| b.format = "gpumarket-lease-statement/3".to_owned(),
        |b: &mut StatementBody| b.currency = "EUR".to_owned(),
        |b: &mut StatementBody| b.meters[0].resource = "traffic".to_owned(),
        |b: &mut StatementBody| b.meters[0].period_ms = 1,
        |b: &mut StatementBody| b.meters[0].segments[0].price_micros = -1,
        |b: &mut StatementBody| b.meters[0].fee_bps = 10_001,
        |b: &mut StatementBody| b.meters[0].tax_bps = 10_001,
        |b: &mut StatementBody| b.meters.push(b.meters[0].clone()),
    ] {
        assert!(matches!(spoilt(wrong), Err(StatementFault::Form(_))));
    }
}

#[test]
fn rates_may_reach_the_ends_of_their_range() {
    let mut free = body();
    free.meters[0].segments[0].price_micros = 0;
    (free.meters[0].fee_bps, free.meters[0].tax_bps) = (10_000, 10_000);
    for line in &mut free.meters[0].charges {
        (line.gross_micros, line.fee_micros, line.tax_micros) = (0, 0, 0);
    }
    assert!(verify(&sign(free, &key()).unwrap(), None).is_ok());
}

#[test]
fn a_range_proves_no_more_than_its_length() {
    let with = |from_us: i64, ms: i64| {
        let mut body = body();
        let meter = &mut body.meters[0];
        let first = meter.charges[0].clone();
        let owed = Micros::new(meter.segments[0].price_micros);
        let rate = Rate {
            price: owed,
            per: Period::Hour,
        };
        let shares = Shares {
            fee_bps: meter.fee_bps,
            tax_bps: meter.tax_bps,
        };
        let part = due(rate, shares, ms).unwrap();
        meter.charges = vec![ChargeLine {
            from_us,
            billable_ms: ms,
            gross_micros: part.gross.get(),
            fee_micros: part.fee.get(),
            tax_micros: part.tax.get(),
            ..first
        }];
        meter.billable_ms = ms;
        sign(body, &key())
    };
    assert!(with(0, 61_000).is_ok());
    assert!(with(0, 0).is_ok());
    assert!(with(0, 61_001).is_err());
    assert!(with(1, 61_000).is_err());
    assert!(with(0, -1).is_err());
    assert!(with(61_000_000, 0).is_err());
}

#[test]
fn another_spelling_or_another_field_is_another_document() {
    let bytes = sign(body(), &key()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let signature = verify(text.as_bytes(), None).unwrap().statement.signature;
    for changed in [
        text.replace(&signature, &signature.to_uppercase()),
        text.replacen('{', "{\n  \"more\": 1,", 1),
        text.replacen("\"simulated\": true", "\"simulated\":true", 1),
        text.replacen("lse_x", "lse_\\u0078", 1),
        text.replacen(
            "\"gpu_count\": 1,",
            "\"gpu_count\": 1,\n    \"gpu_count\": 1,",
            1,
        ),
    ] {
        assert_ne!(changed, text);
        assert!(verify(changed.as_bytes(), None).is_err());
    }
}

#[test]
fn another_signer_is_not_trusted() {
    let bytes = sign(body(), &SigningKey::from_bytes(&[8; 32])).unwrap();
    let trusted = key().verifying_key().to_bytes();
    assert_eq!(verify(&bytes, Some(trusted)), Err(StatementFault::OtherKey));
}

#[test]
fn a_wrong_amount_range_or_total_cannot_be_signed() {
    let spoilt = |change: fn(&mut StatementBody)| {
        let mut body = body();
        change(&mut body);
        sign(body, &key())
    };
    let amount = spoilt(|b| b.meters[0].charges[1].gross_micros += 1);
    assert!(matches!(amount, Err(StatementFault::Amount { seq: 2, .. })));
    let net = spoilt(|b| b.meters[0].charges[0].fee_micros -= 1);
    assert!(matches!(net, Err(StatementFault::Amount { seq: 1, .. })));
    let tax = spoilt(|b| b.meters[0].charges[2].tax_micros += 1);
    assert!(matches!(tax, Err(StatementFault::Amount { seq: 3, .. })));
    let overlap = spoilt(|b| b.meters[0].charges[1].from_us -= 1);
    assert!(matches!(overlap, Err(StatementFault::Range { seq: 2, .. })));
    let more_than_time = spoilt(|b| b.meters[0].charges[0].to_us = 10_000_000);
    assert!(matches!(
        more_than_time,
        Err(StatementFault::Range { seq: 1, .. })
    ));
    let missing = spoilt(|b| {
        b.meters[0].charges.remove(1);
    });
    assert!(matches!(missing, Err(StatementFault::Range { seq: 3, .. })));
    assert_eq!(
        spoilt(|b| b.meters[0].billable_ms += 1),
        Err(StatementFault::Total)
    );
}
