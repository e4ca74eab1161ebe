//! Payouts: what is payable leaves for the provider's bank, and every state is seen.

use billing::account::AccountCode;
use billing::posting::earning;
use billing::posting::{Key, Operation};
use domain::access::Scope;
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::PayoutId;
use domain::money::{Currency, Micros};
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::page::{Page, Paged};
use store::payout::{PayoutRecord, PayoutState};

use crate::context::{Answer, Audited, Caller, Cx, Once, PaymentsMode, mutate};
use crate::error::Error;
use crate::posting::{post, rail};

const REQUESTED: &str = "waits to be sent";

/// Asks for a payout: `amount`, or all that is payable in whole cents.
pub async fn create(
    cx: &Cx,
    caller: &Caller,
    amount: Option<Micros>,
    once: Once<'_, PayoutRecord>,
) -> Result<Answer, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    if rail(cx.policy.payments).is_none() {
        let text = "This market pays nothing out.";
        return Err(Error::refused(Code::PaymentsDisabled, text));
    }
    let (now, party) = (cx.now(), caller.actor.party);
    let (id, once, least) = (PayoutId::from_uuid(cx.id()), &once, cx.policy.payouts.least);
    let answer = mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let operation = Operation {
            cause: id.uuid(),
            at: now,
        };
        let wanted: [Key; 3] = [
            (AccountCode::ProviderReceivable, party.uuid()),
            (AccountCode::ProviderPayable, party.uuid()),
            (AccountCode::PayoutInFlight, party.uuid()),
        ];
        let posted = post(cx, tx, (Currency::Usd, operation), &wanted, |books| {
            earning::payout_requested(books, party.uuid(), amount, least)
        })
        .await?;
        let paid = posted.legs.last().map(|leg| leg.amount);
        let record = PayoutRecord {
            id,
            party,
            currency: Currency::Usd,
            amount: paid.ok_or(Error::Fault("a payout without a transfer"))?,
            sandbox: cx.policy.payments == PaymentsMode::Sandbox,
            state: PayoutState::Requested,
            state_reason: REQUESTED.to_owned(),
            requested_at: now,
            state_at: now,
        };
        store::payout::insert(tx, &record).await?;
        let what = Audited {
            action: "payout.request",
            object: id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        Ok(record)
    })
    .await?;
    cx.wake.reconcile();
    Ok(answer)
}

/// One payout of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: PayoutId) -> Result<PayoutRecord, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::payout::get(ro, id).await?))
        .await?;
    let missing = || Error::not_found("payout");
    let payout = found.ok_or_else(missing)?;
    caller.may(Scope::MoneyRead, Some(payout.party))?;
    Ok(payout)
}

/// The party's payouts, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<PayoutRecord>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::payout::list(ro, party, page).await?))
        .await
}

/// What a bank or a processor says of a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayoutNews {
    /// It was told to the bank.
    Sent,
    /// It has left.
    Paid,
    /// It did not leave.
    Failed,
    /// It came back after it had left.
    Returned,
}

/// Moves a payout by what is heard of it, and the money with it. What does not fit its state (heard
/// twice, or late) changes nothing.
pub async fn hear(
    cx: &Cx,
    id: PayoutId,
    (news, why): (PayoutNews, &str),
) -> Result<PayoutRecord, Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut record = store::payout::get_for_update(tx, id)
                .await?
                .ok_or_else(|| Error::not_found("payout"))?;
            let Some(to) = next(record.state, news) else {
                return Ok(record);
            };
            move_money(cx, tx, (&record, to), now).await?;
            record.state = to;
            why.clone_into(&mut record.state_reason);
            record.state_at = now;
            store::payout::save_state(tx, &record).await?;
            let what = Audited {
                action: "payout.state",
                object: id.to_string(),
                reason: why,
            };
            let mut line = cx.audit_by(ActorRef::Market, now, what);
            line.party = Some(record.party);
            store::audit::insert(tx, &line).await?;
            Ok(record)
        })
        .await
}

const fn next(state: PayoutState, news: PayoutNews) -> Option<PayoutState> {
    use PayoutState::{Failed, InFlight, Paid, Requested, Returned};
    match (state, news) {
        (Requested, PayoutNews::Sent) => Some(InFlight),
        (Requested | InFlight, PayoutNews::Paid) => Some(Paid),
        (Requested | InFlight, PayoutNews::Failed) => Some(Failed),
        (Paid, PayoutNews::Returned) => Some(Returned),
        (Requested, PayoutNews::Returned)
        | (InFlight, PayoutNews::Sent | PayoutNews::Returned)
        | (Paid, PayoutNews::Sent | PayoutNews::Paid | PayoutNews::Failed)
        | (Failed | Returned, _) => None,
    }
}

async fn move_money(
    cx: &Cx,
    tx: &mut Tx,
    (record, to): (&PayoutRecord, PayoutState),
    now: Timestamp,
) -> Result<(), Error> {
    let (party, amount) = (record.party.uuid(), record.amount);
    let rail = if record.sandbox {
        billing::posting::Rail::Sandbox
    } else {
        billing::posting::Rail::Stripe
    };
    let operation = Operation {
        cause: record.id.uuid(),
        at: now,
    };
    let whose = (record.currency, operation);
    let payable = (AccountCode::ProviderPayable, party);
    let in_flight = (AccountCode::PayoutInFlight, party);
    match to {
        PayoutState::Requested | PayoutState::InFlight => return Ok(()),
        PayoutState::Paid => {
            post(cx, tx, whose, &[in_flight, rail.clearing()], |books| {
                earning::payout_sent(books, rail, party, amount)
            })
            .await?
        }
        PayoutState::Failed => {
            post(cx, tx, whose, &[payable, in_flight], |books| {
                earning::payout_failed(books, party, amount)
            })
            .await?
        }
        PayoutState::Returned => {
            post(cx, tx, whose, &[payable, rail.clearing()], |_books| {
                earning::payout_returned(rail, party, amount)
            })
            .await?
        }
    };
    Ok(())
}
