//! Leases: list, show, stop, resume, end, resize.

pub(crate) mod booking;
pub(crate) mod log;
pub(crate) mod watch;

use comfy_table::Table;
use domain::id::LeaseId;
use web_openapi::lease::{Lease, LeaseAction, LeaseActionKind, LeasePage};

use crate::client::Answer;
use crate::command::Page;
use crate::command::renter::LeaseAct;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, exact_money, gpus, money, rate, seconds};

/// Lists leases.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/leases", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: LeasePage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No leases. Book one: gpumarket book --gpu MODEL --image IMAGE");
    }
    output.table(&table(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

/// Leases as rows.
pub(crate) fn table(leases: &[Lease], view: &View) -> Table {
    let rows = leases.iter().map(|lease| {
        vec![
            lease.id.clone(),
            lease.label.clone().unwrap_or_else(|| "-".to_owned()),
            lease.state.clone(),
            gpus(lease.gpu_count, &lease.gpu_model, lease.simulated),
            money(&lease.cost.so_far),
            rate(&lease.cost.rate),
            view.time(&lease.created_at),
        ]
    });
    let heading = [
        "LEASE",
        "LABEL",
        "STATE",
        "GPUS",
        ">COST",
        ">RATE NOW",
        "BOOKED",
    ];
    grid(&heading, rows.collect())
}

/// Reads a lease.
pub(crate) async fn get(cx: &Context, lease: &str) -> Result<Answer, Fault> {
    cx.client.get(&format!("/v1/leases/{lease}"), &[]).await
}

/// Shows a lease.
pub(crate) async fn show(
    cx: &Context,
    output: &mut Output<'_>,
    lease: LeaseId,
) -> Result<(), Fault> {
    let answer = get(cx, &lease.to_string()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    output.table(&picture(&answer.read()?, &cx.view()))
}

/// State and detail in one line.
pub(crate) fn state_line(lease: &Lease) -> String {
    if lease.state_detail.is_empty() {
        format!("{} ({})", lease.state, lease.state_reason)
    } else {
        format!(
            "{} ({}): {}",
            lease.state, lease.state_reason, lease.state_detail
        )
    }
}

/// A lease as names and values.
pub(crate) fn picture(lease: &Lease, view: &View) -> Table {
    let cost = &lease.cost;
    let ask = std::iter::once(lease.workload.image.as_str());
    let runs: Vec<&str> = ask
        .chain(lease.workload.command.iter().map(String::as_str))
        .collect();
    let places: Vec<String> = lease.gpus.iter().map(|g| g.index.to_string()).collect();
    let time = |at: &Option<String>| at.as_deref().map(|at| view.time(at));
    let coming = |at: &Option<String>| at.as_deref().map(|at| view.distant_time(at));
    facts([
        ("lease", Some(lease.id.clone())),
        ("label", lease.label.clone()),
        ("state", Some(state_line(lease))),
        ("cost so far", Some(exact_money(&cost.so_far))),
        ("  settled", Some(exact_money(&cost.settled))),
        ("  held", Some(money(&cost.held))),
        (
            "  proven",
            Some(format!("{} of GPU time", seconds(cost.billable_seconds))),
        ),
        ("rate now", Some(rate(&cost.rate))),
        (
            "GPUs",
            Some(gpus(lease.gpu_count, &lease.gpu_model, lease.simulated)),
        ),
        (
            "  positions",
            Some(places.join(", ")).filter(|p| !p.is_empty()),
        ),
        ("  price", Some(rate(&lease.gpu_hour))),
        ("  if kept", Some(kept_line(lease))),
        (
            "disk",
            Some(format!(
                "{} GiB, {}",
                lease.disk_gib,
                rate(&lease.storage_price)
            )),
        ),
        ("runs", Some(runs.join(" "))),
        ("machine", Some(lease.machine_id.clone())),
        (
            "container",
            lease
                .container_id
                .as_ref()
                .map(|id| id.chars().take(12).collect()),
        ),
        ("booked", Some(view.time(&lease.created_at))),
        ("started", time(&lease.started_at)),
        ("end asked for", time(&lease.end_requested_at)),
        ("ended", time(&lease.ended_at)),
        (
            "stops at",
            lease
                .max_spend
                .as_ref()
                .map(|m| format!("{} spent", money(m))),
        ),
        ("ends", coming(&lease.end_at)),
        (
            "disk costs",
            lease
                .continuing_cost_per_day
                .as_ref()
                .map(|m| format!("{} per day", money(m))),
        ),
        ("disk deleted", coming(&lease.delete_at)),
    ])
}

fn kept_line(lease: &Lease) -> String {
    let price = rate(&lease.keep_price);
    if lease.keeps_gpus {
        format!("{price}, kept now")
    } else {
        price
    }
}

/// Stops: the disk stays, the GPUs are freed or kept.
pub(crate) async fn stop(
    cx: &Context,
    output: &mut Output<'_>,
    (args, keep_gpus): (&LeaseAct, bool),
) -> Result<(), Fault> {
    let action = LeaseAction {
        keep_gpus: keep_gpus.then_some(true),
        ..plain(LeaseActionKind::Stop)
    };
    act(cx, output, args, action).await
}

fn plain(kind: LeaseActionKind) -> LeaseAction {
    LeaseAction {
        kind,
        disk_gib: None,
        keep_gpus: None,
    }
}

/// Starts a stopped lease again.
pub(crate) async fn resume(
    cx: &Context,
    output: &mut Output<'_>,
    args: &LeaseAct,
) -> Result<(), Fault> {
    act(cx, output, args, plain(LeaseActionKind::Resume)).await
}

/// Ends.
pub(crate) async fn end(
    cx: &Context,
    output: &mut Output<'_>,
    args: &LeaseAct,
) -> Result<(), Fault> {
    act(cx, output, args, plain(LeaseActionKind::End)).await
}

/// Grows the disk.
pub(crate) async fn resize(
    cx: &Context,
    output: &mut Output<'_>,
    (lease, disk_gib): (LeaseId, u32),
) -> Result<(), Fault> {
    let path = format!("/v1/leases/{lease}/actions");
    let kind = LeaseActionKind::Resize;
    let action = LeaseAction {
        disk_gib: Some(disk_gib),
        ..plain(kind)
    };
    let answer = cx.client.post(&path, &action).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&after_action(&answer.read()?, kind, &cx.view()))
}

async fn act(
    cx: &Context,
    output: &mut Output<'_>,
    args: &LeaseAct,
    action: LeaseAction,
) -> Result<(), Fault> {
    let path = format!("/v1/leases/{}/actions", args.lease);
    let kind = action.kind;
    let mut answer = cx.client.post(&path, &action).await?;
    if args.wait {
        answer = watch::until_settled(cx, output, answer).await?;
    }
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&after_action(&answer.read()?, kind, &cx.view()))
}

/// What an action did, what goes on costing, and what can be done next.
pub(crate) fn after_action(lease: &Lease, kind: LeaseActionKind, view: &View) -> String {
    let mut lines = vec![format!(
        "{} is {}. Cost so far: {}.",
        lease.id,
        state_line(lease),
        exact_money(&lease.cost.so_far)
    )];
    match kind {
        LeaseActionKind::Stop => {
            if let Some(per_day) = &lease.continuing_cost_per_day {
                let what = if lease.keeps_gpus {
                    "Disk and kept GPUs go"
                } else {
                    "The disk goes"
                };
                lines.push(format!("{what} on costing {} per day.", money(per_day)));
            }
            if let Some(at) = &lease.delete_at {
                lines.push(format!("The disk is deleted {}.", view.distant_time(at)));
            }
            lines.push(format!(
                "Next: gpumarket resume {0}   or   gpumarket end {0}",
                lease.id
            ));
        }
        LeaseActionKind::Resume => lines.push(format!("Next: gpumarket show {} --watch", lease.id)),
        LeaseActionKind::Resize => lines.push(format!(
            "The disk has {} GiB. Rate now: {}.",
            lease.disk_gib,
            rate(&lease.cost.rate)
        )),
        LeaseActionKind::End => {
            lines.push("Nothing more is billed.".to_owned());
            lines.push(format!(
                "Next: gpumarket statement {} -o bill.json; gpumarket verify bill.json",
                lease.id
            ));
        }
    }
    lines.join("\n")
}
