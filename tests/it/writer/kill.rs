//! `kill -9` between any two messages of a batch, again and again, until the stream is done.

use std::collections::BTreeSet;
use std::process::Stdio;

use store::Db;
use tests::database::TestDatabase;
use tests::ledger_stream::{balances, is_batch, prove, round, there};
use tests::process::binary;
use tests::proxy::{Proxy, Stop};
use tests::wait::until;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio_postgres::Client;
use uuid::Uuid;

/// A running stream.
pub(crate) struct Stream {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stream {
    pub(crate) fn start(url: &str, direct: &str, (from, to): (u64, u64)) -> Self {
        let mut child = Command::new(binary("gpumarket-ledger-stream"))
            .args([url, direct, &from.to_string(), &to.to_string()])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.unwrap()
    }

    /// Everything that it says until it ends.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(line) = self.line().await {
            all.push(line);
        }
        all
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Acked {
    batches: BTreeSet<u64>,
    singles: BTreeSet<(u64, Uuid)>,
}

impl Acked {
    fn take(&mut self, lines: &[String]) -> BTreeSet<u64> {
        let mut rounds = BTreeSet::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["ack", number] => {
                    self.batches.insert(number.parse().unwrap());
                    rounds.insert(number.parse().unwrap());
                }
                ["ack", number, id] => {
                    let number = number.parse().unwrap();
                    self.singles.insert((number, id.parse().unwrap()));
                    rounds.insert(number);
                }
                _ => {}
            }
        }
        rounds
    }

    fn of(&self, number: u64) -> BTreeSet<Uuid> {
        let of_round = self.singles.iter().filter(|s| s.0 == number);
        of_round.map(|s| s.1).collect()
    }

    /// The first round that is not acknowledged as a whole.
    fn next(&self, from: u64) -> u64 {
        let whole = |n: &u64| {
            if is_batch(*n) {
                self.batches.contains(n)
            } else {
                self.of(*n).len() == round(*n).len()
            }
        };
        (from..).find(|n| !whole(n)).unwrap()
    }
}

/// Until the server has done with what the killed process had sent.
async fn quiet(sql: &Client) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    until("the killed process's sessions to end", || async {
        let count: i64 = sql.query_one(others, &[]).await.unwrap().get(0);
        (count == 0).then_some(())
    })
    .await;
}

/// Numbers without order, the same in each run (xorshift).
fn dice(state: &mut u64, below: u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % below).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_any_two_messages_it_loses_and_doubles_nothing() {
    let points = super::number("GPUMARKET_KILL_POINTS", 10);
    let (killed, clean) = (TestDatabase::create().await, TestDatabase::create().await);
    let sql = killed.client().await;
    let (mut acked, mut next, mut seed) = (Acked::default(), 0, 0x1234_5678_u64);
    for point in 0..points {
        let at = 5 + dice(&mut seed, 400);
        let stop = if point % 2 == 0 {
            Stop::At(at)
        } else {
            Stop::After(at)
        };
        let proxy = Proxy::start(&killed.url, stop).await;
        let mut stream = Stream::start(&proxy.url, &killed.url, (next, u64::MAX));
        proxy.reached().await;
        stream.child.start_kill().unwrap();
        let lines = stream.rest().await;
        stream.child.wait().await.unwrap();
        drop(proxy);
        quiet(&sql).await;
        for number in acked.take(&lines) {
            let found = there(&sql, number).await;
            let lost: Vec<_> = acked.of(number).difference(&found).copied().collect();
            assert!(
                lost.is_empty(),
                "point {point}, round {number}: {lost:?} are lost"
            );
        }
        next = acked.next(next);
    }
    let end = next + 3;
    let mut last = Stream::start(&killed.url, &killed.url, (next, end));
    let mut whole = Stream::start(&clean.url, &clean.url, (0, end));
    for stream in [&mut last, &mut whole] {
        stream.rest().await;
        assert!(stream.child.wait().await.unwrap().success());
    }
    assert!(end > 6, "{points} points and only {end} rounds");
    let wanted = balances(&clean.client().await).await;
    assert!(wanted.1 > 60, "{} transfers", wanted.1);
    assert_eq!(balances(&sql).await, wanted);
    prove(&Db::connect(&killed.url, 2).unwrap()).await;
}
