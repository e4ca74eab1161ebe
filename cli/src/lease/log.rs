//! A container's output.

use web_openapi::lease::{Lease, LeaseLogs, LogLine};

use crate::client::Answer;
use crate::command::renter::Logs;
use crate::context::Context;
use crate::fault::Fault;
use crate::lease::get;
use crate::lease::watch::{Failures, is_moving};
use crate::output::Output;

/// Prints lines; with `follow` until the container ends or the user has seen enough.
pub(crate) async fn print(cx: &Context, output: &mut Output<'_>, args: &Logs) -> Result<(), Fault> {
    if !args.follow {
        let answer = read(cx, args, None).await?;
        if output.json() {
            return output.document(&answer.body);
        }
        return lines(cx, output, args, &answer.read::<LeaseLogs>()?.data);
    }
    let following = Box::pin(follow(cx, output, args));
    tokio::select! {
        done = following => done,
        _enough = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn read(cx: &Context, args: &Logs, after: Option<&String>) -> Result<Answer, Fault> {
    let tail = args.tail.filter(|_first| after.is_none());
    let tail = tail.map(|n| ("tail", n.to_string()));
    let after = after.map(|at| ("after", at.clone()));
    let query: Vec<_> = tail.into_iter().chain(after).collect();
    cx.client
        .get(&format!("/v1/leases/{}/logs", args.lease), &query)
        .await
}

async fn follow(cx: &Context, output: &mut Output<'_>, args: &Logs) -> Result<(), Fault> {
    let mut after: Option<String> = None;
    let mut failures = Failures::default();
    loop {
        let result = match read(cx, args, after.as_ref()).await {
            // There is no container yet, or not any more: the lease's state says which.
            Err(fault) if fault.code() == Some("lease_state") => {
                if !is_under_way(cx, output, args, &mut failures).await? {
                    return Err(fault);
                }
                Ok(None)
            }
            other => other.map(Some),
        };
        let answer = failures.bear(cx, output, result)?.flatten();
        let mut is_caught_up = true;
        if let Some(answer) = answer {
            let logs: LeaseLogs = answer.read()?;
            if logs.next_after.is_some() {
                after.clone_from(&logs.next_after);
            }
            is_caught_up = logs.data.is_empty();
            if !logs.data.is_empty() {
                if output.json() {
                    output.document(&answer.body)?;
                } else {
                    lines(cx, output, args, &logs.data)?;
                }
            } else if !logs.live && !is_under_way(cx, output, args, &mut failures).await? {
                return Ok(());
            }
        }
        if is_caught_up {
            tokio::time::sleep(cx.client.patience().poll).await;
        }
    }
}

/// Will there be a container without anybody's doing? While nobody answers, perhaps.
async fn is_under_way(
    cx: &Context,
    output: &mut Output<'_>,
    args: &Logs,
    failures: &mut Failures,
) -> Result<bool, Fault> {
    let answer = get(cx, &args.lease.to_string()).await;
    match failures.bear(cx, output, answer)? {
        Some(answer) => Ok(is_moving(&answer.read::<Lease>()?.state)),
        None => Ok(true),
    }
}

fn lines(
    cx: &Context,
    output: &mut Output<'_>,
    args: &Logs,
    lines: &[LogLine],
) -> Result<(), Fault> {
    let view = cx.view();
    for line in lines {
        let text = if args.timestamps {
            format!("{}  {}", view.time(&line.at), line.text)
        } else {
            line.text.clone()
        };
        output.log_line(line.stream == "stderr", &text, args.raw)?;
    }
    Ok(())
}
