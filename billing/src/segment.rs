//! Price segments: the stretches of a meter's time, each at one price.
//!
//! All segments of a meter have one period, so the worth of its proven time is a fraction over that
//! period. Charges take the whole micro-units, and the numerator's remainder is carried over: after
//! any number of segments less than one micro-unit is outstanding.

use domain::clock::{Span, Timestamp};
use domain::money::{Micros, MoneyError, Rate};

/// A stretch of a meter's time at one price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// 1, 2, … in each meter.
    pub no: i64,
    /// Its price holds from here until the next one's beginning.
    pub from: Timestamp,
    /// The price.
    pub rate: Rate,
    /// Proven in it, and not in charges yet.
    pub unsettled_ms: i64,
}

/// An exact amount: whole micro-units, and a numerator over the period, below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Exact {
    /// Whole micro-units.
    pub whole: Micros,
    /// What is left of a micro-unit, times the period in ms.
    pub rem_num: i64,
}

impl Exact {
    /// This amount and `millis` at `rate`.
    pub fn plus(self, rate: Rate, millis: i64) -> Result<Self, MoneyError> {
        let num = i128::from(rate.price.get())
            .checked_mul(i128::from(millis))
            .and_then(|n| n.checked_add(i128::from(self.rem_num)))
            .ok_or(MoneyError::OutOfRange)?;
        let per = i128::from(rate.per.millis());
        let rem_num = i64::try_from(num.rem_euclid(per)).map_err(|_wide| MoneyError::OutOfRange)?;
        Ok(Self {
            whole: self.whole.plus(Micros::from_wide(num.div_euclid(per))?)?,
            rem_num,
        })
    }
}

/// Time from `from` to `to`, never negative.
pub(crate) fn room_ms(from: Timestamp, to: Timestamp) -> i64 {
    to.since(from).millis().max(0)
}

/// Hands `proven` ms out to the segments that begin within a range: time is proven from the range's
/// start on, each segment taking what it has room for. What is not handed out belongs to the
/// segment before the first of `ahead`.
#[must_use]
pub(crate) fn spread(ahead: &[Segment], start: Timestamp, proven: i64) -> Vec<Segment> {
    let mut from = start;
    let mut rest = proven;
    let ends = ahead.iter().skip(1).map(|s| Some(s.from));
    let ends = ends.chain(std::iter::once(None));
    ahead
        .iter()
        .zip(ends)
        .map(|(segment, end)| {
            rest = rest.saturating_sub(room_ms(from, segment.from)).max(0);
            from = from.max(segment.from);
            let room = end.map_or(i64::MAX, |end| room_ms(from, end));
            Segment {
                unsettled_ms: segment.unsettled_ms.saturating_add(rest.min(room)),
                ..segment.clone()
            }
        })
        .collect()
}

/// How long `num` (a numerator over the common period) lasts from `start` on, at `rate` and then at
/// the prices `ahead`; `None` if what comes last is free.
pub(crate) fn lasts_ms(rate: Rate, ahead: &[Segment], start: Timestamp, num: i128) -> Option<i64> {
    let (mut left, mut at, mut lasted, mut price) = (num.max(0), start, 0i64, rate.price);
    for segment in ahead {
        let room = room_ms(at, segment.from);
        let cost = i128::from(price.get()).saturating_mul(i128::from(room));
        if cost > left {
            break;
        }
        left = left.saturating_sub(cost);
        lasted = lasted.saturating_add(room);
        at = at.plus(Span::from_millis(room));
        price = segment.rate.price;
    }
    let more = left.checked_div(i128::from(price.get()))?;
    Some(lasted.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use domain::money::Period;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn hourly(price: i64) -> Rate {
        Rate {
            price: Micros::new(price),
            per: Period::Hour,
        }
    }

    fn ahead(starts: &[i64]) -> Vec<Segment> {
        let made = (2..).zip(starts).map(|(no, from)| Segment {
            no,
            from: at(*from),
            rate: hourly(3_600_000 * no),
            unsettled_ms: 0,
        });
        made.collect()
    }

    #[test]
    fn time_is_handed_out_from_the_start_on() {
        let given = |start, proven| -> Vec<i64> {
            let of = spread(&ahead(&[10, 30, 30]), at(start), proven);
            of.iter().map(|s| s.unsettled_ms).collect()
        };
        assert_eq!(given(0, 10), [0, 0, 0]);
        assert_eq!(given(0, 11), [1, 0, 0]);
        assert_eq!(given(0, 30), [20, 0, 0]);
        assert_eq!(given(0, 37), [20, 0, 7]);
        assert_eq!(given(20, 15), [10, 0, 5]);
        assert_eq!(given(40, 15), [0, 0, 15]);
        assert!(spread(&[], at(0), 5).is_empty());
    }

    #[test]
    fn money_lasts_through_the_prices_ahead() {
        let per = 3_600_000;
        let lasts =
            |micros: i128| lasts_ms(hourly(per), &ahead(&[10, 20]), at(0), micros * 3_600_000);
        // 1 µ$ a ms for 10 ms, then 2 for 10 ms, then 3.
        assert_eq!(lasts(7), Some(7));
        assert_eq!(lasts(10), Some(10));
        assert_eq!(lasts(13), Some(11));
        assert_eq!(lasts(30), Some(20));
        assert_eq!(lasts(36), Some(22));
        assert_eq!(lasts(-1), Some(0));
        assert_eq!(lasts_ms(hourly(0), &[], at(0), 0), None);
        assert_eq!(lasts_ms(hourly(0), &ahead(&[10]), at(0), 0), Some(10));
    }

    #[test]
    fn a_remainder_is_carried() {
        let third = hourly(1_200_000);
        let mut sum = Exact::default();
        for _ in 0..3 {
            sum = sum.plus(third, 1).unwrap();
        }
        assert_eq!((sum.whole, sum.rem_num), (Micros::new(1), 0));
        let most = Exact {
            whole: Micros::new(i64::MAX),
            rem_num: 3_599_999,
        };
        assert!(most.plus(hourly(1), 1).is_err());
    }
}
