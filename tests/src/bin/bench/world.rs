//! A world of running leases in rows: each has run for eleven minutes, proven and not yet settled, in
//! a hold that covers twelve. So everything is due at once: proofs, settlements, longer holds.

use std::collections::BTreeMap;

use domain::id::LeaseId;
use tokio_postgres::Client;

use crate::cluster::Cluster;

/// The boot that every machine reports.
pub const BOOT: &str = "boot-1";
/// When every container was started, as its engine says it.
pub const STARTED: &str = "2026-01-01T00:00:00Z";
/// Milliseconds since boot in the last proof.
pub const MONO_MS: i64 = 10_000_000;

/// A machine and its leases, by UUID.
#[derive(Clone, Debug)]
pub struct Running {
    /// The machine.
    pub machine: String,
    /// Its leases.
    pub leases: Vec<String>,
}

/// Leases of one renter.
const EACH: i64 = 20;

const RENTERS: &str = "
WITH renter AS (
  INSERT INTO party (id, name, created_at)
  SELECT gen_random_uuid(), 'renter', now() FROM generate_series(1, 1 + (SELECT count(*) FROM gpu) / $1::bigint)
  RETURNING id)
INSERT INTO account (ledger, code, owner, constrained, credits)
SELECT 840, 200, id, true, 1000000000 FROM renter";

/// Which GPU is whose, and the ids of everything.
const PLAN: &str = "
CREATE TEMP TABLE plan AS
SELECT g.id AS gpu, g.machine_id AS machine, o.id AS offer, o.party_id AS provider, w.id AS wallet, w.owner AS party,
       gen_random_uuid() AS quote, gen_random_uuid() AS lease, gen_random_uuid() AS compute,
       gen_random_uuid() AS storage, date_trunc('second', now()) - interval '11 minutes' AS at
  FROM (SELECT *, row_number() OVER () AS n FROM gpu) g JOIN offer o ON o.machine_id = g.machine_id
  JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS n FROM account WHERE code = 200) w ON w.n = g.n / $1";

const ROWS: [&str; 9] = [
    "INSERT INTO quote (id, party_id, offer_id, offer_version, gpu_model, gpu_count, disk_gib, duration_seconds,
            ledger, gpu_hour, storage_gib_month, fee_bps, tax_bps, simulated, signature, created_at, expires_at)
     SELECT quote, party, offer, 1, 'h100-sxm-80gb', 1, 10, 36000, 840, 2100000, 50000, 500, 0, true,
            decode(repeat('00', 64), 'hex'), at, at FROM plan",
    "INSERT INTO lease (id, quote_id, party_id, provider_id, offer_id, machine_id, workload, placement, state,
            state_reason, state_detail, state_at, progress_at, created_at, started_at, container_id,
            container_started_at, compute_meter, storage_meter, disk_gib)
     SELECT lease, quote, party, provider, offer, machine,
            '{\"image\": \"localhost/gpumarket/busybox:1\", \"command\": [], \"env\": {}}', '{}', 'running',
            'machine', 'runs', at, at, at, at, 'c1', '2026-01-01T00:00:00Z', compute, storage, 10 FROM plan",
    "INSERT INTO lease_gpu (lease_id, gpu_id, held_at) SELECT lease, gpu, at FROM plan",
    "INSERT INTO meter (id, lease_id, resource, price, per_ms, fee_bps, tax_bps, opened_at, billable_ms, through,
            settled_through, proof_boot, proof_run, proof_mono_ms, proof_at)
     SELECT compute, lease, 'compute', 2100000, 3600000, 500, 0, at, 660000, at + interval '11 minutes', at,
            'boot-1', 'c1 2026-01-01T00:00:00Z', 10000000, at + interval '11 minutes' FROM plan",
    "INSERT INTO meter (id, lease_id, resource, price, per_ms, fee_bps, tax_bps, opened_at, billable_ms, through,
            settled_through, proof_boot, proof_run, proof_mono_ms, proof_at)
     SELECT storage, lease, 'storage', 500000, 2628000000, 500, 0, at, 660000, at + interval '11 minutes', at,
            'boot-1', 'its public id', 10000000, at + interval '11 minutes' FROM plan",
    "INSERT INTO meter_segment (meter_id, no, from_at, price)
     SELECT id, 1, opened_at, price FROM meter",
    "INSERT INTO wallet_watch (party_id, ledger, due_at) SELECT owner, ledger, now() FROM account WHERE code = 200",
    "INSERT INTO hold (id, account, lease_id, amount, state, opened_at)
     SELECT gen_random_uuid(), wallet, lease, 535100, 'open', at FROM plan",
    "UPDATE account a SET debits_pending = p.held
       FROM (SELECT wallet, sum(535100)::bigint AS held FROM plan GROUP BY wallet) p WHERE p.wallet = a.id",
];

const RUNS: &str = "
UPDATE meter SET proof_run = r.run FROM unnest($1::text[]::uuid[], $2::text[]) AS r (lease, run)
 WHERE lease_id = r.lease AND resource = 'storage'";

/// Puts a running lease on each GPU; gives the machines.
pub async fn running(sql: &Client) -> Vec<Running> {
    sql.execute(RENTERS, &[&EACH]).await.unwrap();
    sql.batch_execute(&PLAN.replace("$1", &EACH.to_string()))
        .await
        .unwrap();
    sql.batch_execute(&format!("BEGIN; {}; COMMIT", ROWS.join("; ")))
        .await
        .unwrap();
    let rows = sql
        .query(
            "SELECT machine::text, lease::text FROM plan ORDER BY machine",
            &[],
        )
        .await
        .unwrap();
    let mut machines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &rows {
        machines.entry(row.get(0)).or_default().push(row.get(1));
    }
    let leases: Vec<String> = rows.iter().map(|r| r.get(1)).collect();
    let run = |l: &String| LeaseId::from_uuid(l.parse().unwrap()).to_string();
    let runs: Vec<String> = leases.iter().map(run).collect();
    sql.execute(RUNS, &[&leases, &runs]).await.unwrap();
    // The updates left as many dead rows as there are leases.
    Cluster::vacuum(sql, &["meter", "lease", "hold", "account"]).await;
    let machine = |(machine, leases)| Running { machine, leases };
    machines.into_iter().map(machine).collect()
}
