//! Everything that moved on a party's accounts, with its cause.

use billing::transfer::TransferKind as Kind;
use domain::access::Scope;
use domain::clock::Timestamp;
use domain::id::{
    AdjustmentId, ChargeId, CreditId, DisputeId, LeaseId, MaturingId, PayoutId, TopUpId, TransferId,
};
use domain::money::Micros;
use store::db::Ro;
use store::page::{Page, Paged};
use store::transaction::TransactionRecord;
use uuid::Uuid;

use crate::context::{Caller, Cx};
use crate::error::Error;

/// One movement on an account of the party.
#[derive(Clone, Debug)]
pub struct TransactionView {
    /// `txn_…` or `chg_…`
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// `sandbox_top_up`, `charge`, …
    pub kind: &'static str,
    /// Which account.
    pub account: &'static str,
    /// Positive: the account grew.
    pub amount: Micros,
    /// What caused it.
    pub cause: String,
    /// For people.
    pub description: String,
}

/// The id of what caused a transfer, as it is shown elsewhere.
fn cause(kind: Kind, id: Uuid) -> String {
    match kind {
        Kind::SandboxTopUp | Kind::Deposit | Kind::ReceivableRepaid => {
            TopUpId::from_uuid(id).to_string()
        }
        Kind::PromoGranted
        | Kind::PromoReleased
        | Kind::PromoReturned
        | Kind::PromoExpired
        | Kind::SlaCredit
        | Kind::GoodwillCredit => CreditId::from_uuid(id).to_string(),
        Kind::AdjustmentCredit | Kind::AdjustmentDebit => AdjustmentId::from_uuid(id).to_string(),
        Kind::ChargeNetReversed
        | Kind::ChargeFeeReversed
        | Kind::ChargeTaxReversed
        | Kind::ClawbackPayable
        | Kind::ClawbackOwed
        | Kind::ClawbackReserve => ChargeId::from_uuid(id).to_string(),
        Kind::Matured | Kind::ReserveWithheld | Kind::ReserveReleased | Kind::ClawbackRepaid => {
            MaturingId::from_uuid(id).to_string()
        }
        Kind::PayoutRequested
        | Kind::PayoutSent
        | Kind::PayoutFailed
        | Kind::PayoutReturned
        | Kind::ClawbackSettled => PayoutId::from_uuid(id).to_string(),
        Kind::DisputeOpened
        | Kind::DisputeOwed
        | Kind::DisputeWon
        | Kind::DisputeOwedWon
        | Kind::DisputeLost
        | Kind::DisputeFee
        | Kind::ReceivableSettled => DisputeId::from_uuid(id).to_string(),
        // Their cause is a transfer, or has no page of its own.
        Kind::Correction
        | Kind::ReceivableCollected
        | Kind::StripeFee
        | Kind::BankSettled
        | Kind::TaxRemitted
        | Kind::SuspenseIn
        | Kind::SuspenseOut
        | Kind::RefundRequested
        | Kind::RefundSettled
        | Kind::RefundFailed
        | Kind::WrittenOff
        | Kind::InterbranchOut
        | Kind::InterbranchIn => TransferId::from_uuid(id).to_string(),
    }
}

fn view(record: &TransactionRecord) -> TransactionView {
    let (id, kind, cause, description) = if let Some(kind) = record.kind {
        (
            TransferId::from_uuid(record.id).to_string(),
            kind.as_str(),
            cause(kind, record.cause),
            kind.words().to_owned(),
        )
    } else {
        let lease = LeaseId::from_uuid(record.cause).to_string();
        let text = format!("settlement of {lease}");
        let id = ChargeId::from_uuid(record.id).to_string();
        (id, "charge", lease, text)
    };
    TransactionView {
        id,
        at: record.at,
        kind,
        account: record.account.as_str(),
        amount: record.amount,
        cause,
        description,
    }
}

/// Everything that moved on the party's accounts, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<TransactionView>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            Ok(store::transaction::list(ro, party, page).await?)
        })
        .await?;
    Ok(Paged {
        rows: found.rows.iter().map(view).collect(),
        next: found.next,
    })
}
