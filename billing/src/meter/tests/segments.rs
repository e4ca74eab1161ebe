//! Prices that change while a meter counts.

use super::*;

fn hourly(price: i64) -> Rate {
    Rate {
        price: Micros::new(price),
        per: Period::Hour,
    }
}

/// Everything open, charged.
fn settled(mut m: Meter) -> (Vec<crate::charge::Settlement>, Meter) {
    let mut all = Vec::new();
    while let Some((settlement, after)) = m.settle().unwrap() {
        all.push(settlement);
        m = after;
    }
    (all, m)
}

#[test]
fn a_price_holds_from_its_second_on() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let (segment, m) = m.reprice(at(13_000), hourly(4_200_000)).unwrap();
    assert_eq!((segment.no, segment.from), (2, at(13_000)));
    assert_eq!(
        (m.rate, m.last_rate()),
        (hourly(2_100_000), hourly(4_200_000))
    );
    assert!(!m.crosses());
    let m = m.prove(proof("r", 20_000, 20_000), None).unwrap();
    assert!(m.crosses());
    let (charges, m) = settled(m);
    let told: Vec<_> = charges
        .iter()
        .map(|c| {
            (
                c.seq,
                c.segment,
                c.from,
                c.to,
                c.billable_ms,
                c.due.gross.get(),
            )
        })
        .collect();
    // 2.10 × 13 s = 7583.33…, 4.20 × 7 s = 8166.66…: the thirds add up to one.
    assert_eq!(
        told,
        [
            (1, 1, at(0), at(13_000), 13_000, 7_583),
            (2, 2, at(13_000), at(20_000), 7_000, 8_167),
        ]
    );
    assert_eq!(
        (m.charged.gross.get(), m.rem_num, m.segment),
        (15_750, 0, 2)
    );
    assert_eq!((m.rate, m.crosses()), (hourly(4_200_000), false));
}

#[test]
fn proven_time_keeps_its_price() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let owed = m.accrued().unwrap();
    let (segment, m) = m.reprice(at(4_000), hourly(9_000_000)).unwrap();
    assert_eq!((segment.from, m.accrued().unwrap()), (at(10_000), owed));
    let (charges, m) = settled(m);
    assert_eq!((charges.len(), m.rate), (1, hourly(9_000_000)));
    let (_, m) = settled(m.prove(proof("r", 11_000, 11_000), None).unwrap());
    assert_eq!(m.charged.gross.get(), owed.gross.get() + 2_500);
}

#[test]
fn a_price_that_changes_in_a_gap_bills_nothing_of_the_gap() {
    let (_, m) = settled(fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]));
    let (_, m) = m.reprice(at(20_000), hourly(9_000_000)).unwrap();
    let m = m.prove(proof("q", 0, 60_000), None).unwrap();
    assert_eq!((m.segment, m.settle().unwrap()), (2, None));
    let (charges, _) = settled(m.prove(proof("q", 1_000, 61_000), None).unwrap());
    let one = &charges[0];
    assert_eq!(
        (one.segment, one.from, one.due.gross.get()),
        (2, at(60_000), 2_500)
    );
}

#[test]
fn several_prices_between_two_reports_each_have_their_part() {
    let m = fed(&[proof("r", 0, 0)]);
    let (_, m) = m.reprice(at(2_000), hourly(3_600_000)).unwrap();
    let (third, m) = m.reprice(at(1_000), hourly(7_200_000)).unwrap();
    // A price never begins before the one that was asked for earlier.
    assert_eq!(third.from, at(2_000));
    let (_, m) = m.reprice(at(5_000), hourly(0)).unwrap();
    let m = m.prove(proof("r", 9_000, 9_000), None).unwrap();
    let (charges, _) = settled(m);
    let parts: Vec<_> = charges.iter().map(|c| (c.segment, c.billable_ms)).collect();
    assert_eq!(parts, [(1, 2_000), (3, 3_000), (4, 4_000)]);
    assert_eq!(charges[1].due.gross.get(), 6_000);
}

