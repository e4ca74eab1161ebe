//! The lease: its states, the events that move it, what each state bills, and when it must be left.
//!
//! Invariants: `ended` and `failed` are final; every other state but `running` and `stopped` has a
//! bounded-time exit; ending is always possible from a live state; only `running` bills use, and only a
//! stop that keeps the GPUs bills their keeping.

use std::fmt;
use std::str::FromStr;

use crate::clock::Span;

mod billed;

pub use billed::{Billed, GpuTime};

/// Where a lease is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseState {
    /// Booked: GPUs and money are held, the machine has not been told yet.
    Placing,
    /// The machine prepares it (image pull included).
    Provisioning,
    /// The renter's container runs.
    Running,
    /// A notice was given; it will lose its GPUs.
    Interrupting,
    /// Displaced; the disk is kept.
    Interrupted,
    /// The renter or the market wants it stopped; the container is being stopped.
    Stopping,
    /// The container is stopped, the disk is kept; the GPUs are released, or kept at the hold price.
    Stopped,
    /// GPUs and money are held again; the container is being started again.
    Resuming,
    /// The end is recorded; the machine is clearing up.
    Ending,
    /// Nothing is left of it on the machine.
    Ended,
    /// It never came to run.
    Failed,
}

/// What happened to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseEvent {
    /// The machine accepted the order.
    Placed,
    /// The container was seen running.
    Started,
    /// A displacement was announced.
    InterruptNoticed,
    /// The displaced container is gone.
    Displaced,
    /// A stop was asked for.
    StopRequested,
    /// A stop was asked for that keeps the GPUs.
    KeepRequested,
    /// The GPUs that a stopped lease kept are given back.
    GpusReleased,
    /// The container was seen stopped.
    StopSeen,
    /// Starting again was asked for, and GPUs and money were found.
    ResumeRequested,
    /// The end was asked for, by anybody entitled.
    EndRequested,
    /// The machine showed that nothing is left, or its time ran out.
    EndSeen,
    /// The start was given up.
    StartFailed,
}

/// A move that the state machine does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lease that is {state} cannot take `{event:?}`")]
pub struct IllegalMove {
    /// The state it was in.
    pub state: LeaseState,
    /// The event that does not fit.
    pub event: LeaseEvent,
}

/// Longest time without progress while an image is pulled or a container starts.
pub const PROVISION_SILENCE: Span = Span::from_mins(10);
/// Longest time from a stop request to the container's end; then the machine is held at fault.
pub const STOP_LIMIT: Span = Span::from_mins(5);
/// Longest time from the end request until the lease is closed without evidence.
pub const END_LIMIT: Span = Span::from_mins(10);
/// Longest time in `placing` until the order counts as undeliverable.
pub const PLACE_LIMIT: Span = Span::from_secs(120);
/// Longest announced notice.
pub const NOTICE_LIMIT: Span = Span::from_mins(5);
/// Longest a displaced or stopped disk is promised beyond its paid time.
pub const RETENTION: Span = Span::from_hours(24);

