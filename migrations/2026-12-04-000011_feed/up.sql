-- The feed of the book: which machines' supply changed, and in which transaction.
--
-- A sequence would be drawn before its transaction commits, so a reader could pass a number whose row
-- appears later. Therefore each row carries its transaction's id, and a reader asks for the rows that
-- its present snapshot sees and its previous one did not: the difference of two snapshots misses no
-- committed row and has none twice, in whatever order the transactions commit.
CREATE TABLE book_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- pg_current_xact_id(), 64 bits: it does not wrap.
    xid bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
    machine_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX book_change_xid ON book_change (xid);
CREATE INDEX book_change_at ON book_change (at);

-- Rows of transactions before it may be gone: who has not seen them yet reads the whole book again.
CREATE TABLE book_floor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    xid bigint NOT NULL
);
INSERT INTO book_floor (xid) VALUES (0);

-- Statement by statement, since bookings come in groups. `fresh` is the transition table.
CREATE FUNCTION note_machines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO book_change (machine_id) SELECT DISTINCT machine_id FROM fresh;
    RETURN NULL;
END $$;
CREATE FUNCTION note_gpus() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO book_change (machine_id)
        SELECT DISTINCT g.machine_id FROM fresh JOIN gpu g ON g.id = fresh.gpu_id;
    RETURN NULL;
END $$;
CREATE FUNCTION note_one_machine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO book_change (machine_id) VALUES (NEW.machine_id);
    RETURN NULL;
END $$;
CREATE FUNCTION note_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO book_change (machine_id) VALUES (NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER book_offer_insert AFTER INSERT ON offer
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER book_offer_update AFTER UPDATE ON offer
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER book_gpu_insert AFTER INSERT ON gpu
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER book_gpu_update AFTER UPDATE ON gpu
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER book_lease_gpu_insert AFTER INSERT ON lease_gpu
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_gpus();
CREATE TRIGGER book_lease_gpu_update AFTER UPDATE ON lease_gpu
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_gpus();
CREATE TRIGGER book_lease_insert AFTER INSERT ON lease
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
-- Of a lease only the disk counts; it is given back at the end. Reports change leases all the time.
CREATE TRIGGER book_lease_update AFTER UPDATE ON lease FOR EACH ROW
    WHEN (OLD.disk_gib <> NEW.disk_gib
        OR (OLD.state IN ('ended', 'failed')) <> (NEW.state IN ('ended', 'failed')))
    EXECUTE FUNCTION note_one_machine();
-- A heartbeat alone is no change: readers look for silent machines by time.
CREATE TRIGGER book_machine_update AFTER UPDATE ON machine FOR EACH ROW
    WHEN ((OLD.state, OLD.simulated, OLD.cpu_cores, OLD.ram_mib, OLD.disk_gib, OLD.country)
        IS DISTINCT FROM (NEW.state, NEW.simulated, NEW.cpu_cores, NEW.ram_mib, NEW.disk_gib, NEW.country))
    EXECUTE FUNCTION note_itself();
