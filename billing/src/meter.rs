//! Meters: which time of a lease is proven, and what of it is settled.
//!
//! Proof of life is `(boot, run, mono)`: the kernel's boot, the container's identity and the
//! machine's monotonic clock. Within one boot and run, the time between two proofs is the smaller
//! of what the server's clock and the machine's clock saw, so neither side can inflate it. Another
//! boot or run proves nothing of the gap. Late, repeated and disordered proofs change nothing.
//!
//! A meter's times are whole milliseconds, rounded down: so the parts of a span add up to the span,
//! whichever of a run's proofs arrived, and no range holds more proven time than it is long.

use domain::clock::{Span, Timestamp};
use domain::id::{LeaseId, MeterId};
use domain::money::{MoneyError, Rate};

use crate::charge::Settlement;
use crate::rating::{Due, Shares, due};

/// Drift allowed to a machine's clock: 500 ppm, a generous bound for quartz (RFC 5905, section 7.1
/// takes 15 ppm as typical frequency tolerance).
const DRIFT_PPM: i128 = 500;
/// Delay of a report that is granted on top, in ms.
const SLACK_MS: i128 = 1_000;

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
    /// Price per period for the whole lease (price × GPUs, or price × GiB).
    pub rate: Rate,
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
    /// Charges so far.
    pub seq: i64,
    /// Proven time that is in charges.
    pub settled_ms: i64,
    /// Settled up to here.
    pub settled_through: Timestamp,
    /// The last proof.
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
            shares: new.shares,
            opened_at: now,
            until: None,
            closed: false,
            billable_ms: 0,
            through: now,
            charged: Due {
                gross: domain::money::Micros::ZERO,
                fee: domain::money::Micros::ZERO,
                tax: domain::money::Micros::ZERO,
            },
            seq: 0,
            settled_ms: 0,
            settled_through: now,
            proof: None,
        }
    }

    /// Does `proof` go on from the last one (same boot, same run)?
    pub fn continues(&self, proof: &Proof) -> bool {
        self.proof
            .as_ref()
            .is_some_and(|p| p.boot == proof.boot && p.run == proof.run)
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
        let proof = Proof {
            at: whole_ms(proof.at),
            ..proof
        };
        let target = self.until.map_or(proof.at, |until| until.min(proof.at));
        if !self.continues(&proof) {
            return self.begin_range(proof, target);
        }
        let last = self.proof.as_ref()?;
        if proof.mono_ms <= last.mono_ms || target <= self.through {
            return None;
        }
        let by_server = i128::from(target.since(last.at.min(target)).millis());
        let by_machine = i128::from(proof.mono_ms.saturating_sub(last.mono_ms));
        let drift = by_machine.saturating_mul(DRIFT_PPM).div_euclid(1_000_000);
        let granted = by_machine.saturating_add(drift).saturating_add(SLACK_MS);
        let proven = i64::try_from(by_server.min(granted).max(0)).unwrap_or(0);
        let total = self.billable_ms.saturating_add(proven);
        let total = affordable_ms.map_or(total, |most| total.min(most.max(self.billable_ms)));
        Some(Self {
            billable_ms: total,
            through: target,
            proof: Some(proof),
            ..self.clone()
        })
    }

    fn begin_range(&self, proof: Proof, target: Timestamp) -> Option<Self> {
        if target < self.through {
            return None;
        }
        let nothing_open = self.settled_ms == self.billable_ms;
        let settled_through = if nothing_open {
            target
        } else {
            self.settled_through
        };
        Some(Self {
            through: target,
            settled_through,
            proof: Some(proof),
            ..self.clone()
        })
    }

    /// Nothing after `at` will be billed. What is proven stays, and an earlier cut stays.
    #[must_use]
    pub fn cut(&self, at: Timestamp) -> Self {
        let until = whole_ms(at).max(self.through);
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

    /// What is owed for all proven time.
    pub fn accrued(&self) -> Result<Due, MoneyError> {
        due(self.rate, self.shares, self.billable_ms)
    }

    /// What is proven but not charged.
    pub fn unsettled(&self) -> Result<Due, MoneyError> {
        self.accrued()?.minus(self.charged)
    }

    /// The charge for everything proven and not yet charged, and the meter after it; `None` if
    /// there is nothing.
    pub fn settle(&self) -> Result<Option<(Settlement, Self)>, MoneyError> {
        if self.through <= self.settled_through {
            return Ok(None);
        }
        let accrued = self.accrued()?;
        let seq = self.seq.saturating_add(1);
        let settlement = Settlement {
            meter: self.id,
            lease: self.lease,
            seq,
            from: self.settled_through,
            to: self.through,
            billable_ms: self.billable_ms.saturating_sub(self.settled_ms),
            due: accrued.minus(self.charged)?,
        };
        let after = Self {
            charged: accrued,
            seq,
            settled_ms: self.billable_ms,
            settled_through: self.through,
            ..self.clone()
        };
        Ok(Some((settlement, after)))
    }

    /// What to show as owed at `now`: proven time, carried on from a proof not older than `fresh`,
    /// never beyond `until` or `affordable_ms`. For eyes only.
    pub fn estimate(
        &self,
        now: Timestamp,
        fresh: Span,
        affordable_ms: Option<i64>,
    ) -> Result<Due, MoneyError> {
        let target = self.until.map_or(now, |until| until.min(now));
        let alive = self
            .proof
            .as_ref()
            .is_some_and(|p| now.since(p.at) <= fresh);
        let ahead = target.since(self.through).millis().max(0);
        let ahead = if alive && !self.closed { ahead } else { 0 };
        let total = self.billable_ms.saturating_add(ahead);
        let total = affordable_ms.map_or(total, |most| total.min(most.max(self.billable_ms)));
        due(self.rate, self.shares, total)
    }
}

#[cfg(test)]
mod tests;
