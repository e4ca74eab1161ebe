-- Budgets: alert once for each threshold, then stop.

-- Who booked it: the person, also behind a key. Unknown for leases from before.
ALTER TABLE lease ADD COLUMN booked_by uuid REFERENCES app_user (id);
CREATE INDEX lease_booked_by ON lease (booked_by);

CREATE TABLE budget (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    scope text NOT NULL CHECK (scope IN ('party', 'member', 'label', 'lease')),
    member_id uuid REFERENCES app_user (id),
    label text CHECK (label <> ''),
    lease_id uuid REFERENCES lease (id),
    period text NOT NULL CHECK (period IN ('month', 'total')),
    ledger integer NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    alerts jsonb NOT NULL,
    action text NOT NULL CHECK (action IN ('alert', 'stop')),
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    removed_at timestamptz,
    CONSTRAINT budget_subject CHECK (
        (member_id IS NOT NULL) = (scope = 'member')
        AND (label IS NOT NULL) = (scope = 'label')
        AND (lease_id IS NOT NULL) = (scope = 'lease'))
);
CREATE INDEX budget_party ON budget (party_id, id);
CREATE INDEX budget_member ON budget (member_id);
CREATE INDEX budget_lease ON budget (lease_id);

-- An alert that was given: once for each threshold, period and version of the budget.
CREATE TABLE budget_alert (
    budget_id uuid NOT NULL REFERENCES budget (id),
    version bigint NOT NULL,
    period_from timestamptz NOT NULL,
    percent integer NOT NULL CHECK (percent BETWEEN 1 AND 1000),
    spent bigint NOT NULL,
    amount bigint NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (budget_id, version, period_from, percent)
);
CREATE TRIGGER budget_alert_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON budget_alert
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