#[test]
fn the_hold_lasts_at_the_prices_that_come() {
    let m = fed(&[proof("r", 0, 0)]);
    let m = Meter {
        rate: hourly(3_600_000),
        ..m
    };
    let (_, m) = m.reprice(at(10_000), hourly(7_200_000)).unwrap();
    let lasts = |m: &Meter, micros| m.affordable_ms(Micros::new(micros)).unwrap();
    assert_eq!(lasts(&m, 9_999), Some(9_999));
    assert_eq!(lasts(&m, 12_000), Some(11_000));
    let limit = lasts(&m, 12_000);
    let proven = m.prove(proof("r", 60_000, 60_000), limit).unwrap();
    assert_eq!(proven.billable_ms, 11_000);
    assert_eq!(proven.accrued().unwrap().gross.get(), 12_000);
    assert_eq!(lasts(&proven, 12_000), limit);
    assert_eq!(lasts(&proven, 0), limit);
    let (_, proven) = settled(proven);
    assert_eq!(lasts(&proven, 12_002), Some(11_001));
    let (_, free) = proven.reprice(at(60_000), hourly(0)).unwrap();
    assert_eq!(lasts(&free, 0), None);
}

#[test]
fn what_is_shown_runs_on_at_the_prices_that_come() {
    let m = fed(&[proof("r", 0, 0), proof("r", 10_000, 10_000)]);
    let (_, m) = m.reprice(at(15_000), hourly(36_000_000)).unwrap();
    let shown = |ms| m.estimate(at(ms), Span::from_secs(30), None).unwrap();
    let old = due(hourly(2_100_000), m.shares, 15_000)
        .unwrap()
        .gross
        .get();
    assert_eq!(shown(15_000).gross.get(), old);
    assert_eq!(shown(16_000).gross.get(), old + 10_000);
}

#[test]
fn a_price_is_refused_where_no_remainder_could_be_carried() {
    let monthly = Rate {
        price: Micros::new(1),
        per: Period::Month,
    };
    let refused = meter().reprice(at(0), monthly);
    assert_eq!(refused, Err(RepriceRefusal::OtherPeriod));
    let refused = meter().finished().reprice(at(0), hourly(1));
    assert_eq!(refused, Err(RepriceRefusal::Closed));
}

proptest! {
    /// Prices change at any moments, reports come and are settled in any rhythm: each ms has the
    /// price of its moment, and less than a micro-unit is outstanding.
    #[test]
    fn any_rhythm_of_reports_gives_the_sum_over_the_milliseconds(
        steps in prop::collection::vec((1i64..400, 0i64..9_000_000_000, 0u8..8), 1..50),
    ) {
        let mut m = Meter { rate: hourly(1_000_001), ..meter() };
        m = m.prove(proof("r", 0, 0), None).unwrap();
        let (mut clock, mut price, mut exact) = (0i64, 1_000_001i64, 0i128);
        let mut charged = 0;
        let mut open = 0i128;
        for (step, next, what) in steps {
            for _ in 0..step {
                open += i128::from(price);
            }
            clock += step;
            match what {
                0..3 => {
                    m = m.prove(proof("r", clock, clock), None).unwrap();
                    exact += std::mem::take(&mut open);
                    prop_assert_eq!(i128::from(m.accrued().unwrap().gross.get()), exact / 3_600_000);
                }
                3..5 => {
                    let (all, after) = settled(m);
                    charged += all.iter().map(|c| c.due.gross.get()).sum::<i64>();
                    m = after;
                }
                _ => {
                    (_, m) = m.reprice(at(clock), hourly(next)).unwrap();
                    price = next;
                }
            }
        }
        let (all, m) = settled(m);
        charged += all.iter().map(|c| c.due.gross.get()).sum::<i64>();
        prop_assert_eq!(i128::from(charged), exact / 3_600_000);
        prop_assert_eq!(i128::from(m.rem_num), exact % 3_600_000);
    }
}
