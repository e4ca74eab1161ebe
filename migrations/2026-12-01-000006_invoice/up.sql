-- Invoices: numbers without a gap, each charge on at most one invoice of each side, nothing edited.

-- Who a party is on documents. Its present state; an invoice keeps what it said when it was issued.
CREATE TABLE billing_profile (
    party_id uuid PRIMARY KEY REFERENCES party (id),
    legal_name text NOT NULL CHECK (legal_name <> ''),
    address text[] NOT NULL,
    country text CHECK (country ~ '^[A-Z]{2}$'),
    vat_id text CHECK (vat_id <> ''),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL
);

-- The last number of a series in a year. Its row is locked until the document that takes the next
-- number is committed, so a number is used or not taken.
CREATE TABLE invoice_series (
    series text NOT NULL CHECK (series IN ('INV', 'SBI', 'CRN')),
    year integer NOT NULL,
    last bigint NOT NULL CHECK (last >= 1),
    PRIMARY KEY (series, year)
) WITH (fillfactor = 50);
CREATE FUNCTION count_by_one() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.series <> OLD.series OR NEW.year <> OLD.year OR NEW.last <> OLD.last + 1 THEN
        RAISE EXCEPTION 'a series counts by one' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER invoice_series_counts BEFORE UPDATE ON invoice_series
    FOR EACH ROW EXECUTE FUNCTION count_by_one();
CREATE TRIGGER invoice_series_stays BEFORE DELETE OR TRUNCATE ON invoice_series
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE invoice (
    id uuid PRIMARY KEY,
    party_id uuid NOT NULL REFERENCES party (id),
    kind text NOT NULL CHECK (kind IN ('sale', 'self_billing', 'credit_note')),
    series text NOT NULL,
    year integer NOT NULL,
    no bigint NOT NULL CHECK (no >= 1),
    period_from timestamptz NOT NULL,
    period_to timestamptz NOT NULL,
    -- Made by the market for a whole month, rather than on demand.
    monthly boolean NOT NULL,
    ledger integer NOT NULL,
    gross bigint NOT NULL CHECK (gross >= 0),
    fee bigint NOT NULL CHECK (fee >= 0),
    tax bigint NOT NULL CHECK (tax >= 0),
    total bigint NOT NULL CHECK (total >= 0),
    -- Seller, buyer and words, as they were when it was issued.
    document jsonb NOT NULL,
    issued_at timestamptz NOT NULL,
    refers_to uuid REFERENCES invoice (id),
    -- What earlier notes took of the invoice that this note refers to, and what that came to.
    credited_before bigint CHECK (credited_before >= 0),
    credited_of bigint,
    reason text CHECK (reason <> ''),
    transfer_id uuid UNIQUE REFERENCES transfer (id),
    CONSTRAINT invoice_number_once UNIQUE (series, year, no),
    CONSTRAINT invoice_number_counted FOREIGN KEY (series, year) REFERENCES invoice_series (series, year),
    CONSTRAINT invoice_period CHECK (period_from < period_to),
    CONSTRAINT invoice_sums CHECK (total = CASE kind WHEN 'self_billing' THEN gross - fee ELSE gross + tax END),
    CONSTRAINT invoice_credit_whole CHECK (
        num_nulls(refers_to, credited_before, credited_of, reason) = CASE kind WHEN 'credit_note' THEN 0 ELSE 4 END
        AND (kind = 'credit_note' OR transfer_id IS NULL)),
    CONSTRAINT invoice_credit_within CHECK (credited_before + total <= credited_of),
    -- Two notes that saw the same state of the invoice cannot both be.
    CONSTRAINT invoice_credit_in_order UNIQUE (refers_to, credited_before)
);
CREATE INDEX invoice_party ON invoice (party_id, id);
CREATE UNIQUE INDEX invoice_month_once ON invoice (party_id, kind, period_from) WHERE monthly;

-- One meter's charges with consecutive numbers.
CREATE TABLE invoice_line (
    invoice_id uuid NOT NULL REFERENCES invoice (id),
    position integer NOT NULL CHECK (position >= 1),
    side text NOT NULL CHECK (side IN ('sale', 'self_billing')),
    lease_id uuid NOT NULL REFERENCES lease (id),
    meter_id uuid NOT NULL REFERENCES meter (id),
    seq_from bigint NOT NULL CHECK (seq_from >= 1),
    seq_to bigint NOT NULL,
    from_at timestamptz NOT NULL,
    to_at timestamptz NOT NULL,
    billable_ms bigint NOT NULL CHECK (billable_ms >= 0),
    gross bigint NOT NULL CHECK (gross >= 0),
    fee bigint NOT NULL CHECK (fee >= 0),
    tax bigint NOT NULL CHECK (tax >= 0),
    resource text NOT NULL,
    price bigint NOT NULL,
    per_ms bigint NOT NULL,
    fee_bps integer NOT NULL,
    tax_bps integer NOT NULL,
    gpu_model text NOT NULL,
    gpu_count smallint NOT NULL,
    disk_gib integer NOT NULL,
    simulated boolean NOT NULL,
    label text,
    PRIMARY KEY (invoice_id, position),
    CONSTRAINT invoice_line_seq CHECK (seq_from <= seq_to),
    -- No charge is invoiced twice.
    CONSTRAINT invoice_line_once
        EXCLUDE USING gist (meter_id WITH =, side WITH =, int8range(seq_from, seq_to, '[]') WITH &&)
);
CREATE INDEX invoice_line_lease ON invoice_line (lease_id);
-- How many of a meter's charges are invoiced: for the monthly run.
CREATE INDEX invoice_line_meter ON invoice_line (meter_id, side);

CREATE TRIGGER invoice_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON invoice
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER invoice_line_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON invoice_line
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
