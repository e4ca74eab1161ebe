//! Drives the reconcilers: by timer, and at once when somebody has something for them.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use app::Cx;
use app::reconcile::{STEPS, Step};
use futures_util::FutureExt;
use metrics::{counter, gauge};
use store::shard::RENEW_EVERY;

use crate::state::Shared;

/// Chains of the ledger that one process writes to: the first for groups, the others for single
/// transactions, so that they seldom wait for one another.
const SHARDS: usize = 4;

/// The shortest pause between two proofs of the whole ledger.
const PROVE_EVERY: Duration = Duration::from_mins(1);
/// A proof takes at most this part of the time.
const PROVE_SHARE: u32 = 20;

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
    tasks.push(tokio::spawn(hold_shards(shared.cx.clone())));
    tasks.push(tokio::spawn(prove(shared.cx.clone())));
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

/// Keeps this process's shards. Without any it writes to the shared one: slower, as right.
async fn hold_shards(cx: Cx) {
    let node = format!("process {}", std::process::id());
    let every = Duration::from_micros(u64::try_from(RENEW_EVERY.micros()).unwrap_or(15_000_000));
    loop {
        match cx.db.claim_shards(&node, SHARDS).await {
            Ok(held) => {
                let held = f64::from(u32::try_from(held).unwrap_or(0));
                gauge!("ledger_shards_held").set(held);
            }
            Err(error) => tracing::warn!(%error, "the ledger's shards were not renewed"),
        }
        tokio::time::sleep(every).await;
    }
}

/// Proves the ledger again and again, and shows the result. What is violated stops the writers.
async fn prove(cx: Cx) {
    loop {
        let begun = cx.now();
        match app::prove::watch(&cx).await {
            Ok(proof) => {
                for row in &proof.rows {
                    let found = f64::from(u32::try_from(row.violations).unwrap_or(u32::MAX));
                    gauge!("ledger_violations", "invariant" => row.id).set(found);
                    if row.violations > 0 {
                        tracing::error!(
                            invariant = row.id,
                            statement = row.statement,
                            violations = row.violations,
                            examples = row.examples.join(", "),
                            "an invariant of the ledger is violated"
                        );
                    }
                }
                counter!("ledger_proofs_total").increment(1);
            }
            Err(error) => {
                tracing::error!(%error, "the ledger could not be proven");
                counter!("ledger_proof_failures_total").increment(1);
            }
        }
        let took = cx.now().since(begun).micros().max(0).unsigned_abs();
        tokio::time::sleep(PROVE_EVERY.max(Duration::from_micros(took) * PROVE_SHARE)).await;
    }
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
                counter!("reconciled_total", "step" => step.name)
                    .increment(u64::try_from(changed).unwrap_or(0));
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(step = step.name, %error, ?cause, "a reconciler failed");
                counter!("reconciler_failures_total", "step" => step.name).increment(1);
                pause = (pause * 2).min(BACK_OFF_MAX);
            }
        }
        tokio::time::sleep(pause).await;
    }
}
