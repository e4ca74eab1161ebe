//! The server's clock is set back or ahead, between reports and between restarts.

use super::*;

const HOUR: i64 = 3_600_000;

/// Reports every 10 s of the machine's clock; the server's clock is off by what `off` says.
fn reported(offs: &[i64]) -> Meter {
    let proofs: Vec<Proof> = (0..)
        .zip(offs)
        .map(|(n, off)| proof("r", n * 10_000, 10 * HOUR + n * 10_000 + off))
        .collect();
    proofs.iter().fold(meter(), |m, p| {
        let m = m.prove(p.clone(), None).unwrap_or(m);
        assert!(m.billable_ms <= m.through.since(m.opened_at).millis());
        m
    })
}

#[test]
fn a_step_of_the_server_s_clock_charges_and_loses_no_millisecond() {
    for offs in [
        [0, 0, 0, 0, 0, 0],
        [0, 0, HOUR, HOUR, HOUR, HOUR],
        [0, 0, -HOUR, -HOUR, -HOUR, -HOUR],
        [0, 0, -HOUR, -HOUR, 0, 0],
        [0, HOUR, HOUR, 0, 0, 0],
        [0, HOUR, 0, HOUR, 0, -HOUR],
        [0, -HOUR, HOUR, -2 * HOUR, 0, HOUR],
    ] {
        assert_eq!(reported(&offs).billable_ms, 50_000, "{offs:?}");
    }
}

#[test]
fn a_clock_that_was_set_back_and_put_right_leaves_no_trace() {
    let m = reported(&[0, -HOUR, -HOUR, 0, 0]);
    assert_eq!((m.skew_ms, m.through), (0, at(10 * HOUR + 40_000)));
    let m = reported(&[0, -HOUR, -HOUR]);
    assert_eq!((m.skew_ms, m.through), (HOUR, at(10 * HOUR + 20_000)));
}

#[test]
fn neither_clock_inflates_the_other() {
    let machine_jumps = fed(&[proof("r", 0, 0), proof("r", HOUR, 10_000)]);
    assert_eq!(machine_jumps.billable_ms, 10_000);
    let late = fed(&[proof("r", 0, 0), proof("r", 10_000, 12_000)]);
    assert_eq!(late.billable_ms, 10_000 + 5 + 1_000);
    let suspended = fed(&[proof("r", 0, 0), proof("r", 10_000, 100_000)]);
    assert_eq!(suspended.billable_ms, 10_000);
    // Where the server's clock says nothing, a machine's word counts for an hour at most.
    let boasting = fed(&[proof("r", 0, 10_000), proof("r", 99 * HOUR, 9_000)]);
    assert_eq!(boasting.billable_ms, HOUR);
    let endless = fed(&[proof("r", i64::MIN, 0), proof("r", i64::MAX, 10_000)]);
    assert_eq!(endless.billable_ms, 10_000);
}

#[test]
fn a_new_run_after_a_step_back_begins_where_the_old_one_ended() {
    let m = fed(&[proof("r", 0, HOUR), proof("r", 10_000, HOUR + 10_000)]);
    let (_, m) = m.settle().unwrap().unwrap();
    let m = m.prove(proof("q", 0, 20_000), None).unwrap();
    assert_eq!((m.through, m.billable_ms), (at(HOUR + 10_000), 10_000));
    let m = m.prove(proof("q", 7_000, 27_000), None).unwrap();
    let (charge, _) = m.settle().unwrap().unwrap();
    let range = (charge.from, charge.to, charge.billable_ms);
    assert_eq!(range, (at(HOUR + 10_000), at(HOUR + 17_000), 7_000));
}

#[test]
fn a_request_after_a_step_back_cuts_at_its_own_moment() {
    let back = reported(&[0, 0, -HOUR]);
    let now = at(9 * HOUR + 23_000);
    let shown = back.estimate(now, Span::from_secs(30), None).unwrap();
    assert_eq!(shown, due(back.rate, back.shares, 23_000).unwrap());
    let m = back.cut(now);
    let m = m
        .prove(proof("r", 30_000, 9 * HOUR + 30_000), None)
        .unwrap();
    assert_eq!(m.billable_ms, 23_000);
}

proptest! {
    #[test]
    fn any_steps_between_honest_reports_bill_the_machine_s_time(
        steps in prop::collection::vec((1i64..50_000, -2 * HOUR..2 * HOUR, 0u8..6), 1..40),
    ) {
        let (mut real, mut off) = (0, 0);
        let mut m = meter().prove(proof("r", 0, 100 * HOUR), None).unwrap();
        for (step, jump, kind) in steps {
            real += step;
            // A step of less than a minute ahead looks like a delay.
            off = if kind == 0 && jump.abs() > 60_000 + step { jump } else { off };
            let before = m.through;
            let seen = proof("r", real, 100 * HOUR + real + off);
            let alike = m.proof.as_ref().map(|p| seen.at.since(p.at).millis() + m.skew_ms);
            // Two steps may leave a difference that is smaller than any step.
            prop_assume!(alike.is_some_and(|d| d < 0 || d == step || d > 60_000 + step));
            m = m.prove(seen, None).unwrap_or(m);
            prop_assert_eq!(m.billable_ms, real);
            prop_assert!(m.through >= before && m.billable_ms <= m.through.since(at(100 * HOUR)).millis());
        }
    }
}
