//! The laws of metering against an oracle of exact fractions: it walks the milliseconds, one by
//! one, and shares nothing with the code that it judges but the words of the rules.

use billing::meter::{Meter, Proof, Resource};
use billing::rating::{Due, Shares};
use domain::money::Micros;
use proptest::prelude::*;

use crate::naive::{HOUR_MS, hourly, meter, us};

/// A sum of fractions `price / 3,600,000`, kept whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fraction {
    num: i128,
}

impl Fraction {
    /// Adds what one millisecond at `price` is worth.
    fn add(&mut self, price: i64) {
        self.num += i128::from(price);
    }

    /// What is owed of it: (gross, fee, tax), each rounded down once.
    fn owed(self, (fee, tax): (u32, u32)) -> (i128, i128, i128) {
        let gross = self.num / HOUR_MS;
        let part = |bps: u32| gross * i128::from(bps) / 10_000;
        (gross, part(fee), part(tax))
    }
}

fn wide(due: Due) -> (i128, i128, i128) {
    let of = |m: Micros| i128::from(m.get());
    (of(due.gross), of(due.fee), of(due.tax))
}

/// Settles all of it; adds it up.
fn settle(mut m: Meter, sum: &mut Due) -> Meter {
    while let Some((s, after)) = m.settle().unwrap() {
        *sum = sum.plus(s.due).unwrap();
        m = after;
    }
    m
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    mono_ms: i64,
    delay_ms: i64,
    lost: bool,
    again_after_ms: Option<i64>,
}

/// A run's reports: sent by an honest clock, delayed by less than a second, some lost, some twice.
fn reports() -> impl Strategy<Value = Vec<Sent>> {
    let one = (
        1i64..20_000,
        0i64..1_000,
        any::<bool>(),
        prop::option::of(0i64..600_000),
    );
    prop::collection::vec(one, 2..40).prop_map(|steps| {
        let mut mono_ms = 0;
        let each = steps
            .into_iter()
            .map(|(step, delay_ms, lost, again_after_ms)| {
                mono_ms += step;
                Sent {
                    mono_ms,
                    delay_ms,
                    lost,
                    again_after_ms,
                }
            });
        each.collect()
    })
}

/// What arrives: (server's time, machine's time), by the server's time.
fn arrivals(sent: &[Sent]) -> Vec<(i64, i64)> {
    let last = sent.len() - 1;
    let mut all = Vec::new();
    for (n, s) in sent.iter().enumerate() {
        // The first and the last come at once; of the others, whatever happens.
        let edge = n == 0 || n == last;
        if edge || !s.lost {
            all.push((s.mono_ms + if edge { 0 } else { s.delay_ms }, s.mono_ms));
        }
        if let Some(later) = s.again_after_ms {
            let end = sent[last].mono_ms;
            all.push((end.max(s.mono_ms) + later, s.mono_ms));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Any split, order, duplication and delay: one total, to the micro-unit, at the prices of the
    /// milliseconds; and each charge lies within one price.
    #[test]
    fn one_run_has_one_total_whatever_becomes_of_its_reports(
        sent in reports(),
        changes in prop::collection::vec((0i64..400_000, 0i64..900_000_000), 0..6),
        settles in prop::collection::vec(any::<bool>(), 120),
        (fee, tax) in (0u32..=10_000, 0u32..=3_000),
    ) {
        let mut prices: Vec<(i64, i64)> = changes;
        prices.sort_by_key(|(at, _)| *at);
        let first_price = 123_456_789;
        let mut m = meter(Resource::Compute, hourly(first_price), Shares { fee_bps: fee, tax_bps: tax });
        let (mut sum, mut through) = (Due::default(), None::<i64>);
        let mut asked = Vec::new();
        let arrivals = arrivals(&sent);
        for (n, (at, mono_ms)) in arrivals.iter().enumerate() {
            // Prices change at their own moments, between the reports.
            while let Some((when, price)) = prices.first().copied().filter(|(when, _)| when <= at) {
                let (segment, next) = m.reprice(us(when * 1_000), hourly(price)).unwrap();
                asked.push((segment.from.millis(), price));
                m = next;
                prices.remove(0);
            }
            let proof = Proof { boot: "b".into(), run: "r".into(), mono_ms: *mono_ms, at: us(at * 1_000) };
            if let Some(next) = m.prove(proof, None) {
                m = next;
                through = Some(through.unwrap_or(*at).max(m.through.millis()));
            }
            if settles[n % settles.len()] || m.crosses() {
                m = settle(m, &mut sum);
            }
        }
        m = settle(m, &mut sum);
        let (from, to) = (sent[0].mono_ms, sent[sent.len() - 1].mono_ms);
        prop_assert_eq!(m.billable_ms, to - from);
        let mut exact = Fraction::default();
        for ms in from..to {
            let price = asked.iter().rfind(|(at, _)| *at <= ms).map_or(first_price, |(_, p)| *p);
            exact.add(price);
        }
        prop_assert_eq!(wide(sum), exact.owed((fee, tax)));
        // Less than one micro-unit is outstanding.
        prop_assert_eq!(exact.num - i128::from(sum.gross.get()) * HOUR_MS, i128::from(m.rem_num));
        prop_assert!(i128::from(m.rem_num) < HOUR_MS);
    }

    /// A hold pays to the last millisecond that it can, through any prices.
    #[test]
    fn a_budget_ends_in_the_millisecond_that_a_walk_finds(
        steps in prop::collection::vec((1i64..300, 0i64..20_000_000_000), 0..5),
        budget in 0i64..2_000_000,
        settled in any::<bool>(),
        tax in 0u32..=3_000,
    ) {
        let shares = Shares { fee_bps: 0, tax_bps: tax };
        let mut m = meter(Resource::Compute, hourly(7_777_777_777), shares);
        let proof = |ms: i64| Proof { boot: "b".into(), run: "r".into(), mono_ms: ms, at: us(ms * 1_000) };
        m = m.prove(proof(0), None).unwrap();
        m = m.prove(proof(1), None).unwrap();
        if settled {
            m = settle(m, &mut Due::default());
        }
        let (mut at, mut prices) = (1, vec![(0i64, 7_777_777_777i64)]);
        for (step, price) in steps {
            at += step;
            (_, m) = m.reprice(us(at * 1_000), hourly(price)).unwrap();
            prices.push((at, price));
        }
        let found = m.affordable_ms(Micros::new(budget)).unwrap();
        let mut exact = Fraction::default();
        let mut walked = None;
        for ms in 0..6_000 {
            let (_, price) = *prices.iter().rfind(|(from, _)| *from <= ms).unwrap();
            exact.add(price);
            let (gross, _, tax) = exact.owed((0, tax));
            if gross + tax > i128::from(budget) {
                // What is proven already stays.
                walked = Some(ms.max(1));
                break;
            }
        }
        match (found, walked) {
            (Some(found), Some(walked)) => prop_assert_eq!(found, walked),
            (Some(found), None) => prop_assert!(found >= 6_000),
            (None, walked) => prop_assert_eq!(walked, None),
        }
    }
}
