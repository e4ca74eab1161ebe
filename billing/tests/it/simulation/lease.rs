//! A lease as the server keeps it, with the sums of its charges kept apart.

use billing::charge::Settlement;
use billing::hold::Burn;
use billing::meter::Meter;
use billing::segment::Segment;
use domain::clock::Timestamp;
use domain::id::HoldId;

use crate::naive::{HOUR_MS, MONTH_MS, hourly, id, monthly, wide};

pub(super) const TAX_BPS: u32 = 1_900;
pub(super) const FEE_BPS: u32 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Running,
    Stopping,
    Stopped,
    Ending,
    Ended,
}

/// The sums of a meter's charges, by other means than the meter's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    num: i128,
    seq: i64,
    ms: i64,
    end: Option<Timestamp>,
    gross: i128,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) no: u128,
    pub(super) renter: usize,
    pub(super) machine: usize,
    pub(super) stage: Stage,
    pub(super) run: i64,
    pub(super) meters: [Meter; 2],
    pub(super) gpu_hour: i64,
    pub(super) gib_month: i64,
    pub(super) gib: i64,
    pub(super) prices: [Vec<Segment>; 2],
    pub(super) sums: [Sums; 2],
}

impl Lease {
    pub(super) fn burn(&self) -> Burn {
        Burn {
            compute: hourly(self.gpu_hour),
            storage: monthly(self.gib_month * self.gib),
            tax_bps: TAX_BPS,
        }
    }

    pub(super) fn hold(&self) -> HoldId {
        HoldId::from_uuid(id(self.no))
    }

    pub(super) fn lives(&self) -> bool {
        self.stage != Stage::Ended
    }

    /// Counts a charge apart: order, tiling, price segment.
    pub(super) fn count(&mut self, which: usize, s: &Settlement) {
        let prices = &self.prices[which];
        let at = usize::try_from(s.segment - 1).unwrap();
        let sums = &mut self.sums[which];
        assert_eq!(s.seq, sums.seq + 1, "I6");
        assert!(
            sums.end.is_none_or(|end| s.from >= end) && s.from < s.to,
            "I7"
        );
        assert!(
            (0..=s.to.since(s.from).millis()).contains(&s.billable_ms),
            "I7"
        );
        assert!(s.from >= prices[at].from, "I16");
        assert!(
            prices.get(at + 1).is_none_or(|next| s.to <= next.from),
            "I16"
        );
        sums.seq = s.seq;
        sums.end = Some(s.to);
        sums.ms += s.billable_ms;
        sums.num += wide(prices[at].rate.price) * i128::from(s.billable_ms);
        sums.gross += wide(s.due.gross);
    }

    pub(super) fn check(&self) {
        for (which, per) in [(0, HOUR_MS), (1, MONTH_MS)] {
            let (meter, sums) = (&self.meters[which], &self.sums[which]);
            assert_eq!(sums.num / per, sums.gross, "I5");
            assert_eq!(sums.gross, wide(meter.charged.gross), "I5");
            assert_eq!(sums.num % per, i128::from(meter.rem_num), "I5");
            let share = |bps: u32| sums.gross * i128::from(bps) / 10_000;
            assert_eq!(share(FEE_BPS), wide(meter.charged.fee), "I5");
            assert_eq!(share(TAX_BPS), wide(meter.charged.tax), "I5");
            assert_eq!((sums.seq, sums.ms), (meter.seq, meter.settled_ms), "I6");
        }
    }
}
