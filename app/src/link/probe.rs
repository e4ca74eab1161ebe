//! What a machine says it is. Numbers from outside are not trusted: what cannot be true puts the
//! machine into quarantine.

use std::collections::BTreeSet;

use domain::audit::ActorRef;
use domain::gpu::{GpuModel, GpuUuid};
use domain::id::{GpuId, MachineId};
use domain::machine::MachineEvent;
use domain::refusal::Code;
use store::db::Tx;
use store::error::Constraint;
use store::machine::{MachineFacts, MachineRecord, NewGpu};

use super::quarantine;
use crate::context::{Audited, Cx};
use crate::error::Error;

/// One GPU as probed.
#[derive(Clone, Debug)]
pub struct ProbedGpu {
    /// Position.
    pub index: u16,
    /// Vendor's UUID.
    pub uuid: String,
    /// Name as the driver tells it.
    pub name: String,
    /// Memory, MiB.
    pub memory_mib: u64,
    /// Island.
    pub island: u16,
    /// Processes that no lease explains.
    pub foreign_processes: u32,
}

/// A probe.
#[derive(Clone, Debug)]
pub struct ProbeIn {
    /// Everything but the GPUs, with numbers as they came.
    pub facts: MachineFacts,
    /// Cores as they came.
    pub cpu_cores: u64,
    /// The GPUs.
    pub gpus: Vec<ProbedGpu>,
}

/// Prefix of the UUIDs of simulated GPUs.
const SIMULATED: &str = "SIM-";
const GPUS_MAX: usize = 64;

/// Takes a probe. What cannot be true is refused and puts the machine into quarantine; what is
/// merely not supported (an unknown GPU model) is refused without blame.
pub async fn probe(cx: &Cx, id: MachineId, probe: ProbeIn) -> Result<(), Error> {
    let now = cx.now();
    if let Err(lie) = plausible(cx, &probe) {
        super::distrust(cx, id, &format!("implausible probe: {lie}")).await?;
        return Err(Error::refused(Code::ImplausibleProbe, lie));
    }
    if probe.facts.simulated && !cx.policy.allow_simulated {
        return Err(Error::refused(
            Code::SimulatedNotAllowed,
            "This market does not take simulated GPUs.",
        ));
    }
    let gpus = models(cx, &probe)?;
    let (probe, gpus) = (&probe, &gpus);
    let taken = cx
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut machine = store::machine::get_for_update(tx, id)
                .await?
                .ok_or_else(|| Error::not_found("machine"))?;
            let uuids: Vec<String> = gpus.iter().map(|g| g.uuid.clone()).collect();
            let others = store::machine::other_owners(tx, id, &uuids).await?;
            if !others.is_empty() {
                return claim_twice(cx, tx, (machine, others), now).await;
            }
            accept(cx, tx, &mut machine, (probe, gpus)).await?;
            Ok(true)
        })
        .await
        .map_err(|error| match error.constraint() {
            Some(Constraint::GpuUuidOnce) => twice(),
            _ => error,
        })?;
    if taken { Ok(()) } else { Err(twice()) }
}

fn twice() -> Error {
    Error::refused(
        Code::ImplausibleProbe,
        "A GPU of this machine belongs to another machine.",
    )
}

/// Two machines claim one GPU: both are quarantined until a moderator has looked.
async fn claim_twice(
    cx: &Cx,
    tx: &mut Tx,
    (mut machine, others): (MachineRecord, Vec<MachineId>),
    now: domain::clock::Timestamp,
) -> Result<bool, Error> {
    let reason = "two machines report the same GPU";
    quarantine(cx, tx, &mut machine, (reason, now)).await?;
    for other in others {
        if let Some(mut other) = store::machine::get_for_update(tx, other).await? {
            quarantine(cx, tx, &mut other, (reason, now)).await?;
        }
    }
    Ok(false)
}

async fn accept(
    cx: &Cx,
    tx: &mut Tx,
    machine: &mut MachineRecord,
    (probe, gpus): (&ProbeIn, &[NewGpu]),
) -> Result<(), Error> {
    let now = cx.now();
    let first = machine.facts.agent_version.is_empty();
    if !first && machine.facts.simulated != probe.facts.simulated {
        let reason = "its GPUs were simulated before and are not now, or the other way round";
        return quarantine(cx, tx, machine, (reason, now)).await;
    }
    store::machine::replace_gpus(tx, machine.id, gpus, now).await?;
    let before = machine.clone();
    machine.facts = probe.facts.clone();
    machine.facts.cpu_cores = u32::try_from(probe.cpu_cores).unwrap_or(u32::MAX);
    machine.last_seen_at = Some(now);
    machine.state = machine
        .state
        .after(MachineEvent::Probed)
        .unwrap_or(machine.state);
    if machine.state != before.state {
        machine.state_reason = "its probe is being checked".to_owned();
    }
    *machine = store::machine::save(tx, machine).await?;
    if before.facts != machine.facts {
        let what = Audited {
            action: "machine.probe",
            object: machine.id.to_string(),
            reason: "the machine reported what it is",
        };
        let mut line = cx.audit_by(ActorRef::Machine(machine.id), now, what);
        line.party = Some(machine.party);
        store::audit::insert(tx, &line).await?;
    }
    Ok(())
}

