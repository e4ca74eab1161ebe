//! The proof of the ledger: each invariant is a query that finds nothing on good data.
//!
//! Numbering as in `docs/ledger.md`. NUMERIC is used here on purpose: an arithmetic that shares
//! nothing with the one that wrote the rows.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl;

use crate::db::Ro;
use crate::error::Error;

mod chain;
mod invoice;
mod money;

/// One invariant and what violates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantRow {
    /// Its number.
    pub id: &'static str,
    /// What it says.
    pub statement: &'static str,
    /// Rows that violate it.
    pub violations: i64,
    /// The first ten.
    pub examples: Vec<String>,
}

#[derive(QueryableByName)]
struct Example {
    #[diesel(sql_type = Text)]
    example: String,
    #[diesel(sql_type = BigInt)]
    violations: i64,
}

/// Number, statement, query of examples.
const INVARIANTS: &[(&str, &str, &str)] = &[
    (
        "I1",
        "debits equal credits in each currency",
        "SELECT ledger::text AS example FROM account GROUP BY ledger HAVING sum(debits) <> sum(credits)",
    ),
    (
        "I2",
        "each balance equals the replay of all transfers and charges",
        "SELECT a.id::text AS example FROM account a LEFT JOIN (
            SELECT acct, sum(d) AS d, sum(c) AS c FROM (
                SELECT debit AS acct, amount::numeric AS d, 0::numeric AS c FROM transfer
                UNION ALL SELECT credit, 0, amount FROM transfer
                UNION ALL SELECT wallet, gross + tax, 0 FROM charge
                UNION ALL SELECT earned, 0, gross - fee FROM charge
                UNION ALL SELECT fee_account, 0, fee FROM charge
                UNION ALL SELECT tax_account, 0, tax FROM charge) moved
            GROUP BY acct) r ON r.acct = a.id
         WHERE a.debits <> coalesce(r.d, 0) OR a.credits <> coalesce(r.c, 0)",
    ),
    (
        "I3",
        "no constrained account is below zero, holds included",
        "SELECT id::text AS example FROM account WHERE constrained AND debits + debits_pending > credits",
    ),
    (
        "I4",
        "what an account has set aside is the sum of its open holds and proposed debits",
        "SELECT a.id::text AS example FROM account a LEFT JOIN (
            SELECT account, sum(amount - posted) AS left_over FROM hold WHERE state = 'open' GROUP BY account) h
            ON h.account = a.id LEFT JOIN (
            SELECT party_id, ledger, account, sum(amount) AS proposed FROM adjustment
             WHERE state = 'proposed' AND direction = 'debit' GROUP BY 1, 2, 3) d
            ON d.party_id = a.owner AND d.ledger = a.ledger AND d.account = a.code
         WHERE a.debits_pending <> coalesce(h.left_over, 0) + coalesce(d.proposed, 0)
         UNION ALL
         SELECT a.id::text FROM account a LEFT JOIN (
            SELECT ledger, bearer, sum(amount) AS proposed FROM adjustment
             WHERE state = 'proposed' AND direction = 'debit' GROUP BY 1, 2) d
            ON d.ledger = a.ledger AND d.bearer = a.code AND a.owner = '00000000-0000-0000-0000-000000000000'
         WHERE a.credits_pending <> coalesce(d.proposed, 0)",
    ),
    (
        "I5",
        "each meter's money is what its proven time is worth at the prices of its time, to the micro-unit",
        "SELECT m.id::text AS example FROM meter m LEFT JOIN (
            SELECT c.meter_id, sum(s.price::numeric * c.billable_ms) AS num
              FROM charge c JOIN meter_segment s ON s.meter_id = c.meter_id AND s.no = c.segment
             GROUP BY c.meter_id) w ON w.meter_id = m.id
         WHERE charged::numeric * per_ms + rem_num <> coalesce(w.num, 0) OR rem_num NOT BETWEEN 0 AND per_ms - 1
            OR fee <> div(charged::numeric * fee_bps, 10000)
            OR tax <> div(charged::numeric * tax_bps, 10000)",
    ),
    (
        "I6",
        "each meter is the sum of its charges, without a gap in their numbers",
        "SELECT m.id::text AS example FROM meter m LEFT JOIN (
            SELECT meter_id, sum(gross) AS g, sum(fee) AS f, sum(tax) AS t, sum(billable_ms) AS ms,
                   max(seq) AS last, count(*) AS n, max(to_at) AS through FROM charge GROUP BY meter_id) c
            ON c.meter_id = m.id
         WHERE m.charged <> coalesce(c.g, 0) OR m.fee <> coalesce(c.f, 0) OR m.tax <> coalesce(c.t, 0)
            OR m.settled_ms <> coalesce(c.ms, 0) OR m.seq <> coalesce(c.last, 0) OR m.seq <> coalesce(c.n, 0)
            OR c.through > m.settled_through",
    ),
    (
        "I7",
        "no second is charged twice, and no range holds more proven time than it is long",
        "SELECT id::text AS example FROM (
            SELECT id, from_at, to_at, billable_ms,
                   lag(to_at) OVER (PARTITION BY meter_id ORDER BY seq) AS before FROM charge) c
         WHERE from_at < before OR billable_ms > extract(epoch FROM to_at - from_at) * 1000
            OR date_trunc('milliseconds', from_at) <> from_at OR date_trunc('milliseconds', to_at) <> to_at",
    ),
    (
        "I8",
        "nothing is billed without proof of life",
        "SELECT id::text AS example FROM meter
         WHERE (billable_ms > 0 AND proof_at IS NULL) OR through > greatest(proof_at, opened_at)
            OR billable_ms > extract(epoch FROM through - opened_at) * 1000",
    ),
    (
        "I16",
        "each charge lies within its price segment, and each meter counts at a price that it has",
        "SELECT c.id::text AS example FROM charge c LEFT JOIN (
            SELECT *, lead(from_at) OVER (PARTITION BY meter_id ORDER BY no) AS until FROM meter_segment) s
            ON s.meter_id = c.meter_id AND s.no = c.segment
         WHERE (c.from_at >= s.from_at AND c.to_at <= coalesce(s.until, c.to_at)) IS NOT TRUE
         UNION ALL
         SELECT m.id::text FROM meter m LEFT JOIN meter_segment s ON s.meter_id = m.id AND s.no = m.segment
         WHERE s.price IS DISTINCT FROM m.price OR s.from_at > m.settled_through
            OR m.segments <> (SELECT count(*) FROM meter_segment x WHERE x.meter_id = m.id)",
    ),
    (
        "I9",
        "what a hold has paid is the sum of its charges",
        "SELECT h.id::text AS example FROM hold h LEFT JOIN (
            SELECT hold_id, sum(gross + tax) AS paid FROM charge GROUP BY hold_id) c ON c.hold_id = h.id
         WHERE h.posted <> coalesce(c.paid, 0)",
    ),
    (
        "H1",
        "each charge is of its meter's lease, paid by that lease's hold, renter, to its provider",
        "SELECT c.id::text AS example FROM charge c
           LEFT JOIN meter m ON m.id = c.meter_id LEFT JOIN hold h ON h.id = c.hold_id
           LEFT JOIN lease l ON l.id = c.lease_id
           LEFT JOIN account w ON w.id = c.wallet LEFT JOIN account e ON e.id = c.earned
           LEFT JOIN account f ON f.id = c.fee_account LEFT JOIN account t ON t.id = c.tax_account
         WHERE (m.lease_id = l.id AND h.lease_id = l.id AND h.account = w.id
            AND w.code = 200 AND w.owner = l.party_id AND e.code = 230 AND e.owner = l.provider_id
            AND f.code = 300 AND t.code = 260) IS NOT TRUE",
    ),
    (
        "P1",
        "each top-up is one transfer of its amount to its party's wallet",
        "SELECT t.id::text AS example FROM top_up t
           LEFT JOIN transfer x ON x.id = t.transfer_id LEFT JOIN account w ON w.id = x.credit
         WHERE (x.amount = t.amount AND x.cause = t.id AND w.code = 200 AND w.owner = t.party_id) IS NOT TRUE",
    ),
    (
        "I10",
        "each shard's batches follow one another up to its head, and every movement is in a batch",
        "SELECT shard::text || '/' || no::text AS example FROM (
            SELECT shard, no, prev_hash, lag(hash) OVER w AS before, lag(no) OVER w AS last
              FROM batch WINDOW w AS (PARTITION BY shard ORDER BY no)) b
         WHERE no <> coalesce(last, 0) + 1
            OR prev_hash <> coalesce(before, decode(repeat('00', 32), 'hex'))
         UNION ALL
         SELECT w.shard::text FROM writer w LEFT JOIN batch b ON b.shard = w.shard AND b.no = w.batch_no
         WHERE w.batch_no <> coalesce((SELECT max(no) FROM batch x WHERE x.shard = w.shard), 0)
            OR w.head <> coalesce(b.hash, decode(repeat('00', 32), 'hex'))
         UNION ALL
         SELECT t.id::text FROM transfer t LEFT JOIN batch b ON b.id = t.batch
         WHERE b.id IS NULL AND t.batch IS NOT NULL
         UNION ALL
         SELECT c.id::text FROM charge c LEFT JOIN batch b ON b.id = c.batch
         WHERE b.id IS NULL AND c.batch IS NOT NULL",
    ),
    (
        "I14",
        "each movement is between accounts that exist",
        "SELECT t.id::text AS example FROM transfer t
           LEFT JOIN account d ON d.id = t.debit LEFT JOIN account c ON c.id = t.credit
         WHERE d.id IS NULL OR c.id IS NULL
         UNION ALL
         SELECT c.id::text FROM charge c
         WHERE 4 <> (SELECT count(*) FROM account a WHERE a.id IN (c.wallet, c.earned, c.fee_account, c.tax_account))",
    ),
    (
        "I15",
        "both sides of each movement have its currency",
        "SELECT t.id::text AS example FROM transfer t JOIN account d ON d.id = t.debit JOIN account c ON c.id = t.credit
         WHERE d.ledger <> t.ledger OR c.ledger <> t.ledger
         UNION ALL
         SELECT c.id::text FROM charge c
           JOIN account a ON a.id IN (c.wallet, c.earned, c.fee_account, c.tax_account)
         WHERE a.ledger <> c.ledger",
    ),
    (
        "M3",
        "every lease that can bill has its meters and an open hold",
        "SELECT l.id::text AS example FROM lease l
         WHERE l.state NOT IN ('ending', 'ended', 'failed')
           AND (NOT EXISTS (SELECT 1 FROM hold h WHERE h.lease_id = l.id AND h.state = 'open')
             OR NOT EXISTS (SELECT 1 FROM meter m WHERE m.id = l.compute_meter AND m.lease_id = l.id)
             OR NOT EXISTS (SELECT 1 FROM meter m WHERE m.id = l.storage_meter AND m.lease_id = l.id))",
    ),
    (
        "M4",
        "a lease that is over holds no money and no GPU",
        "SELECT l.id::text AS example FROM lease l
         WHERE l.state IN ('ended', 'failed')
           AND (EXISTS (SELECT 1 FROM hold h WHERE h.lease_id = l.id AND h.state = 'open')
             OR EXISTS (SELECT 1 FROM lease_gpu g WHERE g.lease_id = l.id AND g.released_at IS NULL))",
    ),
    (
        "S1",
        "no GPU is in two live leases, and each lease that runs has as many as it pays for",
        "SELECT l.id::text AS example FROM lease l JOIN quote q ON q.id = l.quote_id
         WHERE (l.state IN ('placing', 'provisioning', 'running', 'interrupting', 'resuming') OR l.keeps_gpus)
           AND q.gpu_count <> (SELECT count(*) FROM lease_gpu g WHERE g.lease_id = l.id AND g.released_at IS NULL)
         UNION ALL
         SELECT g.uuid FROM lease_gpu h JOIN gpu g ON g.id = h.gpu_id
          WHERE h.released_at IS NULL GROUP BY g.uuid HAVING count(*) > 1
         UNION ALL
         SELECT l.id::text FROM lease l JOIN lease_gpu h ON h.lease_id = l.id AND h.released_at IS NULL
           JOIN gpu g ON g.id = h.gpu_id WHERE g.machine_id <> l.machine_id",
    ),
    (
        "R1",
        "no state without a reason",
        "SELECT id::text AS example FROM lease WHERE state_reason = ''
         UNION ALL SELECT id::text FROM lease_event WHERE reason = '' OR actor_id = ''
         UNION ALL SELECT id::text FROM machine WHERE state_reason = ''",
    ),
    (
        "T1",
        "each lease's state is the last that its events tell",
        "SELECT l.id::text AS example FROM lease l
         WHERE l.state IS DISTINCT FROM
            (SELECT e.to_state FROM lease_event e WHERE e.lease_id = l.id ORDER BY e.id DESC LIMIT 1)",
    ),
];

/// Checks every invariant over one snapshot.
pub async fn invariants(ro: &mut Ro) -> Result<Vec<InvariantRow>, Error> {
    let mut rows = Vec::new();
    let all = INVARIANTS
        .iter()
        .chain(money::MONEY)
        .chain(invoice::INVOICES);
    for &(id, statement, query) in all {
        let counted = format!(
            "SELECT example, count(*) OVER () AS violations FROM ({query}) broken LIMIT 10"
        );
        let found: Vec<Example> = diesel::sql_query(counted).load(ro.sql()?).await?;
        rows.push(InvariantRow {
            id,
            statement,
            violations: found.as_slice().first().map_or(0, |e| e.violations),
            examples: found.into_iter().map(|e| e.example).collect(),
        });
    }
    rows.push(chain::recomputed(ro).await?);
    Ok(rows)
}
