//! Adjustments of accounts by the operator's people: with a reason, and above a limit with four eyes.
//!
//! What a proposed debit will take is set aside until it is decided (`billing::pending`), so that it
//! is still there when a second person says yes.

use billing::account::{AccountCode, AccountId, PLATFORM};
use billing::ledger::Ledger;
use billing::pending::{Pending, PendingRefusal, PendingState};
use billing::posting::adjustment::{ADJUSTABLE, BEARERS, Direction, adjust};
use billing::posting::{Key, Operation};
use billing::transfer::{Transfer, TransferKind, TransferRefusal};
use domain::audit::ActorRef;
use domain::clock::{Span, Timestamp};
use domain::id::{AdjustmentId, PartyId, TransferId, UserId};
use domain::money::{Currency, Micros};
use domain::party::StaffRole;
use domain::refusal::Code;
use store::adjustment::{AdjustmentRecord, AdjustmentState, DecisionRecord};
use store::db::{Ro, Tx};
use store::error::Constraint;
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::posting::post;
use crate::staff;

/// How long a proposal waits for a second person.
pub const WAITS: Span = Span::from_hours(7 * 24);

/// An adjustment to make.
#[derive(Clone, Debug)]
pub struct NewAdjustment {
    /// Whose account.
    pub party: PartyId,
    /// Which way.
    pub direction: Direction,
    /// Which of its accounts.
    pub account: AccountCode,
    /// Which account of the platform bears it.
    pub bearer: AccountCode,
    /// How much.
    pub amount: Micros,
    /// In words.
    pub reason: String,
}

/// What a second person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Do it.
    Approve,
    /// Do not.
    Reject,
}

fn check(input: &NewAdjustment) -> Result<String, Error> {
    if input.amount <= Micros::ZERO {
        let text = "The amount must be above zero.";
        return Err(Error::refused(Code::AmountOutOfRange, text));
    }
    let names = |codes: &[AccountCode]| {
        let names: Vec<&str> = codes.iter().map(|c| c.as_str()).collect();
        format!("One of {}.", names.join(", "))
    };
    if !ADJUSTABLE.contains(&input.account) {
        return Err(Error::field("/account", "unknown", names(&ADJUSTABLE)));
    }
    if !BEARERS.contains(&input.bearer) {
        return Err(Error::field("/borne_by", "unknown", names(&BEARERS)));
    }
    staff::reason(&input.reason)
}

fn keys(record: &AdjustmentRecord) -> [Key; 2] {
    let party = (record.account, record.party.uuid());
    [party, (record.bearer, PLATFORM)]
}

/// Proposes an adjustment, or makes it at once if it is small. Operators and finance only.
pub async fn propose(
    cx: &Cx,
    caller: &Caller,
    input: NewAdjustment,
    once: Once<'_, AdjustmentRecord>,
) -> Result<Answer, Error> {
    let by = staff::person(caller, &staff::MOVES_MONEY)?;
    let now = cx.now();
    let reason = check(&input)?;
    let id = AdjustmentId::from_uuid(cx.id());
    let mut record = AdjustmentRecord {
        id,
        party: input.party,
        currency: Currency::Usd,
        direction: input.direction,
        account: input.account,
        bearer: input.bearer,
        amount: input.amount,
        reason,
        needs_approval: input.amount > cx.policy.approval_above,
        state: AdjustmentState::Proposed,
        proposed_by: by,
        proposed_at: now,
        expires_at: now.plus(WAITS),
        decision: None,
    };
    if !record.needs_approval {
        record.state = AdjustmentState::Applied;
        record.decision = Some(decision(None, now, None));
    }
    let (once, record) = (&once, &record);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let known = store::party::party_name(tx, record.party).await?;
        known.ok_or_else(|| Error::field("/party_id", "unknown", "There is no such party."))?;
        if record.needs_approval {
            set_aside(tx, record).await?;
        } else {
            apply(cx, tx, record, now).await?;
        }
        store::adjustment::save(tx, record).await?;
        told(cx, tx, (Some(caller), record), ("adjustment.propose", now)).await?;
        Ok(record.clone())
    })
    .await
}

