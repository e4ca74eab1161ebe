//! The ledger's writer: whole batches, and one transfer for each of many callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use billing::account::{AccountCode, PLATFORM};
use billing::transfer::TransferKind;
use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Currency, Micros};
use futures_util::future::join_all;
use store::Db;
use store::db::Tx;
use store::error::Error;
use store::writer::{Wanted, Writer, post};
use uuid::Uuid;

use crate::Asked;
use crate::cluster::{Cluster, Script};
use crate::cpu::Cost;
use crate::report::{Report, Row};
use crate::{copy, disk, row_locks};

/// Renters with a wallet.
pub const RENTERS: u64 = 100_000;
/// Providers who earn.
pub const PROVIDERS: u64 = 10_000;
/// Transfers in a batch.
pub const BATCH: usize = 1_000;
/// Callers that want one transfer each.
pub const CALLERS: usize = 64;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The owner `n` of a kind: 1 renters, 2 providers.
pub fn owner(kind: u64, n: u64) -> Uuid {
    Uuid::from_u64_pair(kind, n)
}

/// An id in time order, as UUIDv7 are, with a tail without order.
fn id(tail: u64) -> Uuid {
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    Uuid::from_u64_pair((0x0199_0000_0000_0000 + n) & !0xf000 | 0x7000, tail)
}

/// Numbers without order (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From some renter to some provider.
    pub fn wanted(&mut self) -> Wanted {
        Wanted {
            id: TransferId::from_uuid(id(self.next())),
            kind: TransferKind::SandboxTopUp,
            debit: (AccountCode::RenterWallet, owner(1, self.below(RENTERS))),
            credit: (AccountCode::ProviderEarned, owner(2, self.below(PROVIDERS))),
            amount: Micros::new(i64::try_from(1 + self.below(1_000)).unwrap()),
            cause: id(self.next()),
            at: Timestamp::from_micros(1_790_000_000_000_000),
        }
    }
}

async fn batch(db: &Db, wanted: &[Wanted]) {
    let done = db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            tx.read_optimistically();
            post(tx, Currency::Usd, wanted).await
        })
        .await
        .unwrap();
    assert!(done.iter().all(Result::is_ok), "a transfer was refused");
}

/// Accounts, and money in the wallets, through the writer as well.
async fn fund(db: &Db) {
    for from in (0..RENTERS).step_by(BATCH) {
        let wanted = (from..from + 1_000).map(|n| Wanted {
            debit: (AccountCode::SandboxClearing, PLATFORM),
            credit: (AccountCode::RenterWallet, owner(1, n)),
            amount: Micros::new(100_000_000),
            ..Dice(n).wanted()
        });
        batch(db, &wanted.collect::<Vec<_>>()).await;
    }
    let mut dice = Dice(1);
    for from in (0..PROVIDERS).step_by(BATCH) {
        let wanted = (from..from + 1_000).map(|n| Wanted {
            credit: (AccountCode::ProviderEarned, owner(2, n)),
            ..dice.wanted()
        });
        batch(db, &wanted.collect::<Vec<_>>()).await;
    }
}

/// Counts until the time is over.
#[derive(Debug)]
pub struct Pace {
    begun: Instant,
    time: Duration,
    /// What was done.
    pub count: u64,
}

impl Pace {
    /// Starts the clock.
    pub fn start(time: Duration) -> Self {
        Self {
            begun: Instant::now(),
            time,
            count: 0,
        }
    }

    /// Is there time left?
    pub fn goes_on(&self) -> bool {
        self.begun.elapsed() < self.time
    }

    /// What was done, and how much of it per second.
    pub fn rate(&self) -> (u64, f64) {
        let count = f64::from(u32::try_from(self.count).unwrap());
        (self.count, count / self.begun.elapsed().as_secs_f64())
    }
}

/// Batches from one writer.
async fn batches(db: &Db, dice: &mut Dice, time: Duration) -> (u64, f64) {
    let mut pace = Pace::start(time);
    while pace.goes_on() {
        let wanted: Vec<Wanted> = (0..BATCH).map(|_| dice.wanted()).collect();
        batch(db, &wanted).await;
        pace.count += u64::try_from(BATCH).unwrap();
    }
    pace.rate()
}

