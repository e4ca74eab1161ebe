//! A violated invariant of money stops the writers; leases go on; an operator lifts the stop.

use app::Error;
use domain::clock::Span;
use domain::lease::LeaseState;
use store::error::Error as StoreError;
use tests::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn wrong_money_stops_the_writers_until_somebody_has_looked() {
    let mut world = World::create().await;
    let host = world.host(2, (1_000_000, 0)).await;
    let renter = world.renter("ann", 50).await;
    let lease = world.book(&renter, host, 1).await.unwrap();
    world.step(Span::from_secs(1)).await;
    world.step(Span::from_secs(1)).await;
    assert!(app::prove::watch(&world.cx).await.unwrap().proven);
    let sql = world.database.client().await;
    sql.batch_execute("UPDATE account SET credits = credits + 1 WHERE code = 200")
        .await
        .unwrap();
    let proof = app::prove::watch(&world.cx).await.unwrap();
    assert!(!proof.proven);
    let refused = world.book(&renter, host, 1).await;
    assert!(
        matches!(&refused, Err(Error::Store(StoreError::LedgerStopped(why))) if why.starts_with('I')),
        "{refused:?}"
    );
    // The machine's proofs of life are taken as before: the lease runs within its hold.
    for _ in 0..3 {
        world.report().await;
    }
    assert_eq!(world.lease(lease).await.state, LeaseState::Running);
    assert!(
        app::prove::lift(&world.cx, " ").await.is_err(),
        "a reason is needed"
    );
    sql.batch_execute("UPDATE account SET credits = credits - 1 WHERE code = 200")
        .await
        .unwrap();
    assert!(
        app::prove::lift(&world.cx, "a test changed a row")
            .await
            .unwrap()
            > 0
    );
    assert!(app::prove::watch(&world.cx).await.unwrap().proven);
    world.book(&renter, host, 1).await.unwrap();
    world.prove().await;
}