const fn decision(by: Option<UserId>, at: Timestamp, reason: Option<String>) -> DecisionRecord {
    DecisionRecord { by, at, reason }
}

/// Approves or rejects a proposed adjustment. Whoever proposed it cannot approve it.
pub async fn decide(
    cx: &Cx,
    caller: &Caller,
    (id, verdict, reason): (AdjustmentId, Verdict, Option<String>),
    once: Once<'_, AdjustmentRecord>,
) -> Result<Answer, Error> {
    let by = staff::person(caller, &staff::MOVES_MONEY)?;
    let now = cx.now();
    let reason = match (verdict, reason) {
        (Verdict::Reject, text) => Some(staff::reason(text.as_deref().unwrap_or(""))?),
        (Verdict::Approve, text) => text.map(|t| staff::reason(&t)).transpose()?,
    };
    let (once, reason) = (&once, &reason);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let mut record = store::adjustment::get_for_update(tx, id)
            .await?
            .ok_or_else(|| Error::not_found("adjustment"))?;
        // Its end is seen here, whether or not it was booked.
        if record.state != AdjustmentState::Proposed || record.expires_at <= now {
            return Err(Error::refused(
                Code::AdjustmentState,
                "It has been decided, or its time is over.",
            ));
        }
        if verdict == Verdict::Approve && by == record.proposed_by {
            return Err(four_eyes());
        }
        record.decision = Some(decision(Some(by), now, reason.clone()));
        let action = match verdict {
            Verdict::Approve => {
                approve(cx, tx, &record, now).await?;
                record.state = AdjustmentState::Applied;
                "adjustment.approve"
            }
            Verdict::Reject => {
                let end = |p: Pending, l: &mut Ledger| p.void(l, now);
                release(tx, &record, end).await?;
                record.state = AdjustmentState::Rejected;
                "adjustment.reject"
            }
        };
        store::adjustment::save(tx, &record).await?;
        told(cx, tx, (Some(caller), &record), (action, now)).await?;
        Ok(record)
    })
    .await
    .map_err(|error| match error.constraint() {
        Some(Constraint::AdjustmentFourEyes) => four_eyes(),
        _ => error,
    })
}

fn four_eyes() -> Error {
    Error::refused(
        Code::FourEyes,
        "Who proposed an adjustment cannot approve it.",
    )
}

/// Books that a proposal's time ran out; gives 1 if it did.
pub(crate) async fn expire(cx: &Cx, id: AdjustmentId) -> Result<usize, Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(mut record) = store::adjustment::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            if record.state != AdjustmentState::Proposed || record.expires_at > now {
                return Ok(0);
            }
            release(tx, &record, |p: Pending, l: &mut Ledger| p.expire(l, now)).await?;
            record.state = AdjustmentState::Expired;
            record.decision = Some(decision(None, now, None));
            store::adjustment::save(tx, &record).await?;
            told(cx, tx, (None, &record), ("adjustment.expire", now)).await?;
            Ok(1)
        })
        .await
}

/// The two-phase transfer of a proposed debit. The id is a placeholder until it is posted.
fn pending(record: &AdjustmentRecord, (from, to): (AccountId, AccountId)) -> Pending {
    Pending {
        id: TransferId::from_uuid(record.id.uuid()),
        debit: from,
        credit: to,
        amount: record.amount,
        state: PendingState::Pending,
        expires_at: Some(record.expires_at),
    }
}

async fn locked(tx: &mut Tx, record: &AdjustmentRecord) -> Result<(Ledger, Pending), Error> {
    let accounts = store::ledger::lock_accounts(tx, record.currency, &keys(record)).await?;
    let [from, to] = accounts.as_slice() else {
        return Err(Error::Fault("two accounts were locked, others came"));
    };
    let pending = pending(record, (from.id, to.id));
    Ok((Ledger::new(accounts, []), pending))
}

