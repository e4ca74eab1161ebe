//! Performing one step in the background.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use web_openapi::agent::DesiredLease;

use crate::converge::Step;
use crate::runner::{Progress, Runner, RunnerError, Spec};

/// A step to be performed.
pub(super) struct Work {
    pub(super) step: Step,
    pub(super) want: DesiredLease,
    /// Turns true when making the container is not wanted any more.
    pub(super) cancelled: watch::Receiver<bool>,
    /// Takes signs of progress.
    pub(super) notes: mpsc::Sender<Note>,
}

/// A step that is over.
pub(super) struct Done {
    pub(super) lease: String,
    pub(super) result: Result<(), RunnerError>,
}

/// A sign of progress.
pub(super) struct Note {
    pub(super) lease: String,
    pub(super) detail: String,
}

struct Notes {
    lease: String,
    to: mpsc::Sender<Note>,
}

impl Progress for Notes {
    fn note(&self, detail: String) {
        if self
            .to
            .try_send(Note {
                lease: self.lease.clone(),
                detail,
            })
            .is_err()
        {
            tracing::debug!(lease = self.lease, "a sign of progress was dropped");
        }
    }
}

/// Performs it. Only a pull is broken off when cancelled: what makes containers ends, so that nothing
/// appears after the lease was reported gone.
pub(super) async fn perform<R: Runner>(runner: Arc<R>, work: Work) -> Done {
    let lease = work.want.lease_id.clone();
    let result = match work.step.clone() {
        Step::Create => create(&*runner, work).await,
        Step::Rebuild { old } => runner
            .rebuild(&old, &Spec { lease: work.want })
            .await
            .map(|_made| ()),
        Step::Start { container } => runner.start(&container).await,
        Step::Stop { container } => runner.stop(&container).await,
        Step::Unpause { container } => runner.unpause(&container).await,
        Step::Remove { container } => runner.remove(&container).await,
        Step::Clear => runner.clear(&lease).await,
    };
    Done { lease, result }
}

async fn create<R: Runner>(runner: &R, mut work: Work) -> Result<(), RunnerError> {
    let notes = Notes {
        lease: work.want.lease_id.clone(),
        to: work.notes,
    };
    let image = work.want.workload.image.clone();
    tokio::select! {
        // The order matters: a fetched image is not thrown away by a late cancellation.
        biased;
        fetched = runner.fetch(&image, &notes) => fetched?,
        _ = work.cancelled.wait_for(|is| *is) => return Ok(()),
    }
    if *work.cancelled.borrow() {
        return Ok(());
    }
    notes.note("making the container".to_owned());
    runner
        .create(&Spec { lease: work.want })
        .await
        .map(|_made| ())
}
