//! The monthly run: last month's invoices, once for each party and side.

use billing::invoice::InvoiceKind;
use billing::month::{Month, Period};
use domain::audit::ActorRef;
use domain::clock::{Span, Timestamp};
use domain::id::{InvoiceId, PartyId};
use store::db::{Ro, Tx};
use store::error::Constraint;
use store::invoice::Occasion;

use crate::context::{Audited, Cx};
use crate::error::Error;
use crate::invoice::{Wanted, issue, tell};

/// How long after a month's end its charges are waited for: several settlements of a running lease.
/// What is booked later goes on the next invoice.
const WAITED: Span = Span::from_hours(2);
/// How long before the month leases may have ended that were not invoiced: a market may have stood
/// still for a while.
const LOOKED_BACK: Span = Span::from_hours(24 * 100);

/// Issues what is missing of the last month. Somebody else may be at it: a party's row is locked,
/// and a second invoice of a month is refused by the database.
pub async fn issue_invoices(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let month = Month::of(now.minus(WAITED)).previous().period();
    let (mut changed, mut failed) = (0, None);
    for kind in [InvoiceKind::Sale, InvoiceKind::SelfBilling] {
        let parties = cx
            .db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                let since = month.from.minus(LOOKED_BACK);
                Ok(store::invoice::due_parties(ro, kind, month, since).await?)
            })
            .await?;
        for party in parties {
            // One party's fault does not keep the others from their invoices.
            match issue_one(cx, (party, kind), month, now).await {
                Ok(made) => changed += usize::from(made),
                Err(error) => failed = Some(error),
            }
        }
    }
    failed.map_or(Ok(changed), Err)
}

async fn issue_one(
    cx: &Cx,
    (party, kind): (PartyId, InvoiceKind),
    month: Period,
    now: Timestamp,
) -> Result<bool, Error> {
    let id = InvoiceId::from_uuid(cx.id());
    let wanted = Wanted {
        party,
        kind,
        period: month,
        since: Timestamp::from_micros(0),
        occasion: Occasion::Month,
    };
    let made = cx
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(invoice) = issue(cx, tx, (id, wanted), now).await? else {
                return Ok(false);
            };
            let what = Audited {
                action: "invoice.issue",
                object: id.to_string(),
                reason: "the month is over",
            };
            let mut line = cx.audit_by(ActorRef::Market, now, what);
            line.party = Some(party);
            tell(tx, &invoice, &line).await?;
            Ok(true)
        })
        .await;
    match made {
        Err(error) if matches!(error.constraint(), Some(Constraint::InvoiceMonthOnce)) => Ok(false),
        done => done,
    }
}
