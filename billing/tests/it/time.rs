//! When money ends, by walking; and rating at the ends of the range.

use billing::exhaustion::{Flame, dry_at};
use billing::rating::{Shares, due};
use domain::clock::Timestamp;
use domain::money::Micros;
use proptest::prelude::*;

use crate::naive::*;

proptest! {
    /// The last millisecond that is paid for, by walking it.
    #[test]
    fn a_wallet_runs_dry_when_a_walk_says_so(
        flames in prop::collection::vec((0i64..9_000_000_000, any::<bool>(), 0u32..3_000), 0..5),
        budget in -5i64..3_000,
        anchor in -1_000_000i64..1_000_000,
    ) {
        let lit: Vec<Flame> = flames
            .iter()
            .map(|(p, hour, tax_bps)| Flame { rate: if *hour { hourly(*p) } else { monthly(*p) }, tax_bps: *tax_bps })
            .collect();
        let burnt = |ms: i128| -> i128 {
            flames
                .iter()
                .map(|(p, hour, tax)| naive(*p, if *hour { HOUR_MS } else { MONTH_MS }, (0, *tax), ms))
                .map(|(gross, _, tax)| gross + tax)
                .sum()
        };
        let walk = (0..40_000i128).find(|ms| burnt(ms + 1) > i128::from(budget));
        let dry = dry_at(Micros::new(budget), &lit, us(anchor));
        if flames.iter().all(|(price, _, _)| *price == 0) {
            prop_assert_eq!(dry, None);
            return Ok(());
        }
        match walk {
            Some(ms) => prop_assert_eq!(dry, Some(us(anchor + i64::try_from(ms).unwrap() * 1_000))),
            None => prop_assert!(dry.is_some_and(|d| d >= us(anchor + 40_000_000))),
        }
    }
}

#[test]
fn an_end_beyond_all_calendars_is_the_last_instant() {
    let slow = Flame {
        rate: monthly(1),
        tax_bps: 0,
    };
    let dry = dry_at(Micros::new(i64::MAX), &[slow], us(0));
    assert_eq!(dry, Some(Timestamp::MAX));
    let free = Flame {
        rate: hourly(0),
        tax_bps: 1_900,
    };
    assert_eq!(dry_at(Micros::new(1), &[free], us(0)), None);
    assert_eq!(
        dry_at(Micros::ZERO, &[free, slow], us(0)).map(Timestamp::millis),
        Some(2_627_999_999)
    );
}

#[test]
fn rating_is_exact_at_the_ends_of_the_range() {
    let shares = Shares {
        fee_bps: 10_000,
        tax_bps: 0,
    };
    let most = due(hourly(i64::MAX), shares, 3_600_000).unwrap();
    assert_eq!((most.gross, most.fee), (Micros::new(i64::MAX), most.gross));
    assert_eq!(most.provider(), Ok(Micros::ZERO));
    assert!(due(hourly(i64::MAX), shares, 3_600_001).is_err());
}
