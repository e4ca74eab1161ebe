//! Meters: which time of a lease is proven, and what of it is settled.
//!
//! Proof of life is `(boot, run, mono)`: the kernel's boot, the container's identity and the
//! machine's monotonic clock. Within one boot and run, the time between two proofs is the smaller
//! of what the server's clock and the machine's clock saw, so neither side can inflate it. Another
//! boot or run proves nothing of the gap. Late, repeated and disordered proofs change nothing.
//!
//! A meter's times are whole milliseconds, rounded down: so the parts of a span add up to the span,
//! whichever of a run's proofs arrived, and no range holds more proven time than it is long.
//!
//! A meter's time never goes back, whatever is done to the server's clock: it is the server's time
//! plus `skew_ms`. Where the server's clock was set back behind a proof, or ahead by more than any
//! delay explains, the machine's clock alone tells how much time has passed.

use domain::clock::{Span, Timestamp};
use domain::id::{LeaseId, MeterId};
use domain::money::{Micros, Rate};

use crate::rating::{Due, Shares};
use crate::segment::{Segment, room_ms, spread};

pub use price::RepriceRefusal;

/// Drift allowed to a machine's clock: 500 ppm, a generous bound for quartz (RFC 5905, section 7.1
/// takes 15 ppm as typical frequency tolerance).
const DRIFT_PPM: i128 = 500;
/// Delay of a report that is granted on top, in ms.
const SLACK_MS: i128 = 1_000;
/// A difference between the clocks that no delay explains: one of them was set.
const STEP_MS: i64 = 60_000;
/// How much time a machine's clock alone can prove, where the server's was set back.
const TRUST_MS: i64 = 60 * STEP_MS;

/// What a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// GPU time.
    Compute,
    /// The promised disk.
    Storage,
}

impl Resource {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Storage => "storage",
        }
    }

    /// The resource of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Compute, Self::Storage]
            .into_iter()
            .find(|r| r.as_str() == text)
    }
}

/// A proof of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// UUID of the kernel's boot.
    pub boot: String,
    /// Identity of the container and its start.
    pub run: String,
    /// Milliseconds since that boot.
    pub mono_ms: i64,
    /// When the server took it.
    pub at: Timestamp,
}

/// One resource of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Its id.
    pub id: MeterId,
    /// The lease.
    pub lease: LeaseId,
    /// What it counts.
    pub resource: Resource,
    /// Price per period for the whole lease (price × GPUs, or price × GiB), in `segment`.
    pub rate: Rate,
    /// The price segment that `settled_through` lies in.
    pub segment: i64,
    /// The price segments after it, by their beginning.
    pub ahead: Vec<Segment>,
    /// Fee and tax.
    pub shares: Shares,
    /// Since when it exists.
    pub opened_at: Timestamp,
    /// Nothing after this is billed: the second of a stop or end request.
    pub until: Option<Timestamp>,
    /// Nothing more is taken.
    pub closed: bool,
    /// Proven time in total.
    pub billable_ms: i64,
    /// Proven up to here.
    pub through: Timestamp,
    /// Charged so far.
    pub charged: Due,
    /// What the charges left of a micro-unit: a numerator over the rate's period, below it.
    pub rem_num: i64,
    /// Charges so far.
    pub seq: i64,
    /// Proven time that is in charges.
    pub settled_ms: i64,
    /// Settled up to here.
    pub settled_through: Timestamp,
    /// How far this meter's time is ahead of the server's clock, since that was set back.
    pub skew_ms: i64,
    /// The last proof, `at` in this meter's time.
    pub proof: Option<Proof>,
}

/// What opens a meter.
#[derive(Clone, Copy, Debug)]
pub struct NewMeter {
    /// Its id.
    pub id: MeterId,
    /// The lease.
    pub lease: LeaseId,
    /// What it counts.
    pub resource: Resource,
    /// Price per period for the whole lease.
    pub rate: Rate,
    /// Fee and tax.
    pub shares: Shares,
}

const fn whole_ms(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis())
}

impl Meter {
    /// A meter that has seen nothing.
    pub const fn open(new: NewMeter, now: Timestamp) -> Self {
        let now = whole_ms(now);
        Self {
            id: new.id,
            lease: new.lease,
            resource: new.resource,
            rate: new.rate,
            segment: 1,
            ahead: Vec::new(),
            shares: new.shares,
            opened_at: now,
            until: None,
            closed: false,
            billable_ms: 0,
            through: now,
            charged: Due {
                gross: Micros::ZERO,
                fee: Micros::ZERO,
                tax: Micros::ZERO,
            },
            rem_num: 0,
            seq: 0,
            settled_ms: 0,
            settled_through: now,
            skew_ms: 0,
            proof: None,
        }
    }

    /// Does `proof` go on from the last one (same boot, same run)?
    pub fn continues(&self, proof: &Proof) -> bool {
        self.proof
            .as_ref()
            .is_some_and(|p| p.boot == proof.boot && p.run == proof.run)
    }

    /// The server's time `at` in this meter's time.
    fn own_time(&self, at: Timestamp) -> Timestamp {
        whole_ms(at).plus(Span::from_millis(self.skew_ms))
    }

