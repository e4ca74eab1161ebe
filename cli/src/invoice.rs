//! Invoices: listed, made, shown, kept as files.

use std::path::PathBuf;

use comfy_table::Table;
use domain::id::InvoiceId;
use web_openapi::invoice::{
    BillingProfile, CreateCreditNote, CreateInvoice, Invoice, InvoiceLine, InvoicePage,
    InvoiceParty, InvoiceSide, PatchBillingProfile,
};
use web_openapi::money::Money;

use crate::client::Answer;
use crate::command::Page;
use crate::command::money::{Form, InvoiceCommand};
use crate::config::replace_file;
use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::output::{Output, facts, grid};
use crate::text::{View, exact_money, gpus, money, rate};

/// Lists invoices.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/invoices", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: InvoicePage = answer.read()?;
    if page.data.is_empty() {
        return output.say(
            "No invoices yet: each UTC month's comes when it is over. \
             Make one now: gpumarket invoice create --month YYYY-MM",
        );
    }
    let rows = page.data.iter().map(|i| {
        vec![
            i.id.clone(),
            i.number.clone(),
            i.kind.clone(),
            format!("{} – {}", day(&i.period_from), day(&i.period_to)),
            day(&i.issued_at).to_owned(),
            money(&i.total_in_cents),
        ]
    });
    let heading = [
        "INVOICE",
        "NUMBER",
        "KIND",
        "PERIOD (UTC)",
        "ISSUED",
        ">TOTAL",
    ];
    output.table(&grid(&heading, rows.collect()))?;
    output.more(page.next_cursor.as_deref())
}

/// The day of an instant on the wire, which is in UTC.
fn day(instant: &str) -> &str {
    instant.split('T').next().unwrap_or(instant)
}

/// Does what is asked.
pub(crate) async fn perform(
    cx: &Context,
    output: &mut Output<'_>,
    command: InvoiceCommand,
) -> Result<(), Fault> {
    match command {
        InvoiceCommand::Create {
            month,
            from,
            to,
            earnings,
        } => {
            let kind = earnings.then_some(InvoiceSide::SelfBilling);
            let request = CreateInvoice {
                kind,
                month,
                from,
                to,
            };
            let answer = cx.client.post("/v1/invoices", &request).await?;
            tell(cx, output, &answer)
        }
        InvoiceCommand::Show { invoice } => {
            let answer = cx
                .client
                .get(&format!("/v1/invoices/{invoice}"), &[])
                .await?;
            tell(cx, output, &answer)
        }
        InvoiceCommand::Download {
            invoice,
            form,
            output: file,
        } => download(cx, output, (invoice, form), file).await,
        InvoiceCommand::Credit {
            invoice,
            amount,
            reason,
            transfer,
        } => {
            let request = CreateCreditNote {
                amount: Money::usd(amount),
                reason,
                transfer_id: transfer.map(|t| t.to_string()),
            };
            let path = format!("/v1/admin/invoices/{invoice}/credit-notes");
            let answer = cx.client.post(&path, &request).await?;
            tell(cx, output, &answer)
        }
        InvoiceCommand::Profile => {
            let answer = cx.client.get(PROFILE, &[]).await?;
            show_profile(cx, output, &answer)
        }
        InvoiceCommand::SetProfile {
            name,
            address,
            country,
            vat_id,
        } => {
            let patch = PatchBillingProfile {
                legal_name: name,
                address: (!address.is_empty()).then_some(address),
                country: country.map(Some),
                vat_id: vat_id.map(|id| (!id.is_empty()).then_some(id)),
            };
            set_profile(cx, output, &patch).await
        }
    }
}

fn tell(cx: &Context, output: &mut Output<'_>, answer: &Answer) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let invoice: Invoice = answer.read()?;
    output.table(&picture(&invoice, &cx.view()))?;
    if !invoice.lines.is_empty() {
        output.say("")?;
        output.table(&lines(&invoice))?;
    }
    Ok(())
}

