//! Wallets that run dry: told in time.

use billing::account::AccountCode;
use billing::exhaustion::look;
use domain::clock::Timestamp;
use domain::id::PartyId;
use domain::money::{Currency, Micros};
use serde_json::json;
use store::db::{Ro, Tx};

use crate::burning::{Burning, for_people};
use crate::context::Cx;
use crate::error::Error;
use crate::event::{Told, tell};

/// Wallets looked at in one run.
const MOST: i64 = 500;

/// Looks at the wallets that are due: works out when their money ends, and warns 24 hours, an hour
/// and ten minutes before.
pub async fn watch_wallets(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let due = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::wallet::due(ro, now, MOST).await?))
        .await?;
    let mut changed = 0;
    for wallet in due {
        changed += cx
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| watch_one(cx, tx, wallet, now).await)
            .await?;
    }
    Ok(changed)
}

async fn watch_one(
    cx: &Cx,
    tx: &mut Tx,
    (party, currency): (PartyId, Currency),
    now: Timestamp,
) -> Result<usize, Error> {
    let Some(mut watch) = store::wallet::get_for_update(tx, party, currency).await? else {
        return Ok(0);
    };
    if watch.due_at.is_none_or(|due| due > now) {
        return Ok(0);
    }
    let key = (AccountCode::RenterWallet, party.uuid());
    let account = store::ledger::account_of(tx, currency, key).await?;
    let posted = account.map_or(Ok(Micros::ZERO), |a| a.posted())?;
    let money = posted.plus(store::credit::usable(tx, party, now).await?)?;
    let burning = Burning::load(tx, party, now).await?;
    let end = burning.runs_out_at(money, now)?;
    let seen = look(end, watch.warned, now);
    if let (Some(end), Some(_before)) = (end, seen.warn) {
        let left = for_people(end.since(now));
        let told = Told {
            kind: "wallet.low",
            object: party.to_string(),
            detail: format!(
                "At the present rates the wallet pays for {left} more; then leases are stopped, the youngest first."
            ),
            data: json!({
                "runs_out_at_us": end.micros(),
                "seconds_left": end.since(now).secs(),
            }),
        };
        tell(cx, tx, (party, now), told).await?;
    }
    watch.runs_out_at = end;
    watch.warned = seen.warned;
    watch.due_at = seen.next;
    store::wallet::save(tx, &watch).await?;
    Ok(1)
}
