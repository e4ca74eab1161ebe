//! Statements: fetch the signed bill of a lease or of a period's earnings, and recompute them without
//! the market.

mod earnings;
mod meeting;

use std::path::{Path, PathBuf};

use billing::statement::{
    Document, MeterLines, Stated, StatementBody, StatementFault, Verified, read,
};
use comfy_table::Table;
use domain::id::LeaseId;
use domain::money::{Micros, Period};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::command::EarningsStatement;
use crate::config::replace_file;
use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::output::{Output, facts, grid};
use crate::text::{View, gpus, micros, seconds};

/// Fetches a statement and keeps its bytes as they are.
pub(crate) async fn fetch(
    cx: &Context,
    output: &mut Output<'_>,
    lease: LeaseId,
    file: Option<PathBuf>,
) -> Result<(), Fault> {
    let path = format!("/v1/leases/{lease}/statement");
    keep(output, &cx.client.get(&path, &[]).await?, file)
}

/// Fetches the earnings of a period and keeps their bytes as they are.
pub(crate) async fn fetch_earnings(
    cx: &Context,
    output: &mut Output<'_>,
    args: EarningsStatement,
) -> Result<(), Fault> {
    let mut query = vec![("from", args.from)];
    query.extend(args.to.map(|to| ("to", to)));
    query.extend(args.lease.map(|lease| ("lease", lease.to_string())));
    let answer = cx.client.get("/v1/earnings/statement", &query).await?;
    keep(output, &answer, args.output)
}

fn keep(output: &mut Output<'_>, answer: &Answer, file: Option<PathBuf>) -> Result<(), Fault> {
    let Some(file) = file else {
        return output.document(&answer.body);
    };
    replace_file(&file, &answer.body, 0o644).map_err(|bad| {
        Local::new(
            "file",
            format!("{} cannot be written: {bad}.", file.display()),
        )
    })?;
    if output.json() {
        return output.document(&answer.body);
    }
    let name = file.display();
    output.say(&format!(
        "Wrote {name}, {} bytes. Recompute it: gpumarket verify {name}",
        answer.body.len()
    ))
}

/// Where the trusted key is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Given on the command line.
    Given,
    /// Pinned in the named profile.
    Pinned(String),
    /// There is none.
    None,
}

/// Recomputes statements, offline; and compares each lease's with each provider's earnings.
pub(crate) fn verify(
    cx: &Context,
    output: &mut Output<'_>,
    files: &[PathBuf],
    key: Option<String>,
) -> Result<(), Fault> {
    let (text, trust) = match (key, cx.profile.statement_key.clone()) {
        (Some(given), _) => (Some(given), Trust::Given),
        (None, Some(pinned)) => (Some(pinned), Trust::Pinned(cx.profile_name.clone())),
        (None, None) => (None, Trust::None),
    };
    let trusted = text.as_deref().map(read_key).transpose()?;
    let mut documents = Vec::new();
    for file in files {
        let bytes = std::fs::read(file).map_err(|bad| {
            Local::new("file", format!("{} cannot be read: {bad}.", file.display()))
        })?;
        let document = read(&bytes, trusted).map_err(|fault| refuse(file, &fault, &trust))?;
        documents.push((file.as_path(), document));
    }
    let meetings = meeting::all(&documents)?;
    if output.json() {
        let each: Vec<Value> = documents.iter().map(|(_, d)| as_json(d)).collect();
        return match (each.as_slice(), documents.len()) {
            ([only], 1) => output.value(only),
            _ => output.value(&json!({
                "valid": true,
                "documents": each,
                "meetings": meetings.iter().map(meeting::Meeting::as_json).collect::<Vec<_>>(),
            })),
        };
    }
    for (file, document) in &documents {
        if documents.len() > 1 {
            output.say(&format!("{}\n", file.display()))?;
        }
        match document {
            Document::Lease(found) => picture(output, found, &trust, &cx.view())?,
            Document::Earnings(found) => earnings::picture(output, found, &trust, &cx.view())?,
        }
        if documents.len() > 1 {
            output.say("")?;
        }
    }
    meetings
        .iter()
        .try_for_each(|meeting| output.say(&meeting.as_text()))
}

fn as_json(document: &Document) -> Value {
    match document {
        Document::Lease(v) => verified_json(v),
        Document::Earnings(v) => verified_json(v),
    }
}

fn verified_json<B: Stated>(verified: &Verified<B>) -> Value {
    let statement = &verified.statement;
    json!({
        "valid": true,
        "key_is_trusted": verified.key_is_trusted,
        "signed_by": statement.signed_by,
        "charges": verified.charges,
        "body": statement.body,
    })
}

fn read_key(text: &str) -> Result<[u8; 32], Fault> {
    let mut key = [0; 32];
    hex::decode_to_slice(text, &mut key).map_err(|_bad| {
        Fault::Usage(format!(
            "`{text}` is not a statement key: 64 hex digits are"
        ))
    })?;
    Ok(key)
}

