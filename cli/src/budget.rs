//! Budgets: made, shown, changed, removed.

use comfy_table::Table;
use domain::id::BudgetId;
use domain::money::Micros;
use web_openapi::budget::{
    Budget, BudgetAction, BudgetPage, BudgetPeriod, BudgetScope, CreateBudget, PatchBudget,
};
use web_openapi::money::Money;

use crate::client::Answer;
use crate::command::Page;
use crate::command::money::{Action, BudgetCommand, Period};
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, money};

const fn action(action: Action) -> BudgetAction {
    match action {
        Action::Alert => BudgetAction::Alert,
        Action::Stop => BudgetAction::Stop,
    }
}

fn subject(b: &Budget) -> String {
    match b.scope {
        BudgetScope::Party => "the whole party".to_owned(),
        BudgetScope::Member => format!("member {}", b.member_id.as_deref().unwrap_or("-")),
        BudgetScope::Label => format!("label {}", b.label.as_deref().unwrap_or("-")),
        BudgetScope::Lease => format!("lease {}", b.lease_id.as_deref().unwrap_or("-")),
    }
}

const fn period(b: &Budget) -> &'static str {
    match b.period {
        BudgetPeriod::Month => "each UTC month",
        BudgetPeriod::Total => "for ever",
    }
}

/// `41 %`, rounded down; the amounts are exact beside it.
fn used(b: &Budget) -> String {
    let amount = |m: &Money| m.parse().map_or(0, |m| i128::from(m.amount.get()));
    let limit = amount(&b.limit).max(1);
    let percent = amount(&b.spent).saturating_mul(100).div_euclid(limit);
    format!("{percent} %")
}

fn at_the_end(b: &Budget) -> &'static str {
    match b.action {
        BudgetAction::Alert => "alert",
        BudgetAction::Stop => "stop leases, refuse bookings",
    }
}

/// Lists budgets.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/budgets", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: BudgetPage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No budgets. Make one: gpumarket budget create --limit USD");
    }
    let row = |b: &Budget| {
        vec![
            b.id.clone(),
            subject(b),
            period(b).to_owned(),
            money(&b.spent),
            money(&b.limit),
            used(b),
            at_the_end(b).to_owned(),
        ]
    };
    let heading = [
        "BUDGET", "OF", "PERIOD", ">SPENT", ">LIMIT", ">USED", "AT 100 %",
    ];
    output.table(&grid(&heading, page.data.iter().map(row).collect()))?;
    output.more(page.next_cursor.as_deref())
}

fn picture(b: &Budget, view: &View) -> Table {
    let percents: Vec<String> = b.alert_percents.iter().map(|p| format!("{p} %")).collect();
    let told = b.alerts.iter().map(|a| {
        let at = view.time(&a.at);
        format!("{} % at {} ({at})", a.percent, money(&a.spent))
    });
    let told: Vec<String> = told.collect();
    facts([
        ("budget", Some(b.id.clone())),
        ("of", Some(subject(b))),
        ("period", Some(period(b).to_owned())),
        ("limit", Some(money(&b.limit))),
        ("spent", Some(format!("{} ({})", money(&b.spent), used(b)))),
        (
            "alerts at",
            (!percents.is_empty()).then(|| percents.join(", ")),
        ),
        ("told", (!told.is_empty()).then(|| told.join(", "))),
        ("at 100 %", Some(at_the_end(b).to_owned())),
        ("version", Some(b.version.to_string())),
        ("changed", Some(view.time(&b.updated_at))),
    ])
}

fn tell(cx: &Context, output: &mut Output<'_>, answer: &Answer) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    output.table(&picture(&answer.read()?, &cx.view()))
}

/// Does what is asked.
pub(crate) async fn perform(
    cx: &Context,
    output: &mut Output<'_>,
    command: BudgetCommand,
) -> Result<(), Fault> {
    match command {
        BudgetCommand::Create {
            member,
            label,
            lease,
            limit,
            period,
            action: end,
            alerts,
        } => {
            let scope = match (&member, &label, &lease) {
                (Some(_), _, _) => BudgetScope::Member,
                (None, Some(_), _) => BudgetScope::Label,
                (None, None, Some(_)) => BudgetScope::Lease,
                (None, None, None) => BudgetScope::Party,
            };
            let request = CreateBudget {
                scope,
                member_id: member.map(|m| m.to_string()),
                label,
                lease_id: lease.map(|l| l.to_string()),
                period: match period {
                    Period::Month => BudgetPeriod::Month,
                    Period::Total => BudgetPeriod::Total,
                },
                limit: Money::usd(limit),
                alert_percents: alerts,
                action: action(end),
            };
            let answer = cx.client.post("/v1/budgets", &request).await?;
            tell(cx, output, &answer)
        }
        BudgetCommand::Show { budget } => {
            let answer = cx.client.get(&path(budget), &[]).await?;
            tell(cx, output, &answer)
        }
        BudgetCommand::Set {
            budget,
            limit,
            action: end,
            alerts,
        } => {
            let patch = PatchBudget {
                limit: limit.map(|usd: Micros| Money::usd(usd)),
                alert_percents: alerts,
                action: end.map(action),
            };
            set(cx, output, budget, &patch).await
        }
        BudgetCommand::Remove { budget } => {
            let answer = cx.client.delete(&path(budget)).await?;
            if output.json() {
                return output.document(&answer.body);
            }
            output.say(&format!("Removed {budget}."))
        }
    }
}

fn path(id: BudgetId) -> String {
    format!("/v1/budgets/{id}")
}

async fn set(
    cx: &Context,
    output: &mut Output<'_>,
    id: BudgetId,
    patch: &PatchBudget,
) -> Result<(), Fault> {
    if patch.limit.is_none() && patch.alert_percents.is_none() && patch.action.is_none() {
        let told = "nothing to change: give e.g. --limit USD";
        return Err(Fault::Usage(told.to_owned()));
    }
    let present = cx.client.get(&path(id), &[]).await?;
    let if_match = present.etag.unwrap_or_else(|| "*".to_owned());
    let answer = cx.client.patch(&path(id), if_match, patch).await?;
    tell(cx, output, &answer)
}
