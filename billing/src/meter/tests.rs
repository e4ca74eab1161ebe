//! Laws of metering: order, duplicates and cadence do not matter; neither clock can inflate.

use domain::money::{Micros, Period};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::rating::due;

fn meter() -> Meter {
    Meter::open(
        NewMeter {
            id: MeterId::from_uuid(Uuid::from_u128(1)),
            lease: LeaseId::from_uuid(Uuid::from_u128(2)),
            resource: Resource::Compute,
            rate: Rate {
                price: Micros::new(2_100_000),
                per: Period::Hour,
            },
            shares: Shares {
                fee_bps: 500,
                tax_bps: 0,
            },
        },
        at(0),
    )
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn proof(run: &str, mono_ms: i64, server_ms: i64) -> Proof {
    Proof {
        boot: "b".into(),
        run: run.into(),
        mono_ms,
        at: at(server_ms),
    }
}

fn fed(proofs: &[Proof]) -> Meter {
    proofs
        .iter()
        .fold(meter(), |m, p| m.prove(p.clone(), None).unwrap_or(m))
}

#[test]
fn the_first_proof_bills_nothing_and_the_next_bills_the_time_between() {
    let m = fed(&[proof("r", 100, 5_000), proof("r", 10_100, 15_000)]);
    assert_eq!((m.billable_ms, m.through), (10_000, at(15_000)));
    let (charge, after) = m.settle().unwrap().unwrap();
    assert_eq!(
        (charge.from, charge.to, charge.billable_ms),
        (at(5_000), at(15_000), 10_000)
    );
    assert_eq!(after.settle().unwrap(), None);
    assert_eq!(m.unsettled(), Ok(charge.due));
    assert_eq!(after.unsettled(), Ok(Due::default()));
    let more = after.prove(proof("r", 11_100, 16_000), None).unwrap();
    let due_now = more.accrued().unwrap().minus(charge.due);
    assert_eq!(more.unsettled(), due_now);
}

#[test]
fn a_lost_report_costs_no_millisecond() {
    let us = |run: &str, mono_ms, micros| Proof {
        at: Timestamp::from_micros(micros),
        ..proof(run, mono_ms, 0)
    };
    let (first, last) = (us("r", 1, 1_900), us("r", 30, 30_800));
    let all = fed(&[first.clone(), us("r", 12, 12_700), last.clone()]);
    let lost = fed(&[first.clone(), last]);
    assert_eq!((all.billable_ms, lost.billable_ms), (29, 29));
    let (range, _) = all.settle().unwrap().unwrap();
    assert_eq!((range.from, range.to), (at(1), at(30)));
    let cut = fed(&[first]).cut(Timestamp::from_micros(20_999));
    assert_eq!(cut.until, Some(at(20)));
}

#[test]
fn a_resumed_meter_bills_neither_the_pause_nor_the_time_before() {
    let m = fed(&[proof("r", 0, 0)]).cut(at(7_000));
    let m = m.prove(proof("r", 10_000, 10_000), None).unwrap();
    let (_, m) = m.settle().unwrap().unwrap();
    let m = m.finished();
    assert_eq!(m.prove(proof("q", 50_000, 50_000), None), None);
    let m = m.reopened();
    let m = m.prove(proof("q", 50_000, 50_000), None).unwrap();
    assert_eq!(m.settle().unwrap(), None);
    let m = m.prove(proof("q", 53_000, 53_000), None).unwrap();
    let (second, _) = m.settle().unwrap().unwrap();
    assert_eq!(
        (second.from, second.to, second.billable_ms, second.seq),
        (at(50_000), at(53_000), 3_000, 2)
    );
}

#[test]
fn another_run_s_proof_before_the_last_proven_time_changes_nothing() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    assert_eq!(m.prove(proof("q", 9_000, 9_999), None), None);
    assert_eq!(m.prove(proof("r", 10_000, 12_000), None), None);
    let rebooted = Proof {
        boot: "c".into(),
        ..proof("r", 20_000, 20_000)
    };
    assert_eq!(m.prove(rebooted, None).unwrap().billable_ms, 10_000);
}

#[test]
fn an_unsettled_range_before_a_gap_keeps_its_start_and_its_time() {
    let m = fed(&[
        proof("r", 0, 0),
        proof("r", 10_000, 10_000),
        proof("q", 60_000, 60_000),
        proof("q", 61_000, 61_000),
    ]);
    let (all, _) = m.settle().unwrap().unwrap();
    assert_eq!(
        (all.from, all.to, all.billable_ms),
        (at(0), at(61_000), 11_000)
    );
}

#[test]
fn a_limit_below_what_is_proven_takes_nothing_back() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let m = m.prove(proof("r", 20_000, 20_000), Some(3_000)).unwrap();
    assert_eq!((m.billable_ms, m.through), (10_000, at(20_000)));
    let shown = m.estimate(at(25_000), Span::from_secs(30), Some(3_000));
    assert_eq!(shown, m.accrued());
}

mod segments;
mod steps;

#[test]
fn names_of_resources_round_trip() {
    for resource in [Resource::Compute, Resource::Storage] {
        assert_eq!(Resource::parse(resource.as_str()), Some(resource));
    }
    assert_eq!(Resource::parse("Compute"), None);
}

#[test]
fn silence_is_proven_by_the_same_run_only() {
    let same = fed(&[proof("r", 0, 0), proof("r", 600_000, 600_000)]);
    assert_eq!(same.billable_ms, 600_000);
    let other = fed(&[
        proof("r", 0, 0),
        proof("r", 10_000, 10_000),
        proof("q", 600_000, 600_000),
    ]);
    assert_eq!(other.billable_ms, 10_000);
    assert_eq!(other.through, at(600_000));
}

