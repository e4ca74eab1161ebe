//! What engines are told, without an engine.

use web_openapi::agent::{DesiredLease, Target};
use web_openapi::lease::Workload;

use super::*;

const ROOMY: Host = Host {
    cores: 64,
    ram_mib: 1 << 20,
};

fn plan(simulated: bool, network: Option<&str>, host: &Host) -> Plan {
    let env = [
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("GPUMARKET_LEASE", "lse_forged"),
        ("GPUMARKET_SIMULATED", "maybe"),
        ("MINE", "a=b"),
    ];
    let lease = DesiredLease {
        lease_id: "lse_a".into(),
        target: Target::Run,
        start_no: 2,
        workload: Workload {
            image: "i:1".into(),
            command: vec!["run".into()],
            env: env.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
        },
        gpu_uuids: vec!["GPU-1".into(), "GPU-2".into()],
        simulated,
        cpu_millis: 1_500,
        ram_mib: 512,
        disk_gib: 10,
    };
    Plan::new(
        &Spec { lease },
        "i:1",
        ("mch_m", network.map(Into::into), host),
    )
}

#[test]
fn the_renter_cannot_reach_other_gpus_by_environment() {
    for (simulated, visible) in [(false, "GPU-1,GPU-2"), (true, "void")] {
        let env = plan(simulated, None, &ROOMY).env;
        assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], visible);
        assert_eq!(env["GPUMARKET_LEASE"], "lse_a");
        assert_eq!(env["GPUMARKET_GPU_COUNT"], "2");
        assert_eq!(
            env.get("GPUMARKET_SIMULATED").map(String::as_str),
            simulated.then_some("1")
        );
        assert_eq!(env["MINE"], "a=b");
    }
}

#[test]
fn docker_is_told_to_harden_and_gets_gpus_by_uuid() {
    let body = plan(false, Some("gpumarket-lse_a"), &ROOMY).docker();
    let host = body.host_config.unwrap();
    assert_eq!(host.cap_drop.unwrap(), ["ALL"]);
    assert_eq!(host.cap_add.unwrap().len(), CAPABILITIES.len());
    assert_eq!(host.security_opt.unwrap(), ["no-new-privileges"]);
    assert_eq!(host.privileged, Some(false));
    assert_eq!(host.network_mode.as_deref(), Some("gpumarket-lse_a"));
    assert_eq!(
        (host.memory, host.memory_swap),
        (Some(512 << 20), Some(512 << 20))
    );
    assert_eq!(host.nano_cpus, Some(1_500_000_000));
    assert_eq!(
        host.restart_policy.unwrap().name,
        Some(RestartPolicyNameEnum::NO)
    );
    let gpus = host.device_requests.unwrap();
    assert_eq!(gpus[0].device_ids.as_ref().unwrap(), &["GPU-1", "GPU-2"]);
    assert!(host.devices.is_none() && host.pid_mode.is_none() && host.ipc_mode.is_none());
    assert_eq!(body.labels.unwrap()[LABEL_START_NO], "2");
}

#[test]
fn podman_is_told_the_same_and_gets_gpus_by_cdi_name() {
    let body = plan(false, Some("n"), &ROOMY).libpod();
    assert_eq!(body["devices"][1]["path"], "nvidia.com/gpu=GPU-2");
    assert_eq!(body["cap_drop"], json!(["ALL"]));
    assert_eq!(body["no_new_privileges"], true);
    assert_eq!(body["resource_limits"]["cpu"]["quota"], 150_000);
    assert_eq!(body["resource_limits"]["memory"]["limit"], 512 << 20);
    assert_eq!(body["networks"], json!({ "n": {} }));
    assert_eq!(body["labels"][LABEL_MACHINE], "mch_m");
    assert_eq!(body["command"], json!(["run"]));
}

#[test]
fn simulated_leases_get_no_device_at_all() {
    let plan = plan(true, None, &ROOMY);
    let host = plan.docker().host_config.unwrap();
    assert!(host.device_requests.is_none());
    assert_eq!(host.network_mode.as_deref(), Some("bridge"));
    let podman = plan.libpod();
    assert_eq!(podman["devices"], json!([]));
    assert!(podman.get("networks").is_none());
    assert_eq!(podman["netns"]["nsmode"], "bridge");
}

#[test]
fn limits_never_exceed_the_host() {
    let host = plan(
        true,
        None,
        &Host {
            cores: 1,
            ram_mib: 64,
        },
    )
    .docker()
    .host_config
    .unwrap();
    assert_eq!(host.nano_cpus, Some(1_000_000_000));
    assert_eq!(host.memory, Some(64 << 20));
}