    /// The meter after `proof`; `None` if it changes nothing. `affordable_ms` bounds the total
    /// proven time by what the hold can pay.
    ///
    /// A proof of another boot or run begins a new range at its own time. Settle before, so that
    /// the range before the gap is charged with its own bounds.
    pub fn prove(&self, proof: Proof, affordable_ms: Option<i64>) -> Option<Self> {
        if self.closed {
            return None;
        }
        let at = self.own_time(proof.at);
        if !self.continues(&proof) {
            return self.begin_range(Proof { at, ..proof });
        }
        let last = self.proof.as_ref()?;
        let by_machine = proof.mono_ms.saturating_sub(last.mono_ms);
        if by_machine <= 0 {
            return None;
        }
        let (at, skew_ms, stepped) = self.unstepped(at, last.at, by_machine);
        let target = self.until.map_or(at, |until| until.min(at));
        if target <= self.through {
            return None;
        }
        let start = last.at.min(target);
        let by_server = room_ms(start, target);
        let proven = if stepped {
            by_server.min(by_machine)
        } else {
            proven_ms(by_server, by_machine)
        };
        let total = self.billable_ms.saturating_add(proven);
        let total = affordable_ms.map_or(total, |most| total.min(most.max(self.billable_ms)));
        let proven = total.saturating_sub(self.billable_ms);
        Some(Self {
            billable_ms: total,
            through: target,
            ahead: spread(&self.ahead, start, proven),
            skew_ms,
            proof: Some(Proof { at, ..proof }),
            ..self.clone()
        })
    }

    /// The time of a proof, and the skew, once a step of the server's clock is taken out; and
    /// whether there was one.
    fn unstepped(&self, at: Timestamp, last: Timestamp, by_machine: i64) -> (Timestamp, i64, bool) {
        if at < last {
            // It was set back behind the last proof: only the machine's clock is left.
            let real = last.plus(Span::from_millis(by_machine.min(TRUST_MS)));
            let more = room_ms(at, real);
            return (real, self.skew_ms.saturating_add(more), true);
        }
        let excess = room_ms(last, at).saturating_sub(by_machine);
        if excess <= STEP_MS {
            return (at, self.skew_ms, false);
        }
        // It was set ahead: perhaps after it had been set back.
        let back = self.skew_ms.min(excess);
        let skew_ms = self.skew_ms.saturating_sub(back);
        (at.minus(Span::from_millis(back)), skew_ms, true)
    }

    fn begin_range(&self, proof: Proof) -> Option<Self> {
        let behind = room_ms(proof.at, self.through);
        if behind > 0 && behind <= STEP_MS {
            // Late or disordered.
            return None;
        }
        let at = proof.at.max(self.through);
        let target = self.until.map_or(at, |until| until.min(at));
        if target < self.through {
            return None;
        }
        let nothing_open = self.settled_ms == self.billable_ms;
        let settled_through = if nothing_open {
            target
        } else {
            self.settled_through
        };
        let next = Self {
            through: target,
            settled_through,
            skew_ms: self.skew_ms.saturating_add(behind),
            proof: Some(Proof { at, ..proof }),
            ..self.clone()
        };
        Some(next.promoted())
    }

    /// Enters the segments that begin where it is settled.
    fn promoted(mut self) -> Self {
        let begun = |s: &&Segment| s.from <= self.settled_through;
        let entered = self.ahead.iter().take_while(begun).count();
        if let Some(last) = self.ahead.drain(..entered).next_back() {
            self.segment = last.no;
            self.rate = last.rate;
        }
        self
    }

    /// Nothing after `at` will be billed. What is proven stays, and an earlier cut stays.
    #[must_use]
    pub fn cut(&self, at: Timestamp) -> Self {
        self.cut_own(self.own_time(at))
    }

    /// Nothing after what is proven will be billed.
    #[must_use]
    pub fn cut_here(&self) -> Self {
        self.cut_own(self.through)
    }

    fn cut_own(&self, at: Timestamp) -> Self {
        let until = at.max(self.through);
        Self {
            until: Some(self.until.map_or(until, |u| u.min(until))),
            ..self.clone()
        }
    }

    /// Counts again, after a resume; the time between is not proven by anything.
    #[must_use]
    pub fn reopened(&self) -> Self {
        Self {
            until: None,
            closed: false,
            ..self.clone()
        }
    }

    /// Takes nothing more.
    #[must_use]
    pub fn finished(&self) -> Self {
        Self {
            closed: true,
            ..self.clone()
        }
    }
}

/// What two proofs prove: the smaller of what both clocks saw, with some drift and delay granted to
/// the machine's.
fn proven_ms(by_server: i64, by_machine: i64) -> i64 {
    let machine = i128::from(by_machine);
    let drift = machine.saturating_mul(DRIFT_PPM).div_euclid(1_000_000);
    let granted = machine.saturating_add(drift).saturating_add(SLACK_MS);
    i64::try_from(i128::from(by_server).min(granted)).unwrap_or(0)
}

mod price;

#[cfg(test)]
mod tests;