/// One transfer per request, from many callers.
async fn single(db: &Db, writer: &Arc<Writer>, time: Duration) -> (u64, f64) {
    let seed = NEXT.fetch_add(1, Ordering::Relaxed) << 32;
    let mut all = Pace::start(time);
    let callers = (0..CALLERS).map(|n| {
        let (db, writer) = (db.clone(), Arc::clone(writer));
        let mut dice = Dice(seed + u64::try_from(n).unwrap());
        tokio::spawn(async move {
            let mut pace = Pace::start(time);
            while pace.goes_on() {
                let posted = writer.post(&db, Currency::Usd, dice.wanted()).await;
                posted.unwrap().unwrap();
                pace.count += 1;
            }
            pace.count
        })
    });
    all.count = join_all(callers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    all.rate()
}

/// Measures the three rows.
pub async fn measure(cluster: &Cluster, asked: &Asked, report: &mut Report) {
    println!("  ledger: preparing {RENTERS} renters and {PROVIDERS} providers");
    cluster.prepare_pgbench().await;
    let (url, sql) = cluster.market("ledger").await;
    let (yard, yard_sql) = cluster.market("yardstick").await;
    let db = Db::connect(&url, 8).unwrap();
    fund(&db).await;
    row_locks::fund(&yard_sql).await;
    for sql in [&sql, &yard_sql] {
        Cluster::vacuum(sql, &["account", "transfer"]).await;
    }
    let mut values: [Vec<f64>; 5] = Default::default();
    let mut cost: [Cost; 5] = Default::default();
    let (writer, mut dice) = (Arc::new(Writer::default()), Dice(7));
    let wants_batches = asked.wants("ledger_batches") || asked.wants("ledger_copy");
    let (pid, time) = (cluster.pid, asked.time);
    for n in 0..asked.rounds {
        if wants_batches {
            cluster.settle_down().await;
            let work = cluster.pgbench(Script::SimpleUpdate, 8, time);
            values[0].push(cost[0].of(pid, work).await);
            cluster.settle_down().await;
            values[1].push(cost[1].of(pid, batches(&db, &mut dice, time)).await);
            cluster.settle_down().await;
            values[2].push(cost[2].of(pid, copy::run(&yard_sql, &mut dice, time)).await);
        }
        if asked.wants("ledger_single") {
            cluster.settle_down().await;
            values[3].push(cost[3].of(pid, row_locks::run(&yard, (n, time))).await);
            cluster.settle_down().await;
            values[4].push(cost[4].of(pid, single(&db, &writer, time)).await);
        }
    }
    tell(asked, report, &values);
    tell_cost(report, &cost);
    disk::of_transfers(&sql, report).await;
    prove(&db).await;
}

/// The rows' sides, in the order of measuring.
const SIDES: [&str; 5] = [
    "pgbench simple-update",
    "transfer, batches",
    "transfer, COPY",
    "transfer, row locks",
    "transfer, one by one in groups",
];

fn tell_cost(report: &mut Report, cost: &[Cost; 5]) {
    for (cost, side) in cost.iter().zip(SIDES).filter(|(c, _)| c.count > 0.0) {
        let [server, client] = cost.each();
        report.figure(format!("{side}: CPU of PostgreSQL"), server, "us each");
        report.figure(format!("{side}: CPU of the client"), client, "us each");
    }
    let rows = [
        ("ledger_batches", 1, 0),
        ("ledger_copy", 1, 2),
        ("ledger_single", 4, 3),
    ];
    for (row, ours, theirs) in rows {
        if cost[ours].count > 0.0 {
            let ratio = cost[ours].ratio(&cost[theirs]);
            report.figure(
                format!("{row}: ratio by CPU instead of seconds"),
                ratio,
                "x",
            );
        }
    }
}

fn tell(asked: &Asked, report: &mut Report, values: &[Vec<f64>; 5]) {
    let [simple, ours, copied, locks, groups] = values;
    let row = |name, values: &Vec<f64>, yardstick, theirs: &Vec<f64>, goal| Row {
        name,
        values: values.clone(),
        unit: "transfers/s",
        yardstick,
        yardstick_values: theirs.clone(),
        goal,
    };
    if asked.wants("ledger_batches") {
        let yardstick = "pgbench simple-update, 8 clients, tps";
        report.row(row("ledger_batches", ours, yardstick, simple, 20.0));
    }
    if asked.wants("ledger_copy") {
        let yardstick = "COPY of such rows into such a table, rows/s";
        report.row(row("ledger_copy", ours, yardstick, copied, 0.5));
    }
    if asked.wants("ledger_single") {
        let yardstick = "row locks, a transaction each, 64 clients";
        report.row(row("ledger_single", groups, yardstick, locks, 5.0));
    }
}

/// What was measured must have been right.
async fn prove(db: &Db) {
    let rows = db
        .inspect::<_, Error, _>(async |ro| store::prove::invariants(ro).await)
        .await
        .unwrap();
    let broken: Vec<_> = rows.iter().filter(|r| r.violations > 0).collect();
    assert!(broken.is_empty(), "{broken:?}");
}
