//! Invoices: made on demand or by the monthly run, shown, never changed.

use billing::invoice::{Identity, Invoice, InvoiceKind, total};
use billing::month::{Period, year_of};
use domain::access::Scope;
use domain::audit::AuditLine;
use domain::clock::Timestamp;
use domain::id::{InvoiceId, PartyId};
use domain::money::Currency;
use domain::refusal::Code;
use serde_json::json;
use store::db::{Ro, Tx};
use store::invoice::Occasion;
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, PaymentsMode, mutate};
use crate::error::Error;

/// An invoice of the charges that end in a period and are on none yet.
#[derive(Clone, Copy, Debug)]
pub struct NewInvoice {
    /// Of use, or of earnings.
    pub kind: InvoiceKind,
    /// Which charges.
    pub period: Period,
}

/// What is to be issued: whose, of which sort, for which period, and charges since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) party: PartyId,
    pub(crate) kind: InvoiceKind,
    pub(crate) period: Period,
    /// Earlier charges that were on no invoice come along.
    pub(crate) since: Timestamp,
    pub(crate) occasion: Occasion,
}

/// Issues an invoice of everything that is open; `None` if nothing is. Numbers are taken last, so
/// that their row is locked for the shortest time.
pub(crate) async fn issue(
    cx: &Cx,
    tx: &mut Tx,
    (id, wanted): (InvoiceId, Wanted),
    now: Timestamp,
) -> Result<Option<Invoice>, Error> {
    let Wanted { party, kind, .. } = wanted;
    store::invoice::lock_party(tx, party).await?;
    let bounds = Period {
        from: wanted.since,
        to: wanted.period.to,
    };
    let lines = store::invoice::open_lines(tx, party, kind, bounds).await?;
    if lines.is_empty() {
        return Ok(None);
    }
    let profile = store::billing_profile::get(tx, party)
        .await?
        .ok_or(Error::Fault("charges of nobody"))?;
    let (seller, buyer, tax_note) = sides(cx, kind, profile.identity, now);
    let invoice = Invoice {
        id,
        kind,
        number: store::invoice::next_number(tx, kind, year_of(now)).await?,
        party,
        period: wanted.period,
        currency: Currency::Usd,
        issued_at: now,
        seller,
        buyer,
        tax_note,
        sandbox: cx.policy.payments == PaymentsMode::Sandbox,
        credited: None,
        totals: total(kind, &lines)?,
        lines,
    };
    store::invoice::insert(tx, &invoice, wanted.occasion).await?;
    Ok(Some(invoice))
}

/// Who sells to whom, and what the tax rule wants said: the operator sells to renters, providers
/// sell to the operator.
pub(crate) fn sides(
    cx: &Cx,
    kind: InvoiceKind,
    party: Identity,
    now: Timestamp,
) -> (Identity, Identity, Option<String>) {
    let operator = cx.policy.operator.clone();
    match kind {
        InvoiceKind::Sale | InvoiceKind::CreditNote => {
            let note = cx.policy.tax.of(&party, now).note.clone();
            (operator, party, note)
        }
        InvoiceKind::SelfBilling => (party, operator, None),
    }
}

/// Records that a document was issued: audit line and message.
pub(crate) async fn tell(tx: &mut Tx, invoice: &Invoice, line: &AuditLine) -> Result<(), Error> {
    store::audit::insert(tx, line).await?;
    let message = json!({
        "number": invoice.number.to_string(),
        "kind": invoice.kind.as_str(),
        "party": invoice.party.to_string(),
        "total": invoice.totals.total.to_string(),
        "currency": invoice.currency.code(),
    });
    let key = invoice.id.to_string();
    Ok(store::outbox::put(tx, ("invoice.issued", &key), &message, invoice.issued_at).await?)
}

/// Makes an invoice now.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    new: NewInvoice,
    once: Once<'_, Invoice>,
) -> Result<Answer, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    let now = cx.now();
    if new.kind == InvoiceKind::CreditNote {
        let told = "A credit note is made of an invoice, by the operator.";
        return Err(Error::field("/kind", "unknown_value", told));
    }
    if new.period.from >= new.period.to || new.period.to > now {
        let told = "The period must end after it begins, and must be over.";
        return Err(Error::field("/to", "out_of_range", told));
    }
    let id = InvoiceId::from_uuid(cx.id());
    let wanted = Wanted {
        party: caller.actor.party,
        kind: new.kind,
        period: new.period,
        since: new.period.from,
        occasion: Occasion::Demand,
    };
    let once = &once;
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let issued = issue(cx, tx, (id, wanted), now).await?;
        let invoice = issued.ok_or_else(|| {
            Error::refused(
                Code::NothingToInvoice,
                "Every charge that ends in this period is on an invoice already.",
            )
            .suggesting("List them with GET /v1/invoices.")
        })?;
        let what = Audited {
            action: "invoice.issue",
            object: id.to_string(),
            reason: "by request",
        };
        tell(tx, &invoice, &cx.audit(caller, now, what)).await?;
        Ok(invoice)
    })
    .await
}

/// The party's invoices, newest first, without their lines.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<Invoice>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::invoice::list(ro, party, page).await?))
        .await
}

/// One invoice of the caller's party, with its lines.
pub async fn get(cx: &Cx, caller: &Caller, id: InvoiceId) -> Result<Invoice, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = Some(caller.actor.party);
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::invoice::get(ro, party, id).await?))
        .await?
        .ok_or_else(|| Error::not_found("invoice"))
}
