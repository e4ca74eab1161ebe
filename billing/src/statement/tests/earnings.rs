//! Earnings of a period, and that they meet the lease's statement.

use super::segments::repriced;
use super::*;

/// The earnings of a period from the same charges as the lease's statement.
fn earned(bill: &StatementBody, from_us: i64, to_us: i64) -> EarningsBody {
    let meter = &bill.meters[0];
    let (mut seq, mut num, mut gross) = (0, 0i128, 0);
    let mut charges = Vec::new();
    for line in &meter.charges {
        let at = line.booked_at_us.unwrap();
        if at < from_us {
            let price = &meter.segments[usize::try_from(line.segment.unwrap() - 1).unwrap()];
            num += i128::from(price.price_micros) * i128::from(line.billable_ms);
            (seq, gross) = (line.seq, gross + line.gross_micros);
        } else if at < to_us {
            charges.push(line.clone());
        }
    }
    let billable_ms = charges.iter().map(|c| c.billable_ms).sum();
    let opening = Opening {
        seq,
        gross_micros: gross,
        remainder: i64::try_from(num % 3_600_000).unwrap(),
    };
    let meter = EarningsMeter {
        meter: meter.meter.clone(),
        resource: meter.resource.clone(),
        segments: meter.segments.clone(),
        period_ms: meter.period_ms,
        fee_bps: meter.fee_bps,
        tax_bps: meter.tax_bps,
        opening,
        charges,
        billable_ms,
    };
    let lease = EarningsLease {
        lease: bill.lease.clone(),
        renter: bill.renter.clone(),
        machine: bill.machine.clone(),
        gpu_model: bill.gpu_model.clone(),
        gpu_count: bill.gpu_count,
        simulated: bill.simulated,
        meters: [meter]
            .into_iter()
            .filter(|m| !m.charges.is_empty())
            .collect(),
        total: Totals::default(),
    };
    EarningsBody {
        format: EARNINGS_FORMAT.to_owned(),
        provider: bill.provider.clone(),
        only_lease: None,
        currency: bill.currency.clone(),
        from_us,
        to_us,
        issued_at_us: 1_000_000_000,
        leases: vec![lease],
        total: Totals::default(),
    }
}

fn of_lease(body: StatementBody) -> Verified<StatementBody> {
    super::verify(&sign(body, &key()).unwrap(), None).unwrap()
}

fn of_period(body: EarningsBody) -> Verified<EarningsBody> {
    crate::statement::verify(&sign(body, &key()).unwrap(), None).unwrap()
}

#[test]
fn periods_add_up_to_the_lease_and_meet_it() {
    let bill = of_lease(repriced());
    let whole = bill.statement.body.total;
    // The cuts fall before, between and after the change of price.
    for cut in [
        61_000_005,
        100_000_000,
        700_000_006,
        750_000_000,
        812_000_000,
    ] {
        let parts = [(0, cut), (cut, 900_000_000)];
        let (mut sum, mut charges) = (Totals::default(), 0);
        for (from, to) in parts {
            let earned = of_period(earned(&bill.statement.body, from, to));
            let met = meet(&bill, &earned).unwrap();
            assert_eq!(met.total, earned.statement.body.total);
            assert_eq!((met.charges, met.newer), (earned.charges, 0));
            charges += met.charges;
            sum.renter_pays_micros += met.total.renter_pays_micros;
            sum.provider_gets_micros += met.total.provider_gets_micros;
            sum.fee_micros += met.total.fee_micros;
            sum.tax_micros += met.total.tax_micros;
        }
        assert_eq!((sum, charges), (whole, 5), "{cut}");
    }
}

#[test]
fn any_changed_byte_of_the_earnings_fails() {
    let body = earned(&repriced(), 100_000_000, 900_000_000);
    let bytes = sign(body, &key()).unwrap();
    assert!(matches!(read(&bytes, None), Ok(Document::Earnings(_))));
    for place in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= flip;
            assert!(read(&changed, None).is_err(), "byte {place} ^ {flip:#x}");
        }
    }
}

