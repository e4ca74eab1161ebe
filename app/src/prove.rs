//! The proof of the ledger, on demand.

use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::party::StaffRole;
use store::db::{Ro, Tx};
use store::prove::InvariantRow;

use crate::context::{Audited, Caller, Cx};
use crate::error::Error;

/// The proof.
#[derive(Clone, Debug)]
pub struct ProofView {
    /// Every invariant holds.
    pub proven: bool,
    /// When it was checked.
    pub checked_at: Timestamp,
    /// One row for each invariant.
    pub rows: Vec<InvariantRow>,
}

/// Checks every invariant over one snapshot.
pub async fn prove(cx: &Cx) -> Result<ProofView, Error> {
    let checked_at = cx.now();
    let rows = cx
        .db
        .inspect::<_, Error, _>(async |ro: &mut Ro| Ok(store::prove::invariants(ro).await?))
        .await?;
    Ok(ProofView {
        proven: rows.iter().all(|r| r.violations == 0),
        checked_at,
        rows,
    })
}

/// Invariants whose violation means that money is wrong: nothing more may be written on top of it.
const OF_MONEY: [&str; 11] = [
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "C1",
];

/// Checks every invariant, and stops the ledger's writers if money is wrong: leases go on within
/// their holds until an operator has looked and lifts the stop with [`lift`].
pub async fn watch(cx: &Cx) -> Result<ProofView, Error> {
    let proof = prove(cx).await?;
    let broken = |r: &&InvariantRow| r.violations > 0 && OF_MONEY.contains(&r.id);
    if let Some(row) = proof.rows.iter().find(broken) {
        let reason = format!("{}: it does not hold that {}", row.id, row.statement);
        set_stop(cx, Some(&reason), ("ledger.stop", &reason)).await?;
    }
    Ok(proof)
}

/// Lets the writers go on; `reason` is what the operator found. Says how many were stopped.
pub async fn lift(cx: &Cx, reason: &str) -> Result<usize, Error> {
    if reason.trim().is_empty() {
        return Err(Error::field("/reason", "missing", "Say what was found."));
    }
    set_stop(cx, None, ("ledger.lift", reason)).await
}

async fn set_stop(
    cx: &Cx,
    stop: Option<&str>,
    (action, reason): (&'static str, &str),
) -> Result<usize, Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let changed = store::shard::set_stop(tx, stop).await?;
            if changed > 0 {
                let object = "ledger".to_owned();
                let what = Audited {
                    action,
                    object,
                    reason,
                };
                store::audit::insert(tx, &cx.audit_by(ActorRef::Market, now, what)).await?;
            }
            Ok(changed)
        })
        .await
}

/// The same for the operator's people.
pub async fn prove_for(cx: &Cx, caller: &Caller) -> Result<ProofView, Error> {
    crate::staff::only(caller, &StaffRole::ALL)?;
    prove(cx).await
}
