//! Usage: sums, and the FOCUS file.

use std::path::PathBuf;

use web_openapi::usage::{Usage, UsageRow};

use crate::command::money::{Span, Usage as Args, UsageCommand};
use crate::context::Context;
use crate::fault::Fault;
use crate::invoice::keep;
use crate::output::{Output, grid};
use crate::text::{exact_money, seconds};

fn query(span: &Span) -> Vec<(&'static str, String)> {
    let from = span.from.iter().map(|t| ("from", t.clone()));
    let to = span.to.iter().map(|t| ("to", t.clone()));
    let side = span.earnings.then(|| ("side", "earnings".to_owned()));
    from.chain(to).chain(side).collect()
}

/// Does what is asked.
pub(crate) async fn perform(
    cx: &Context,
    output: &mut Output<'_>,
    args: Args,
) -> Result<(), Fault> {
    match args.command {
        Some(UsageCommand::Focus { span, output: file }) => focus(cx, output, &span, file).await,
        None => show(cx, output, &args).await,
    }
}

async fn show(cx: &Context, output: &mut Output<'_>, args: &Args) -> Result<(), Fault> {
    let mut query = query(&args.span);
    query.push(("group_by", args.by.as_str().to_owned()));
    let answer = cx.client.get("/v1/usage", &query).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let usage: Usage = answer.read()?;
    if usage.data.is_empty() {
        return output.say(&format!(
            "Nothing was charged from {} to {} (UTC).",
            usage.from, usage.to
        ));
    }
    let row = |r: &UsageRow| {
        let key = if r.key.is_empty() { "-" } else { &r.key };
        vec![
            key.to_owned(),
            seconds(r.gpu_seconds),
            exact_money(&r.gross),
            exact_money(&r.fee),
            exact_money(&r.tax),
            exact_money(&r.total),
        ]
    };
    let first = usage.group_by.to_uppercase();
    let heading = [
        first.as_str(),
        ">GPU TIME",
        ">GROSS",
        ">FEE IN IT",
        ">TAX",
        ">TOTAL",
    ];
    output.table(&grid(&heading, usage.data.iter().map(row).collect()))?;
    let more = if usage.has_more {
        " Not all rows are shown."
    } else {
        ""
    };
    output.say(&format!(
        "\nTotal from {} to {} (UTC): {}.{more}",
        usage.from,
        usage.to,
        exact_money(&usage.total)
    ))
}

async fn focus(
    cx: &Context,
    output: &mut Output<'_>,
    span: &Span,
    file: Option<PathBuf>,
) -> Result<(), Fault> {
    let query = query(span);
    let answer = cx
        .client
        .get_file("/v1/usage/focus", &query, "text/csv")
        .await?;
    match file {
        Some(file) => keep(output, &file, &answer.body),
        None if output.json() => Err(Fault::Usage(
            "the file is CSV: give --output FILE, or leave --json out".to_owned(),
        )),
        None => output.document(&answer.body),
    }
}
