-- Credit, adjustments, maturing earnings, payouts, disputes: what stands behind their transfers.

-- What a provider has earned is taken down by maturing and by reversals, never below zero.
UPDATE account SET constrained = true WHERE code = 230;

-- ---------------------------------------------------------------- credit

CREATE TABLE credit (
    -- Also the cause of the transfer that granted it.
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    kind text NOT NULL CHECK (kind IN ('promo', 'sla', 'goodwill')),
    ledger integer NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    -- Neither used nor expired.
    remaining bigint NOT NULL,
    reason text NOT NULL CONSTRAINT credit_reason CHECK (btrim(reason) <> ''),
    lease_id uuid REFERENCES lease (id),
    expires_at timestamptz,
    granted_by uuid NOT NULL REFERENCES app_user (id),
    created_at timestamptz NOT NULL,
    CONSTRAINT credit_within CHECK (remaining BETWEEN 0 AND amount),
    CONSTRAINT credit_promo_expires CHECK (kind <> 'promo' OR expires_at IS NOT NULL),
    CONSTRAINT credit_sla_of_a_lease CHECK (kind <> 'sla' OR lease_id IS NOT NULL)
);
CREATE INDEX credit_party ON credit (party_id, id);
CREATE INDEX credit_left ON credit (party_id) WHERE remaining > 0;
CREATE INDEX credit_over ON credit (expires_at) WHERE remaining > 0;
CREATE INDEX credit_lease ON credit (lease_id);
CREATE INDEX credit_granted_by ON credit (granted_by);

-- Each change of what is left of a credit.
CREATE TABLE credit_use (
    -- Also the cause of its transfer.
    id uuid PRIMARY KEY,
    credit_id uuid NOT NULL REFERENCES credit (id),
    kind text NOT NULL CHECK (kind IN ('released', 'returned', 'expired')),
    hold_id uuid REFERENCES hold (id) DEFERRABLE INITIALLY DEFERRED,
    amount bigint NOT NULL CHECK (amount > 0),
    at timestamptz NOT NULL,
    CONSTRAINT credit_use_of_a_hold CHECK ((kind = 'expired') = (hold_id IS NULL))
);
CREATE INDEX credit_use_credit ON credit_use (credit_id);
CREATE INDEX credit_use_hold ON credit_use (hold_id);
CREATE TRIGGER credit_use_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_use
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- ---------------------------------------------------------------- adjustments

CREATE TABLE adjustment (
    -- Also the cause of its transfer.
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    direction text NOT NULL CHECK (direction IN ('credit', 'debit')),
    account smallint NOT NULL,
    bearer smallint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    reason text NOT NULL CONSTRAINT adjustment_reason CHECK (btrim(reason) <> ''),
    needs_approval boolean NOT NULL,
    state text NOT NULL CHECK (state IN ('proposed', 'applied', 'rejected', 'expired')),
    proposed_by uuid NOT NULL REFERENCES app_user (id),
    proposed_at timestamptz NOT NULL,
    -- It cannot be approved from then on; a debit sets its amount aside until then.
    expires_at timestamptz NOT NULL,
    decided_by uuid REFERENCES app_user (id),
    decided_at timestamptz,
    decision_reason text,
    CONSTRAINT adjustment_decided CHECK ((state = 'proposed') = (decided_at IS NULL)),
    -- Two pairs of eyes: who proposes does not approve.
    CONSTRAINT adjustment_four_eyes CHECK (NOT needs_approval OR state <> 'applied'
        OR (decided_by IS NOT NULL AND decided_by <> proposed_by)),
    CONSTRAINT adjustment_rejected_with_reason CHECK (state <> 'rejected'
        OR (decided_by IS NOT NULL AND btrim(coalesce(decision_reason, '')) <> ''))
);
CREATE INDEX adjustment_party ON adjustment (party_id, id);
CREATE INDEX adjustment_proposed_by ON adjustment (proposed_by);
CREATE INDEX adjustment_decided_by ON adjustment (decided_by);
CREATE INDEX adjustment_open ON adjustment (expires_at) WHERE state = 'proposed';

-- ---------------------------------------------------------------- earnings and payouts

CREATE TABLE maturing (
    -- Also the cause of its transfers.
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    -- Everything earned before is mature now.
    through timestamptz NOT NULL,
    -- 0: looked at, and nothing was due.
    amount bigint NOT NULL CHECK (amount >= 0),
    reserve bigint NOT NULL,
    reserve_due_at timestamptz NOT NULL,
    reserve_released_at timestamptz,
    at timestamptz NOT NULL,
    CONSTRAINT maturing_reserve_within CHECK (reserve BETWEEN 0 AND amount),
    CONSTRAINT maturing_once UNIQUE (party_id, ledger, through)
);
CREATE INDEX maturing_due ON maturing (reserve_due_at) WHERE reserve > 0 AND reserve_released_at IS NULL;

CREATE TABLE payout (
    -- Also the cause of its transfers.
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    -- Banks know whole cents.
    amount bigint NOT NULL CHECK (amount > 0 AND amount % 10000 = 0),
    payments text NOT NULL CHECK (payments IN ('sandbox', 'live')),
    state text NOT NULL CHECK (state IN ('requested', 'in_flight', 'paid', 'failed', 'returned')),
    state_reason text NOT NULL CHECK (state_reason <> ''),
    requested_at timestamptz NOT NULL,
    state_at timestamptz NOT NULL
);
CREATE INDEX payout_party ON payout (party_id, id);
CREATE INDEX payout_open ON payout (id) WHERE state IN ('requested', 'in_flight');

-- ---------------------------------------------------------------- disputes

CREATE TABLE dispute (
    -- Also the cause of its transfers.
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    payments text NOT NULL CHECK (payments IN ('sandbox', 'live')),
    -- Out of the wallet, and owed beyond it.
    taken bigint NOT NULL CHECK (taken >= 0),
    owed bigint NOT NULL CHECK (owed >= 0),
    reason text NOT NULL CHECK (btrim(reason) <> ''),
    state text NOT NULL CHECK (state IN ('open', 'won', 'lost')),
    opened_at timestamptz NOT NULL,
    decided_at timestamptz,
    CONSTRAINT dispute_of_something CHECK (taken + owed > 0),
    CONSTRAINT dispute_decided CHECK ((state = 'open') = (decided_at IS NULL))
);
CREATE INDEX dispute_party ON dispute (party_id, id);
CREATE INDEX dispute_open ON dispute (party_id) WHERE state = 'open';
