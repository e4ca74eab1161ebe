-- Exhaustion kept by time instead of by looking at every lease: holds and wallets say when they
-- have to be looked at, and parties are told in time.

ALTER TABLE hold
    -- When it must be looked at; the epoch means at once.
    ADD COLUMN due_at timestamptz,
    -- The wallet could not fill it: look again when money comes.
    ADD COLUMN short boolean NOT NULL DEFAULT false,
    -- Notices given of the disk's deletion.
    ADD COLUMN warned smallint NOT NULL DEFAULT 0;
UPDATE hold SET due_at = 'epoch' WHERE state = 'open';
ALTER TABLE hold ALTER COLUMN due_at SET DEFAULT 'epoch';
CREATE INDEX hold_due ON hold (due_at) WHERE state = 'open';
CREATE INDEX hold_short ON hold (account) WHERE state = 'open' AND short;

-- Wallets that something burns from.
CREATE TABLE wallet_watch (
    party_id uuid NOT NULL REFERENCES party (id),
    ledger integer NOT NULL,
    due_at timestamptz,
    -- When the money ends at the present rates, as last worked out.
    runs_out_at timestamptz,
    -- Notices given since there was time enough: 0 to 3.
    warned smallint NOT NULL DEFAULT 0 CHECK (warned BETWEEN 0 AND 3),
    PRIMARY KEY (party_id, ledger)
) WITH (fillfactor = 50);
CREATE INDEX wallet_watch_due ON wallet_watch (due_at);
INSERT INTO wallet_watch (party_id, ledger, due_at)
    SELECT DISTINCT l.party_id, q.ledger, 'epoch'::timestamptz FROM lease l JOIN quote q ON q.id = l.quote_id
     WHERE l.state NOT IN ('ended', 'failed');

-- What a party is told.
CREATE TABLE party_event (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    at timestamptz NOT NULL,
    kind text NOT NULL CHECK (kind <> ''),
    -- Public id of the object.
    object text NOT NULL CHECK (object <> ''),
    detail text NOT NULL CHECK (detail <> ''),
    data jsonb NOT NULL
);
CREATE INDEX party_event_party ON party_event (party_id, id);
CREATE TRIGGER party_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON party_event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
