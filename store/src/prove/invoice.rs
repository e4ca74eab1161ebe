//! Invariants of invoices.

/// Number, statement, query of examples.
pub(super) const INVOICES: &[(&str, &str, &str)] = &[
    (
        "V1",
        "each invoice is the sum of its lines",
        "SELECT i.id::text AS example FROM invoice i LEFT JOIN (
            SELECT invoice_id, sum(gross) AS g, sum(fee) AS f, sum(tax) AS t
              FROM invoice_line GROUP BY invoice_id) l ON l.invoice_id = i.id
         WHERE i.kind <> 'credit_note'
           AND (i.gross <> coalesce(l.g, 0) OR i.fee <> coalesce(l.f, 0) OR i.tax <> coalesce(l.t, 0)
             OR i.total <> CASE i.kind WHEN 'sale' THEN i.gross + i.tax ELSE i.gross - i.fee END)",
    ),
    (
        "V2",
        "each line is exactly its charges, and no charge is on two invoices of one side",
        "SELECT l.invoice_id::text AS example FROM invoice_line l CROSS JOIN LATERAL (
            SELECT count(*) AS n, sum(c.gross) AS g, sum(c.fee) AS f, sum(c.tax) AS t, sum(c.billable_ms) AS ms
              FROM charge c WHERE c.meter_id = l.meter_id AND c.seq BETWEEN l.seq_from AND l.seq_to) c
         WHERE (c.n, c.g, c.f, c.t, c.ms)
            IS DISTINCT FROM (l.seq_to - l.seq_from + 1, l.gross, l.fee, l.tax, l.billable_ms)
         UNION ALL
         SELECT a.invoice_id::text FROM invoice_line a JOIN invoice_line b
            ON b.meter_id = a.meter_id AND b.side = a.side
           AND (b.invoice_id, b.position) > (a.invoice_id, a.position)
           AND b.seq_from <= a.seq_to AND a.seq_from <= b.seq_to",
    ),
    (
        "V3",
        "the numbers of each series and year go from 1 to the last without a gap",
        "SELECT s.series || '-' || s.year AS example FROM invoice_series s LEFT JOIN (
            SELECT series, year, count(*) AS n, max(no) AS last FROM invoice GROUP BY series, year) i
            ON i.series = s.series AND i.year = s.year
         WHERE s.last <> coalesce(i.n, 0) OR s.last <> coalesce(i.last, 0)
         UNION ALL
         SELECT i.id::text FROM invoice i
         WHERE NOT EXISTS (SELECT 1 FROM invoice_series s WHERE s.series = i.series AND s.year = i.year)",
    ),
    (
        "V4",
        "no more than an invoice's total is taken back, and only of an invoice",
        "SELECT n.refers_to::text AS example FROM invoice n LEFT JOIN invoice i ON i.id = n.refers_to
         WHERE n.kind = 'credit_note'
         GROUP BY n.refers_to, i.id
        HAVING i.id IS NULL OR i.kind = 'credit_note' OR sum(n.total) > i.total
            OR bool_or(n.credited_of <> i.total OR n.party_id <> i.party_id)",
    ),
];
