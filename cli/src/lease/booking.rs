//! Booking in one command: search, cheapest, quote, price, lease, wait.

use std::collections::BTreeMap;

use serde_json::Value;
use web_openapi::lease::{CreateLease, Lease, Workload};
use web_openapi::money::Money;
use web_openapi::quote::Quote;

use crate::client::Answer;
use crate::command::renter::Book;
use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::lease::watch::until_settled;
use crate::output::Output;
use crate::quote::{cheapest, of_match, of_offer};
use crate::text::{gpus, money, rate, seconds};

/// Searches made at most when others take what was found.
const ROUNDS: u32 = 3;

/// Books, shows the price, and waits until the container runs.
pub(crate) async fn book(cx: &Context, output: &mut Output<'_>, args: Book) -> Result<(), Fault> {
    let mut order = CreateLease {
        quote_id: String::new(),
        workload: Workload {
            image: args.image.clone(),
            command: args.command.clone(),
            env: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        },
        label: args.label.clone(),
        max_spend: args.max_spend.map(Money::usd),
        end_at: args.end_after.map(|wait| cx.in_future(wait)).transpose()?,
    };
    let booked = take(cx, output, &args, &mut order).await?;
    let lease: Lease = booked.read()?;
    output.say(&format!("Booked {}.", lease.id))?;
    if args.no_wait {
        return finish(output, &booked);
    }
    let waiting = Box::pin(until_settled(cx, output, booked));
    let settled = tokio::select! {
        settled = waiting => settled,
        _enough = tokio::signal::ctrl_c() => Err(abandoned(&lease.id)),
    };
    finish(output, &settled?)
}

fn abandoned(lease: &str) -> Fault {
    Local::new(
        "abandoned",
        format!("Stopped waiting. {lease} goes on, and costs once it runs."),
    )
    .suggest(format!("gpumarket show {lease}; gpumarket end {lease}"))
    .with("lease_id", lease.into())
    .into()
}

/// Quotes and books; searches again if others were faster.
async fn take(
    cx: &Context,
    output: &mut Output<'_>,
    args: &Book,
    order: &mut CreateLease,
) -> Result<Answer, Fault> {
    let is_chosen = args.quote.is_some() || args.offer.is_some();
    let mut round = 1;
    loop {
        let result = quote_and_book(cx, output, args, order).await;
        let Err(fault) = result else { return result };
        let was_taken = matches!(fault.code(), Some("capacity_taken" | "offer_changed"));
        if is_chosen || !was_taken || round >= ROUNDS {
            return Err(fault);
        }
        output.say("Somebody was faster; searching again.")?;
        round = round.saturating_add(1);
    }
}

async fn quote_and_book(
    cx: &Context,
    output: &mut Output<'_>,
    args: &Book,
    order: &mut CreateLease,
) -> Result<Answer, Fault> {
    let size = &args.filter.size;
    let quoted = match (args.quote, args.offer) {
        (Some(id), _) => cx.client.get(&format!("/v1/quotes/{id}"), &[]).await?,
        (None, Some(offer)) => of_offer(cx, offer, size).await?,
        (None, None) => of_match(cx, &cheapest(cx, &args.filter).await?, size).await?,
    };
    let quote: Quote = quoted.read()?;
    output.say(&price_lines(&quote))?;
    order.quote_id.clone_from(&quote.id);
    cx.client.post("/v1/leases", order).await
}

/// The price before anything is bought.
pub(crate) fn price_lines(quote: &Quote) -> String {
    let price = &quote.price;
    format!(
        "{} with {} GiB disk from {}\n\
         {}, all-in; {} for {} (GPUs {}, disk {}, tax {})",
        gpus(quote.gpu_count, &quote.gpu_model, quote.simulated),
        quote.disk_gib,
        quote.offer_id,
        rate(&price.total_per_hour),
        money(&price.total),
        seconds(price.duration_seconds.into()),
        money(&price.compute),
        money(&price.storage),
        money(&price.tax),
    )
}

/// The result, or a failure if it did not come to run.
fn finish(output: &mut Output<'_>, answer: &Answer) -> Result<(), Fault> {
    let lease: Lease = answer.read()?;
    let never_ran = lease.started_at.is_none() && lease.state != "running";
    let is_lost = matches!(lease.state.as_str(), "failed" | "ended" | "stopped");
    if never_ran && is_lost {
        let why = if lease.state_detail.is_empty() {
            &lease.state_reason
        } else {
            &lease.state_detail
        };
        let raw: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        let detail = format!("{} is {} and never ran: {why}", lease.id, lease.state);
        return Err(Local::new("lease_failed", detail)
            .suggest(format!("gpumarket events {}", lease.id))
            .with("lease", raw)
            .into());
    }
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&next_commands(&lease))
}

/// What one wants to do with a new lease.
pub(crate) fn next_commands(lease: &Lease) -> String {
    let id = &lease.id;
    format!(
        "\n  gpumarket show {id} --watch\n  gpumarket logs {id} --follow\n  \
         gpumarket stop {id}\n  gpumarket end {id}"
    )
}
