DROP TABLE outbox, audit_event, idempotency, top_up, charge;
ALTER TABLE lease DROP CONSTRAINT lease_compute_meter, DROP CONSTRAINT lease_storage_meter;
DROP TABLE meter, hold, transfer, account, lease_event, lease_gpu, lease, quote, offer, gpu, enrollment,
    machine, gpu_model, api_key, membership, app_user, party;
DROP FUNCTION refuse_change();
DROP EXTENSION btree_gist;
