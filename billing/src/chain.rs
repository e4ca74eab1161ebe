//! The hash chain of the ledger's batches, and the signed end of a day.
//!
//! `hash(n) = BLAKE3(hash(n−1) ‖ shard ‖ n ‖ rows)`, rows in fixed-width big-endian form, ordered by
//! kind of row and id: whoever changes, drops or adds a row breaks every later hash of its shard.
//! A day's root is the hash over all shards' heads, signed with the market's key.

use domain::money::Currency;
use uuid::Uuid;

use crate::charge::Charge;
use crate::transfer::Transfer;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// What a shard's chain begins with.
pub const GENESIS: Hash = [0; 32];

/// What the market's key signs before a day's root.
pub const DAY_FORMAT: &str = "gpumarket-ledger-day/1";

/// A row as it goes into the chain.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A transfer, in its currency.
    Transfer(&'a Transfer, Currency),
    /// A charge, in its currency.
    Charge(&'a Charge, Currency),
}

impl Row<'_> {
    const fn order(&self) -> (u8, Uuid) {
        match self {
            Self::Transfer(t, _) => (1, t.id.uuid()),
            Self::Charge(c, _) => (2, c.id.uuid()),
        }
    }

    fn feed(&self, hasher: &mut blake3::Hasher) {
        let mut put = |bytes: &[u8]| {
            hasher.update(bytes);
        };
        match self {
            Self::Transfer(t, currency) => {
                put(&[1]);
                put(t.id.uuid().as_bytes());
                put(&t.kind.code().to_be_bytes());
                put(&currency.ledger().to_be_bytes());
                put(t.cause.as_bytes());
                for number in [t.debit.0, t.credit.0, t.amount.get(), t.at.micros()] {
                    put(&number.to_be_bytes());
                }
            }
            Self::Charge(c, currency) => {
                let (s, to) = (&c.settlement, &c.accounts);
                put(&[2]);
                put(c.id.uuid().as_bytes());
                put(&currency.ledger().to_be_bytes());
                for id in [s.meter.uuid(), s.lease.uuid(), c.hold.uuid()] {
                    put(id.as_bytes());
                }
                let numbers = [
                    s.seq,
                    s.segment,
                    s.from.micros(),
                    s.to.micros(),
                    s.billable_ms,
                    s.due.gross.get(),
                    s.due.fee.get(),
                    s.due.tax.get(),
                    to.wallet.0,
                    to.earned.0,
                    to.fee.0,
                    to.tax.0,
                    c.at.micros(),
                ];
                for number in numbers {
                    put(&number.to_be_bytes());
                }
            }
        }
    }
}

/// The hash of batch `no` of a shard, whose batch before has the hash `prev`.
pub fn seal(prev: &Hash, (shard, no): (i16, i64), rows: &mut [Row<'_>]) -> Hash {
    rows.sort_unstable_by_key(Row::order);
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev);
    hasher.update(&shard.to_be_bytes());
    hasher.update(&no.to_be_bytes());
    for row in rows.iter() {
        row.feed(&mut hasher);
    }
    *hasher.finalize().as_bytes()
}

/// The last batch of a shard before a day's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// The shard.
    pub shard: i16,
    /// Number of its last batch.
    pub no: i64,
    /// That batch's hash.
    pub hash: Hash,
}

/// The root of a day (`YYYY-MM-DD`, UTC): BLAKE3 over format, day and all heads by shard.
pub fn day_root(day: &str, heads: &[Head]) -> Hash {
    let mut ordered = heads.to_vec();
    ordered.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(DAY_FORMAT.as_bytes());
    hasher.update(b"\n");
    hasher.update(day.as_bytes());
    for head in &ordered {
        hasher.update(&head.shard.to_be_bytes());
        hasher.update(&head.no.to_be_bytes());
        hasher.update(&head.hash);
    }
    *hasher.finalize().as_bytes()
}

/// What the market's key signs for a day: format, `\n`, the root.
pub fn day_message(root: &Hash) -> Vec<u8> {
    let mut message = DAY_FORMAT.as_bytes().to_vec();
    message.push(b'\n');
    message.extend_from_slice(root);
    message
}

#[cfg(test)]
mod tests {
    use domain::clock::Timestamp;
    use domain::id::TransferId;
    use domain::money::Micros;

    use super::*;
    use crate::account::AccountId;
    use crate::transfer::TransferKind;

    fn transfer(n: u128, amount: i64) -> Transfer {
        Transfer {
            id: TransferId::from_uuid(Uuid::from_u128(n)),
            kind: TransferKind::SandboxTopUp,
            debit: AccountId(1),
            credit: AccountId(2),
            amount: Micros::new(amount),
            cause: Uuid::from_u128(7),
            at: Timestamp::from_micros(5),
        }
    }

    fn sealed(at: (i16, i64), transfers: &[Transfer]) -> Hash {
        let mut rows: Vec<Row<'_>> = transfers
            .iter()
            .map(|t| Row::Transfer(t, Currency::Usd))
            .collect();
        seal(&GENESIS, at, &mut rows)
    }

    #[test]
    fn every_change_changes_the_hash_and_order_does_not() {
        let (a, b) = (transfer(1, 10), transfer(2, 20));
        let whole = sealed((1, 1), &[a, b]);
        assert_eq!(whole, sealed((1, 1), &[b, a]));
        assert_ne!(whole, sealed((2, 1), &[a, b]));
        assert_ne!(whole, sealed((1, 2), &[a, b]));
        assert_ne!(whole, sealed((1, 1), &[a]));
        assert_ne!(whole, sealed((1, 1), &[a, transfer(2, 21)]));
        assert_ne!(whole, sealed((1, 1), &[a, transfer(3, 20)]));
        assert_ne!(whole, seal(&whole, (1, 1), &mut []));
    }

    #[test]
    fn a_day_is_the_set_of_its_heads() {
        let head = |shard, no| Head {
            shard,
            no,
            hash: [9; 32],
        };
        let root = day_root("2026-12-01", &[head(0, 4), head(1, 2)]);
        assert_eq!(root, day_root("2026-12-01", &[head(1, 2), head(0, 4)]));
        assert_ne!(root, day_root("2026-12-02", &[head(0, 4), head(1, 2)]));
        assert_ne!(root, day_root("2026-12-01", &[head(0, 4), head(1, 3)]));
        assert!(day_message(&root).ends_with(&root));
    }
}