/// Bounds that no machine of today exceeds; an absurd number is a lie or a fault, never supply.
fn plausible(cx: &Cx, probe: &ProbeIn) -> Result<(), String> {
    let facts = &probe.facts;
    let within = |name: &str, value: u64, range: std::ops::RangeInclusive<u64>| {
        if range.contains(&value) {
            Ok(())
        } else {
            Err(format!(
                "{name} is {value}, outside {}–{}",
                range.start(),
                range.end()
            ))
        }
    };
    within("cpu_cores", probe.cpu_cores, 1..=4_096)?;
    within("ram_mib", facts.ram_mib, 64..=67_108_864)?;
    within("disk_gib", facts.disk_gib, 0..=10_000_000)?;
    if facts.hostname.len() > 255 || facts.engine.len() > 255 || facts.agent_version.len() > 64 {
        return Err("a text is too long".to_owned());
    }
    let country_fits = |c: &String| c.len() == 2 && c.bytes().all(|b| b.is_ascii_uppercase());
    if facts.country.as_ref().is_some_and(|c| !country_fits(c)) {
        return Err("country is not a two-letter code".to_owned());
    }
    if probe.gpus.is_empty() || probe.gpus.len() > GPUS_MAX {
        return Err(format!("{} GPUs, outside 1–{GPUS_MAX}", probe.gpus.len()));
    }
    let (mut uuids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for gpu in &probe.gpus {
        let uuid: GpuUuid = gpu.uuid.parse().map_err(|e| format!("{e}"))?;
        if uuid.as_str().starts_with(SIMULATED) != facts.simulated {
            return Err("a GPU's UUID does not fit to being simulated or not".to_owned());
        }
        if !uuids.insert(uuid) || !places.insert(gpu.index) || usize::from(gpu.index) >= GPUS_MAX {
            return Err("two GPUs have one UUID or place, or a place is out of range".to_owned());
        }
        if let Some(model) = cx.catalogue.find(&gpu.name) {
            memory_fits(gpu, model)?;
        }
    }
    Ok(())
}

/// Drivers tell up to 15 % less than the nominal memory (ECC, reserved), hardly ever more.
fn memory_fits(gpu: &ProbedGpu, model: &GpuModel) -> Result<(), String> {
    let nominal = u64::from(model.memory_mib);
    let least = nominal.saturating_mul(85).div_euclid(100);
    let most = nominal.saturating_mul(105).div_euclid(100);
    if (least..=most).contains(&gpu.memory_mib) {
        return Ok(());
    }
    Err(format!(
        "{} with {} MiB: that model has {nominal} MiB",
        model.slug, gpu.memory_mib
    ))
}

fn models(cx: &Cx, probe: &ProbeIn) -> Result<Vec<NewGpu>, Error> {
    let mut gpus = Vec::with_capacity(probe.gpus.len());
    for gpu in &probe.gpus {
        let model = cx.catalogue.find(&gpu.name).ok_or_else(|| {
            Error::refused(
                Code::UnknownGpuModel,
                format!("The GPU model `{}` is not in the catalogue.", gpu.name),
            )
            .suggesting("Ask the operator to add it.")
        })?;
        gpus.push(NewGpu {
            id: GpuId::from_uuid(cx.id()),
            slot: gpu.index,
            uuid: gpu.uuid.clone(),
            model: model.slug.clone(),
            memory_mib: u32::try_from(gpu.memory_mib).unwrap_or(u32::MAX),
            island: gpu.island,
            busy_elsewhere: gpu.foreign_processes > 0,
        });
    }
    let kinds: BTreeSet<&str> = gpus.iter().map(|g| g.model.as_str()).collect();
    if kinds.len() > 1 {
        return Err(Error::refused(
            Code::UnknownGpuModel,
            "Machines with several GPU models are not supported yet.",
        ));
    }
    Ok(gpus)
}
