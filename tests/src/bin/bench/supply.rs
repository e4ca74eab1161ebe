//! Machines, offers and quotes in rows: what thousands of agents would have said, set-wise.

use tokio_postgres::Client;

/// GPUs in each machine.
pub const GPUS: i64 = 8;

const MACHINES: &str = "
WITH who AS (INSERT INTO party (id, name, created_at) VALUES (gen_random_uuid(), 'racks', now()) RETURNING id),
made AS (
  INSERT INTO machine (id, party_id, name, state, state_reason, public_key, simulated, hostname, cpu_cores,
                       ram_mib, disk_gib, country, engine, agent_version, last_seen_at, created_at)
  SELECT gen_random_uuid(), who.id, 'rack ' || n, 'listed', 'it is offered',
         sha256(n::text::bytea), true, 'rack' || n, 128, 2097152, 20000, 'DE', 'scripted', '0.1.0',
         now() + interval '1 day', now()
    FROM generate_series(1, $1::bigint) n, who
  RETURNING id, party_id)
INSERT INTO offer (id, party_id, machine_id, ledger, gpu_hour, storage_gib_month, min_gpus, max_gpus, state,
                   created_at, updated_at)
SELECT gen_random_uuid(), party_id, id, 840, 2100000, 50000, 1, 8, 'live', now(), now() FROM made";

const SLOTS: &str = "
INSERT INTO gpu (id, machine_id, slot, uuid, model, memory_mib, island)
SELECT gen_random_uuid(), m.id, s, 'SIM-' || m.id || '-' || s, 'h100-sxm-80gb', 81559, 0
  FROM machine m, generate_series(0, $1::bigint - 1) s";

/// Machines that are on offer, and heard of for the next day.
pub async fn machines(client: &Client, count: i64) {
    client.execute(MACHINES, &[&count]).await.unwrap();
    client.execute(SLOTS, &[&GPUS]).await.unwrap();
    for table in ["machine", "gpu", "offer"] {
        client
            .batch_execute(&format!("ANALYZE {table}"))
            .await
            .unwrap();
    }
}

/// The parties' quote number n is for one GPU of offer n, so that no two want the last one.
const QUOTES: &str = "
WITH o AS (SELECT id, version, row_number() OVER (ORDER BY id) - 1 AS at, count(*) OVER () AS many
             FROM offer WHERE state = 'live'),
     p AS (SELECT id, at - 1 AS at, count(*) OVER () AS many
             FROM unnest($1::text[]::uuid[]) WITH ORDINALITY AS party (id, at))
INSERT INTO quote (id, party_id, offer_id, offer_version, gpu_model, gpu_count, disk_gib, duration_seconds,
                   ledger, gpu_hour, storage_gib_month, fee_bps, tax_bps, simulated, signature, created_at,
                   expires_at)
SELECT gen_random_uuid(), p.id, o.id, o.version, 'h100-sxm-80gb', 1, 10, 3600, 840, 2100000, 50000, 500, 0,
       true, decode(repeat('00', 64), 'hex'), now(), now() + interval '1 day'
  FROM generate_series($2::bigint, $2::bigint + $3::bigint - 1) n
  JOIN o ON o.at = n % o.many JOIN p ON p.at = n % p.many
RETURNING id::text, party_id::text";

/// `count` quotes from number `from` on; quote and party of each.
pub async fn quotes(
    client: &Client,
    parties: &[String],
    (from, count): (i64, i64),
) -> Vec<(String, String)> {
    let rows = client
        .query(QUOTES, &[&parties, &from, &count])
        .await
        .unwrap();
    rows.iter().map(|r| (r.get(0), r.get(1))).collect()
}
