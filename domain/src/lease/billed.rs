//! What each state costs, and whether it occupies GPUs.

use super::{LeaseEvent, LeaseState};

/// What GPU time costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuTime {
    /// Nothing.
    Free,
    /// The hold price: the GPUs are kept for a resume.
    Kept,
    /// The price of use.
    Used,
}

/// What a state costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Billed {
    /// GPU time.
    pub compute: GpuTime,
    /// The promised disk.
    pub storage: bool,
}

impl LeaseState {
    /// Are the GPUs kept for a resume after `event` led here, if they were `kept` before it?
    pub const fn keeps_gpus(self, event: LeaseEvent, kept: bool) -> bool {
        match self {
            Self::Stopping | Self::Stopped => {
                let asked = matches!(event, LeaseEvent::KeepRequested);
                asked || (kept && !matches!(event, LeaseEvent::GpusReleased))
            }
            // A resume that fails falls back to what it was.
            Self::Resuming => kept,
            Self::Placing | Self::Provisioning | Self::Running | Self::Interrupting => false,
            Self::Interrupted | Self::Ending | Self::Ended | Self::Failed => false,
        }
    }

    /// What this state bills; `kept`: a stop kept the GPUs. Provisioning, and everything after the
    /// end request, is free.
    pub const fn billed(self, kept: bool) -> Billed {
        let (compute, storage) = match self {
            Self::Running | Self::Interrupting => (GpuTime::Used, true),
            Self::Stopping | Self::Stopped if kept => (GpuTime::Kept, true),
            Self::Stopping | Self::Stopped => (GpuTime::Free, true),
            Self::Interrupted | Self::Resuming => (GpuTime::Free, true),
            Self::Placing | Self::Provisioning => (GpuTime::Free, false),
            Self::Ending | Self::Ended | Self::Failed => (GpuTime::Free, false),
        };
        Billed { compute, storage }
    }

    /// Does it occupy its GPUs in this state? `kept`: a stop kept them.
    pub const fn holds_gpus(self, kept: bool) -> bool {
        match self {
            Self::Placing | Self::Provisioning | Self::Running | Self::Interrupting => true,
            Self::Stopping | Self::Resuming | Self::Ending => true,
            Self::Stopped => kept,
            Self::Interrupted | Self::Ended | Self::Failed => false,
        }
    }

    /// The event that gives its GPUs back for want of money: a stop, or the end of their keeping.
    /// `None` where there is nothing to give back, or soon nothing.
    pub const fn yields_gpus(self, kept: bool) -> Option<LeaseEvent> {
        match self {
            Self::Running => Some(LeaseEvent::StopRequested),
            Self::Stopped if kept => Some(LeaseEvent::GpusReleased),
            Self::Placing | Self::Provisioning | Self::Interrupting | Self::Interrupted => None,
            Self::Stopping | Self::Stopped | Self::Resuming => None,
            Self::Ending | Self::Ended | Self::Failed => None,
        }
    }
}