/// Sets aside what a proposed debit will take.
async fn set_aside(tx: &mut Tx, record: &AdjustmentRecord) -> Result<(), Error> {
    if record.direction == Direction::Credit {
        return Ok(());
    }
    let (before, pending) = locked(tx, record).await?;
    let mut after = before.clone();
    pending.open(&mut after).map_err(refuse)?;
    Ok(store::ledger::save(tx, &before, &after).await?)
}

/// Takes back what a proposed debit has set aside.
async fn release(
    tx: &mut Tx,
    record: &AdjustmentRecord,
    end: impl Fn(Pending, &mut Ledger) -> Result<Pending, PendingRefusal> + Send + Sync,
) -> Result<(), Error> {
    if record.direction == Direction::Credit {
        return Ok(());
    }
    let (before, pending) = locked(tx, record).await?;
    let mut after = before.clone();
    end(pending, &mut after).map_err(refuse)?;
    Ok(store::ledger::save(tx, &before, &after).await?)
}

async fn approve(
    cx: &Cx,
    tx: &mut Tx,
    record: &AdjustmentRecord,
    now: Timestamp,
) -> Result<(), Error> {
    if record.direction == Direction::Credit {
        return apply(cx, tx, record, now).await;
    }
    let (before, pending) = locked(tx, record).await?;
    let transfer = Transfer {
        id: TransferId::from_uuid(cx.id()),
        kind: TransferKind::AdjustmentDebit,
        debit: pending.debit,
        credit: pending.credit,
        amount: record.amount,
        cause: record.id.uuid(),
        at: now,
    };
    let pending = Pending {
        id: transfer.id,
        ..pending
    };
    let mut after = before.clone();
    pending.post(&mut after, &transfer).map_err(refuse)?;
    store::ledger::save(tx, &before, &after).await?;
    store::ledger::insert_transfer(tx, &transfer, record.currency);
    Ok(())
}

async fn apply(
    cx: &Cx,
    tx: &mut Tx,
    record: &AdjustmentRecord,
    now: Timestamp,
) -> Result<(), Error> {
    let operation = Operation {
        cause: record.id.uuid(),
        at: now,
    };
    let [party, bearer] = keys(record);
    let whose = (record.currency, operation);
    let paths = (party, bearer.0);
    post(cx, tx, whose, &[party, bearer], |books| {
        adjust(books, record.direction, paths, record.amount)
    })
    .await?;
    Ok(())
}

fn refuse(refusal: PendingRefusal) -> Error {
    match refusal {
        PendingRefusal::Ledger(TransferRefusal::ExceedsCredits) => Error::refused(
            Code::InsufficientFunds,
            "The account does not cover the adjustment.",
        ),
        PendingRefusal::NotPending => Error::refused(
            Code::AdjustmentState,
            "It has been decided, or its time is over.",
        ),
        PendingRefusal::Ledger(other) => crate::wallet::refuse(other),
        PendingRefusal::ExceedsPending => Error::Fault("more than was set aside"),
    }
}

async fn told(
    cx: &Cx,
    tx: &mut Tx,
    (caller, record): (Option<&Caller>, &AdjustmentRecord),
    (action, now): (&'static str, Timestamp),
) -> Result<(), Error> {
    let said = record.decision.as_ref().and_then(|d| d.reason.as_deref());
    let what = Audited {
        action,
        object: record.id.to_string(),
        reason: said.unwrap_or(&record.reason),
    };
    let mut line = match caller {
        Some(caller) => cx.audit(caller, now, what),
        None => cx.audit_by(ActorRef::Market, now, what),
    };
    line.party = Some(record.party);
    Ok(store::audit::insert(tx, &line).await?)
}

/// All adjustments, newest first, for the operator's people.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<AdjustmentRecord>, Error> {
    staff::only(caller, &StaffRole::ALL)?;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::adjustment::list(ro, page).await?))
        .await
}

/// One adjustment, for the operator's people.
pub async fn get(cx: &Cx, caller: &Caller, id: AdjustmentId) -> Result<AdjustmentRecord, Error> {
    staff::only(caller, &StaffRole::ALL)?;
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::adjustment::get(ro, id).await?))
        .await?;
    found.ok_or_else(|| Error::not_found("adjustment"))
}
