//! Drives the reconcilers: by timer, and at once when somebody has something for them.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use app::Cx;
use app::reconcile::{STEPS, Step};
use futures_util::FutureExt;

use crate::state::Shared;

/// The longest pause after a failing step.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// Starts every reconciler in the background.
pub fn start(shared: &Shared) -> Vec<tokio::task::JoinHandle<()>> {
    let mut tasks: Vec<_> = STEPS
        .iter()
        .map(|step| tokio::spawn(drive(shared.cx.clone(), *step)))
        .collect();
    let (cx, hub) = (shared.cx.clone(), std::sync::Arc::clone(&shared.hub));
    tasks.push(tokio::spawn(async move {
        // A booking is delivered at once, not at the next tick.
        loop {
            hub.something_to_do().await;
            let done = AssertUnwindSafe(app::reconcile::drain_outbox(&cx))
                .catch_unwind()
                .await;
            if !matches!(done, Ok(Ok(_))) {
                tracing::warn!(?done, "the outbox was not drained");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }));
    let limits = std::sync::Arc::clone(&shared.limits);
    tasks.push(tokio::spawn(async move {
        let mut now_and_then = tokio::time::interval(Duration::from_mins(10));
        loop {
            now_and_then.tick().await;
            limits.forget_idle();
        }
    }));
    tasks
}

async fn drive(cx: Cx, step: Step) {
    let every = Duration::from_micros(u64::try_from(step.every.micros()).unwrap_or(1_000_000));
    let mut pause = every;
    loop {
        // A panic is a failure of this step, not the end of it.
        let done = AssertUnwindSafe((step.run)(&cx)).catch_unwind().await;
        let done = done.unwrap_or(Err(app::Error::Fault("a reconciler panicked")));
        match done {
            Ok(changed) => {
                pause = every;
                if changed > 0 {
                    tracing::debug!(step = step.name, changed, "reconciled");
                }
                metrics::counter!("reconciled_total", "step" => step.name)
                    .increment(u64::try_from(changed).unwrap_or(0));
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(step = step.name, %error, ?cause, "a reconciler failed");
                metrics::counter!("reconciler_failures_total", "step" => step.name).increment(1);
                pause = (pause * 2).min(BACK_OFF_MAX);
            }
        }
        tokio::time::sleep(pause).await;
    }
}
