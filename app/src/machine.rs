//! Machines: enrolled with a one-time token, seen, acted upon.

use domain::access::Scope;
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::{EnrollmentId, MachineId};
use domain::machine::{MachineEvent, MachineState};
use domain::party::DisplayName;
use domain::refusal::Code;
use store::db::{Ro, Tx};
use store::enrollment::EnrollmentRecord;
use store::machine::{GpuRecord, MachineRecord};
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;

/// A machine with its GPUs.
#[derive(Clone, Debug)]
pub struct MachineView {
    /// The machine.
    pub machine: MachineRecord,
    /// Its GPUs, by slot.
    pub gpus: Vec<GpuRecord>,
}

/// A one-time token, without its secret.
#[derive(Clone, Copy, Debug)]
pub struct TokenView {
    /// Its id.
    pub id: EnrollmentId,
    /// It can be used before this.
    pub expires_at: Timestamp,
}

/// What an agent gets for its token.
#[derive(Clone, Debug)]
pub struct EnrolledView {
    /// The machine.
    pub machine: MachineId,
    /// Its name.
    pub name: String,
}

/// What a provider does with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineAct {
    /// Offer it.
    List,
    /// Take it off the market.
    Unlist,
    /// No new leases.
    Drain,
    /// Out of service.
    Maintenance,
    /// Gone for good.
    Retire,
}

impl MachineAct {
    const fn event(self) -> MachineEvent {
        match self {
            Self::List => MachineEvent::ListRequested,
            Self::Unlist => MachineEvent::UnlistRequested,
            Self::Drain => MachineEvent::DrainRequested,
            Self::Maintenance => MachineEvent::MaintenanceRequested,
            Self::Retire => MachineEvent::RetireRequested,
        }
    }

    const fn audited(self) -> &'static str {
        match self {
            Self::List => "machine.list",
            Self::Unlist => "machine.unlist",
            Self::Drain => "machine.drain",
            Self::Maintenance => "machine.maintain",
            Self::Retire => "machine.retire",
        }
    }
}

/// Makes a one-time token.
pub async fn create_token(
    cx: &Cx,
    caller: &Caller,
    name: DisplayName,
    token_hash: [u8; 32],
    once: Once<'_, TokenView>,
) -> Result<Answer, Error> {
    caller.may(Scope::MachinesWrite, None)?;
    let now = cx.now();
    let record = EnrollmentRecord {
        id: EnrollmentId::from_uuid(cx.id()),
        party: caller.actor.party,
        machine_name: name.as_str().to_owned(),
        created_at: now,
        expires_at: now.plus(cx.policy.enrollment_ttl),
        machine: None,
    };
    let (record, hash, once) = (&record, &token_hash, &once);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        store::enrollment::insert(tx, record, hash).await?;
        let what = Audited {
            action: "machine.create_token",
            object: record.id.to_string(),
            reason: "by request",
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        Ok(TokenView {
            id: record.id,
            expires_at: record.expires_at,
        })
    })
    .await
}

/// Turns a token into a machine with this key. The same token and key again give the same machine.
pub async fn enroll(
    cx: &Cx,
    request_id: &str,
    token_hash: [u8; 32],
    public_key: [u8; 32],
) -> Result<EnrolledView, Error> {
    let now = cx.now();
    let fresh = MachineId::from_uuid(cx.id());
    let (hash, key) = (&token_hash, &public_key);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let token = store::enrollment::by_token_hash_for_update(tx, hash)
                .await?
                .ok_or_else(unknown_token)?;
            if let Some(id) = token.machine {
                let machine = store::machine::get(tx, id)
                    .await?
                    .ok_or_else(unknown_token)?;
                if machine.public_key == *key {
                    return Ok(EnrolledView {
                        machine: id,
                        name: machine.name,
                    });
                }
                return Err(spent("The token was used by another machine."));
            }
            if token.expires_at <= now {
                return Err(spent("The token has expired."));
            }
            let machine = MachineRecord::enrolled(fresh, &token, *key, now);
            store::machine::insert(tx, &machine).await?;
            store::enrollment::spend(tx, token.id, fresh).await?;
            let what = Audited {
                action: "machine.enroll",
                object: fresh.to_string(),
                reason: "a one-time token was presented",
            };
            let mut line = cx.audit_by(ActorRef::Machine(fresh), now, what);
            line.party = Some(token.party);
            line.request_id = Some(request_id.to_owned());
            store::audit::insert(tx, &line).await?;
            Ok(EnrolledView {
                machine: fresh,
                name: machine.name,
            })
        })
        .await
        .map_err(|error| match error.constraint() {
            Some(store::error::Constraint::MachineKey) => Error::refused(
                Code::EnrollmentSpent,
                "This key belongs to another machine.",
            )
            .suggesting("Start the agent with an empty --state directory."),
            _ => error,
        })
}

