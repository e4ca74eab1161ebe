//! Statements: fetch the signed bill of a lease, and recompute it without the market.

use std::path::{Path, PathBuf};

use billing::statement::{MeterLines, StatementFault, Verified, verify as recompute};
use comfy_table::Table;
use domain::id::LeaseId;
use domain::money::{Micros, Period, Rate};
use serde_json::json;

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
    let answer = cx
        .client
        .get(&format!("/v1/leases/{lease}/statement"), &[])
        .await?;
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

/// Recomputes a statement, offline.
pub(crate) fn verify(
    cx: &Context,
    output: &mut Output<'_>,
    file: &Path,
    key: Option<String>,
) -> Result<(), Fault> {
    let bytes = std::fs::read(file)
        .map_err(|bad| Local::new("file", format!("{} cannot be read: {bad}.", file.display())))?;
    let (text, trust) = match (key, cx.profile.statement_key.clone()) {
        (Some(given), _) => (Some(given), Trust::Given),
        (None, Some(pinned)) => (Some(pinned), Trust::Pinned(cx.profile_name.clone())),
        (None, None) => (None, Trust::None),
    };
    let trusted = text.as_deref().map(read_key).transpose()?;
    let verified = recompute(&bytes, trusted).map_err(|fault| refuse(file, &fault, &trust))?;
    if output.json() {
        let statement = &verified.statement;
        return output.value(&json!({
            "valid": true,
            "key_is_trusted": verified.key_is_trusted,
            "signed_by": statement.signed_by,
            "charges": verified.charges,
            "body": statement.body,
        }));
    }
    picture(output, &verified, &trust, &cx.view())
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
    verified: &Verified,
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
    output.table(&verdict(verified, trust))
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
    let rate = Period::from_millis(meter.period_ms).map(|per| Rate {
        price: Micros::new(meter.price_micros),
        per,
    });
    let per = match rate.map(|r| r.per) {
        Some(Period::Hour) => "hour",
        Some(Period::Month) => "month",
        None => "period",
    };
    format!("{} per {per}", micros(meter.price_micros, currency))
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
fn verdict(verified: &Verified, trust: &Trust) -> Table {
    let statement = &verified.statement;
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
    let simulated = statement.body.simulated;
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
        ("signed by", Some(statement.signed_by.clone())),
        (
            "note",
            simulated.then(|| "the GPUs were simulated".to_owned()),
        ),
    ])
}