fn refuse(file: &Path, fault: &StatementFault, trust: &Trust) -> Fault {
    let told = Local::new(
        "statement_invalid",
        format!("{} does not hold: {fault}.", file.display()),
    );
    let is_other_key = *fault == StatementFault::OtherKey;
    let hint = match trust {
        _any if !is_other_key => "fetch it again (gpumarket statement LEASE -o FILE); if it fails \
            again, keep both files and ask the operator"
            .to_owned(),
        Trust::Pinned(profile) => format!(
            "it is from another market than that of profile `{profile}` (use --profile), or the \
             market's key changed (ask the operator)"
        ),
        Trust::Given | Trust::None => "check the key with the operator".to_owned(),
    };
    told.suggest(hint).into()
}

fn picture(
    output: &mut Output<'_>,
    verified: &Verified<StatementBody>,
    trust: &Trust,
    view: &View,
) -> Result<(), Fault> {
    let body = &verified.statement.body;
    let is_final = matches!(body.state.as_str(), "ended" | "failed");
    let state = if is_final { "final" } else { "so far" };
    output.table(&facts([
        ("lease", Some(body.lease.clone())),
        (
            "state",
            Some(format!("{} (the statement is {state})", body.state)),
        ),
        (
            "GPUs",
            Some(gpus(body.gpu_count, &body.gpu_model, body.simulated)),
        ),
        ("renter", Some(body.renter.clone())),
        ("provider", Some(body.provider.clone())),
        ("machine", Some(body.machine.clone())),
        ("stated", Some(view.micros(body.issued_at_us))),
    ]))?;
    output.say("\nRecomputed from time and rate, charge by charge:")?;
    output.table(&meters(&body.meters, &body.currency))?;
    let amount = |of: i64| Some(micros(of, &body.currency));
    output.say("")?;
    output.table(&facts([
        ("renter pays", amount(body.total.renter_pays_micros)),
        ("  tax in it", amount(body.total.tax_micros)),
        ("platform's fee", amount(body.total.fee_micros)),
        ("provider gets", amount(body.total.provider_gets_micros)),
    ]))?;
    output.say("")?;
    output.table(&verdict(verified, trust, body.simulated))
}

fn meters(meters: &[MeterLines], currency: &str) -> Table {
    let rows = meters.iter().map(|meter| {
        let sum = |of: fn(&billing::statement::ChargeLine) -> i64| {
            let total = meter.charges.iter().map(of).fold(0i64, i64::saturating_add);
            micros(total, currency)
        };
        vec![
            meter.resource.clone(),
            meter.charges.len().to_string(),
            exact_seconds(meter.billable_ms),
            price(meter, currency),
            sum(|c| c.gross_micros),
            sum(|c| c.fee_micros),
            sum(|c| c.tax_micros),
        ]
    });
    let heading = [
        "METER",
        ">CHARGES",
        ">SECONDS",
        ">RATE",
        ">GROSS",
        ">FEE IN IT",
        ">TAX",
    ];
    grid(&heading, rows.collect())
}

fn price(meter: &MeterLines, currency: &str) -> String {
    let prices: Vec<i64> = meter.prices().iter().map(|s| s.price_micros).collect();
    per_period(&prices, meter.period_ms, currency)
}

/// `0.010000, then 0.020000 USD per month`.
fn per_period(prices: &[i64], period_ms: i64, currency: &str) -> String {
    let per = match Period::from_millis(period_ms) {
        Some(Period::Hour) => "hour",
        Some(Period::Month) => "month",
        None => "period",
    };
    let each = prices.iter().map(|price| Micros::new(*price).to_string());
    let all = each.collect::<Vec<_>>().join(", then ");
    format!("{all} {currency} per {per}")
}

/// `3605.250 (1 h 00 min 05 s)`.
fn exact_seconds(millis: i64) -> String {
    let whole = millis.div_euclid(1_000);
    format!(
        "{whole}.{:03} ({})",
        millis.rem_euclid(1_000),
        seconds(whole)
    )
}

/// What was recomputed, and who signed.
fn verdict<B>(verified: &Verified<B>, trust: &Trust, simulated: bool) -> Table {
    let charges = match verified.charges {
        1 => "1 charge".to_owned(),
        many => format!("{many} charges"),
    };
    let signature = match trust {
        Trust::Given => "valid, by the given key".to_owned(),
        Trust::Pinned(profile) => format!("valid, by the key pinned in profile `{profile}`"),
        Trust::None => "signature is valid, but the key is not pinned: \
            log in to pin the market's key, or give it with --key"
            .to_owned(),
    };
    facts([
        (
            "VALID",
            Some(format!(
                "{charges} recomputed: order, hash chain, seconds × rate, fee, tax"
            )),
        ),
        (
            "totals",
            Some("agree: renter pays = provider gets + fee + tax".to_owned()),
        ),
        ("signature", Some(signature)),
        ("signed by", Some(verified.statement.signed_by.clone())),
        (
            "note",
            simulated.then(|| "the GPUs were simulated".to_owned()),
        ),
    ])
}