fn unknown_token() -> Error {
    Error::refused(Code::Unauthenticated, "The enrolment token is not known.")
        .suggesting("Make a new one with `gpumarket machine token`.")
}

fn spent(detail: &str) -> Error {
    Error::refused(Code::EnrollmentSpent, detail)
        .suggesting("Make a new one with `gpumarket machine token`.")
}

/// One machine of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: MachineId) -> Result<MachineView, Error> {
    caller.may(Scope::MachinesRead, None)?;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let machine = own(store::machine::get(ro, id).await?, caller)?;
            view(ro, machine).await
        })
        .await
}

/// The party's machines, newest first.
pub async fn list(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<MachineView>, Error> {
    caller.may(Scope::MachinesRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let found = store::machine::list(ro, party, page).await?;
            let ids: Vec<MachineId> = found.rows.iter().map(|m| m.id).collect();
            let gpus = store::machine::gpus(ro, &ids).await?;
            let rows = found
                .rows
                .into_iter()
                .map(|machine| {
                    let own = gpus
                        .iter()
                        .filter(|g| g.machine == machine.id)
                        .cloned()
                        .collect();
                    MachineView { machine, gpus: own }
                })
                .collect();
            Ok(Paged {
                rows,
                next: found.next,
            })
        })
        .await
}

/// Acts on a machine. Running leases are never touched by it; retiring waits for them.
pub async fn act(
    cx: &Cx,
    caller: &Caller,
    (id, act, reason): (MachineId, MachineAct, String),
    once: Once<'_, MachineView>,
) -> Result<Answer, Error> {
    caller.may(Scope::MachinesWrite, None)?;
    let now = cx.now();
    let (once, reason) = (&once, &reason);
    let answer = mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let mut machine = own(store::machine::get_for_update(tx, id).await?, caller)?;
        allowed_now(tx, &machine, act).await?;
        machine.state = machine
            .state
            .after(act.event())
            .map_err(|illegal| Error::refused(Code::MachineState, format!("{illegal}.")))?;
        machine.state_reason = reason.clone();
        machine.listed_before = machine.state == MachineState::Listed;
        let machine = store::machine::save(tx, &machine).await?;
        let what = Audited {
            action: act.audited(),
            object: id.to_string(),
            reason,
        };
        store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
        view(tx, machine).await
    })
    .await?;
    cx.wake.machine(id);
    Ok(answer)
}

async fn allowed_now(tx: &mut Tx, machine: &MachineRecord, act: MachineAct) -> Result<(), Error> {
    if act == MachineAct::List
        && store::offer::live_of_machine(tx, machine.id)
            .await?
            .is_none()
    {
        return Err(
            Error::refused(Code::MachineState, "The machine has no offer.")
                .suggesting("Create one with POST /v1/offers."),
        );
    }
    let retiring = act == MachineAct::Retire;
    if retiring
        && !store::lease::live_of_machine(tx, machine.id)
            .await?
            .is_empty()
    {
        return Err(
            Error::refused(Code::MachineState, "A lease still lives on the machine.")
                .suggesting("Drain it first; it can retire when the last lease has ended."),
        );
    }
    Ok(())
}

/// The machine, if it is the caller's.
pub(crate) fn own(found: Option<MachineRecord>, caller: &Caller) -> Result<MachineRecord, Error> {
    found
        .filter(|machine| machine.party == caller.actor.party)
        .ok_or_else(|| Error::not_found("machine"))
}

async fn view(ro: &mut Ro, machine: MachineRecord) -> Result<MachineView, Error> {
    let gpus = store::machine::gpus(ro, &[machine.id]).await?;
    Ok(MachineView { machine, gpus })
}
