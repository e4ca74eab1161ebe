//! A stream of ledger work that is the same each time, and what became of it.
//!
//! Even rounds are one batch, decided in order, in which some transfers are refused. Odd rounds are
//! top-ups of many callers at once, which a writer groups as it likes. Either way the balances after
//! a round depend on the number of rounds only, however often the work was cut short.

use std::collections::{BTreeMap, BTreeSet};

use billing::account::{AccountCode, PLATFORM};
use billing::transfer::TransferKind;
use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::Micros;
use store::writer::Wanted;
use tokio_postgres::Client;
use uuid::Uuid;

/// Wallets in the stream.
const WALLETS: u64 = 5;

/// Callers in an odd round.
pub const CALLERS: u64 = 16;

/// Is this round one batch?
pub const fn is_batch(round: u64) -> bool {
    round.is_multiple_of(2)
}

/// A number without order, the same each time (splitmix64).
fn dice(seed: u64) -> u64 {
    let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A transfer between the sandbox and a wallet: in, or out again where there is enough.
pub fn between(id: Uuid, (owner, amount): (Uuid, i64), out: bool) -> Wanted {
    let (clearing, wallet) = (
        (AccountCode::SandboxClearing, PLATFORM),
        (AccountCode::RenterWallet, owner),
    );
    Wanted {
        id: TransferId::from_uuid(id),
        kind: TransferKind::SandboxTopUp,
        debit: if out { wallet } else { clearing },
        credit: if out { clearing } else { wallet },
        amount: Micros::new(amount),
        cause: id,
        at: Timestamp::from_micros(1_790_000_000_000_000),
    }
}

/// What is wanted in a round.
pub fn round(number: u64) -> Vec<Wanted> {
    let count = if is_batch(number) {
        5 + dice(number) % 36
    } else {
        CALLERS
    };
    let one = |n: u64| {
        let roll = dice(number * 1_000 + n);
        let owner = Uuid::from_u64_pair(7, 1 + roll % WALLETS);
        let out = is_batch(number) && !(roll >> 8).is_multiple_of(3);
        let amount = i64::try_from(1 + (roll >> 16) % 1_000).unwrap();
        between(Uuid::from_u64_pair(number + 1, n + 1), (owner, amount), out)
    };
    (0..count).map(one).collect()
}

/// Which transfers of a round are there.
pub async fn there(sql: &Client, number: u64) -> BTreeSet<Uuid> {
    let ids: Vec<String> = round(number)
        .iter()
        .map(|w| w.id.uuid().to_string())
        .collect();
    let query = "SELECT id::text FROM transfer WHERE id = ANY ($1::text[]::uuid[])";
    let rows = sql.query(query, &[&ids]).await.unwrap();
    let id = |r: &tokio_postgres::Row| r.get::<_, String>(0).parse().unwrap();
    rows.iter().map(id).collect()
}

/// Debits and credits of each account by chart and owner, and the number of transfers.
pub async fn balances(sql: &Client) -> (BTreeMap<(i16, String), (i64, i64)>, i64) {
    let query = "SELECT code, owner::text, sum(debits)::bigint, sum(credits)::bigint FROM account GROUP BY 1, 2";
    let rows = sql.query(query, &[]).await.unwrap();
    let sums = rows
        .iter()
        .map(|r| ((r.get(0), r.get(1)), (r.get(2), r.get(3))));
    let count = sql.query_one("SELECT count(*) FROM transfer", &[]).await;
    (sums.collect(), count.unwrap().get(0))
}

/// Fails unless every invariant of the ledger holds.
pub async fn prove(db: &store::Db) {
    let rows = db
        .inspect::<_, store::error::Error, _>(async |ro| store::prove::invariants(ro).await)
        .await
        .unwrap();
    let broken: Vec<_> = rows.iter().filter(|r| r.violations > 0).collect();
    assert!(broken.is_empty(), "{broken:?}");
}
