//! The proof of the ledger, on demand.

use domain::clock::Timestamp;
use domain::party::StaffRole;
use domain::refusal::Code;
use store::db::Ro;
use store::prove::InvariantRow;

use crate::context::{Caller, Cx};
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
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::prove::invariants(ro).await?))
        .await?;
    Ok(ProofView {
        proven: rows.iter().all(|r| r.violations == 0),
        checked_at,
        rows,
    })
}

/// The same for the operator's people.
pub async fn prove_for(cx: &Cx, caller: &Caller) -> Result<ProofView, Error> {
    match domain::access::decide_staff(&caller.actor, &StaffRole::ALL) {
        domain::access::Decision::Allow => prove(cx).await,
        domain::access::Decision::Hide => Err(Error::not_found("page")),
        domain::access::Decision::Forbid => Err(Error::refused(
            Code::Forbidden,
            "This is for the operator's people.",
        )),
    }
}
