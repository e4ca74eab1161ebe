//! Invoices, credit notes, and who a party is on them.

use actix_web::http::header::{CONTENT_DISPOSITION, ContentDisposition};
use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get, patch, post};
use app::billing_profile::ProfileChange;
use app::context::Once;
use app::credit_note::NewCreditNote;
use app::invoice::NewInvoice;
use billing::invoice::{Identity, Invoice as Issued, InvoiceKind, Line, to_cents};
use billing::month::{Month, Period};
use domain::clock::Timestamp;
use domain::money::{Micros, Period as Per};
use store::billing_profile::ProfileRecord;
use web_openapi::invoice::{
    BillingProfile, CreateCreditNote, CreateInvoice, CreditReference, Invoice, InvoiceLine,
    InvoicePage, InvoiceParty, InvoiceSide, PatchBillingProfile,
};
use web_openapi::money::{Money, Per as WirePer, Rate};
use web_openapi::page::PageQuery;
use web_openapi::time::{from_text, to_text};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Id, Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::version::{IfMatch, stamp};
use super::{answer, detached, page, view};
use crate::state::Shared;

fn who(identity: &Identity) -> InvoiceParty {
    InvoiceParty {
        name: identity.name.clone(),
        address: identity.address.clone(),
        country: identity.country.clone(),
        vat_id: identity.vat_id.clone(),
    }
}

fn line(l: &Line) -> InvoiceLine {
    let per = match l.rate.per {
        Per::Hour => WirePer::Hour,
        Per::Month => WirePer::Month,
    };
    InvoiceLine {
        lease_id: l.lease.to_string(),
        label: l.label.clone(),
        resource: l.resource.as_str().to_owned(),
        gpu_model: l.gpu_model.clone(),
        gpu_count: l.gpu_count,
        disk_gib: l.disk_gib,
        simulated: l.simulated,
        from: to_text(l.from),
        to: to_text(l.to),
        first_charge: l.seq.0,
        last_charge: l.seq.1,
        billable_milliseconds: l.billable_ms,
        rate: Rate::usd(l.rate.price, per),
        tax_bps: l.shares.tax_bps,
        gross: Money::usd(l.due.gross),
        fee: Money::usd(l.due.fee),
        tax: Money::usd(l.due.tax),
    }
}

fn invoice(i: &Issued) -> Invoice {
    let credits = i.credited.as_ref().map(|c| CreditReference {
        invoice_id: c.invoice.to_string(),
        number: c.number.clone(),
        reason: c.reason.clone(),
        transfer_id: c.transfer.map(|t| t.to_string()),
    });
    // A sum that cannot be rounded is shown as it is.
    let cents = to_cents(i.totals.total).map_or(i.totals.total, |(rounded, _added)| rounded);
    Invoice {
        id: i.id.to_string(),
        number: i.number.to_string(),
        kind: i.kind.as_str().to_owned(),
        period_from: to_text(i.period.from),
        period_to: to_text(i.period.to),
        issued_at: to_text(i.issued_at),
        seller: who(&i.seller),
        buyer: who(&i.buyer),
        tax_note: i.tax_note.clone(),
        payments: if i.sandbox { "sandbox" } else { "live" }.to_owned(),
        gross: Money::usd(i.totals.gross),
        fee: Money::usd(i.totals.fee),
        tax: Money::usd(i.totals.tax),
        total: Money::usd(i.totals.total),
        total_in_cents: Money::usd(cents),
        credits,
        lines: i.lines.iter().map(line).collect(),
    }
}

/// An instant of a body or query.
pub(super) fn instant(pointer: &str, text: &str) -> Result<Timestamp, Fault> {
    from_text(text).ok_or_else(|| Fault::field(pointer, "malformed", "Must be RFC 3339."))
}

fn month(pointer: &str, text: &str) -> Result<Period, Fault> {
    let month: Month = text
        .parse()
        .map_err(|e| Fault::field(pointer, "malformed", format!("{e}.")))?;
    Ok(month.period())
}

fn period(input: &CreateInvoice) -> Result<Period, Fault> {
    match (&input.month, &input.from, &input.to) {
        (Some(text), None, None) => month("/month", text),
        (None, Some(from), Some(to)) => Ok(Period {
            from: instant("/from", from)?,
            to: instant("/to", to)?,
        }),
        _ => Err(Fault::field(
            "/month",
            "missing_field",
            "Say either `month`, or both `from` and `to`.",
        )),
    }
}

/// Make an invoice now, of charges that are on none yet.
#[utoipa::path(tag = "invoices", security(("bearer" = [])), request_body = CreateInvoice,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Invoice), Problems))]
#[post("/v1/invoices")]
pub(crate) async fn create_invoice(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateInvoice>,
) -> Result<HttpResponse, Fault> {
    let new = NewInvoice {
        kind: match body.value.kind {
            None | Some(InvoiceSide::Sale) => InvoiceKind::Sale,
            Some(InvoiceSide::SelfBilling) => InvoiceKind::SelfBilling,
        },
        period: period(&body.value)?,
    };
    let key = key.on("POST /v1/invoices", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|i: &Issued| view::json(&invoice(i)),
        };
        Ok(answer(
            &app::invoice::create(&shared.cx, &auth.0, new, once).await?,
        ))
    })
    .await
}

