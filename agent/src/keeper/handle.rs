//! The way to a running keeper.

use tokio::sync::{mpsc, oneshot, watch};
use web_openapi::agent::{DesiredLease, LeaseReport};

use crate::runner::Container;

/// What was seen, and when by the clock that never stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Milliseconds since boot, taken before the look.
    pub mono_ms: u64,
    /// Every lease.
    pub leases: Vec<LeaseReport>,
}

/// A question or an order to the keeper.
#[derive(Debug)]
pub(super) enum Ask {
    Desire(Vec<DesiredLease>),
    Look(oneshot::Sender<Option<Sighting>>),
    Containers(oneshot::Sender<Vec<Container>>),
}

/// The way to a running keeper.
#[derive(Clone, Debug)]
pub struct KeeperHandle {
    asks: mpsc::Sender<Ask>,
    changes: watch::Receiver<Option<Sighting>>,
}

impl KeeperHandle {
    pub(super) const fn new(
        asks: mpsc::Sender<Ask>,
        changes: watch::Receiver<Option<Sighting>>,
    ) -> Self {
        Self { asks, changes }
    }

    /// Sets the whole desired state.
    pub async fn desire(&self, leases: Vec<DesiredLease>) {
        if self.asks.send(Ask::Desire(leases)).await.is_err() {
            tracing::error!("the keeper is gone; a desired state was not taken");
        }
    }

    /// Looks now; `None` while the engine does not answer.
    pub async fn look(&self) -> Option<Sighting> {
        let (answer, seen) = oneshot::channel();
        self.asks.send(Ask::Look(answer)).await.ok()?;
        seen.await.ok().flatten()
    }

    /// The containers as last seen.
    pub async fn containers(&self) -> Vec<Container> {
        let (answer, seen) = oneshot::channel();
        if self.asks.send(Ask::Containers(answer)).await.is_err() {
            return Vec::new();
        }
        seen.await.unwrap_or_default()
    }

    /// Marked changed whenever what is seen differs from before.
    pub fn changes(&self) -> watch::Receiver<Option<Sighting>> {
        self.changes.clone()
    }
}
