//! What a machine sees: heartbeat, states of containers, proofs of life.

use billing::meter::Proof;
use domain::audit::ActorRef;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MachineId};
use domain::lease::{GpuTime, LeaseEvent, LeaseReason, LeaseState};
use domain::machine::{FAILED_START_CAP, FAILED_START_WINDOW, MachineEvent, MachineState};
use store::db::Tx;
use store::lease::{ContainerRef, LeaseRecord};

use crate::context::Cx;
use crate::error::Error;
use crate::lease::change::{Cause, apply};
use crate::lease::money::LeaseMoney;

/// What is seen of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The image is being pulled or the container made.
    Preparing,
    /// The container runs.
    Running,
    /// It is stopped by order; its disk is there.
    Stopped,
    /// It ended by itself; its disk is there.
    Exited,
    /// It could not be started.
    Failed,
    /// Nothing is left.
    Gone,
}

/// One lease in a report.
#[derive(Clone, Debug)]
pub struct SeenLease {
    /// The lease.
    pub lease: LeaseId,
    /// What is seen.
    pub seen: Seen,
    /// The start that this is about.
    pub start_no: i64,
    /// Counts signs of progress.
    pub progress: i64,
    /// For people.
    pub detail: String,
    /// The container, if there is one.
    pub container: Option<ContainerRef>,
}

/// A report.
#[derive(Clone, Debug)]
pub struct ReportIn {
    /// UUID of the kernel's boot.
    pub boot_id: String,
    /// Milliseconds since that boot.
    pub mono_ms: i64,
    /// Every lease that has anything on the machine.
    pub leases: Vec<SeenLease>,
}

/// Takes a report; it is durable when this returns. Says whether the desired state may have changed.
pub async fn report(cx: &Cx, id: MachineId, report: ReportIn) -> Result<bool, Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| heartbeat(tx, id, now).await)
        .await?;
    let mut changed = false;
    let mut failed = false;
    for seen in &report.leases {
        let proof = (report.boot_id.as_str(), report.mono_ms, now);
        let (before, after) = cx
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| one(cx, tx, (id, seen), proof).await)
            .await?;
        changed |= before != after;
        failed |= before != after && seen.seen == Seen::Failed;
    }
    if failed {
        cx.db
            .write::<_, Error, _>(async |tx: &mut Tx| failing(cx, tx, id, now).await)
            .await?;
    }
    Ok(changed)
}

async fn heartbeat(tx: &mut Tx, id: MachineId, now: Timestamp) -> Result<(), Error> {
    let Some(mut machine) = store::machine::get_for_update(tx, id).await? else {
        return Err(Error::not_found("machine"));
    };
    store::machine::heartbeat(tx, id, now).await?;
    if machine.state == MachineState::Offline {
        let back = MachineEvent::CameBack {
            listed: machine.listed_before,
        };
        machine.state = machine.state.after(back).unwrap_or(machine.state);
        machine.state_reason = "it reports again".to_owned();
        machine.last_seen_at = Some(now);
        store::machine::save(tx, &machine).await?;
    }
    Ok(())
}

/// Takes what is seen of one lease; gives its state before and after.
async fn one(
    cx: &Cx,
    tx: &mut Tx,
    (machine, seen): (MachineId, &SeenLease),
    (boot, mono_ms, now): (&str, i64, Timestamp),
) -> Result<(Option<LeaseState>, Option<LeaseState>), Error> {
    let found = store::lease::get_for_update(tx, seen.lease).await?;
    let Some(mut lease) = found.filter(|l| l.machine == machine) else {
        tracing::warn!(lease = %seen.lease, %machine, "a machine reports a lease that is not its own");
        return Ok((None, None));
    };
    let before = lease.state;
    let mut money = LeaseMoney::load(tx, &lease).await?;
    let known = lease.clone();
    note(&mut lease, seen, now);
    // Most reports of a running lease tell nothing new of it.
    if lease != known {
        store::lease::save_quietly(tx, &lease).await?;
    }
    let actor = ActorRef::Machine(machine);
    for (event, reason) in events(&lease, seen) {
        prove(cx, tx, (&lease, &mut money), (seen, boot, mono_ms, now)).await?;
        let detail = seen.detail.clone();
        let cause = Cause {
            event,
            reason,
            detail,
            actor,
            at: now,
        };
        apply(cx, tx, (&mut lease, &mut money), &cause).await?;
    }
    prove(cx, tx, (&lease, &mut money), (seen, boot, mono_ms, now)).await?;
    money.save_meters(tx).await?;
    Ok((Some(before), Some(lease.state)))
}

/// Progress and container, as told.
fn note(lease: &mut LeaseRecord, seen: &SeenLease, now: Timestamp) {
    let starting = matches!(
        lease.state,
        LeaseState::Placing | LeaseState::Provisioning | LeaseState::Resuming
    );
    let this_start = seen.start_no == lease.start_no;
    if starting && this_start && seen.progress > lease.progress {
        lease.progress = seen.progress;
        lease.progress_at = now;
        lease.detail.clone_from(&seen.detail);
    }
    if this_start && seen.container.is_some() && !lease.state.is_final() {
        lease.container.clone_from(&seen.container);
    }
    if seen.seen == Seen::Gone && lease.state.is_final() {
        lease.container = None;
    }
}

