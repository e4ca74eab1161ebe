//! Money: the wallet, top-ups, movements, earnings.

use comfy_table::Table;
use domain::money::Micros;
use web_openapi::money::Money;
use web_openapi::wallet::{CreateTopUp, Earnings, TopUp, Transaction, TransactionPage, Wallet};

use crate::command::Page;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, money, rate, signed_money};

/// Shows the wallet.
pub(crate) async fn show(cx: &Context, output: &mut Output<'_>) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/wallet", &[]).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    output.table(&picture(&answer.read()?, &cx.view()))
}

/// The wallet as names and values.
pub(crate) fn picture(wallet: &Wallet, view: &View) -> Table {
    facts([
        ("available", Some(money(&wallet.available))),
        ("held for leases", Some(money(&wallet.held))),
        ("posted", Some(money(&wallet.posted))),
        ("credit, used first", some(&wallet.promo)),
        ("owed", some(&wallet.receivable)),
        (
            "frozen",
            wallet
                .frozen
                .then(|| "yes: nothing new can be booked".to_owned()),
        ),
        ("burns", Some(rate(&wallet.burn_rate))),
        (
            "runs out",
            wallet
                .runs_out_at
                .as_deref()
                .map(|at| view.distant_time(at)),
        ),
        ("payments", Some(payments(&wallet.payments))),
    ])
}

/// An amount that is worth a line.
fn some(amount: &Money) -> Option<String> {
    let nothing = amount.parse().is_ok_and(|m| m.amount == Micros::ZERO);
    (!nothing).then(|| money(amount))
}

fn payments(kind: &str) -> String {
    match kind {
        "sandbox" => "sandbox (play money)".to_owned(),
        other => other.to_owned(),
    }
}

/// Puts money in.
pub(crate) async fn top_up(
    cx: &Context,
    output: &mut Output<'_>,
    amount: Micros,
) -> Result<(), Fault> {
    let request = CreateTopUp {
        amount: Money::usd(amount),
    };
    let answer = cx.client.post("/v1/wallet/top-ups", &request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let top_up: TopUp = answer.read()?;
    output.say(&format!(
        "Top-up {} of {}: {}, {}.",
        top_up.id,
        money(&top_up.amount),
        top_up.status,
        payments(&top_up.payments)
    ))?;
    output.table(&picture(&top_up.wallet, &cx.view()))
}

/// Lists movements of money.
pub(crate) async fn transactions(
    cx: &Context,
    output: &mut Output<'_>,
    page: &Page,
) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/transactions", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: TransactionPage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No money has moved yet.");
    }
    output.table(&movements(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

fn movements(rows: &[Transaction], view: &View) -> Table {
    let rows = rows.iter().map(|row| {
        vec![
            view.time(&row.at),
            row.kind.clone(),
            row.account.clone(),
            signed_money(&row.amount),
            row.cause.clone(),
            row.description.clone(),
        ]
    });
    let heading = ["TIME", "KIND", "ACCOUNT", ">AMOUNT", "CAUSE", "DESCRIPTION"];
    grid(&heading, rows.collect())
}

/// Shows what a provider has earned.
pub(crate) async fn earnings(cx: &Context, output: &mut Output<'_>) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/earnings", &[]).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let earned: Earnings = answer.read()?;
    output.table(&facts([
        ("renters paid", Some(money(&earned.gross))),
        ("platform's fee", Some(money(&earned.fee))),
        ("earned", Some(money(&earned.net))),
        ("of it maturing", Some(money(&earned.maturing))),
        ("of it kept back", some(&earned.reserve)),
        ("of it payable", Some(money(&earned.payable))),
        ("of it on its way", some(&earned.in_flight)),
        ("of it paid out", Some(money(&earned.paid))),
        ("owed", some(&earned.receivable)),
        ("not booked yet", Some(money(&earned.pending))),
        ("earning now", Some(rate(&earned.earning_rate))),
        ("live leases", Some(earned.live_leases.to_string())),
    ]))
}
