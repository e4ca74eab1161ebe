//! For the tests: books a stream of ledger work through the writer, and says on standard output what
//! is durable, until it is done or killed.
//!
//! usage: gpumarket-ledger-stream URL DIRECT_URL FROM TO
//! Works through URL (which a test may cut), looks through `DIRECT_URL` for what an earlier run did of
//! round FROM, and does the rounds up to TO. Says `claimed SHARD` or `claimed none`, `ack ROUND` of a
//! batch, `ack ROUND ID` of a single transfer, `holds N` (shards, at the end).

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::money::Currency;
use store::Db;
use store::db::Tx;
use store::error::Error;
use store::writer::{Wanted, Writer, post};
use tests::ledger_stream::{is_batch, round, there};
use uuid::Uuid;

async fn batch(db: &Db, number: u64, wanted: &[Wanted]) {
    db.write::<_, Error, _>(async |tx: &mut Tx| {
        tx.read_optimistically();
        post(tx, Currency::Usd, wanted).await
    })
    .await
    .unwrap();
    println!("ack {number}");
}

async fn single(
    db: &Db,
    writer: &Arc<Writer>,
    number: u64,
    (wanted, done): (Vec<Wanted>, &BTreeSet<Uuid>),
) {
    let missing = wanted.into_iter().filter(|w| !done.contains(&w.id.uuid()));
    let tasks: Vec<_> = missing
        .map(|w| {
            let (db, writer) = (db.clone(), Arc::clone(writer));
            tokio::spawn(async move {
                let posted = writer.post(&db, Currency::Usd, w).await.unwrap();
                println!("ack {number} {}", posted.unwrap().id.uuid());
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, direct, from, to] = args.as_slice() else {
        eprintln!("usage: gpumarket-ledger-stream URL DIRECT_URL FROM TO");
        std::process::exit(2);
    };
    let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
    let sql = tests::database::connect(direct).await;
    let db = Db::connect(url, 4).unwrap();
    db.claim_shards("stream", 1).await.unwrap();
    match db.claimed().first() {
        Some(claim) => println!("claimed {}", claim.shard),
        None => println!("claimed none"),
    }
    let writer = Arc::new(Writer::default());
    for number in from..to {
        let wanted = round(number);
        // Only the first round may have been begun by an earlier run.
        let done = if number == from {
            there(&sql, number).await
        } else {
            BTreeSet::new()
        };
        if !is_batch(number) {
            single(&db, &writer, number, (wanted, &done)).await;
        } else if done.is_empty() {
            batch(&db, number, &wanted).await;
        }
    }
    println!("holds {}", db.claimed().len());
}