fn party(who: &InvoiceParty) -> String {
    let parts = [
        Some(who.name.clone()),
        who.country.clone(),
        who.vat_id.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn picture(i: &Invoice, view: &View) -> Table {
    let sandbox = i.payments == "sandbox";
    let credits = i.credits.as_ref();
    facts([
        ("invoice", Some(i.id.clone())),
        ("number", Some(i.number.clone())),
        ("kind", Some(i.kind.clone())),
        (
            "period",
            Some(format!("{} – {} (UTC)", i.period_from, i.period_to)),
        ),
        ("issued", Some(view.time(&i.issued_at))),
        (
            "credits",
            credits.map(|c| format!("{}: {}", c.number, c.reason)),
        ),
        ("from", Some(party(&i.seller))),
        ("to", Some(party(&i.buyer))),
        ("note", i.tax_note.clone()),
        (
            "payments",
            sandbox.then(|| "sandbox (play money)".to_owned()),
        ),
        ("gross", Some(exact_money(&i.gross))),
        ("fee in it", Some(exact_money(&i.fee))),
        ("tax", Some(exact_money(&i.tax))),
        ("total", Some(exact_money(&i.total))),
        ("in cents", Some(money(&i.total_in_cents))),
    ])
}

/// Milliseconds as exact seconds.
fn seconds(millis: i64) -> String {
    format!(
        "{}.{:03}",
        millis.div_euclid(1_000),
        millis.rem_euclid(1_000)
    )
}

fn lines(invoice: &Invoice) -> Table {
    let row = |l: &InvoiceLine| {
        let what = if l.resource == "compute" {
            gpus(l.gpu_count, &l.gpu_model, l.simulated)
        } else {
            format!("disk, {} GiB", l.disk_gib)
        };
        vec![
            l.lease_id.clone(),
            l.label.clone().unwrap_or_else(|| "-".to_owned()),
            what,
            seconds(l.billable_milliseconds),
            rate(&l.rate),
            exact_money(&l.gross),
            exact_money(&l.fee),
            exact_money(&l.tax),
        ]
    };
    let heading = [
        "LEASE",
        "LABEL",
        "SERVICE",
        ">SECONDS",
        ">RATE",
        ">GROSS",
        ">FEE IN IT",
        ">TAX",
    ];
    grid(&heading, invoice.lines.iter().map(row).collect())
}

async fn download(
    cx: &Context,
    output: &mut Output<'_>,
    (id, form): (InvoiceId, Form),
    file: Option<PathBuf>,
) -> Result<(), Fault> {
    let path = format!("/v1/invoices/{id}");
    let (end, kind) = match form {
        Form::Pdf => ("pdf", "application/pdf"),
        Form::Csv => ("csv", "text/csv"),
    };
    let file = if let Some(file) = file {
        file
    } else {
        let invoice: Invoice = cx.client.get(&path, &[]).await?.read()?;
        // A number has letters, digits and `-` only; nothing else may name a file here.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = invoice
            .number
            .chars()
            .filter(|c| plain(*c))
            .collect::<String>();
        PathBuf::from(format!("{name}.{end}"))
    };
    let answer = cx
        .client
        .get_file(&format!("{path}/{end}"), &[], kind)
        .await?;
    keep(output, &file, &answer.body)
}

/// Writes a file and says so.
pub(crate) fn keep(
    output: &mut Output<'_>,
    file: &std::path::Path,
    bytes: &[u8],
) -> Result<(), Fault> {
    replace_file(file, bytes, 0o644).map_err(|bad| {
        Local::new(
            "file",
            format!("{} cannot be written: {bad}.", file.display()),
        )
    })?;
    let name = file.display().to_string();
    if output.json() {
        return output.value(&serde_json::json!({"file": name, "bytes": bytes.len()}));
    }
    output.say(&format!("Wrote {name}, {} bytes.", bytes.len()))
}

const PROFILE: &str = "/v1/me/billing-profile";

fn show_profile(cx: &Context, output: &mut Output<'_>, answer: &Answer) -> Result<(), Fault> {
    if output.json() {
        return output.document(&answer.body);
    }
    let profile: BillingProfile = answer.read()?;
    let address = profile.address.join(", ");
    output.table(&facts([
        ("legal name", Some(profile.legal_name)),
        ("address", (!address.is_empty()).then_some(address)),
        ("country", profile.country),
        ("VAT ID", profile.vat_id),
        ("changed", Some(cx.view().time(&profile.updated_at))),
    ]))
}

async fn set_profile(
    cx: &Context,
    output: &mut Output<'_>,
    patch: &PatchBillingProfile,
) -> Result<(), Fault> {
    let has_words = patch.legal_name.is_some() || patch.address.is_some();
    if !has_words && patch.country.is_none() && patch.vat_id.is_none() {
        let told = "nothing to change: give e.g. --country DE";
        return Err(Fault::Usage(told.to_owned()));
    }
    let present = cx.client.get(PROFILE, &[]).await?;
    let if_match = present.etag.unwrap_or_else(|| "*".to_owned());
    let answer = cx.client.patch(PROFILE, if_match, patch).await?;
    show_profile(cx, output, &answer)
}
