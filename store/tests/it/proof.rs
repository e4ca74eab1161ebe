//! Each invariant finds nothing on good data, and finds the one broken row.

use store::db::Ro;

use crate::billed::{broken, paying};
use crate::database::Database;
use crate::moved::move_all;
use crate::world::{T0, gpu, id};

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_market_is_proven() {
    let base = Database::fresh().await;
    assert_eq!(broken(&base).await, Vec::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_that_works_is_proven() {
    let (base, _world, lease) = paying().await;
    assert_eq!(broken(&base).await, Vec::new());
    let charges = base
        .db
        .read(async |ro: &mut Ro| store::charge::of_lease(ro, lease.id).await);
    assert_eq!(charges.await.unwrap().len(), 4);
}

/// Which invariant must find what these statements break. `NO_CHECKS` goes before.
const BREAKS: &[(&str, &str)] = &[
    (
        "I1",
        "UPDATE account SET credits = credits + 1 WHERE code = 230",
    ),
    (
        "I2",
        "UPDATE account SET debits = debits + 1, credits = credits + 1 WHERE code = 200",
    ),
    ("I2", "UPDATE charge SET tax = tax + 1 WHERE seq = 2"),
    (
        "I3",
        "UPDATE account SET credits = debits + debits_pending - 1 WHERE code = 200",
    ),
    (
        "I4",
        "UPDATE account SET debits_pending = debits_pending - 1 WHERE code = 200",
    ),
    ("I4", "UPDATE hold SET amount = amount + 1"),
    (
        "OW1",
        "INSERT INTO account (ledger, code, owner, constrained, debits, credits)
            VALUES (840, 120, gen_random_uuid(), false, 1, 2)",
    ),
    (
        "CR1",
        "UPDATE account SET credits = credits + 1 WHERE code = 205",
    ),
    ("CR2", "UPDATE credit SET remaining = remaining + 1"),
    ("CR3", "UPDATE hold SET state = 'closed'"),
    ("CR4", "UPDATE credit SET amount = amount + 1"),
    ("CR4", "UPDATE credit_use SET amount = amount - 1"),
    (
        "AD1",
        "UPDATE adjustment SET state = 'rejected' WHERE state = 'applied'",
    ),
    (
        "AD1",
        "UPDATE adjustment SET needs_approval = true, decided_by = proposed_by WHERE state = 'applied'",
    ),
    ("MA1", "UPDATE maturing SET amount = amount + 1"),
    ("MA1", "UPDATE maturing SET reserve_released_at = now()"),
    ("PO1", "UPDATE payout SET state = 'paid'"),
    (
        "PO2",
        "UPDATE payout SET state = 'in_flight', amount = amount + 1",
    ),
    ("PO2", "UPDATE payout SET state = 'failed'"),
    ("DI1", "UPDATE dispute SET taken = taken + 1"),
    ("DI1", "UPDATE dispute SET state = 'won'"),
    (
        "I4",
        "UPDATE adjustment SET amount = amount - 1 WHERE state = 'proposed'",
    ),
    (
        "I5",
        "UPDATE meter SET charged = charged + 1 WHERE resource = 'compute'",
    ),
    (
        "I5",
        "UPDATE meter SET fee = fee - 1 WHERE resource = 'storage'",
    ),
    (
        "I5",
        "UPDATE meter SET tax = tax + 1 WHERE resource = 'compute'",
    ),
    ("I5", "UPDATE meter SET rem_num = rem_num + 1"),
    (
        "I5",
        "UPDATE meter_segment SET price = price + 1 WHERE no = 1",
    ),
    ("I6", "DELETE FROM charge WHERE seq = 1"),
    (
        "I6",
        "UPDATE charge SET billable_ms = billable_ms - 1 WHERE seq = 1",
    ),
    ("I6", "UPDATE meter SET seq = seq + 1"),
    (
        "I7",
        "UPDATE charge SET from_at = from_at - interval '1 second' WHERE seq = 2",
    ),
    (
        "I7",
        "UPDATE charge SET billable_ms = billable_ms + 60000 WHERE seq = 1",
    ),
    (
        "I7",
        "UPDATE charge SET billable_ms = extract(epoch FROM to_at - from_at) * 1000 + 1 WHERE seq = 1",
    ),
    (
        "I8",
        "UPDATE meter SET billable_ms = extract(epoch FROM through - opened_at) * 1000 + 1",
    ),
    (
        "I16",
        "UPDATE meter_segment SET from_at = from_at + interval '20 seconds'",
    ),
    ("I16", "UPDATE meter SET price = price + 1"),
    ("I16", "DELETE FROM meter_segment"),
    (
        "I8",
        "UPDATE meter SET through = through + interval '1 second'",
    ),
    (
        "I8",
        "UPDATE meter SET billable_ms = billable_ms + 3600000 WHERE resource = 'storage'",
    ),
    (
        "I8",
        "UPDATE meter SET proof_boot = NULL, proof_run = NULL, proof_mono_ms = NULL, proof_at = NULL",
    ),
    ("I9", "UPDATE hold SET posted = posted - 1"),
    (
        "H1",
        "UPDATE charge SET wallet = earned, earned = wallet WHERE seq = 1",
    ),
    (
        "H1",
        "UPDATE charge SET lease_id = gen_random_uuid() WHERE seq = 2",
    ),
    ("P1", "UPDATE top_up SET amount = amount + 1"),
    ("I10", "DELETE FROM batch WHERE no = 2"),
    (
        "I10",
        "UPDATE writer SET batch_no = batch_no - 1 WHERE batch_no > 0",
    ),
    ("I10", "UPDATE batch SET prev_hash = hash WHERE no = 3"),
    ("I10", "UPDATE transfer SET batch = 0"),
    ("I14", "UPDATE charge SET tax_account = -1 WHERE seq = 1"),
    // The sums stay right; only the chain tells.
    (
        "C1",
        "UPDATE charge SET at = at + interval '1 second' WHERE seq = 1",
    ),
    ("C1", "UPDATE transfer SET cause = gen_random_uuid()"),
    ("I15", "UPDATE account SET ledger = 978 WHERE code = 230"),
    ("M3", "UPDATE hold SET state = 'closed'"),
    ("M3", "UPDATE lease SET storage_meter = gen_random_uuid()"),
    ("M4", "UPDATE lease SET state = 'failed'"),
    (
        "S1",
        "UPDATE lease_gpu SET released_at = held_at WHERE gpu_id = (SELECT min(gpu_id::text)::uuid FROM lease_gpu)",
    ),
    (
        "R1",
        "UPDATE lease_event SET reason = '' WHERE to_state = 'running'",
    ),
    ("T1", "UPDATE lease SET state = 'stopped'"),
    ("T1", "DELETE FROM lease_event"),
    (
        "V1",
        "INSERT INTO invoice SELECT gen_random_uuid(), id, 'sale', 'INV', 2026, 1, created_at, created_at,
            false, 840, 5, 0, 0, 5, '{}', created_at FROM party LIMIT 1",
    ),
    (
        "V2",
        "INSERT INTO invoice_line SELECT gen_random_uuid(), 1, 'sale', lease_id, meter_id, seq, seq,
            from_at, to_at, billable_ms, gross + 1, fee, tax, 'compute', 1, 1, 0, 0, 'm', 1, 1, false
            FROM charge LIMIT 1",
    ),
    (
        "V2",
        "INSERT INTO invoice_line SELECT gen_random_uuid(), n, 'sale', lease_id, meter_id, seq, seq,
            from_at, to_at, billable_ms, gross, fee, tax, 'compute', 1, 1, 0, 0, 'm', 1, 1, false
            FROM charge, generate_series(1, 2) n WHERE seq = 1",
    ),
    ("V3", "INSERT INTO invoice_series VALUES ('INV', 2026, 2)"),
    (
        "V4",
        "INSERT INTO invoice SELECT gen_random_uuid(), id, 'credit_note', 'CRN', 2026, 1, created_at,
            created_at, false, 840, 5, 0, 0, 5, '{}', created_at, gen_random_uuid(), 0, 5, 'r'
            FROM party LIMIT 1",
    ),
];

/// Drops what would refuse the breakage: every CHECK and exclusion.
const NO_CHECKS: &str = "DO $$ DECLARE c record; BEGIN
    FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
        WHERE contype IN ('c', 'x') AND connamespace = 'public'::regnamespace
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP; END $$";

#[tokio::test(flavor = "multi_thread")]
async fn every_breakage_is_found_by_its_invariant() {
    let (base, world, lease) = paying().await;
    move_all(&base, &world, &lease).await;
    base.run(&[NO_CHECKS]).await;
    assert_eq!(broken(&base).await, Vec::new());
    let mut missed = Vec::new();
    for &(invariant, statement) in BREAKS {
        let copy = base.copy().await;
        copy.tamper(&[statement]).await;
        let found = broken(&copy).await;
        let told = found.iter().find(|r| r.id == invariant);
        if told.is_none_or(|r| r.examples.is_empty()) {
            missed.push((invariant, statement, found));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Every invariant has its breakage: a new one must bring one.
#[tokio::test(flavor = "multi_thread")]
async fn every_invariant_is_tried() {
    let base = Database::fresh().await;
    let rows = base
        .db
        .read(async |ro: &mut Ro| store::prove::invariants(ro).await);
    let rows: Vec<store::prove::InvariantRow> = rows.await.unwrap();
    for row in rows {
        assert!(
            BREAKS.iter().any(|(id, _)| *id == row.id),
            "{} is not tried",
            row.id
        );
    }
}

/// One physical GPU behind two rows, in two live leases: the index cannot see it, the proof can.
#[tokio::test(flavor = "multi_thread")]
async fn one_physical_gpu_in_two_leases_is_found() {
    let (base, world, lease) = paying().await;
    let shadow = gpu(20, &format!("GPU-{}-0", world.machine.id));
    let insert = format!(
        "INSERT INTO gpu (id, machine_id, slot, uuid, model, memory_mib, island, retired_at)
         SELECT '{}', machine_id, 20, uuid, model, memory_mib, 0, now() FROM gpu WHERE uuid = '{}'",
        shadow.id.uuid(),
        shadow.uuid,
    );
    let take = format!(
        "INSERT INTO lease_gpu (lease_id, gpu_id, held_at) VALUES ('{}', '{}', now())",
        id(),
        shadow.id.uuid(),
    );
    base.tamper(&[&insert, &take]).await;
    let found = broken(&base).await;
    assert!(
        found
            .iter()
            .any(|r| r.id == "S1" && r.examples == [shadow.uuid.clone()]),
        "{found:?}"
    );
    assert!(lease.created_at == T0);
}

#[tokio::test(flavor = "multi_thread")]
async fn violations_are_counted_and_the_first_ten_shown() {
    let base = Database::fresh().await;
    let many = "INSERT INTO account (ledger, code, owner, constrained, debits, credits)
        SELECT 840, 230, gen_random_uuid(), false, 5, 5 FROM generate_series(1, 37)";
    base.tamper(&[many]).await;
    let found = broken(&base).await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].id, found[0].violations, found[0].examples.len()),
        ("I2", 37, 10)
    );
}
