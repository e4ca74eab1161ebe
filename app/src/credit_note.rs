//! Credit notes: the operator takes a part of an invoice back. The invoice stays as it is.

use billing::credit_note::{CreditRefusal, split};
use billing::invoice::{Credited, Invoice, InvoiceKind};
use billing::month::year_of;
use domain::clock::Timestamp;
use domain::id::{InvoiceId, TransferId};
use domain::money::Micros;
use domain::refusal::Code;
use store::db::Tx;
use store::error::Constraint;
use store::invoice::Occasion;

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::invoice::tell;
use crate::staff::{MOVES_MONEY, only};

/// How much of which invoice, and why.
#[derive(Clone, Debug)]
pub struct NewCreditNote {
    /// The invoice.
    pub invoice: InvoiceId,
    /// Tax in it.
    pub amount: Micros,
    /// Stands on the note.
    pub reason: String,
    /// The movement that gives the money back; without it the note is a document only.
    pub transfer: Option<TransferId>,
}

/// Issues a credit note; for finance and operators.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    new: NewCreditNote,
    once: Once<'_, Invoice>,
) -> Result<Answer, Error> {
    only(caller, &MOVES_MONEY)?;
    let reason = new.reason.trim();
    if !(1..=200).contains(&reason.chars().count()) || reason.contains(char::is_control) {
        let told = "Must be 1 to 200 printable characters.";
        return Err(Error::field("/reason", "malformed", told));
    }
    let (now, id) = (cx.now(), InvoiceId::from_uuid(cx.id()));
    let (once, new) = (&once, &new);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let note = issue(tx, (id, new), now).await?;
        let what = Audited {
            action: "credit_note.issue",
            object: id.to_string(),
            reason: new.reason.trim(),
        };
        let mut line = cx.audit(caller, now, what);
        line.party = Some(note.party);
        tell(tx, &note, &line).await?;
        Ok(note)
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::InvoiceTransferOnce) => Error::refused(
            Code::CreditConflict,
            "This movement belongs to another credit note.",
        ),
        _ => error,
    })
}

async fn issue(
    tx: &mut Tx,
    (id, new): (InvoiceId, &NewCreditNote),
    now: Timestamp,
) -> Result<Invoice, Error> {
    let seen = store::invoice::get(tx, None, new.invoice)
        .await?
        .ok_or_else(|| Error::not_found("invoice"))?;
    // One note after the other, so that their sum cannot exceed the invoice.
    store::invoice::lock_party(tx, seen.party).await?;
    let before = store::invoice::credited(tx, seen.id).await?;
    let totals = split((seen.kind, seen.totals), before, new.amount).map_err(refuse)?;
    if let Some(transfer) = new.transfer {
        let known = store::invoice::has_transfer(tx, transfer).await?;
        if !known {
            let told = "There is no such movement.";
            return Err(Error::field("/transfer_id", "unknown_value", told));
        }
    }
    let note = Invoice {
        id,
        kind: InvoiceKind::CreditNote,
        number: store::invoice::next_number(tx, InvoiceKind::CreditNote, year_of(now)).await?,
        issued_at: now,
        credited: Some(Credited {
            invoice: seen.id,
            number: seen.number.to_string(),
            reason: new.reason.trim().to_owned(),
            transfer: new.transfer,
        }),
        totals,
        lines: Vec::new(),
        ..seen.clone()
    };
    let occasion = Occasion::Credit {
        before,
        of: seen.totals.total,
    };
    store::invoice::insert(tx, &note, occasion).await?;
    Ok(note)
}

fn refuse(refusal: CreditRefusal) -> Error {
    match refusal {
        CreditRefusal::NotPositive => {
            Error::field("/amount", "out_of_range", "Must be above zero.")
        }
        CreditRefusal::Exceeds { left } => Error::refused(
            Code::CreditConflict,
            format!("Only {left} of the invoice are not credited yet."),
        ),
        CreditRefusal::OfCreditNote => {
            Error::refused(Code::CreditConflict, "A credit note cannot be credited.")
        }
        CreditRefusal::Money(fault) => fault.into(),
    }
}
