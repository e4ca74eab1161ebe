//! Disputed payments: the wallet pays as much as it has, the rest is owed, and the wallet is frozen
//! until all is decided and paid.

use billing::account::{AccountCode, PLATFORM};
use billing::posting::dispute::{self, Disputed};
use billing::posting::{Key, Operation, Rail};
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::{DisputeId, PartyId};
use domain::money::{Currency, Micros};
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::dispute::{DisputeRecord, DisputeState};

use crate::context::{Audited, Cx};
use crate::error::Error;
use crate::posting::{post, refuse_posting};

/// A dispute that a bank has opened.
#[derive(Clone, Debug)]
pub struct NewDispute {
    /// Whose payment.
    pub party: PartyId,
    /// How the money came.
    pub rail: Rail,
    /// How much is disputed.
    pub amount: Micros,
    /// In the bank's words.
    pub reason: String,
}

/// The refusal of a frozen wallet.
pub(crate) fn frozen() -> Error {
    Error::refused(
        Code::WalletFrozen,
        "A payment is disputed, or a debt of a dispute is not paid: nothing new can be booked.",
    )
    .suggesting("Top up what is owed (GET /v1/wallet): the freeze ends at once.")
}

/// Refuses if the party's wallet is frozen.
pub(crate) async fn refuse_frozen(ro: &mut Ro, party: PartyId) -> Result<(), Error> {
    if store::dispute::frozen(ro, &[party]).await?.is_empty() {
        Ok(())
    } else {
        Err(frozen())
    }
}

fn accounts(party: PartyId, rail: Rail) -> [Key; 4] {
    [
        (AccountCode::RenterWallet, party.uuid()),
        (AccountCode::DisputeReceivable, party.uuid()),
        (AccountCode::DisputeReserve, PLATFORM),
        rail.clearing(),
    ]
}

async fn told(cx: &Cx, tx: &mut Tx, record: &DisputeRecord, now: Timestamp) -> Result<(), Error> {
    let action = match record.state {
        DisputeState::Open => "dispute.open",
        DisputeState::Won => "dispute.win",
        DisputeState::Lost => "dispute.lose",
    };
    let what = Audited {
        action,
        object: record.id.to_string(),
        reason: &record.reason,
    };
    let mut line = cx.audit_by(ActorRef::Market, now, what);
    line.party = Some(record.party);
    Ok(store::audit::insert(tx, &line).await?)
}

/// Opens a dispute: the money is taken out of the wallet as far as it is there, the rest is owed.
pub async fn open(cx: &Cx, input: NewDispute) -> Result<DisputeRecord, Error> {
    let (now, id, input) = (cx.now(), DisputeId::from_uuid(cx.id()), &input);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let operation = Operation {
                cause: id.uuid(),
                at: now,
            };
            let wanted = accounts(input.party, input.rail);
            let posted = post(cx, tx, (Currency::Usd, operation), &wanted, |books| {
                dispute::opened(books, input.party.uuid(), input.amount)
            })
            .await?;
            let record = DisputeRecord {
                id,
                party: input.party,
                currency: Currency::Usd,
                rail: input.rail,
                disputed: Disputed::of(&posted.legs).map_err(refuse_posting)?,
                reason: input.reason.clone(),
                state: DisputeState::Open,
                opened_at: now,
                decided_at: None,
            };
            store::dispute::save(tx, &record).await?;
            told(cx, tx, &record, now).await?;
            Ok(record)
        })
        .await
}

/// The bank decided for the market: what was taken comes back, by record. A second call changes
/// nothing.
pub async fn won(cx: &Cx, id: DisputeId) -> Result<DisputeRecord, Error> {
    decide(cx, id, DisputeState::Won).await
}

/// The bank decided for the card holder: the money is gone; what is owed stays owed. A second call
/// changes nothing.
pub async fn lost(cx: &Cx, id: DisputeId) -> Result<DisputeRecord, Error> {
    decide(cx, id, DisputeState::Lost).await
}

async fn decide(cx: &Cx, id: DisputeId, state: DisputeState) -> Result<DisputeRecord, Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut record = store::dispute::get_for_update(tx, id)
                .await?
                .ok_or_else(|| Error::not_found("dispute"))?;
            if record.state != DisputeState::Open {
                return Ok(record);
            }
            let operation = Operation {
                cause: id.uuid(),
                at: now,
            };
            let (renter, rail, disputed) = (record.party.uuid(), record.rail, record.disputed);
            let wanted = accounts(record.party, rail);
            post(
                cx,
                tx,
                (record.currency, operation),
                &wanted,
                |books| match state {
                    DisputeState::Won => dispute::won(books, renter, disputed),
                    DisputeState::Lost | DisputeState::Open => dispute::lost(rail, disputed),
                },
            )
            .await?;
            record.state = state;
            record.decided_at = Some(now);
            store::dispute::save(tx, &record).await?;
            told(cx, tx, &record, now).await?;
            Ok(record)
        })
        .await
}