#[test]
fn a_gap_stays_outside_the_charged_ranges() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let (first, m) = m.settle().unwrap().unwrap();
    let m = m.prove(proof("q", 60_000, 60_000), None).unwrap();
    let m = m.prove(proof("q", 70_000, 70_000), None).unwrap();
    let (second, _) = m.settle().unwrap().unwrap();
    assert_eq!((first.from, first.to), (at(0), at(10_000)));
    assert_eq!(
        (second.from, second.to, second.billable_ms),
        (at(60_000), at(70_000), 10_000)
    );
}

#[test]
fn nothing_after_the_cut_is_billed_but_everything_before_can_be_proven() {
    let m = fed(&[proof("r", 0, 0)]).cut(at(7_000));
    let m = m.prove(proof("r", 10_000, 10_000), None).unwrap();
    assert_eq!((m.billable_ms, m.through), (7_000, at(7_000)));
    assert_eq!(m.prove(proof("r", 20_000, 20_000), None), None);
    assert_eq!(m.cut(at(99_000)).until, Some(at(7_000)));
}

#[test]
fn the_hold_bounds_the_proven_time() {
    let m = meter().prove(proof("r", 0, 0), Some(4_000)).unwrap();
    let m = m.prove(proof("r", 10_000, 10_000), Some(4_000)).unwrap();
    assert_eq!((m.billable_ms, m.through), (4_000, at(10_000)));
    assert_eq!(
        m.estimate(at(12_000), Span::from_secs(30), Some(4_000))
            .unwrap(),
        m.accrued().unwrap()
    );
}

#[test]
fn the_estimate_runs_on_only_while_the_machine_speaks() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let shown = |ms| {
        m.estimate(at(ms), Span::from_secs(30), None)
            .unwrap()
            .gross
            .get()
    };
    assert!(shown(11_000) > shown(10_000));
    let unseen = meter().estimate(at(5_000), Span::from_secs(30), None);
    assert_eq!(unseen, Ok(Due::default()));
    let of = |ms| due(m.rate, m.shares, ms).unwrap().gross.get();
    assert_eq!(shown(40_000), of(40_000));
    assert_eq!(shown(41_000), of(10_000));
    assert_eq!(shown(9_000), of(10_000));
    let fresh = Span::from_secs(30);
    let cut = m.cut(at(12_000)).estimate(at(20_000), fresh, None);
    assert_eq!(cut.unwrap().gross.get(), of(12_000));
    let over = m.finished().estimate(at(20_000), fresh, None);
    assert_eq!(over.unwrap().gross.get(), of(10_000));
    let capped = m.estimate(at(20_000), fresh, Some(15_000));
    assert_eq!(capped.unwrap().gross.get(), of(15_000));
}

proptest! {
    #[test]
    fn duplicates_and_disorder_change_nothing(
        steps in prop::collection::vec(1i64..60_000, 1..30),
        noise in prop::collection::vec((0usize..30, 0usize..30), 0..40),
    ) {
        let mut clock = 0;
        let clean: Vec<Proof> = steps.iter().map(|s| { clock += s; proof("r", clock, clock) }).collect();
        let mut noisy = Vec::new();
        for (place, p) in clean.iter().enumerate() {
            noisy.push(p.clone());
            // What was sent before comes again, any number of times, with the server's later clock.
            for (_, old) in noise.iter().filter(|(when, old)| *when == place && *old <= place) {
                noisy.push(Proof { at: p.at, ..clean[*old].clone() });
            }
        }
        let (a, b) = (fed(&clean), fed(&noisy));
        prop_assert_eq!(a.billable_ms, b.billable_ms);
        prop_assert_eq!(a.accrued().unwrap(), b.accrued().unwrap());
    }

    #[test]
    fn any_cadence_of_reports_and_settlements_gives_the_same_total(
        steps in prop::collection::vec((1i64..60_000, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let total: i64 = steps.iter().map(|(s, _, _)| s).sum();
        let mut m = meter().prove(proof("r", 0, 0), None).unwrap();
        let (mut clock, mut charged, mut seq) = (0, Due::default(), 0);
        for (step, report, settle) in &steps {
            clock += step;
            if *report {
                m = m.prove(proof("r", clock, clock), None).unwrap_or(m);
            }
            if let (true, Some((charge, after))) = (*settle, m.settle().unwrap()) {
                charged = charged.plus(charge.due).unwrap();
                seq += 1;
                prop_assert_eq!(charge.seq, seq);
                m = after;
            }
        }
        m = m.prove(proof("r", total, total), None).unwrap_or(m);
        if let Some((charge, _)) = m.settle().unwrap() {
            charged = charged.plus(charge.due).unwrap();
        }
        prop_assert_eq!(charged, due(m.rate, m.shares, total).unwrap());
    }

    #[test]
    fn billable_never_exceeds_the_server_s_time(
        reports in prop::collection::vec((0i64..100_000, 0i64..100_000, 0u8..3), 0..40),
    ) {
        let mut m = meter();
        let mut now = 0;
        for (step, mono, run) in reports {
            now += step;
            m = m.prove(proof(&run.to_string(), mono, now), None).unwrap_or(m);
            prop_assert!(m.billable_ms <= now);
            prop_assert!(m.unsettled().unwrap() == m.accrued().unwrap());
            prop_assert!(m.settled_through <= m.through);
        }
    }
}