impl LeaseState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Placing,
        Self::Provisioning,
        Self::Running,
        Self::Interrupting,
        Self::Interrupted,
        Self::Stopping,
        Self::Stopped,
        Self::Resuming,
        Self::Ending,
        Self::Ended,
        Self::Failed,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placing => "placing",
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::Interrupting => "interrupting",
            Self::Interrupted => "interrupted",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Resuming => "resuming",
            Self::Ending => "ending",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    /// The state after `event`. A repeated request is no move: the same state comes back.
    pub fn after(self, event: LeaseEvent) -> Result<Self, IllegalMove> {
        use LeaseEvent as E;
        let refused = Err(IllegalMove { state: self, event });
        match self {
            Self::Placing => match event {
                E::Placed => Ok(Self::Provisioning),
                E::StartFailed => Ok(Self::Failed),
                E::EndRequested => Ok(Self::Ending),
                E::Started | E::InterruptNoticed | E::Displaced | E::StopRequested => refused,
                E::KeepRequested | E::GpusReleased => refused,
                E::StopSeen | E::ResumeRequested | E::EndSeen => refused,
            },
            Self::Provisioning => match event {
                E::Placed => Ok(self),
                E::Started => Ok(Self::Running),
                E::StartFailed => Ok(Self::Failed),
                E::EndRequested => Ok(Self::Ending),
                E::InterruptNoticed | E::Displaced | E::StopRequested => refused,
                E::KeepRequested | E::GpusReleased => refused,
                E::StopSeen | E::ResumeRequested | E::EndSeen => refused,
            },
            Self::Running => match event {
                E::Started | E::Placed => Ok(self),
                E::InterruptNoticed => Ok(Self::Interrupting),
                E::StopRequested | E::KeepRequested => Ok(Self::Stopping),
                // The renter's process ended by itself: the lease is stopped, not lost.
                E::StopSeen => Ok(Self::Stopped),
                E::EndRequested => Ok(Self::Ending),
                E::Displaced | E::ResumeRequested | E::EndSeen | E::StartFailed => refused,
                E::GpusReleased => refused,
            },
            Self::Interrupting => match event {
                E::InterruptNoticed => Ok(self),
                E::Displaced | E::StopSeen => Ok(Self::Interrupted),
                E::EndRequested => Ok(Self::Ending),
                E::Placed | E::Started | E::StopRequested => refused,
                E::KeepRequested | E::GpusReleased => refused,
                E::ResumeRequested | E::EndSeen | E::StartFailed => refused,
            },
            Self::Interrupted | Self::Stopped => match event {
                E::StopRequested | E::StopSeen | E::GpusReleased => Ok(self),
                E::ResumeRequested => Ok(Self::Resuming),
                E::EndRequested => Ok(Self::Ending),
                E::KeepRequested | E::Placed | E::Started | E::InterruptNoticed => refused,
                E::Displaced | E::EndSeen | E::StartFailed => refused,
            },
            Self::Stopping => match event {
                E::StopRequested | E::KeepRequested | E::GpusReleased => Ok(self),
                E::StopSeen => Ok(Self::Stopped),
                E::EndRequested => Ok(Self::Ending),
                E::Placed | E::Started | E::InterruptNoticed | E::Displaced => refused,
                E::ResumeRequested | E::EndSeen | E::StartFailed => refused,
            },
            Self::Resuming => match event {
                E::Placed | E::ResumeRequested => Ok(self),
                E::Started => Ok(Self::Running),
                // The disk is still there: a failed resume falls back, it does not end the lease.
                E::StartFailed | E::StopRequested | E::StopSeen => Ok(Self::Stopped),
                E::EndRequested => Ok(Self::Ending),
                E::InterruptNoticed | E::Displaced | E::EndSeen => refused,
                E::KeepRequested | E::GpusReleased => refused,
            },
            Self::Ending | Self::Ended | Self::Failed => match event {
                E::EndRequested => Ok(self),
                E::EndSeen if self == Self::Failed => Ok(self),
                E::EndSeen => Ok(Self::Ended),
                E::Placed | E::Started | E::InterruptNoticed | E::Displaced => refused,
                E::StopRequested | E::StopSeen | E::ResumeRequested | E::StartFailed => refused,
                E::KeepRequested | E::GpusReleased => refused,
            },
        }
    }

    /// Is the life over?
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ended | Self::Failed)
    }

    /// How long it may stay here, counted from the last progress; `None` where only the renter,
    /// the wallet or a guard ends the stay.
    pub const fn limit(self) -> Option<Span> {
        match self {
            Self::Placing => Some(PLACE_LIMIT),
            Self::Provisioning | Self::Resuming => Some(PROVISION_SILENCE),
            Self::Interrupting => Some(NOTICE_LIMIT),
            Self::Stopping => Some(STOP_LIMIT),
            Self::Ending => Some(END_LIMIT),
            Self::Running | Self::Interrupted | Self::Stopped | Self::Ended | Self::Failed => None,
        }
    }

    /// The event that a stay beyond [`Self::limit`] amounts to.
    pub const fn overdue(self) -> Option<LeaseEvent> {
        match self {
            Self::Placing | Self::Provisioning | Self::Resuming => Some(LeaseEvent::StartFailed),
            Self::Interrupting => Some(LeaseEvent::Displaced),
            // The machine is silent: its disk may well be there. The desired state stops what runs.
            Self::Stopping => Some(LeaseEvent::StopSeen),
            Self::Ending => Some(LeaseEvent::EndSeen),
            Self::Running | Self::Interrupted | Self::Stopped | Self::Ended | Self::Failed => None,
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LeaseState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

/// What the machine is to make true for a lease; derived from the state, never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Desired {
    /// The container runs.
    Run,
    /// The container is stopped, its disk kept.
    Stop,
    /// Nothing is left.
    Gone,
}

impl LeaseState {
    /// What the machine should make true.
    pub const fn desired(self) -> Desired {
        match self {
            Self::Placing | Self::Provisioning | Self::Running | Self::Resuming => Desired::Run,
            // The notice period is the renter's: the container runs until it is over.
            Self::Interrupting => Desired::Run,
            Self::Interrupted | Self::Stopping | Self::Stopped => Desired::Stop,
            Self::Ending | Self::Ended | Self::Failed => Desired::Gone,
        }
    }
}

/// Why a lease was stopped or ended: a closed list, stored with each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseReason {
    /// The renter asked.
    Renter,
    /// The booking itself.
    Booked,
    /// The machine reported it.
    Machine,
    /// The wallet cannot pay beyond the hold.
    WalletExhausted,
    /// `max_spend` was reached.
    MaxSpend,
    /// A budget that stops leases is used up.
    BudgetReached,
    /// `end_at` was reached.
    EndAt,
    /// The image cannot be had or the container does not start.
    StartFailed,
    /// No progress for too long.
    TimedOut,
    /// A moderator decided.
    Moderator,
    /// The container ended by itself.
    ContainerExited,
}

impl LeaseReason {
    /// Every reason.
    pub const ALL: [Self; 11] = [
        Self::Renter,
        Self::Booked,
        Self::Machine,
        Self::WalletExhausted,
        Self::MaxSpend,
        Self::BudgetReached,
        Self::EndAt,
        Self::StartFailed,
        Self::TimedOut,
        Self::Moderator,
        Self::ContainerExited,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Renter => "renter",
            Self::Booked => "booked",
            Self::Machine => "machine",
            Self::WalletExhausted => "wallet_exhausted",
            Self::MaxSpend => "max_spend",
            Self::BudgetReached => "budget_reached",
            Self::EndAt => "end_at",
            Self::StartFailed => "start_failed",
            Self::TimedOut => "timed_out",
            Self::Moderator => "moderator",
            Self::ContainerExited => "container_exited",
        }
    }
}

impl FromStr for LeaseReason {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests;
