//! Lives of leases on the real engine.

use std::time::Duration;

use agent::runner::engine::EngineFlavour;
use agent::runner::{LogQuery, Phase, Runner};
use tokio::time::Instant;
use web_openapi::agent::{Observed, Target};

use crate::bench::{Bench, lease, unique};

const PATIENT: &str = "trap 'exit 0' TERM; while :; do sleep 0.1; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_starts_prints_stops_resumes_with_its_disk_and_leaves_nothing() {
    let bench = Bench::new(None).await;
    let script =
        format!("echo run >> /disk; echo \"runs $(wc -l < /disk)\"; echo bad >&2; {PATIENT}");
    let mut lease = lease(&script);
    bench.handle.desire(vec![lease.clone()]).await;
    let first = bench.until(&lease, Observed::Running).await;
    assert!(first.progress > 0 && first.container_started_at.is_some());
    let lines = bench.printed(&lease, "runs 1").await;
    assert!(
        lines
            .iter()
            .any(|l| (l.stream.as_str(), l.text.as_str()) == ("stderr", "bad"))
    );

    lease.target = Target::Stop;
    bench.handle.desire(vec![lease.clone()]).await;
    let stopped = bench.until(&lease, Observed::Stopped).await;
    assert_eq!(stopped.container_started_at, first.container_started_at);

    (lease.target, lease.start_no) = (Target::Run, 2);
    bench.handle.desire(vec![lease.clone()]).await;
    let second = bench.until(&lease, Observed::Running).await;
    assert_eq!(second.container_id, first.container_id);
    assert_ne!(second.container_started_at, first.container_started_at);
    bench.printed(&lease, "runs 2").await;
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_read_in_order_from_any_point() {
    let bench = Bench::new(None).await;
    let script = format!("for i in $(seq 1 2500); do echo line $i; done; {PATIENT}");
    let lease = lease(&script);
    bench.handle.desire(vec![lease.clone()]).await;
    bench.until(&lease, Observed::Running).await;
    let last = bench.printed(&lease, "line 2500").await;
    assert_eq!((last.len(), last[0].text.as_str()), (1_000, "line 1501"));
    let id = bench.container(&lease).await.id;
    let mut query = LogQuery {
        tail: 1_000,
        after: Some(jiff::Timestamp::UNIX_EPOCH),
    };
    let mut read = Vec::new();
    loop {
        let lines = bench.engine.logs(&id, &query).await.unwrap();
        let Some(last) = lines.last() else { break };
        query.after = Some(last.at.parse().unwrap());
        assert!(
            lines
                .iter()
                .all(|l| l.at.ends_with('Z') && l.at.len() == 30)
        );
        read.extend(lines.into_iter().map(|l| l.text));
    }
    let all: Vec<String> = (1..=2_500).map(|i| format!("line {i}")).collect();
    assert_eq!(read, all);
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_agent_adopts_what_runs_and_does_not_restart_what_ended() {
    let bench = Bench::new(None).await;
    let stays = lease(PATIENT);
    let ends = lease("exit 3");
    bench.handle.desire(vec![stays.clone(), ends.clone()]).await;
    let before = bench.until(&stays, Observed::Running).await;
    let exited = bench.until(&ends, Observed::Exited).await;
    assert!(exited.detail.contains("exit code 3"), "{}", exited.detail);
    let bench = bench.restart().await;
    let after = bench.until(&stays, Observed::Running).await;
    assert_eq!(after.container_started_at, before.container_started_at);
    let still = bench.until(&ends, Observed::Exited).await;
    assert_eq!(still.container_started_at, exited.container_started_at);
    bench.end(&[stays, ends]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_leases_run_at_once_each_on_its_own_gpus_and_network() {
    let bench = Bench::new(None).await;
    let script = format!(
        "echo \"$GPUMARKET_LEASE $GPUMARKET_GPU_COUNT $GPUMARKET_GPUS $GPUMARKET_SIMULATED \
         $NVIDIA_VISIBLE_DEVICES\"; grep -E 'NoNewPrivs|CapBnd' /proc/self/status; {PATIENT}"
    );
    let (one, two) = (lease(&script), lease(&script));
    bench.handle.desire(vec![one.clone(), two.clone()]).await;
    for lease in [&one, &two] {
        bench.until(lease, Observed::Running).await;
        let told = format!("{} 2 {} 1 void", lease.lease_id, lease.gpu_uuids.join(","));
        bench.printed(lease, &told).await;
        // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, KILL 5, SETGID 6, SETUID 7, NET_BIND_SERVICE 10.
        bench.printed(lease, "CapBnd:\t00000000000004eb").await;
        bench.printed(lease, "NoNewPrivs:\t1").await;
    }
    bench.end(&[one, two]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_image_is_failed_with_the_engines_words() {
    let bench = Bench::new(None).await;
    let mut lease = lease(PATIENT);
    lease.workload.image = "127.0.0.1:1/no/such:1".into();
    bench.handle.desire(vec![lease.clone()]).await;
    let report = bench.until(&lease, Observed::Failed).await;
    assert!(
        report.detail.contains("cannot pull 127.0.0.1:1/no/such:1"),
        "{}",
        report.detail
    );
    assert!(report.detail.contains("refused"), "{}", report.detail);
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_does_not_exist_is_failed() {
    let bench = Bench::new(None).await;
    let mut lease = lease(PATIENT);
    lease.workload.command = vec!["/no/such/program".into()];
    bench.handle.desire(vec![lease.clone()]).await;
    let report = bench.until(&lease, Observed::Failed).await;
    assert!(
        report.detail.contains("/no/such/program"),
        "{}",
        report.detail
    );
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stubborn_container_is_killed_after_the_grace_while_reports_go_on() {
    let bench = Bench::new(None).await;
    let mut lease = lease("trap '' TERM; while :; do sleep 0.1; done");
    bench.handle.desire(vec![lease.clone()]).await;
    bench.until(&lease, Observed::Running).await;
    lease.target = Target::Stop;
    let asked = Instant::now();
    bench.handle.desire(vec![lease.clone()]).await;
    let mut looks = 0;
    while asked.elapsed() < Duration::from_secs(8) {
        let look = Instant::now();
        let seen = bench.handle.look().await.unwrap();
        assert!(
            look.elapsed() < Duration::from_secs(3),
            "a look took {:?}",
            look.elapsed()
        );
        assert_eq!(seen.leases[0].observed, Observed::Running);
        looks += 1;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(looks >= 5);
    bench.until(&lease, Observed::Stopped).await;
    assert!(
        asked.elapsed() >= Duration::from_secs(9),
        "{:?}",
        asked.elapsed()
    );
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_on_other_gpus_keeps_the_disk() {
    let bench = Bench::new(None).await;
    let script = format!("echo run >> /disk; echo \"$GPUMARKET_GPUS $(wc -l < /disk)\"; {PATIENT}");
    let mut lease = lease(&script);
    bench.handle.desire(vec![lease.clone()]).await;
    let first = bench.until(&lease, Observed::Running).await;
    bench
        .printed(&lease, &format!("{} 1", lease.gpu_uuids.join(",")))
        .await;
    lease.target = Target::Stop;
    bench.handle.desire(vec![lease.clone()]).await;
    bench.until(&lease, Observed::Stopped).await;
    (lease.target, lease.start_no) = (Target::Run, 2);
    lease.gpu_uuids = vec!["SIM-other".into()];
    bench.handle.desire(vec![lease.clone()]).await;
    let second = bench.until(&lease, Observed::Running).await;
    assert_ne!(second.container_id, first.container_id);
    bench.printed(&lease, "SIM-other 2").await;
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_docker_dialect_makes_the_same_hardened_container() {
    let bench = Bench::new(Some(EngineFlavour::Docker)).await;
    let script = format!("grep -E 'NoNewPrivs|CapBnd' /proc/self/status; {PATIENT}");
    let lease = lease(&script);
    bench.handle.desire(vec![lease.clone()]).await;
    bench.until(&lease, Observed::Running).await;
    bench.printed(&lease, "CapBnd:\t00000000000004eb").await;
    bench.printed(&lease, "NoNewPrivs:\t1").await;
    bench.end(&[lease]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_of_other_machines_are_not_seen() {
    let (ours, theirs) = (Bench::new(None).await, Bench::new(None).await);
    let lease = lease(PATIENT);
    theirs.handle.desire(vec![lease.clone()]).await;
    theirs.until(&lease, Observed::Running).await;
    assert_eq!(ours.engine.list().await.unwrap(), []);
    assert_eq!(theirs.container(&lease).await.phase, Phase::Running);
    theirs.end(&[lease]).await;
    ours.end(&[]).await;
}

/// Needs root and a writable `/var/run/cdi`: a stand-in for what the NVIDIA toolkit writes there.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a CDI specification into /var/run/cdi"]
async fn podman_gives_real_gpus_by_cdi_name() {
    let bench = Bench::new(None).await;
    let mut lease = lease(&format!(
        "echo \"$FROM_CDI $NVIDIA_VISIBLE_DEVICES\"; {PATIENT}"
    ));
    let uuid = unique("GPU-test");
    let spec = format!(
        r#"{{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{{"name":"{uuid}",
        "containerEdits":{{"env":["FROM_CDI={uuid}"]}}}}]}}"#
    );
    std::fs::create_dir_all("/var/run/cdi").unwrap();
    let file = format!("/var/run/cdi/{uuid}.json");
    std::fs::write(&file, spec).unwrap();
    (lease.simulated, lease.gpu_uuids) = (false, vec![uuid.clone()]);
    bench.handle.desire(vec![lease.clone()]).await;
    bench.until(&lease, Observed::Running).await;
    bench.printed(&lease, &format!("{uuid} {uuid}")).await;
    bench.end(&[lease]).await;
    std::fs::remove_file(file).unwrap();
}
