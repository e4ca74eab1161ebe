//! Earnings on their way: they mature, reserves are released, payouts are sent.

use billing::account::AccountCode;
use billing::posting::{Operation, earning};
use billing::transfer::TransferKind;
use domain::clock::Timestamp;
use domain::id::{MaturingId, PartyId, PayoutId};
use domain::money::{Currency, Micros};
use store::db::{Ro, Tx};
use store::error::Constraint;
use store::maturing::MaturingRecord;
use store::payout::PayoutState;

use crate::context::Cx;
use crate::error::Error;
use crate::payout::{PayoutNews, hear};
use crate::posting::try_post;

/// Moves earnings that are older than the maturing period to what is payable.
pub async fn mature_earnings(cx: &Cx) -> Result<usize, Error> {
    let through = earning::matures_before(cx.now(), cx.policy.payouts.maturing);
    let providers = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok(store::maturing::unmatured(ro, Currency::Usd, through).await?)
        })
        .await?;
    let mut changed = 0;
    for provider in providers {
        changed += mature_one(cx, provider, through).await?;
    }
    Ok(changed)
}

async fn mature_one(cx: &Cx, party: PartyId, through: Timestamp) -> Result<usize, Error> {
    let (now, id, rules) = (cx.now(), MaturingId::from_uuid(cx.id()), cx.policy.payouts);
    let done = cx
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let owner = party.uuid();
            let wanted = [
                (AccountCode::ProviderReceivable, owner),
                (AccountCode::ProviderEarned, owner),
                (AccountCode::ProviderPayable, owner),
                (AccountCode::ProviderReserve, owner),
            ];
            let accounts = store::ledger::lock_accounts(tx, Currency::Usd, &wanted).await?;
            let earned = accounts
                .iter()
                .find(|a| a.code == AccountCode::ProviderEarned)
                .ok_or(Error::Fault("earnings were not locked"))?;
            let recent = store::maturing::came_in(tx, earned.id.0, through).await?;
            let operation = Operation {
                cause: id.uuid(),
                at: now,
            };
            let whose = (Currency::Usd, operation);
            let posted = try_post(cx, tx, whose, &wanted, |books| {
                earning::mature(books, owner, recent, rules.reserve_bps)
            })
            .await?;
            if posted.is_none() && rules.maturing < earning::DAY {
                return Ok(0);
            }
            let legs = posted.map_or_else(Vec::new, |p| p.legs);
            let of = |kind| {
                let leg = legs.iter().find(|l| l.kind == kind);
                leg.map_or(Micros::ZERO, |l| l.amount)
            };
            let record = MaturingRecord {
                id,
                party,
                currency: Currency::Usd,
                through,
                amount: of(TransferKind::Matured),
                reserve: of(TransferKind::ReserveWithheld),
                reserve_due_at: now.plus(rules.reserve_kept),
                reserve_released_at: None,
                at: now,
            };
            // Also when nothing was due: nobody is looked at twice for one day.
            store::maturing::insert(tx, &record).await?;
            Ok(usize::from(record.amount > Micros::ZERO))
        })
        .await;
    match done {
        // Another node was faster.
        Err(error) if error.constraint() == Some(&Constraint::MaturingOnce) => Ok(0),
        done => done,
    }
}

/// Releases what was kept back long enough.
pub async fn release_reserves(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let due = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::maturing::reserves_due(ro, now).await?))
        .await?;
    let mut changed = 0;
    for id in due {
        changed += release_one(cx, id, now).await?;
    }
    Ok(changed)
}

async fn release_one(cx: &Cx, id: MaturingId, now: Timestamp) -> Result<usize, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(record) = store::maturing::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            if record.reserve_released_at.is_some() || record.reserve_due_at > now {
                return Ok(0);
            }
            let owner = record.party.uuid();
            let wanted = [
                (AccountCode::ProviderPayable, owner),
                (AccountCode::ProviderReserve, owner),
            ];
            let operation = Operation {
                cause: id.uuid(),
                at: now,
            };
            // Nothing is left of it if a charge was reversed out of it.
            try_post(cx, tx, (record.currency, operation), &wanted, |books| {
                earning::release_reserve(books, owner, record.reserve)
            })
            .await?;
            store::maturing::released(tx, id, now).await?;
            Ok(1)
        })
        .await
}

/// Sends payouts. In the sandbox there is no bank: what is sent is paid at the next look.
pub async fn send_payouts(cx: &Cx) -> Result<usize, Error> {
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::payout::open(ro).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += send_one(cx, id).await?;
    }
    Ok(changed)
}

async fn send_one(cx: &Cx, id: PayoutId) -> Result<usize, Error> {
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::payout::get(ro, id).await?))
        .await?;
    let Some(payout) = found.filter(|p| p.sandbox) else {
        return Ok(0);
    };
    let news = match payout.state {
        PayoutState::Requested => (PayoutNews::Sent, "on its way (sandbox: no bank is told)"),
        PayoutState::InFlight => (PayoutNews::Paid, "paid with play money (sandbox)"),
        PayoutState::Paid | PayoutState::Failed | PayoutState::Returned => return Ok(0),
    };
    hear(cx, id, news).await?;
    Ok(1)
}
