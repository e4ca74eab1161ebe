//! Credit that is over, debts that can be paid, and proposals that nobody decided.

use billing::account::AccountCode;
use billing::posting::credit::{self, Part};
use billing::posting::{Operation, dispute, platform};
use domain::clock::Timestamp;
use domain::id::PartyId;
use domain::money::{Currency, Micros};
use store::credit::{CreditUse, UseKind};
use store::db::{Ro, Tx};

use crate::context::Cx;
use crate::error::Error;
use crate::posting::{post, try_post};

/// Books the expiry of credit that is over. What a hold has of it expires when it comes back.
pub async fn expire_credit(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let parties = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok(store::credit::parties_with_expired(ro, now).await?)
        })
        .await?;
    let mut changed = 0;
    for party in parties {
        changed += expire_of(cx, party, now).await?;
    }
    Ok(changed)
}

async fn expire_of(cx: &Cx, party: PartyId, now: Timestamp) -> Result<usize, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let wanted = [
                (AccountCode::RenterPromo, party.uuid()),
                platform(AccountCode::Breakage),
            ];
            // Whoever changes a credit has its account locked.
            store::ledger::lock_accounts(tx, Currency::Usd, &wanted).await?;
            let left = store::credit::left(tx, &[party], Currency::Usd).await?;
            let over = left.iter().filter(|(_party, credit)| credit.is_over(now));
            let mut changed = 0;
            for (_party, one) in over {
                let id = cx.id();
                let whose = (Currency::Usd, Operation { cause: id, at: now });
                post(cx, tx, whose, &wanted, |books| {
                    credit::expire(books, party.uuid(), one.left)
                })
                .await?;
                let part = Part {
                    credit: one.id,
                    amount: one.left,
                };
                let record = CreditUse {
                    id,
                    part,
                    kind: UseKind::Expired,
                    hold: None,
                    at: now,
                };
                store::credit::record_use(tx, &record).await?;
                changed += 1;
            }
            Ok(changed)
        })
        .await
}

/// Pays what renters owe out of what their wallets can spend, e.g. after a lease has given its hold
/// back.
pub async fn collect_debts(cx: &Cx) -> Result<usize, Error> {
    let parties = cx
        .db
        .read::<_, Error, _>(
            async |ro: &mut Ro| Ok(store::dispute::owing(ro, Currency::Usd).await?),
        )
        .await?;
    let mut changed = 0;
    for party in parties {
        changed += collect_one(cx, party).await?;
    }
    Ok(changed)
}

async fn collect_one(cx: &Cx, party: PartyId) -> Result<usize, Error> {
    let (now, id) = (cx.now(), cx.id());
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let wanted = [
                (AccountCode::RenterWallet, party.uuid()),
                (AccountCode::DisputeReceivable, party.uuid()),
            ];
            let whose = (Currency::Usd, Operation { cause: id, at: now });
            let posted = try_post(cx, tx, whose, &wanted, |books| {
                dispute::repay(books, party.uuid())
            })
            .await?;
            Ok(usize::from(posted.is_some_and(|p| {
                p.legs.iter().any(|l| l.amount > Micros::ZERO)
            })))
        })
        .await
}

/// Gives back what proposed adjustments have set aside when their time is over.
pub async fn expire_adjustments(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::adjustment::over(ro, now).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += crate::adjustment::expire(cx, id).await?;
    }
    Ok(changed)
}
