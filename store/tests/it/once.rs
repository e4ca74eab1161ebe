//! `write_once`: one effect for each key, whatever happens around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::id::PartyId;
use serde_json::{Value, json};
use store::db::Tx;
use store::error::Error;
use store::idempotency::{Done, OnceKey};
use uuid::Uuid;

use crate::database::Database;
use crate::world::{T0, after, user};

fn key(party: Option<PartyId>, key: &str, body: u8) -> OnceKey {
    OnceKey {
        party,
        route: "POST /v1/leases".to_owned(),
        key: key.to_owned(),
        fingerprint: [body; 32],
    }
}

async fn put(base: &Database, key: &OnceKey, runs: &AtomicU32) -> Result<Done, Error> {
    base.db
        .write_once(key, T0, 201, async |tx: &mut Tx| {
            let n = runs.fetch_add(1, Ordering::SeqCst);
            store::outbox::put(tx, ("test", "1"), &json!({"n": n}), T0).await?;
            Ok::<_, Error>(json!({"run": n, "big": i64::MAX, "text": "ä\u{1f600}"}))
        })
        .await
}

async fn effects(base: &Database) -> usize {
    let count = base
        .db
        .read(async |ro: &mut store::db::Ro| store::outbox::undelivered(ro, 100).await);
    count.await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_same_answer_and_no_second_effect() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    let first = put(&base, &key(None, "k", 1), &runs).await.unwrap();
    let again = put(&base, &key(None, "k", 1), &runs).await.unwrap();
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!((runs.load(Ordering::SeqCst), effects(&base).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_the_key_is_refused() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    put(&base, &key(None, "k", 1), &runs).await.unwrap();
    let other = put(&base, &key(None, "k", 2), &runs).await;
    assert!(
        matches!(other, Err(Error::IdempotencyMismatch)),
        "{other:?}"
    );
    assert_eq!(effects(&base).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_other_parties_and_routes_are_other_keys() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    let party = Some(PartyId::from_uuid(Uuid::from_u128(5)));
    put(&base, &key(None, "k", 1), &runs).await.unwrap();
    put(&base, &key(party, "k", 2), &runs).await.unwrap();
    let elsewhere = OnceKey {
        route: "POST /v1/quotes".to_owned(),
        ..key(party, "k", 3)
    };
    put(&base, &elsewhere, &runs).await.unwrap();
    assert_eq!(effects(&base).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_leaves_no_answer_and_no_effect() {
    let base = Database::fresh().await;
    let refused = base
        .db
        .write_once(&key(None, "k", 1), T0, 201, async |tx: &mut Tx| {
            store::outbox::put(tx, ("test", "1"), &json!({}), T0).await?;
            Err::<Value, _>(Error::Corrupt("on purpose"))
        })
        .await;
    assert!(matches!(refused, Err(Error::Corrupt(_))));
    assert_eq!(effects(&base).await, 0);
    let runs = AtomicU32::new(0);
    assert!(
        !put(&base, &key(None, "k", 9), &runs)
            .await
            .unwrap()
            .replayed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_at_once_one_has_the_effect_and_all_get_its_answer() {
    let base = Arc::new(Database::fresh().await);
    let runs = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|_n| {
            let (base, runs) = (Arc::clone(&base), Arc::clone(&runs));
            tokio::spawn(async move { put(&base, &key(None, "k", 1), &runs).await.unwrap() })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    assert_eq!(answers.iter().filter(|a| !a.replayed).count(), 1);
    assert!(answers.iter().all(|a| a.body == answers[0].body));
    assert_eq!((runs.load(Ordering::SeqCst), effects(&base).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_in_flight_for_the_repeat() {
    let base = Arc::new(Database::fresh().await);
    let slow = Arc::clone(&base);
    let first = tokio::spawn(async move {
        slow.db
            .write_once(&key(None, "k", 1), T0, 201, async |_tx: &mut Tx| {
                tokio::time::sleep(Duration::from_secs(7)).await;
                Ok::<_, Error>(json!(1))
            })
            .await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let repeat = put(&base, &key(None, "k", 1), &AtomicU32::new(0)).await;
    assert!(
        matches!(repeat, Err(Error::IdempotencyInFlight)),
        "{repeat:?}"
    );
    assert!(!first.await.unwrap().unwrap().replayed);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_answers_are_forgotten() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    put(&base, &key(None, "k", 1), &runs).await.unwrap();
    for (before, swept) in [(T0, 0), (after(1), 1)] {
        let sweep = base
            .db
            .write(async |tx: &mut Tx| store::idempotency::sweep(tx, before).await);
        assert_eq!(sweep.await.unwrap(), swept);
    }
    assert!(
        !put(&base, &key(None, "k", 1), &runs)
            .await
            .unwrap()
            .replayed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_delivered_once_in_order() {
    let base = Database::fresh().await;
    let runs = AtomicU32::new(0);
    for n in 0..3 {
        put(&base, &key(None, &format!("k{n}"), 1), &runs)
            .await
            .unwrap();
    }
    let waiting = base
        .db
        .read(async |ro: &mut store::db::Ro| store::outbox::undelivered(ro, 2).await);
    let seqs: Vec<i64> = waiting.await.unwrap().iter().map(|m| m.seq).collect();
    assert!(seqs.len() == 2 && seqs[0] < seqs[1]);
    let marked = base
        .db
        .write(async |tx: &mut Tx| store::outbox::mark_delivered(tx, &seqs, T0).await);
    assert_eq!(marked.await.unwrap(), 2);
    assert_eq!(effects(&base).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_email_address_has_one_account() {
    let base = Database::fresh().await;
    let (one, two) = (user("ada"), user("ada"));
    let insert = base
        .db
        .write(async |tx: &mut Tx| store::party::insert_user(tx, &one).await);
    insert.await.unwrap();
    let again = base
        .db
        .write(async |tx: &mut Tx| store::party::insert_user(tx, &two).await);
    let refused = again.await;
    let taken = store::error::Constraint::EmailTaken;
    assert!(matches!(refused, Err(Error::Conflict(c)) if c == taken));
}
