-- The first market: parties, machines, offers, leases, and the ledger that bills them.
-- Integrity lives here: what must never happen is a constraint, not a habit of the code.

CREATE EXTENSION IF NOT EXISTS btree_gist;

-- ---------------------------------------------------------------- parties and people

CREATE TABLE party (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL
);

CREATE TABLE app_user (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE CHECK (email = lower(email)),
    password_hash text NOT NULL,
    staff_role text CHECK (staff_role IN ('operator', 'moderator', 'finance', 'auditor')),
    created_at timestamptz NOT NULL
);

CREATE TABLE membership (
    user_id uuid NOT NULL REFERENCES app_user (id),
    party_id uuid NOT NULL REFERENCES party (id),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'billing', 'member', 'viewer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, party_id)
);
CREATE INDEX membership_party ON membership (party_id);

CREATE TABLE api_key (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    user_id uuid NOT NULL REFERENCES app_user (id),
    name text NOT NULL CHECK (name <> ''),
    prefix text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_key_party ON api_key (party_id, id);
CREATE INDEX api_key_user ON api_key (user_id);

-- ---------------------------------------------------------------- supply

CREATE TABLE gpu_model (
    slug text PRIMARY KEY,
    name text NOT NULL,
    vendor text NOT NULL,
    memory_mib integer NOT NULL CHECK (memory_mib > 0)
);

CREATE TABLE machine (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    name text NOT NULL CHECK (name <> ''),
    state text NOT NULL CHECK (state IN ('enrolled', 'verifying', 'listed', 'unlisted', 'draining',
        'maintenance', 'offline', 'quarantined', 'retired')),
    state_reason text NOT NULL CHECK (state_reason <> ''),
    -- Was it listed when it fell silent? Then it is listed again when it speaks.
    listed_before boolean NOT NULL DEFAULT false,
    public_key bytea NOT NULL UNIQUE CHECK (length(public_key) = 32),
    simulated boolean NOT NULL DEFAULT false,
    hostname text NOT NULL DEFAULT '',
    cpu_cores integer NOT NULL DEFAULT 0 CHECK (cpu_cores >= 0),
    ram_mib bigint NOT NULL DEFAULT 0 CHECK (ram_mib >= 0),
    disk_gib bigint NOT NULL DEFAULT 0 CHECK (disk_gib >= 0),
    country text CHECK (country ~ '^[A-Z]{2}$'),
    driver_version text,
    cuda_version text,
    engine text NOT NULL DEFAULT '',
    agent_version text NOT NULL DEFAULT '',
    last_seen_at timestamptz,
    created_at timestamptz NOT NULL,
    version bigint NOT NULL DEFAULT 1
);
CREATE INDEX machine_party ON machine (party_id, id);

CREATE TABLE enrollment (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    token_hash bytea NOT NULL UNIQUE,
    machine_name text NOT NULL CHECK (machine_name <> ''),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    machine_id uuid UNIQUE REFERENCES machine (id)
);
CREATE INDEX enrollment_party ON enrollment (party_id);

CREATE TABLE gpu (
    id uuid PRIMARY KEY,
    machine_id uuid NOT NULL REFERENCES machine (id),
    slot smallint NOT NULL CHECK (slot >= 0),
    uuid text NOT NULL CHECK (uuid <> ''),
    model text NOT NULL REFERENCES gpu_model (slug),
    memory_mib integer NOT NULL CHECK (memory_mib > 0),
    island smallint NOT NULL CHECK (island >= 0),
    -- Foreign processes use it: it is not offered.
    busy_elsewhere boolean NOT NULL DEFAULT false,
    retired_at timestamptz
);
-- One physical GPU is one row, whichever machine claims it.
CREATE UNIQUE INDEX gpu_uuid_once ON gpu (uuid) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX gpu_slot_once ON gpu (machine_id, slot) WHERE retired_at IS NULL;
CREATE INDEX gpu_machine ON gpu (machine_id);
CREATE INDEX gpu_model_index ON gpu (model);

CREATE TABLE offer (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    machine_id uuid NOT NULL REFERENCES machine (id),
    version bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    ledger integer NOT NULL,
    gpu_hour bigint NOT NULL CHECK (gpu_hour > 0),
    bid_floor bigint CHECK (bid_floor > 0),
    storage_gib_month bigint NOT NULL CHECK (storage_gib_month >= 0),
    min_gpus smallint NOT NULL CHECK (min_gpus >= 1),
    max_gpus smallint NOT NULL,
    state text NOT NULL CHECK (state IN ('live', 'withdrawn')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT offer_floor_within_price CHECK (bid_floor <= gpu_hour),
    CONSTRAINT offer_chunk CHECK (min_gpus <= max_gpus)
);
CREATE UNIQUE INDEX offer_live_once ON offer (machine_id) WHERE state = 'live';
CREATE INDEX offer_party ON offer (party_id, id);

-- ---------------------------------------------------------------- quotes and leases

CREATE TABLE quote (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    offer_id uuid NOT NULL REFERENCES offer (id),
    offer_version bigint NOT NULL,
    gpu_model text NOT NULL,
    gpu_count smallint NOT NULL CHECK (gpu_count >= 1),
    disk_gib integer NOT NULL CHECK (disk_gib >= 1),
    duration_seconds integer NOT NULL CHECK (duration_seconds > 0),
    ledger integer NOT NULL,
    gpu_hour bigint NOT NULL,
    storage_gib_month bigint NOT NULL,
    fee_bps integer NOT NULL CHECK (fee_bps BETWEEN 0 AND 10000),
    tax_bps integer NOT NULL CHECK (tax_bps BETWEEN 0 AND 10000),
    simulated boolean NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX quote_party ON quote (party_id, id);
CREATE INDEX quote_offer ON quote (offer_id);

CREATE TABLE lease (
    id uuid PRIMARY KEY,
    -- A quote becomes at most one lease.
    quote_id uuid NOT NULL UNIQUE REFERENCES quote (id),
    party_id uuid NOT NULL REFERENCES party (id),
    provider_id uuid NOT NULL REFERENCES party (id),
    offer_id uuid NOT NULL REFERENCES offer (id),
    machine_id uuid NOT NULL REFERENCES machine (id),
    -- What runs: image, command, env; and why it was placed here.
    workload jsonb NOT NULL,
    placement jsonb NOT NULL,
    label text,
    max_spend bigint CHECK (max_spend > 0),
    end_at timestamptz,
    state text NOT NULL CHECK (state IN ('placing', 'provisioning', 'running', 'interrupting',
        'interrupted', 'stopping', 'stopped', 'resuming', 'ending', 'ended', 'failed')),
    state_reason text NOT NULL CHECK (state_reason <> ''),
    state_detail text NOT NULL,
    state_at timestamptz NOT NULL,
    progress bigint NOT NULL DEFAULT 0,
    progress_at timestamptz NOT NULL,
    start_no bigint NOT NULL DEFAULT 1,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    end_requested_at timestamptz,
    ended_at timestamptz,
    container_id text,
    container_started_at text,
    -- No live lease without a billing record; deferred, since meters name their lease.
    compute_meter uuid NOT NULL,
    storage_meter uuid NOT NULL,
    CONSTRAINT lease_end_is_recorded CHECK (state NOT IN ('ending', 'ended') OR end_requested_at IS NOT NULL)
);
CREATE INDEX lease_party ON lease (party_id, id);
CREATE INDEX lease_provider ON lease (provider_id, id);
CREATE INDEX lease_machine_live ON lease (machine_id) WHERE state NOT IN ('ended', 'failed');
CREATE INDEX lease_machine ON lease (machine_id, created_at);
CREATE INDEX lease_offer ON lease (offer_id);

CREATE TABLE lease_gpu (
    lease_id uuid NOT NULL REFERENCES lease (id),
    gpu_id uuid NOT NULL REFERENCES gpu (id),
    held_at timestamptz NOT NULL,
    released_at timestamptz,
    PRIMARY KEY (lease_id, gpu_id, held_at),
    CHECK (released_at >= held_at)
);
-- Two live leases on one GPU cannot exist.
CREATE UNIQUE INDEX lease_gpu_once ON lease_gpu (gpu_id) WHERE released_at IS NULL;

CREATE TABLE lease_event (
    id uuid PRIMARY KEY,
    lease_id uuid NOT NULL REFERENCES lease (id),
    at timestamptz NOT NULL,
    from_state text,
    to_state text NOT NULL,
    reason text NOT NULL CHECK (reason <> ''),
    detail text NOT NULL,
    actor_kind text NOT NULL,
    actor_id text NOT NULL
);
CREATE INDEX lease_event_lease ON lease_event (lease_id, id);

-- ---------------------------------------------------------------- the ledger

CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ledger integer NOT NULL,
    code smallint NOT NULL,
    -- The party; the nil UUID for the platform.
    owner uuid NOT NULL,
    constrained boolean NOT NULL,
    debits bigint NOT NULL DEFAULT 0 CHECK (debits >= 0),
    credits bigint NOT NULL DEFAULT 0 CHECK (credits >= 0),
    debits_pending bigint NOT NULL DEFAULT 0 CHECK (debits_pending >= 0),
    credits_pending bigint NOT NULL DEFAULT 0 CHECK (credits_pending >= 0),
    CONSTRAINT account_once UNIQUE (ledger, code, owner),
    CONSTRAINT no_overdraft CHECK (NOT constrained OR debits + debits_pending <= credits)
) WITH (fillfactor = 50);
CREATE INDEX account_owner ON account (owner);

CREATE TABLE transfer (
    id uuid PRIMARY KEY,
    kind smallint NOT NULL,
    ledger integer NOT NULL,
    debit bigint NOT NULL REFERENCES account (id),
    credit bigint NOT NULL REFERENCES account (id),
    amount bigint NOT NULL CHECK (amount > 0),
    -- The business operation that caused it; one kind of effect for each cause.
    cause uuid NOT NULL,
    at timestamptz NOT NULL,
    CONSTRAINT transfer_between_two CHECK (debit <> credit),
    CONSTRAINT transfer_effect_once UNIQUE (cause, kind)
);
CREATE INDEX transfer_debit ON transfer (debit, id);
CREATE INDEX transfer_credit ON transfer (credit, id);

CREATE TABLE hold (
    id uuid PRIMARY KEY,
    account bigint NOT NULL REFERENCES account (id),
    lease_id uuid NOT NULL REFERENCES lease (id),
    amount bigint NOT NULL CHECK (amount > 0),
    posted bigint NOT NULL DEFAULT 0 CHECK (posted >= 0),
    state text NOT NULL CHECK (state IN ('open', 'closed', 'expired')),
    opened_at timestamptz NOT NULL,
    expires_at timestamptz,
    CONSTRAINT hold_not_exceeded CHECK (posted <= amount)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX hold_open_once ON hold (lease_id) WHERE state = 'open';
CREATE INDEX hold_account ON hold (account);

CREATE TABLE meter (
    id uuid PRIMARY KEY,
    lease_id uuid NOT NULL REFERENCES lease (id),
    resource text NOT NULL CHECK (resource IN ('compute', 'storage')),
    price bigint NOT NULL CHECK (price >= 0),
    per_ms bigint NOT NULL CHECK (per_ms > 0),
    fee_bps integer NOT NULL CHECK (fee_bps BETWEEN 0 AND 10000),
    tax_bps integer NOT NULL CHECK (tax_bps BETWEEN 0 AND 10000),
    opened_at timestamptz NOT NULL,
    until timestamptz,
    closed boolean NOT NULL DEFAULT false,
    billable_ms bigint NOT NULL DEFAULT 0 CHECK (billable_ms >= 0),
    through timestamptz NOT NULL,
    charged bigint NOT NULL DEFAULT 0 CHECK (charged >= 0),
    fee bigint NOT NULL DEFAULT 0 CHECK (fee >= 0),
    tax bigint NOT NULL DEFAULT 0 CHECK (tax >= 0),
    seq bigint NOT NULL DEFAULT 0 CHECK (seq >= 0),
    settled_ms bigint NOT NULL DEFAULT 0 CHECK (settled_ms >= 0),
    settled_through timestamptz NOT NULL,
    proof_boot text,
    proof_run text,
    proof_mono_ms bigint,
    proof_at timestamptz,
    CONSTRAINT meter_once UNIQUE (lease_id, resource),
    CONSTRAINT meter_settles_what_is_proven CHECK (settled_ms <= billable_ms AND settled_through <= through),
    CONSTRAINT meter_proof_whole CHECK (num_nulls(proof_boot, proof_run, proof_mono_ms, proof_at) IN (0, 4))
) WITH (fillfactor = 50);

ALTER TABLE lease
    ADD CONSTRAINT lease_compute_meter FOREIGN KEY (compute_meter) REFERENCES meter (id) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT lease_storage_meter FOREIGN KEY (storage_meter) REFERENCES meter (id) DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX lease_compute_meter_index ON lease (compute_meter);
CREATE UNIQUE INDEX lease_storage_meter_index ON lease (storage_meter);

-- One settlement: wallet -> provider (gross - fee), platform (fee), tax (on top).
CREATE TABLE charge (
    id uuid PRIMARY KEY,
    meter_id uuid NOT NULL REFERENCES meter (id),
    lease_id uuid NOT NULL REFERENCES lease (id),
    hold_id uuid NOT NULL REFERENCES hold (id),
    seq bigint NOT NULL CHECK (seq >= 1),
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    billable_ms bigint NOT NULL CHECK (billable_ms >= 0),
    ledger integer NOT NULL,
    gross bigint NOT NULL CHECK (gross >= 0),
    fee bigint NOT NULL CHECK (fee >= 0),
    tax bigint NOT NULL CHECK (tax >= 0),
    wallet bigint NOT NULL REFERENCES account (id),
    earned bigint NOT NULL REFERENCES account (id),
    fee_account bigint NOT NULL REFERENCES account (id),
    tax_account bigint NOT NULL REFERENCES account (id),
    at timestamptz NOT NULL,
    CONSTRAINT charge_seq_once UNIQUE (meter_id, seq),
    CONSTRAINT charge_fee_within_gross CHECK (fee <= gross),
    CONSTRAINT charge_range CHECK (from_at < to_at),
    -- No second is charged twice.
    CONSTRAINT charge_ranges_apart EXCLUDE USING gist (meter_id WITH =, tstzrange(from_at, to_at) WITH &&)
);
CREATE INDEX charge_lease ON charge (lease_id, at);
CREATE INDEX charge_wallet ON charge (wallet, id);
CREATE INDEX charge_earned ON charge (earned, id);
CREATE INDEX charge_hold ON charge (hold_id);
CREATE INDEX charge_fee_account ON charge (fee_account);
CREATE INDEX charge_tax_account ON charge (tax_account);

CREATE TABLE top_up (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    payments text NOT NULL CHECK (payments IN ('sandbox', 'live')),
    transfer_id uuid NOT NULL UNIQUE REFERENCES transfer (id),
    created_at timestamptz NOT NULL
);
CREATE INDEX top_up_party ON top_up (party_id, id);

-- ---------------------------------------------------------------- once-only, audit, outbox

CREATE TABLE idempotency (
    -- The party, or the nil UUID where nobody is logged in.
    party_id uuid NOT NULL,
    route text NOT NULL,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    fingerprint bytea NOT NULL,
    -- The effect's answer, as it was given.
    status smallint NOT NULL,
    -- Not jsonb: that reorders the fields, and a repeat gets the same bytes.
    body json NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (party_id, route, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE audit_event (
    id uuid PRIMARY KEY,
    at timestamptz NOT NULL,
    party_id uuid REFERENCES party (id),
    actor_kind text NOT NULL CHECK (actor_kind <> ''),
    actor_id text NOT NULL CHECK (actor_id <> ''),
    action text NOT NULL CHECK (action <> ''),
    object text NOT NULL CHECK (object <> ''),
    reason text NOT NULL CHECK (reason <> ''),
    request_id text,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_event_party ON audit_event (party_id, id);

CREATE TABLE outbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic text NOT NULL,
    -- The object that the message is about.
    key text NOT NULL,
    payload jsonb NOT NULL,
    at timestamptz NOT NULL,
    delivered_at timestamptz
);
CREATE INDEX outbox_open ON outbox (seq) WHERE delivered_at IS NULL;

-- ---------------------------------------------------------------- what is written stays written

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER transfer_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfer
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER charge_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON charge
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER lease_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON lease_event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER account_stays BEFORE DELETE OR TRUNCATE ON account
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
