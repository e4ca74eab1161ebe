//! Payouts: asked for, shown, listed.

use comfy_table::Table;
use domain::id::PayoutId;
use domain::money::Micros;
use web_openapi::money::Money;
use web_openapi::payout::{CreatePayout, Payout, PayoutPage};

use crate::client::Answer;
use crate::command::Page;
use crate::command::staff::PayoutCommand;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, money};

/// Does what is asked with payouts.
pub(crate) async fn perform(
    cx: &Context,
    output: &mut Output<'_>,
    command: PayoutCommand,
) -> Result<(), Fault> {
    match command {
        PayoutCommand::Create { amount } => create(cx, output, amount).await,
        PayoutCommand::Show { payout } => show(cx, output, payout).await,
    }
}

async fn create(
    cx: &Context,
    output: &mut Output<'_>,
    amount: Option<Micros>,
) -> Result<(), Fault> {
    let request = CreatePayout {
        amount: amount.map(Money::usd),
    };
    let answer = cx.client.post("/v1/payouts", &request).await?;
    picture(cx, output, &answer)
}

async fn show(cx: &Context, output: &mut Output<'_>, id: PayoutId) -> Result<(), Fault> {
    let answer = cx.client.get(&format!("/v1/payouts/{id}"), &[]).await?;
    picture(cx, output, &answer)
}

fn amount(payout: &Payout) -> String {
    let play = if payout.sandbox { " (play money)" } else { "" };
    format!("{}{play}", money(&payout.amount))
}

fn picture(cx: &Context, output: &mut Output<'_>, answer: &Answer) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let payout: Payout = answer.read()?;
    let view = cx.view();
    output.table(&facts([
        ("payout", Some(payout.id.clone())),
        ("amount", Some(amount(&payout))),
        ("state", Some(payout.state.clone())),
        ("why", Some(payout.state_reason.clone())),
        ("asked for", Some(view.time(&payout.requested_at))),
        ("since", Some(view.time(&payout.state_at))),
    ]))
}

/// Lists payouts.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/payouts", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: PayoutPage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No payouts. Ask for one: gpumarket payout create");
    }
    output.table(&table(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

fn table(payouts: &[Payout], view: &View) -> Table {
    let rows = payouts.iter().map(|payout| {
        vec![
            payout.id.clone(),
            amount(payout),
            payout.state.clone(),
            view.time(&payout.state_at),
            payout.state_reason.clone(),
        ]
    });
    let heading = ["PAYOUT", ">AMOUNT", "STATE", "SINCE", "WHY"];
    grid(&heading, rows.collect())
}
