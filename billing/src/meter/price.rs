//! What a meter's time is worth: price segments, settlement, and what is owed at any moment.

use domain::clock::{Span, Timestamp};
use domain::money::{Micros, MoneyError, Rate};
use thiserror::Error;

use super::Meter;
use crate::charge::Settlement;
use crate::rating::{Due, gross_within, share};
use crate::segment::{Exact, Segment, lasts_ms, room_ms, spread};

/// Why a meter takes no new price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RepriceRefusal {
    /// It takes nothing more.
    #[error("the meter is closed")]
    Closed,
    /// Remainders are carried over one period only.
    #[error("the new rate has another period")]
    OtherPeriod,
}

impl Meter {
    /// From `at` on, `rate` is the price: a new segment, and the meter with it. Proven time keeps
    /// its price. The new rate's period must be the old one's.
    pub fn reprice(&self, at: Timestamp, rate: Rate) -> Result<(Segment, Self), RepriceRefusal> {
        if self.closed {
            return Err(RepriceRefusal::Closed);
        }
        if rate.per != self.rate.per {
            return Err(RepriceRefusal::OtherPeriod);
        }
        let last = self.ahead.last();
        let earliest = last.map_or(self.through, |s| self.through.max(s.from));
        let segment = Segment {
            no: last.map_or(self.segment, |s| s.no).saturating_add(1),
            from: self.own_time(at).max(earliest),
            rate,
            unsettled_ms: 0,
        };
        let mut next = self.clone();
        next.ahead.push(segment.clone());
        Ok((segment, next.promoted()))
    }

    /// The price that holds last.
    pub fn last_rate(&self) -> Rate {
        self.ahead.last().map_or(self.rate, |s| s.rate)
    }

    /// Does proven, unsettled time reach into a later segment? Then it must be settled before the
    /// meter is stored: what is proven in which segment is not.
    pub fn crosses(&self) -> bool {
        let next = self.ahead.as_slice().first();
        next.is_some_and(|s| s.from < self.through)
    }

    fn due_of(&self, gross: Micros) -> Result<Due, MoneyError> {
        Ok(Due {
            gross,
            fee: share(gross, self.shares.fee_bps)?,
            tax: share(gross, self.shares.tax_bps)?,
        })
    }

    /// Proven and not charged, in `segment`.
    fn unsettled_here_ms(&self) -> i64 {
        let later = self.ahead.iter().map(|s| s.unsettled_ms);
        let later = later.fold(0, i64::saturating_add);
        let open = self.billable_ms.saturating_sub(self.settled_ms);
        open.saturating_sub(later)
    }

    /// The exact worth of all proven time.
    fn worth(&self) -> Result<Exact, MoneyError> {
        let charged = Exact {
            whole: self.charged.gross,
            rem_num: self.rem_num,
        };
        let here = charged.plus(self.rate, self.unsettled_here_ms())?;
        let mut later = self.ahead.iter();
        later.try_fold(here, |sum, s| sum.plus(s.rate, s.unsettled_ms))
    }

    /// What is owed for all proven time.
    pub fn accrued(&self) -> Result<Due, MoneyError> {
        self.due_of(self.worth()?.whole)
    }

    /// What is proven but not charged.
    pub fn unsettled(&self) -> Result<Due, MoneyError> {
        self.accrued()?.minus(self.charged)
    }

    /// The longest total proven time whose renter's amount (gross + tax) stays within `budget`,
    /// through all price segments; `None` if what comes last is free.
    pub fn affordable_ms(&self, budget: Micros) -> Result<Option<i64>, MoneyError> {
        let worth = self.worth()?;
        let per = i128::from(self.rate.per.millis());
        let most = gross_within(budget, self.shares.tax_bps).saturating_add(1);
        let left = most
            .saturating_sub(i128::from(worth.whole.get()))
            .saturating_mul(per)
            .saturating_sub(i128::from(worth.rem_num))
            .saturating_sub(1);
        let begun = self.ahead.iter().rfind(|s| s.from <= self.through);
        let rate = begun.map_or(self.rate, |s| s.rate);
        let lasts = lasts_ms(rate, &self.ahead_of_through(), self.through, left);
        Ok(lasts.map(|ms| self.billable_ms.saturating_add(ms)))
    }

    fn ahead_of_through(&self) -> Vec<Segment> {
        let coming = self.ahead.iter().filter(|s| s.from > self.through);
        coming.cloned().collect()
    }

    /// The charge for what is proven and not yet charged, up to the end of the price segment, and
    /// the meter after it; `None` if there is nothing. Repeat it until then.
    pub fn settle(&self) -> Result<Option<(Settlement, Self)>, MoneyError> {
        if self.through <= self.settled_through {
            return Ok(None);
        }
        let end = self.ahead.as_slice().first();
        let to = end.map_or(self.through, |s| s.from.min(self.through));
        let billable_ms = self.unsettled_here_ms();
        let charged = Exact {
            whole: self.charged.gross,
            rem_num: self.rem_num,
        };
        let worth = charged.plus(self.rate, billable_ms)?;
        let due = self.due_of(worth.whole)?;
        let seq = self.seq.saturating_add(1);
        let settlement = Settlement {
            meter: self.id,
            lease: self.lease,
            seq,
            segment: self.segment,
            from: self.settled_through,
            to,
            billable_ms,
            due: due.minus(self.charged)?,
        };
        let after = Self {
            charged: due,
            rem_num: worth.rem_num,
            seq,
            settled_ms: self.settled_ms.saturating_add(billable_ms),
            settled_through: to,
            ..self.clone()
        };
        Ok(Some((settlement, after.promoted())))
    }

    /// What to show as owed at `now`: proven time, carried on from a proof not older than `fresh`,
    /// never beyond `until` or `affordable_ms`. For eyes only.
    pub fn estimate(
        &self,
        now: Timestamp,
        fresh: Span,
        affordable_ms: Option<i64>,
    ) -> Result<Due, MoneyError> {
        let now = self.own_time(now);
        let target = self.until.map_or(now, |until| until.min(now));
        let alive = self
            .proof
            .as_ref()
            .is_some_and(|p| now.since(p.at) <= fresh);
        let more = room_ms(self.through, target);
        let more = if alive && !self.closed { more } else { 0 };
        let total = self.billable_ms.saturating_add(more);
        let total = affordable_ms.map_or(total, |most| total.min(most.max(self.billable_ms)));
        let more = total.saturating_sub(self.billable_ms);
        let shown = Self {
            billable_ms: total,
            ahead: spread(&self.ahead, self.through, more),
            ..self.clone()
        };
        shown.accrued()
    }
}
