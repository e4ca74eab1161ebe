//! What agents say, and what they are told. Level-triggered: whole state both ways, so a lost,
//! repeated or late message changes nothing.

use domain::audit::ActorRef;
use domain::id::{LeaseId, MachineId};
use domain::lease::Desired;
use domain::machine::{MachineEvent, MachineState};
use store::db::{Ro, Tx};
use store::lease::{LeaseRecord, Workload};
use store::machine::MachineRecord;

use crate::context::{Audited, Cx};
use crate::error::Error;

mod probe;
mod report;

pub use probe::{ProbeIn, ProbedGpu, probe};
pub use report::{ReportIn, Seen, SeenLease, report};

/// What a machine is to make true for one lease.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The lease.
    pub lease: LeaseId,
    /// What to make true.
    pub target: Desired,
    /// Counts wanted starts.
    pub start_no: i64,
    /// What runs.
    pub workload: Workload,
    /// Vendor UUIDs of its GPUs.
    pub gpu_uuids: Vec<String>,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// Most cores, in thousandths.
    pub cpu_millis: u64,
    /// Most memory, MiB.
    pub ram_mib: u64,
    /// Disk, GiB.
    pub disk_gib: u32,
}

/// The key of a machine that may connect; `None` if it is unknown or retired.
pub async fn machine_key(cx: &Cx, id: MachineId) -> Result<Option<[u8; 32]>, Error> {
    let found = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::machine::get(ro, id).await?))
        .await?;
    Ok(found
        .filter(|m| m.state != MachineState::Retired)
        .map(|m| m.public_key))
}

/// Quarantines a machine: nothing new is placed on it; running leases go on.
pub async fn distrust(cx: &Cx, id: MachineId, reason: &str) -> Result<(), Error> {
    let now = cx.now();
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            if let Some(mut machine) = store::machine::get_for_update(tx, id).await? {
                quarantine(cx, tx, &mut machine, (reason, now)).await?;
            }
            Ok(())
        })
        .await
}

pub(crate) async fn quarantine(
    cx: &Cx,
    tx: &mut Tx,
    machine: &mut MachineRecord,
    (reason, now): (&str, domain::clock::Timestamp),
) -> Result<(), Error> {
    let next = machine
        .state
        .after(MachineEvent::Distrusted)
        .unwrap_or(machine.state);
    if next == machine.state {
        return Ok(());
    }
    machine.state = next;
    machine.state_reason = reason.to_owned();
    machine.listed_before = false;
    *machine = store::machine::save(tx, machine).await?;
    let what = Audited {
        action: "machine.quarantine",
        object: machine.id.to_string(),
        reason,
    };
    let mut line = cx.audit_by(ActorRef::Market, now, what);
    line.party = Some(machine.party);
    store::audit::insert(tx, &line).await?;
    Ok(())
}

/// The whole desired state of a machine.
pub async fn desired(cx: &Cx, id: MachineId) -> Result<Vec<Wanted>, Error> {
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let Some(machine) = store::machine::get(ro, id).await? else {
                return Ok(Vec::new());
            };
            let all = store::machine::gpus(ro, &[id]).await?.len();
            let leases = store::lease::wanted_of_machine(ro, id).await?;
            let ids: Vec<LeaseId> = leases.iter().map(|l| l.id).collect();
            let gpus = store::lease::gpus_of(ro, &ids).await?;
            let uuids = |lease: LeaseId| {
                let own = gpus.iter().filter(|(l, _)| *l == lease);
                own.map(|(_, gpu)| gpu.uuid.clone()).collect()
            };
            Ok(leases
                .into_iter()
                .map(|l| wanted(&machine, all, uuids(l.id), l))
                .collect())
        })
        .await
}

/// Cores and memory are shared out like the GPUs.
fn wanted(machine: &MachineRecord, all: usize, gpu_uuids: Vec<String>, l: LeaseRecord) -> Wanted {
    let all = u64::try_from(all).unwrap_or(1).max(1);
    let part = |whole: u64| {
        whole
            .saturating_mul(u64::from(l.terms.gpu_count))
            .checked_div(all)
            .unwrap_or(whole)
    };
    Wanted {
        lease: l.id,
        target: l.state.desired(),
        start_no: l.start_no,
        gpu_uuids,
        simulated: l.terms.simulated,
        cpu_millis: part(u64::from(machine.facts.cpu_cores).saturating_mul(1_000)),
        ram_mib: part(machine.facts.ram_mib),
        disk_gib: l.terms.disk_gib,
        workload: l.workload,
    }
}
