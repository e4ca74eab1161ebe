//! What the operator's people do with money: credits, adjustments, a second pair of eyes.

use comfy_table::Table;
use serde::Serialize;
use web_openapi::adjustment::{
    Adjustment, AdjustmentAction, AdjustmentDirection, AdjustmentPage, AdjustmentVerdict,
    ProposeAdjustment,
};
use web_openapi::credit::{Credit, CreditPage, CreditType, GrantCredit};
use web_openapi::money::Money;
use web_openapi::session::{Login, Session};

use crate::client::{Answer, Client};
use crate::command::staff::{self as asked, Admin, AdminCommand};
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::password;
use crate::session::warn_if_open;
use crate::text::{View, money};

const ADJUSTMENTS: &str = "/v1/admin/adjustments";

/// Logs in for one command, and does it.
pub(crate) async fn perform(
    cx: &mut Context,
    output: &mut Output<'_>,
    args: Admin,
) -> Result<(), Fault> {
    warn_if_open(cx, output)?;
    let password = password::take(cx, output, args.password_stdin)?;
    let request = Login {
        email: args.email,
        password,
    };
    let anonymous = cx.client.with_key(None);
    let session: Session = anonymous.post("/v1/auth/login", &request).await?.read()?;
    let person = cx.client.with_key(Some(session.access_token));
    let view = cx.view();
    match args.command {
        AdminCommand::Credits(page) => {
            let answer = person.get("/v1/admin/credits", &page.query()).await?;
            list(output, &answer, |page: CreditPage| {
                (credits(&page.data, &view), page.next_cursor)
            })
        }
        AdminCommand::Adjustments(page) => {
            let answer = person.get(ADJUSTMENTS, &page.query()).await?;
            list(output, &answer, |page: AdjustmentPage| {
                (adjustments(&page.data, &view), page.next_cursor)
            })
        }
        AdminCommand::Credit(credit) => grant(cx, &person, output, credit).await,
        AdminCommand::Adjust(adjust) => {
            let request = ProposeAdjustment {
                party_id: adjust.party.to_string(),
                direction: match adjust.direction {
                    asked::Direction::Credit => AdjustmentDirection::Credit,
                    asked::Direction::Debit => AdjustmentDirection::Debit,
                },
                account: adjust.account,
                borne_by: adjust.borne_by,
                amount: Money::usd(adjust.amount),
                reason: adjust.reason,
            };
            adjust_with(&person, output, (ADJUSTMENTS, &request), &view).await
        }
        AdminCommand::Approve { adjustment } => {
            let path = format!("{ADJUSTMENTS}/{adjustment}/actions");
            let request = AdjustmentAction {
                kind: AdjustmentVerdict::Approve,
                reason: None,
            };
            adjust_with(&person, output, (&path, &request), &view).await
        }
        AdminCommand::Reject { adjustment, reason } => {
            let path = format!("{ADJUSTMENTS}/{adjustment}/actions");
            let request = AdjustmentAction {
                kind: AdjustmentVerdict::Reject,
                reason: Some(reason),
            };
            adjust_with(&person, output, (&path, &request), &view).await
        }
    }
}

fn list<T: serde::de::DeserializeOwned>(
    output: &mut Output<'_>,
    answer: &Answer,
    rows: impl Fn(T) -> (Table, Option<String>),
) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let (table, next) = rows(answer.read()?);
    output.table(&table)?;
    output.more(next.as_deref())
}

fn credits(rows: &[Credit], view: &View) -> Table {
    let rows = rows.iter().map(|c| {
        vec![
            c.id.clone(),
            c.party_id.clone(),
            c.kind.clone(),
            money(&c.amount),
            money(&c.remaining),
            c.expires_at
                .as_deref()
                .map_or_else(|| "never".to_owned(), |at| view.time(at)),
            c.reason.clone(),
        ]
    });
    let heading = [
        "CREDIT", "PARTY", "TYPE", ">AMOUNT", ">LEFT", "ENDS", "REASON",
    ];
    grid(&heading, rows.collect())
}

fn adjustments(rows: &[Adjustment], view: &View) -> Table {
    let rows = rows.iter().map(|a| {
        vec![
            a.id.clone(),
            a.party_id.clone(),
            a.direction.clone(),
            money(&a.amount),
            a.state.clone(),
            a.proposed_by.clone(),
            view.time(&a.proposed_at),
            a.reason.clone(),
        ]
    });
    let heading = [
        "ADJUSTMENT",
        "PARTY",
        "WAY",
        ">AMOUNT",
        "STATE",
        "BY",
        "AT",
        "REASON",
    ];
    grid(&heading, rows.collect())
}

async fn grant(
    cx: &Context,
    person: &Client,
    output: &mut Output<'_>,
    credit: asked::Credit,
) -> Result<(), Fault> {
    let ends = credit.expires_after.map(|wait| cx.in_future(wait));
    let request = GrantCredit {
        kind: match credit.kind {
            asked::CreditType::Promo => CreditType::Promo,
            asked::CreditType::Sla => CreditType::Sla,
            asked::CreditType::Goodwill => CreditType::Goodwill,
        },
        party_id: credit.party.map(|id| id.to_string()),
        amount: Money::usd(credit.amount),
        lease_id: credit.lease.map(|id| id.to_string()),
        expires_at: ends.transpose()?,
        reason: credit.reason,
    };
    let answer = person.post("/v1/admin/credits", &request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let credit: Credit = answer.read()?;
    output.say(&format!(
        "Granted {} to {}: {}.",
        money(&credit.amount),
        credit.party_id,
        credit.id
    ))
}

async fn adjust_with<T: Serialize>(
    person: &Client,
    output: &mut Output<'_>,
    (path, request): (&str, &T),
    view: &View,
) -> Result<(), Fault> {
    let answer = person.post(path, request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let a: Adjustment = answer.read()?;
    let waits = a.state == "proposed";
    output.table(&facts([
        ("adjustment", Some(a.id)),
        ("party", Some(a.party_id)),
        ("account", Some(a.account)),
        ("borne by", Some(a.borne_by)),
        (
            "amount",
            Some(format!("{} {}", a.direction, money(&a.amount))),
        ),
        ("state", Some(a.state)),
        ("reason", Some(a.reason)),
        (
            "waits for a second person until",
            waits.then(|| view.time(&a.expires_at)),
        ),
    ]))
}