#[test]
fn earnings_that_do_not_add_up_cannot_be_signed() {
    type Spoil = fn(&mut EarningsBody);
    let spoils: [Spoil; 18] = [
        |b| b.format = FORMAT.to_owned(),
        |b| b.currency = "EUR".to_owned(),
        |b| b.to_us = b.from_us,
        |b| b.to_us = 800_000_000,
        |b| b.from_us = 712_000_000,
        |b| b.only_lease = Some("lse_y".to_owned()),
        |b| b.leases.push(b.leases[0].clone()),
        |b| {
            let twin = b.leases[0].meters[0].clone();
            b.leases[0].meters.push(twin);
        },
        |b| b.leases[0].meters[0].resource = "traffic".to_owned(),
        |b| b.leases[0].meters[0].charges.clear(),
        |b| b.leases[0].meters[0].billable_ms += 1,
        |b| b.leases[0].meters[0].charges[0].gross_micros += 1,
        |b| b.leases[0].meters[0].charges[0].seq += 1,
        |b| b.leases[0].meters[0].charges[0].segment = None,
        |b| b.leases[0].meters[0].opening.seq += 1,
        |b| b.leases[0].meters[0].opening.gross_micros = -1,
        |b| b.leases[0].meters[0].opening.remainder = 3_600_000,
        |b| b.leases[0].meters[0].fee_bps += 1,
    ];
    for (n, spoil) in spoils.iter().enumerate() {
        let mut body = earned(&repriced(), 100_000_000, 900_000_000);
        spoil(&mut body);
        assert!(sign(body, &key()).is_err(), "{n}");
    }
    let mut early = earned(&repriced(), 0, 900_000_000);
    early.leases[0].meters[0].opening.gross_micros = 7;
    assert!(sign(early, &key()).is_err());
}

type Change = (fn(&mut StatementBody), &'static str);

#[test]
fn a_renter_and_a_provider_that_are_told_different_things_notice() {
    let bill = of_lease(repriced());
    let against = |change: &dyn Fn(&mut StatementBody), from, to| {
        let mut other = repriced();
        change(&mut other);
        // Signed by the same market, and consistent in itself.
        meet(&bill, &of_period(earned(&other, from, to)))
    };
    let all = (0, 900_000_000);
    let less = against(&|b| drop(b.meters[0].charges.pop()), all.0, all.1);
    let missing = |seq, side| {
        Err(MeetFault::Missing {
            resource: "compute".to_owned(),
            seq,
            side,
        })
    };
    assert_eq!(less, missing(5, "earnings statement"));
    let moved = against(
        &|b| {
            b.meters[0].charges[4].to_us += 1;
            b.meters[0].charges[4].booked_at_us = Some(813_000_001);
        },
        all.0,
        all.1,
    );
    assert!(
        matches!(moved, Err(MeetFault::Charge { seq: 5, .. })),
        "{moved:?}"
    );
    let unrelated: [Change; 3] = [
        (|b| b.provider = "pty_q".to_owned(), "the providers differ"),
        (|b| b.gpu_count = 2, "renter, machine or GPUs differ"),
        (
            |b| b.renter = "pty_q".to_owned(),
            "renter, machine or GPUs differ",
        ),
    ];
    for (change, told) in unrelated {
        let refused = against(&change, all.0, all.1);
        assert_eq!(refused, Err(MeetFault::Unrelated(told)));
    }
    let terms = against(&|b| b.meters[0].segments[1].from_us -= 9, 0, 100_000_000);
    let resource = "compute".to_owned();
    assert_eq!(terms, Err(MeetFault::Terms { resource }));
}

#[test]
fn an_older_statement_meets_as_far_as_it_goes() {
    let mut old = repriced();
    old.meters[0].charges.truncate(3);
    old.meters[0].billable_ms = 700_000;
    "running".clone_into(&mut old.state);
    old.issued_at_us = 700_000_010;
    let earned = of_period(earned(&repriced(), 0, 900_000_000));
    let met = meet(&of_lease(old.clone()), &earned).unwrap();
    assert_eq!((met.charges, met.newer), (3, 2));
    // One that claims to be final, or to be younger, must have them all.
    for (state, issued) in [("ended", 700_000_010), ("running", 900_000_000)] {
        let mut claims = old.clone();
        state.clone_into(&mut claims.state);
        claims.issued_at_us = issued;
        let refused = meet(&of_lease(claims), &earned);
        assert!(
            matches!(refused, Err(MeetFault::Missing { seq: 4, .. })),
            "{refused:?}"
        );
    }
}
