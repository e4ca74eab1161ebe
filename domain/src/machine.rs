//! The machine: its states, and what a missing heartbeat means.
//!
//! Invariant: health is not the heartbeat. One slow spell does not flap the fleet: a machine leaves
//! search after [`STALE_AFTER`], is `offline` after [`OFFLINE_AFTER`], and comes back on a heartbeat.

use std::fmt;
use std::str::FromStr;

use crate::clock::{Span, Timestamp};

/// How often an agent reports.
pub const HEARTBEAT: Span = Span::from_secs(10);
/// A machine that was silent for longer is not offered.
pub const STALE_AFTER: Span = Span::from_secs(30);
/// A machine that was silent for longer is offline.
pub const OFFLINE_AFTER: Span = Span::from_secs(120);
/// This many failed starts within [`FAILED_START_WINDOW`] take the machine's offers off the pool.
pub const FAILED_START_CAP: u32 = 3;
/// See [`FAILED_START_CAP`].
pub const FAILED_START_WINDOW: Span = Span::from_mins(10);

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineState {
    /// It has a key, no accepted probe yet.
    Enrolled,
    /// Its probe was accepted and is being checked.
    Verifying,
    /// Its offers can be booked.
    Listed,
    /// Verified, not offered (its provider's choice, or no offer yet).
    Unlisted,
    /// No new leases; running ones go on.
    Draining,
    /// Out of service by its provider.
    Maintenance,
    /// Silent for too long.
    Offline,
    /// Its reports cannot be believed; moderators look at it. Running leases go on.
    Quarantined,
    /// Gone for good.
    Retired,
}

/// What happened to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineEvent {
    /// A plausible probe arrived.
    Probed,
    /// The checks passed.
    Verified,
    /// The provider lists it (has a live offer).
    ListRequested,
    /// The provider takes it off the market, or starts failed too often.
    UnlistRequested,
    /// The provider wants it empty.
    DrainRequested,
    /// The provider takes it out of service.
    MaintenanceRequested,
    /// Silent beyond [`OFFLINE_AFTER`].
    WentSilent,
    /// A heartbeat after silence; it was listed before if `listed`.
    CameBack {
        /// Was it listed when it fell silent?
        listed: bool,
    },
    /// A report was absurd, or its key is used twice.
    Distrusted,
    /// A moderator cleared it.
    Cleared,
    /// It leaves for good.
    RetireRequested,
}

/// A move that the state machine does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a machine that is {state} cannot take `{event:?}`")]
pub struct IllegalMachineMove {
    /// The state it was in.
    pub state: MachineState,
    /// The event that does not fit.
    pub event: MachineEvent,
}

impl MachineState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Enrolled,
        Self::Verifying,
        Self::Listed,
        Self::Unlisted,
        Self::Draining,
        Self::Maintenance,
        Self::Offline,
        Self::Quarantined,
        Self::Retired,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enrolled => "enrolled",
            Self::Verifying => "verifying",
            Self::Listed => "listed",
            Self::Unlisted => "unlisted",
            Self::Draining => "draining",
            Self::Maintenance => "maintenance",
            Self::Offline => "offline",
            Self::Quarantined => "quarantined",
            Self::Retired => "retired",
        }
    }

    /// The state after `event`. Retirement is final; quarantine is left only by a moderator.
    pub fn after(self, event: MachineEvent) -> Result<Self, IllegalMachineMove> {
        use MachineEvent as E;
        if self == Self::Retired {
            let stays = event == E::RetireRequested;
            return if stays {
                Ok(self)
            } else {
                Err(IllegalMachineMove { state: self, event })
            };
        }
        if self == Self::Quarantined {
            return match event {
                E::Cleared => Ok(Self::Verifying),
                E::RetireRequested => Ok(Self::Retired),
                // It may speak or fall silent; that changes nothing until a moderator has looked.
                E::Probed | E::WentSilent | E::CameBack { .. } | E::Distrusted => Ok(self),
                E::Verified
                | E::ListRequested
                | E::UnlistRequested
                | E::DrainRequested
                | E::MaintenanceRequested => Err(IllegalMachineMove { state: self, event }),
            };
        }
        let verified = !matches!(self, Self::Enrolled | Self::Verifying);
        match event {
            E::Probed if self == Self::Enrolled => Ok(Self::Verifying),
            E::Probed | E::Cleared => Ok(self),
            E::Verified if self == Self::Verifying => Ok(Self::Unlisted),
            E::Verified => Ok(self),
            E::ListRequested if verified && self != Self::Offline => Ok(Self::Listed),
            E::UnlistRequested if verified && self != Self::Offline => Ok(Self::Unlisted),
            E::DrainRequested if verified && self != Self::Offline => Ok(Self::Draining),
            E::MaintenanceRequested if verified && self != Self::Offline => Ok(Self::Maintenance),
            E::WentSilent if matches!(self, Self::Listed | Self::Unlisted) => Ok(Self::Offline),
            E::WentSilent => Ok(self),
            E::CameBack { listed } if self == Self::Offline => {
                Ok(if listed { Self::Listed } else { Self::Unlisted })
            }
            E::CameBack { .. } => Ok(self),
            E::Distrusted => Ok(Self::Quarantined),
            E::RetireRequested => Ok(Self::Retired),
            E::ListRequested | E::UnlistRequested | E::DrainRequested | E::MaintenanceRequested => {
                Err(IllegalMachineMove { state: self, event })
            }
        }
    }

    /// May new leases be placed here, given the last heartbeat?
    pub fn bookable(self, last_seen: Option<Timestamp>, now: Timestamp) -> bool {
        self == Self::Listed && last_seen.is_some_and(|seen| now.since(seen) <= STALE_AFTER)
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MachineState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_quarantine_without_a_moderator() {
        let q = MachineState::Quarantined;
        for event in [
            MachineEvent::Probed,
            MachineEvent::CameBack { listed: true },
            MachineEvent::WentSilent,
        ] {
            assert_eq!(q.after(event), Ok(q));
        }
        assert!(q.after(MachineEvent::ListRequested).is_err());
        assert_eq!(q.after(MachineEvent::Cleared), Ok(MachineState::Verifying));
    }

    #[test]
    fn an_unverified_machine_cannot_be_listed() {
        for state in [MachineState::Enrolled, MachineState::Verifying] {
            assert!(state.after(MachineEvent::ListRequested).is_err());
        }
    }

    #[test]
    fn silence_hides_after_thirty_seconds_and_not_before() {
        let seen = Timestamp::from_micros(0);
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        for (secs, bookable) in [(0, true), (10, true), (20, true), (30, true), (31, false)] {
            assert_eq!(
                MachineState::Listed.bookable(Some(seen), at(secs)),
                bookable,
                "{secs}"
            );
        }
        assert!(!MachineState::Listed.bookable(None, at(0)));
        assert!(!MachineState::Offline.bookable(Some(seen), at(0)));
    }

    #[test]
    fn names_round_trip() {
        for state in MachineState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
    }
}
