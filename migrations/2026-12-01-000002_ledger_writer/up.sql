-- The ledger's writers: batches chained by hash, hot platform accounts in stripes, balances with a
-- version so that a set-wise update notices a stale one.

ALTER TABLE account
    -- Which writer's row of a hot platform account; 0 for everybody else's.
    ADD COLUMN stripe smallint NOT NULL DEFAULT 0 CHECK (stripe >= 0),
    ADD COLUMN version bigint NOT NULL DEFAULT 0,
    DROP CONSTRAINT account_once,
    ADD CONSTRAINT account_once UNIQUE (ledger, code, owner, stripe);

CREATE TABLE writer (
    -- 0 is shared by all who hold no shard; the others are claimed by one process for a time.
    shard smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 63),
    -- Counts the claims: whoever has an old number has lost the shard.
    epoch bigint NOT NULL DEFAULT 0,
    node text,
    lease_until timestamptz,
    -- Why nothing may be written: a violated invariant, until an operator lifts it.
    stopped text CHECK (stopped <> ''),
    -- Number and hash of the shard's last batch.
    batch_no bigint NOT NULL DEFAULT 0,
    head bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(head) = 32)
) WITH (fillfactor = 50);
INSERT INTO writer (shard) SELECT generate_series(0, 63);

-- The transfers and charges of one transaction, sealed.
CREATE TABLE batch (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard smallint NOT NULL REFERENCES writer (shard),
    no bigint NOT NULL CHECK (no >= 1),
    epoch bigint NOT NULL,
    rows integer NOT NULL CHECK (rows >= 1),
    prev_hash bytea NOT NULL CHECK (length(prev_hash) = 32),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    sealed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT batch_once UNIQUE (shard, no)
);
CREATE INDEX batch_sealed ON batch USING brin (sealed_at);
CREATE TRIGGER batch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON batch
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The signed end of a UTC day: hash over the heads of all shards.
CREATE TABLE ledger_day (
    day text PRIMARY KEY CHECK (day ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
    heads jsonb NOT NULL,
    root bytea NOT NULL CHECK (length(root) = 32),
    public_key bytea NOT NULL CHECK (length(public_key) = 32),
    signature bytea NOT NULL CHECK (length(signature) = 64),
    signed_at timestamptz NOT NULL
);
CREATE TRIGGER ledger_day_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_day
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Rows from before the chain have no batch; every new one has.
ALTER TABLE transfer
    ADD COLUMN batch bigint,
    ADD CONSTRAINT transfer_sealed CHECK (batch IS NOT NULL) NOT VALID,
    -- The set-wise update of the balances finds every account or nothing is committed.
    DROP CONSTRAINT transfer_debit_fkey,
    DROP CONSTRAINT transfer_credit_fkey;
ALTER TABLE charge
    ADD COLUMN batch bigint,
    ADD CONSTRAINT charge_sealed CHECK (batch IS NOT NULL) NOT VALID,
    DROP CONSTRAINT charge_wallet_fkey,
    DROP CONSTRAINT charge_earned_fkey,
    DROP CONSTRAINT charge_fee_account_fkey,
    DROP CONSTRAINT charge_tax_account_fkey;
CREATE INDEX transfer_batch ON transfer USING brin (batch) WITH (pages_per_range = 16);
CREATE INDEX charge_batch ON charge USING brin (batch) WITH (pages_per_range = 16);
-- These served the foreign keys only.
DROP INDEX charge_fee_account, charge_tax_account;

-- Transfers are written at the end of their transaction.
ALTER TABLE top_up DROP CONSTRAINT top_up_transfer_id_fkey,
    ADD CONSTRAINT top_up_transfer_id_fkey FOREIGN KEY (transfer_id) REFERENCES transfer (id)
        DEFERRABLE INITIALLY DEFERRED;
