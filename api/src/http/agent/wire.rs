//! Between the agents' messages and the use-cases.

use app::link::{ProbeIn, ProbedGpu, ReportIn, Seen, SeenLease, Wanted};
use domain::lease::Desired;
use store::lease::ContainerRef;
use store::machine::MachineFacts;
use web_openapi::agent::{DesiredLease, LeaseReport, Observed, Probe, Target};
use web_openapi::lease::Workload;

/// A probe.
pub(super) fn probe(p: Probe) -> ProbeIn {
    let gpu = |g: web_openapi::agent::ProbedGpu| ProbedGpu {
        index: g.index,
        uuid: g.uuid,
        name: g.name,
        memory_mib: g.memory_mib,
        island: g.island,
        foreign_processes: g.foreign_processes,
    };
    ProbeIn {
        cpu_cores: p.cpu_cores,
        gpus: p.gpus.into_iter().map(gpu).collect(),
        facts: MachineFacts {
            simulated: p.simulated,
            hostname: p.hostname,
            cpu_cores: u32::try_from(p.cpu_cores).unwrap_or(u32::MAX),
            ram_mib: p.ram_mib,
            disk_gib: p.disk_gib,
            country: p.country,
            driver_version: p.driver_version,
            cuda_version: p.cuda_version,
            engine: p.engine,
            agent_version: p.agent_version,
        },
    }
}

/// A report. A lease whose id cannot be read is left out: it cannot be ours.
pub(super) fn report(boot_id: String, mono_ms: u64, leases: Vec<LeaseReport>) -> ReportIn {
    ReportIn {
        boot_id,
        mono_ms: i64::try_from(mono_ms).unwrap_or(i64::MAX),
        leases: leases.into_iter().filter_map(seen).collect(),
    }
}

fn seen(l: LeaseReport) -> Option<SeenLease> {
    let container = l.container_id.zip(l.container_started_at);
    Some(SeenLease {
        lease: l.lease_id.parse().ok()?,
        seen: match l.observed {
            Observed::Preparing => Seen::Preparing,
            Observed::Running => Seen::Running,
            Observed::Stopped => Seen::Stopped,
            Observed::Exited => Seen::Exited,
            Observed::Failed => Seen::Failed,
            Observed::Gone => Seen::Gone,
        },
        start_no: l.start_no,
        progress: i64::try_from(l.progress).unwrap_or(i64::MAX),
        detail: l.detail.chars().take(2_000).collect(),
        container: container.map(|(id, started_at)| ContainerRef { id, started_at }),
    })
}

/// One lease of the desired state.
pub(super) fn desired(w: Wanted) -> DesiredLease {
    DesiredLease {
        lease_id: w.lease.to_string(),
        target: match w.target {
            Desired::Run => Target::Run,
            Desired::Stop => Target::Stop,
            Desired::Gone => Target::Gone,
        },
        start_no: w.start_no,
        workload: Workload {
            image: w.workload.image,
            command: w.workload.command,
            env: w.workload.env,
        },
        gpu_uuids: w.gpu_uuids,
        simulated: w.simulated,
        cpu_millis: w.cpu_millis,
        ram_mib: w.ram_mib,
        disk_gib: w.disk_gib,
    }
}
