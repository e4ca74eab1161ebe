//! The proof of the ledger, for the operator's people.

use actix_web::web::Data;
use actix_web::{HttpResponse, get};
use app::prove::ProofView;
use web_openapi::time::to_text;
use web_openapi::wallet::{InvariantResult, LedgerProof};

use super::auth::Auth;
use super::docs::Problems;
use super::fault::Fault;
use crate::state::Shared;

/// The proof on the wire.
pub fn view(proof: &ProofView) -> LedgerProof {
    LedgerProof {
        proven: proof.proven,
        checked_at: to_text(proof.checked_at),
        invariants: proof
            .rows
            .iter()
            .map(|r| InvariantResult {
                id: r.id.to_owned(),
                statement: r.statement.to_owned(),
                violations: r.violations,
                examples: r.examples.clone(),
            })
            .collect(),
    }
}

/// Check every invariant of the ledger now.
#[utoipa::path(tag = "admin", security(("bearer" = [])), responses((status = 200, body = LedgerProof), Problems))]
#[get("/v1/admin/ledger-proof")]
pub(crate) async fn prove_ledger(shared: Data<Shared>, auth: Auth) -> Result<HttpResponse, Fault> {
    let proof = app::prove::prove_for(&shared.cx, &auth.0).await?;
    Ok(HttpResponse::Ok().json(view(&proof)))
}
