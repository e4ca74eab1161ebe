//! The signed ends of days: every shard's head, once for each day, and nobody can change them.

use billing::account::{AccountCode, PLATFORM};
use billing::chain::day_root;
use billing::transfer::TransferKind;
use domain::clock::Span;
use domain::id::TransferId;
use domain::money::{Currency, Micros};
use store::db::{Ro, Tx};
use store::error::Error;
use store::writer::{Wanted, post};
use tests::database::TestDatabase;
use tests::inside::Inside;
use uuid::Uuid;

async fn top_up(inside: &Inside) {
    let wanted = &[Wanted {
        id: TransferId::from_uuid(inside.cx.id()),
        kind: TransferKind::SandboxTopUp,
        debit: (AccountCode::SandboxClearing, PLATFORM),
        credit: (AccountCode::RenterWallet, Uuid::from_u128(7)),
        amount: Micros::new(5),
        cause: inside.cx.id(),
        at: inside.cx.now(),
    }];
    let done = inside
        .cx
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| post(tx, Currency::Usd, wanted).await)
        .await
        .unwrap();
    assert!(done.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_day_that_is_over_is_signed_once_with_all_heads() {
    let database = TestDatabase::create().await;
    let inside = Inside::on(&database.url);
    assert_eq!(app::day::sign_days(&inside.cx).await.unwrap(), 0);
    // In two shards: the shared one, and one that is claimed.
    top_up(&inside).await;
    inside.cx.db.claim_shards("test", 1).await.unwrap();
    top_up(&inside).await;
    top_up(&inside).await;
    inside.pass(49);
    // Two or three, by the hour of the day.
    let signed = app::day::sign_days(&inside.cx).await.unwrap();
    assert!(signed >= 2, "{signed}");
    assert_eq!(app::day::sign_days(&inside.cx).await.unwrap(), 0);
    let days = app::day::list(&inside.cx).await.unwrap();
    assert_eq!(days.len(), signed);
    let end = inside.cx.now().plus(Span::from_hours(24));
    let heads = inside
        .cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| store::day::heads(ro, end).await)
        .await
        .unwrap();
    let numbers: Vec<_> = heads.iter().map(|h| (h.shard, h.no)).collect();
    assert_eq!(numbers, [(0, 1), (1, 2)]);
    for day in &days {
        assert_eq!(day.heads, heads);
        assert_eq!(day.root, day_root(&day.day, &day.heads));
    }
    assert_ne!(days[0].root, days[1].root);
    let sql = database.client().await;
    for change in ["DELETE FROM ledger_day", "UPDATE ledger_day SET day = day"] {
        assert!(sql.batch_execute(change).await.is_err());
    }
}
