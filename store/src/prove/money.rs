//! Invariants of credit, adjustments, earnings on their way, payouts and disputes.

/// Number, statement, query of examples.
pub(super) const MONEY: &[(&str, &str, &str)] = &[
    (
        "OW1",
        "nobody's debt is paid down below zero",
        "SELECT id::text AS example FROM account WHERE code IN (120, 130) AND credits > debits",
    ),
    (
        "CR1",
        "each renter's credit is the sum of what is left of its credits",
        "SELECT a.id::text AS example FROM account a LEFT JOIN (
            SELECT party_id, ledger, sum(remaining) AS rest FROM credit GROUP BY party_id, ledger) c
            ON c.party_id = a.owner AND c.ledger = a.ledger
         WHERE a.code = 205 AND a.credits - a.debits <> coalesce(c.rest, 0)",
    ),
    (
        "CR2",
        "what is left of a credit is what was given, less what was used and what expired",
        "SELECT c.id::text AS example FROM credit c LEFT JOIN (
            SELECT credit_id, sum(CASE kind WHEN 'returned' THEN -amount ELSE amount END) AS gone
              FROM credit_use GROUP BY credit_id) u ON u.credit_id = c.id
         WHERE c.remaining <> c.amount - coalesce(u.gone, 0)",
    ),
    (
        "CR3",
        "no hold keeps credit that its charges have not used once it is closed",
        "SELECT h.id::text AS example FROM hold h JOIN (
            SELECT hold_id, sum(CASE kind WHEN 'returned' THEN -amount ELSE amount END) AS has
              FROM credit_use WHERE hold_id IS NOT NULL GROUP BY hold_id) u ON u.hold_id = h.id
         WHERE u.has < 0 OR u.has > CASE h.state WHEN 'open' THEN h.amount ELSE h.posted END",
    ),
    (
        "CR4",
        "each credit and each use of one is one transfer of its amount",
        "SELECT c.id::text AS example FROM credit c LEFT JOIN transfer t ON t.cause = c.id
            AND t.kind = CASE c.kind WHEN 'promo' THEN 20 WHEN 'sla' THEN 24 ELSE 25 END
         WHERE t.amount IS DISTINCT FROM c.amount
         UNION ALL
         SELECT u.id::text FROM credit_use u LEFT JOIN transfer t ON t.cause = u.id
            AND t.kind = CASE u.kind WHEN 'released' THEN 21 WHEN 'returned' THEN 22 ELSE 23 END
         WHERE t.amount IS DISTINCT FROM u.amount",
    ),
    (
        "AD1",
        "each adjustment that was applied is one transfer, others are none, and two people have seen the large",
        "SELECT a.id::text AS example FROM adjustment a LEFT JOIN transfer t ON t.cause = a.id
            AND t.kind = CASE a.direction WHEN 'credit' THEN 30 ELSE 31 END
         WHERE (a.state = 'applied') <> (t.id IS NOT NULL) OR t.amount <> a.amount
            OR (a.state = 'applied' AND a.needs_approval AND (a.decided_by = a.proposed_by) IS NOT FALSE)",
    ),
    (
        "MA1",
        "each maturing is its transfers, and no reserve is larger than what was kept back",
        "SELECT m.id::text AS example FROM maturing m
           LEFT JOIN transfer t ON t.cause = m.id AND t.kind = 40
           LEFT JOIN transfer r ON r.cause = m.id AND r.kind = 41
         WHERE coalesce(t.amount, 0) <> m.amount OR coalesce(r.amount, 0) <> m.reserve
         UNION ALL
         SELECT a.id::text FROM account a LEFT JOIN (
            SELECT party_id, ledger, sum(reserve) AS kept FROM maturing
             WHERE reserve_released_at IS NULL GROUP BY party_id, ledger) m
            ON m.party_id = a.owner AND m.ledger = a.ledger
         WHERE a.code = 245 AND a.credits - a.debits > coalesce(m.kept, 0)",
    ),
    (
        "PO1",
        "what is in flight to a provider is the sum of its open payouts",
        "SELECT a.id::text AS example FROM account a LEFT JOIN (
            SELECT party_id, ledger, sum(amount) AS open FROM payout
             WHERE state IN ('requested', 'in_flight') GROUP BY party_id, ledger) p
            ON p.party_id = a.owner AND p.ledger = a.ledger
         WHERE a.code = 240 AND a.credits - a.debits <> coalesce(p.open, 0)",
    ),
    (
        "PO2",
        "each payout has the transfers of its state, of its amount",
        "SELECT p.id::text AS example FROM payout p LEFT JOIN (
            SELECT cause, array_agg(kind ORDER BY kind) AS kinds, min(amount) AS least, max(amount) AS most
              FROM transfer WHERE kind BETWEEN 50 AND 53 GROUP BY cause) t ON t.cause = p.id
         WHERE t.kinds IS DISTINCT FROM (CASE p.state WHEN 'paid' THEN '{50,51}' WHEN 'failed' THEN '{50,52}'
                 WHEN 'returned' THEN '{50,51,53}' ELSE '{50}' END)::smallint[]
            OR (t.least, t.most) IS DISTINCT FROM (p.amount, p.amount)",
    ),
    (
        "DI1",
        "the reserve for disputes is what the open ones took, and each took what its record says",
        "SELECT l.ledger::text AS example FROM (SELECT DISTINCT ledger FROM account) l
         WHERE (SELECT coalesce(sum(a.credits - a.debits), 0) FROM account a WHERE a.code = 250 AND a.ledger = l.ledger)
            <> (SELECT coalesce(sum(d.taken + d.owed), 0) FROM dispute d WHERE d.state = 'open' AND d.ledger = l.ledger)
         UNION ALL
         SELECT d.id::text FROM dispute d
           LEFT JOIN transfer t ON t.cause = d.id AND t.kind = 60
           LEFT JOIN transfer o ON o.cause = d.id AND o.kind = 61
         WHERE coalesce(t.amount, 0) <> d.taken OR coalesce(o.amount, 0) <> d.owed",
    ),
];