/// What the sight amounts to, in order. What does not fit the state is no event: the desired state
/// will bring the machine there.
fn events(lease: &LeaseRecord, seen: &SeenLease) -> Vec<(LeaseEvent, LeaseReason)> {
    use LeaseEvent as E;
    use LeaseState as S;
    let this_start = seen.start_no == lease.start_no;
    let machine = LeaseReason::Machine;
    match (lease.state, seen.seen) {
        (S::Placing, Seen::Preparing) => vec![(E::Placed, machine)],
        (S::Placing, Seen::Running) if this_start => {
            vec![(E::Placed, machine), (E::Started, machine)]
        }
        (S::Provisioning | S::Resuming, Seen::Running) if this_start => vec![(E::Started, machine)],
        (S::Placing | S::Provisioning | S::Resuming, Seen::Failed) if this_start => {
            vec![(E::StartFailed, LeaseReason::StartFailed)]
        }
        // It ran and ended between two looks.
        (S::Placing, Seen::Exited) if this_start => vec![
            (E::Placed, machine),
            (E::Started, machine),
            (E::StopSeen, LeaseReason::ContainerExited),
        ],
        (S::Provisioning | S::Resuming, Seen::Exited) if this_start => {
            vec![
                (E::Started, machine),
                (E::StopSeen, LeaseReason::ContainerExited),
            ]
        }
        (S::Running | S::Interrupting, Seen::Exited) if this_start => {
            vec![(E::StopSeen, LeaseReason::ContainerExited)]
        }
        (S::Stopping, Seen::Stopped | Seen::Exited) => vec![(E::StopSeen, lease.reason)],
        (S::Ending, Seen::Gone) => vec![(E::EndSeen, lease.reason)],
        // The machine lost it: container and disk are not there any more.
        (S::Running | S::Stopping | S::Stopped | S::Interrupting | S::Interrupted, Seen::Gone)
            if this_start && lease.container.is_some() =>
        {
            vec![(E::EndRequested, machine), (E::EndSeen, machine)]
        }
        _ => Vec::new(),
    }
}

/// Lets the report prove time, as far as it does.
async fn prove(
    cx: &Cx,
    tx: &mut Tx,
    (lease, money): (&LeaseRecord, &mut LeaseMoney),
    (seen, boot, mono_ms, now): (&SeenLease, &str, i64, Timestamp),
) -> Result<(), Error> {
    let state = lease.state;
    let ordered = matches!(state, LeaseState::Stopping | LeaseState::Ending);
    let container = seen.container.as_ref().or(lease.container.as_ref());
    // Stopped or gone by order shows that it ran until the order; ended by itself does not.
    let ran = match seen.seen {
        Seen::Running => true,
        Seen::Stopped | Seen::Gone => ordered,
        Seen::Preparing | Seen::Exited | Seen::Failed => false,
    };
    if seen.seen == Seen::Exited && ordered {
        // It ended by itself before the order: what comes later proves nothing of it.
        money.compute = money.compute.cut_here();
    }
    let billed = state.billed(lease.keeps_gpus);
    let gpus = billed.compute != GpuTime::Free;
    let proof = |run: String| Proof {
        boot: boot.to_owned(),
        run,
        mono_ms,
        at: now,
    };
    let compute_counts = gpus || (ordered && money.compute.proof.is_some());
    // A machine that reports the stopped container keeps its GPUs.
    let kept =
        state == LeaseState::Stopped && gpus && matches!(seen.seen, Seen::Stopped | Seen::Exited);
    if let (true, true, Some(c)) = (ran || kept, compute_counts, container) {
        let run = format!("{} {}", c.id, c.started_at);
        let proof = proof(if kept {
            // What is kept is no part of what ran, nor of what an earlier stop kept.
            format!("{run} kept {}", lease.start_no)
        } else {
            run
        });
        if !money.compute.continues(&proof) {
            money.settle(cx, tx, lease, now).await?;
        }
        if let Some(next) = money.compute.prove(proof, money.compute_limit()?) {
            money.compute = next;
        }
    }
    let disk = matches!(
        seen.seen,
        Seen::Running | Seen::Stopped | Seen::Exited | Seen::Gone
    );
    let storage_counts = billed.storage || (ordered && money.storage.proof.is_some());
    if disk && storage_counts && (seen.seen != Seen::Gone || ordered) {
        let proof = proof(lease.id.to_string());
        if !money.storage.continues(&proof) {
            money.settle(cx, tx, lease, now).await?;
        }
        if let Some(next) = money.storage.prove(proof, money.storage_limit()?) {
            money.storage = next;
        }
    }
    if money.compute.crosses() || money.storage.crosses() {
        money.settle(cx, tx, lease, now).await?;
    }
    Ok(())
}

/// Takes a machine that keeps failing off the market, and says why.
async fn failing(cx: &Cx, tx: &mut Tx, id: MachineId, now: Timestamp) -> Result<(), Error> {
    let since = now.minus(FAILED_START_WINDOW);
    let count = store::lease_event::failed_starts(tx, id, since).await?;
    if count < i64::from(FAILED_START_CAP) {
        return Ok(());
    }
    let Some(mut machine) = store::machine::get_for_update(tx, id).await? else {
        return Ok(());
    };
    if machine.state != MachineState::Listed {
        return Ok(());
    }
    machine.state = machine
        .state
        .after(MachineEvent::UnlistRequested)
        .unwrap_or(machine.state);
    machine.listed_before = false;
    machine.state_reason = format!(
        "{count} starts failed within {} minutes; see the last leases, mend it, list it again",
        FAILED_START_WINDOW.secs().div_euclid(60)
    );
    store::machine::save(tx, &machine).await?;
    let what = crate::context::Audited {
        action: "machine.unlist",
        object: id.to_string(),
        reason: &machine.state_reason,
    };
    let mut line = cx.audit_by(ActorRef::Market, now, what);
    line.party = Some(machine.party);
    store::audit::insert(tx, &line).await?;
    Ok(())
}
