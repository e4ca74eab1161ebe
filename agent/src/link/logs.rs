//! Answers to the market's questions for a container's output.

use web_openapi::agent::FromAgent;
use web_openapi::lease::LogLine;

use crate::converge::own;
use crate::keeper::KeeperHandle;
use crate::runner::{LogQuery, Runner};

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// To match the answer.
    pub(super) request: u64,
    /// `lse_…`
    pub(super) lease: String,
    /// At most so many lines.
    pub(super) tail: u32,
    /// Only lines after this time.
    pub(super) after: Option<String>,
}

/// Reads the lines; a fault is an answer, too.
pub(super) async fn answer<R: Runner>(
    runner: &R,
    keeper: &KeeperHandle,
    question: Question,
) -> FromAgent {
    let request = question.request;
    let (lines, live, fault) = match read(runner, keeper, &question).await {
        Ok((lines, live)) => (lines, live, None),
        Err(fault) => (Vec::new(), false, Some(fault)),
    };
    FromAgent::Logs {
        request,
        lines,
        live,
        fault,
    }
}

async fn read<R: Runner>(
    runner: &R,
    keeper: &KeeperHandle,
    question: &Question,
) -> Result<(Vec<LogLine>, bool), String> {
    let after = question
        .after
        .as_deref()
        .map(|text| {
            text.parse()
                .map_err(|e| format!("`after` is not a time: {e}"))
        })
        .transpose()?;
    let containers = keeper.containers().await;
    let main = *own(&containers, &question.lease)
        .first()
        .ok_or_else(|| "the lease has no container on this machine".to_owned())?;
    let query = LogQuery {
        tail: question.tail,
        after,
    };
    let lines = runner
        .logs(&main.id, &query)
        .await
        .map_err(|e| e.to_string())?;
    Ok((lines, main.phase.is_active()))
}
