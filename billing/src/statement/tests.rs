//! A statement holds exactly as it was signed.

use super::*;

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
            from_us: from_s * 1_000_000,
            to_us: to_s * 1_000_000,
            billable_ms: (to_s - from_s) * 1_000,
            gross_micros: part.gross.get(),
            fee_micros: part.fee.get(),
            tax_micros: part.tax.get(),
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
            price_micros: 2_100_000,
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
