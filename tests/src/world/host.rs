//! What a host is, and how it obeys.

use app::Cx;
use app::link::{Seen, SeenLease};
use domain::clock::Timestamp;
use domain::id::{MachineId, PartyId};
use domain::lease::LeaseState;
use domain::machine::MachineState;
use store::enrollment::EnrollmentRecord;
use store::lease::{ContainerRef, LeaseRecord};
use store::machine::{MachineFacts, MachineRecord};

pub(super) fn machine(cx: &Cx, provider: PartyId, now: Timestamp) -> MachineRecord {
    let token = EnrollmentRecord {
        id: domain::id::EnrollmentId::from_uuid(cx.id()),
        party: provider,
        machine_name: "host".to_owned(),
        created_at: now,
        expires_at: now,
        machine: None,
    };
    let mut key = [0; 32];
    key[..16].copy_from_slice(cx.id().as_bytes());
    MachineRecord {
        state: MachineState::Listed,
        last_seen_at: Some(now),
        facts: MachineFacts {
            simulated: true,
            cpu_cores: 64,
            ram_mib: 1_048_576,
            disk_gib: 10_000,
            engine: "simulated".to_owned(),
            ..MachineFacts::default()
        },
        ..MachineRecord::enrolled(MachineId::from_uuid(cx.id()), &token, key, now)
    }
}

/// What an obedient machine shows of a lease.
pub(super) fn obeyed(lease: &LeaseRecord) -> SeenLease {
    let seen = match lease.state {
        LeaseState::Placing
        | LeaseState::Provisioning
        | LeaseState::Running
        | LeaseState::Resuming => Seen::Running,
        LeaseState::Interrupting
        | LeaseState::Interrupted
        | LeaseState::Stopping
        | LeaseState::Stopped => Seen::Stopped,
        LeaseState::Ending | LeaseState::Ended | LeaseState::Failed => Seen::Gone,
    };
    let container = ContainerRef {
        id: format!("{}", lease.id),
        started_at: format!("start {}", lease.start_no),
    };
    SeenLease {
        lease: lease.id,
        seen,
        start_no: lease.start_no,
        progress: lease.progress + 1,
        detail: String::new(),
        container: (seen != Seen::Gone).then_some(container),
    }
}