/// List the party's invoices and credit notes, newest first, without their lines.
#[utoipa::path(tag = "invoices", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = InvoicePage), Problems))]
#[get("/v1/invoices")]
pub(crate) async fn list_invoices(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found = app::invoice::list(&shared.cx, &auth.0, page::page("invoices", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("invoices", id));
    let body = InvoicePage {
        data: found.rows.iter().map(invoice).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/invoices", &query.0),
        next_cursor.as_deref(),
    ))
}

/// Get an invoice with its lines.
#[utoipa::path(tag = "invoices", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = Invoice), Problems))]
#[get("/v1/invoices/{id}")]
pub(crate) async fn get_invoice(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::invoice::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    Ok(HttpResponse::Ok().json(invoice(&found)))
}

/// A file to be kept.
pub(super) fn file(kind: &'static str, name: String, bytes: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(kind)
        .insert_header((CONTENT_DISPOSITION, ContentDisposition::attachment(name)))
        .body(bytes)
}

/// Get an invoice as PDF.
#[utoipa::path(tag = "invoices", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = String, content_type = "application/pdf"), Problems))]
#[get("/v1/invoices/{id}/pdf")]
pub(crate) async fn get_invoice_pdf(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::invoice::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    let name = format!("{}.pdf", found.number);
    // Thousands of lines take a while: not on a thread that others wait for.
    let drawn = actix_web::web::block(move || billing::invoice::pdf::render(&found)).await;
    let bytes = drawn
        .map_err(|_gone| Fault::internal("an invoice was not drawn to its end"))?
        .map_err(|fault| Fault::internal(&format!("an invoice could not be drawn: {fault}")))?;
    Ok(file("application/pdf", name, bytes))
}

/// Get the lines of an invoice as CSV.
#[utoipa::path(tag = "invoices", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = String, content_type = "text/csv"), Problems))]
#[get("/v1/invoices/{id}/csv")]
pub(crate) async fn get_invoice_csv(
    shared: Data<Shared>,
    auth: Auth,
    id: Path<String>,
) -> Result<HttpResponse, Fault> {
    let found = app::invoice::get(&shared.cx, &auth.0, Id::parse(&id)?).await?;
    let bytes = billing::invoice::csv::render(&found)
        .map_err(|fault| Fault::internal(&format!("invoice as a table: {fault}")))?;
    Ok(file("text/csv", format!("{}.csv", found.number), bytes))
}

/// Take a part of an invoice back: a credit note that refers to it. For finance and operators.
#[utoipa::path(tag = "admin", security(("bearer" = [])), request_body = CreateCreditNote,
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = Invoice), Problems))]
#[post("/v1/admin/invoices/{id}/credit-notes")]
pub(crate) async fn create_credit_note(
    shared: Data<Shared>,
    auth: Auth,
    (id, key): (Path<String>, IdempotencyKey),
    body: Body<CreateCreditNote>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let amount: Result<Micros, Fault> = input
        .amount
        .parse()
        .map(|m| m.amount)
        .map_err(|e| Fault::field("/amount", "malformed", format!("{e}")));
    let transfer = input.transfer_id.as_deref();
    let new = NewCreditNote {
        invoice: Id::parse(&id)?,
        amount: amount?,
        reason: input.reason,
        transfer: transfer.map(|t| Id::field("/transfer_id", t)).transpose()?,
    };
    let key = key.on(
        "POST /v1/admin/invoices/{id}/credit-notes",
        body.fingerprint,
    );
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|i: &Issued| view::json(&invoice(i)),
        };
        Ok(answer(
            &app::credit_note::create(&shared.cx, &auth.0, new, once).await?,
        ))
    })
    .await
}

fn profile(p: &ProfileRecord) -> HttpResponse {
    let body = BillingProfile {
        legal_name: p.identity.name.clone(),
        address: p.identity.address.clone(),
        country: p.identity.country.clone(),
        vat_id: p.identity.vat_id.clone(),
        version: p.version,
        updated_at: to_text(p.updated_at),
    };
    let mut reply = HttpResponse::Ok();
    stamp(&mut reply, Some(&body.version.into()));
    reply.json(body)
}

/// Get who the party is on invoices.
#[utoipa::path(tag = "invoices", security(("bearer" = [])),
    responses((status = 200, body = BillingProfile), Problems))]
#[get("/v1/me/billing-profile")]
pub(crate) async fn get_billing_profile(
    shared: Data<Shared>,
    auth: Auth,
) -> Result<HttpResponse, Fault> {
    Ok(profile(
        &app::billing_profile::get(&shared.cx, &auth.0).await?,
    ))
}

/// Change who the party is on invoices. Issued ones stay; new quotes have the tax of the new country.
#[utoipa::path(tag = "invoices", security(("bearer" = [])),
    params(("If-Match" = Option<String>, Header)),
    request_body(content = PatchBillingProfile, content_type = "application/merge-patch+json"),
    responses((status = 200, body = BillingProfile), Problems))]
#[patch("/v1/me/billing-profile")]
pub(crate) async fn change_billing_profile(
    shared: Data<Shared>,
    auth: Auth,
    version: IfMatch,
    body: Body<PatchBillingProfile>,
) -> Result<HttpResponse, Fault> {
    let input = body.value;
    let change = ProfileChange {
        legal_name: input.legal_name,
        address: input.address,
        country: input.country,
        vat_id: input.vat_id,
    };
    detached(async move {
        let after = app::billing_profile::change(&shared.cx, &auth.0, change, version.0).await?;
        Ok(profile(&after))
    })
    .await
}
