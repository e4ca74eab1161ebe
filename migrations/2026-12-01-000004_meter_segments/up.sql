-- Prices that change while a meter counts, and disks that grow while a lease lives.

-- Every price that a meter has had, and from when on. Written once.
CREATE TABLE meter_segment (
    meter_id uuid NOT NULL REFERENCES meter (id),
    no bigint NOT NULL CHECK (no >= 1),
    from_at timestamptz NOT NULL,
    -- Of one period of the meter (meter.per_ms), which never changes: remainders are carried over it.
    price bigint NOT NULL CHECK (price >= 0),
    PRIMARY KEY (meter_id, no)
);
INSERT INTO meter_segment SELECT id, 1, opened_at, price FROM meter;
CREATE TRIGGER meter_segment_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON meter_segment
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE meter
    -- meter.price is the price of this one.
    ADD COLUMN segment bigint NOT NULL DEFAULT 1 CHECK (segment >= 1),
    -- How many there are; more than `segment` if a price is to come.
    ADD COLUMN segments bigint NOT NULL DEFAULT 1,
    -- What the charges left of a micro-unit: a numerator over per_ms.
    ADD COLUMN rem_num bigint NOT NULL DEFAULT 0,
    -- How far the meter's time is ahead of the server's clock, since that was set back.
    ADD COLUMN skew_ms bigint NOT NULL DEFAULT 0 CHECK (skew_ms >= 0);
UPDATE meter SET rem_num = (price::numeric * settled_ms) % per_ms;
ALTER TABLE meter
    ADD CONSTRAINT meter_segment_exists CHECK (segment <= segments),
    ADD CONSTRAINT meter_remainder CHECK (rem_num >= 0 AND rem_num < per_ms);

ALTER TABLE charge ADD COLUMN segment bigint NOT NULL DEFAULT 1;
ALTER TABLE charge
    ALTER COLUMN segment DROP DEFAULT,
    DROP CONSTRAINT charge_meter_id_fkey,
    ADD CONSTRAINT charge_segment_known FOREIGN KEY (meter_id, segment) REFERENCES meter_segment (meter_id, no);
CREATE INDEX charge_segment ON charge (meter_id, segment);

-- The disk as it is now; the quote keeps what was booked.
ALTER TABLE lease ADD COLUMN disk_gib integer CHECK (disk_gib >= 1);
UPDATE lease SET disk_gib = quote.disk_gib FROM quote WHERE quote.id = lease.quote_id;
ALTER TABLE lease ALTER COLUMN disk_gib SET NOT NULL;
