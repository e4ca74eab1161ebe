//! Watching a lease: again every second, or until the machine has done what was asked.

use domain::id::LeaseId;
use domain::lease::LeaseState;
use web_openapi::lease::Lease;

use crate::client::Answer;
use crate::context::Context;
use crate::fault::Fault;
use crate::lease::{get, picture, state_line};
use crate::output::Output;
use crate::text::exact_money;

/// Counts failures that pass, so that a wait outlives a restart of the market but not its end.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    in_a_row: u32,
}

impl Failures {
    /// The value, or nothing for now; the failure once there were too many.
    pub(crate) fn bear<T>(
        &mut self,
        cx: &Context,
        output: &mut Output<'_>,
        result: Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        match result {
            Ok(value) => {
                self.in_a_row = 0;
                Ok(Some(value))
            }
            Err(fault) if fault.is_passing() && self.in_a_row < cx.client.patience().failures => {
                if self.in_a_row == 0 {
                    output.note("The market does not answer now; still trying.")?;
                }
                self.in_a_row = self.in_a_row.saturating_add(1);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Is something under way that ends without anybody's doing? An unknown state is left alone.
pub(crate) fn is_moving(state: &str) -> bool {
    state
        .parse::<LeaseState>()
        .is_ok_and(|s| s.limit().is_some())
}

/// Is its life over?
pub(crate) fn is_over(state: &str) -> bool {
    state.parse::<LeaseState>().is_ok_and(LeaseState::is_final)
}

/// Waits until nothing is under way any more; tells each change of state and detail.
pub(crate) async fn until_settled(
    cx: &Context,
    output: &mut Output<'_>,
    first: Answer,
) -> Result<Answer, Fault> {
    let (mut answer, mut told, mut failures) = (first, String::new(), Failures::default());
    loop {
        let lease: Lease = answer.read()?;
        let line = state_line(&lease);
        if line != told {
            output.say(&format!("  {line}"))?;
            told = line;
        }
        if !is_moving(&lease.state) {
            return Ok(answer);
        }
        tokio::time::sleep(cx.client.patience().poll).await;
        let next = get(cx, &lease.id).await;
        if let Some(next) = failures.bear(cx, output, next)? {
            answer = next;
        }
    }
}

/// Shows a lease every second until it is over or the user has seen enough.
pub(crate) async fn watch(
    cx: &Context,
    output: &mut Output<'_>,
    lease: LeaseId,
) -> Result<(), Fault> {
    let watching = Box::pin(refresh(cx, output, lease.to_string()));
    tokio::select! {
        done = watching => done,
        _enough = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn refresh(cx: &Context, output: &mut Output<'_>, id: String) -> Result<(), Fault> {
    let mut failures = Failures::default();
    let mut beat = tokio::time::interval(cx.client.patience().poll);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut is_first = true;
    loop {
        beat.tick().await;
        let result = get(cx, &id).await;
        // The first look decides whether there is anything to watch.
        let answer = if is_first {
            Some(result?)
        } else {
            failures.bear(cx, output, result)?
        };
        is_first = false;
        let Some(answer) = answer else { continue };
        let lease: Lease = answer.read()?;
        draw(cx, output, &answer, &lease)?;
        if is_over(&lease.state) {
            return Ok(());
        }
    }
}

/// A picture on a terminal, a line elsewhere, a document with `--json`.
fn draw(
    cx: &Context,
    output: &mut Output<'_>,
    answer: &Answer,
    lease: &Lease,
) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let view = cx.view();
    if !output.terminal() {
        let now = view.time(&view.now.to_string());
        let cost = exact_money(&lease.cost.so_far);
        return output.say(&format!("{now}  {cost}  {}", state_line(lease)));
    }
    output.clear()?;
    output.table(&picture(lease, &view))?;
    output.say("\nCtrl-C ends the watching, not the lease.")
}
