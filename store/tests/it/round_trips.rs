//! What is written comes back as it was, extremes included.

use billing::hold::HoldState;
use billing::ledger::Ledger;
use billing::meter::Proof;
use domain::access::Scope;
use domain::audit::{ActorRef, AuditLine};
use domain::clock::Timestamp;
use domain::id::*;
use domain::lease::{LeaseReason, LeaseState};
use domain::machine::MachineState;
use domain::money::Micros;
use domain::party::{Role, StaffRole};
use store::api_key::ApiKeyRecord;
use store::db::{Ro, Tx};
use store::enrollment::EnrollmentRecord;
use store::error::Error;
use store::lease::{ContainerRef, LeaseRecord};
use store::machine::{MachineFacts, MachineRecord};
use store::page::Page;

use crate::billed::paying;
use crate::world::{T0, World, after, id, machine, meters};

const ALL: Page = Page {
    limit: 200,
    after: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn machines_in_every_state_and_with_nothing_told() {
    let (base, world) = World::fresh().await;
    let back = base
        .db
        .read(async |ro: &mut Ro| store::machine::get(ro, world.machine.id).await);
    assert_eq!(back.await.unwrap().as_ref(), Some(&world.machine));
    for state in MachineState::ALL {
        let bare = MachineRecord {
            state,
            last_seen_at: None,
            listed_before: true,
            facts: MachineFacts {
                ram_mib: u64::from(u32::MAX),
                ..MachineFacts::default()
            },
            ..machine(world.provider)
        };
        let back = base
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                store::machine::insert(tx, &bare).await?;
                store::machine::get_for_update(tx, bare.id).await
            })
            .await;
        assert_eq!(back.unwrap(), Some(bare));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_quotes_and_meters_in_every_state() {
    let (base, world) = World::fresh().await;
    for (state, reason) in LeaseState::ALL
        .into_iter()
        .zip(LeaseReason::ALL.into_iter().cycle())
    {
        let over = matches!(state, LeaseState::Ending | LeaseState::Ended);
        let lease = LeaseRecord {
            state,
            reason,
            detail: String::new(),
            end_requested_at: over.then(|| after(3)),
            ended_at: over.then_some(Timestamp::MAX),
            end_at: Some(Timestamp::MAX),
            max_spend: Some(Micros::new(i64::MAX)),
            label: Some("mein läb\u{1f9ea}".to_owned()),
            container: over.then(|| ContainerRef {
                id: "1".to_owned(),
                started_at: "2".to_owned(),
            }),
            ..world.lease(world.quote(8))
        };
        let mut written = meters(&lease);
        written[1].until = Some(after(77));
        written[1].closed = true;
        written[1].proof = Some(Proof {
            boot: "b".to_owned(),
            run: "r".to_owned(),
            mono_ms: i64::MAX,
            at: after(-1),
        });
        let (found, quote, read) = base
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                store::quote::insert(tx, &lease.terms).await?;
                store::lease::insert(tx, std::slice::from_ref(&lease)).await?;
                store::meter::insert(tx, &written).await?;
                Ok((
                    store::lease::get_for_update(tx, lease.id).await?,
                    store::quote::get(tx, lease.party, lease.terms.id).await?,
                    store::meter::of_lease(tx, lease.id).await?,
                ))
            })
            .await
            .unwrap();
        assert_eq!(quote.as_ref(), Some(&lease.terms));
        assert_eq!(found, Some(lease));
        assert_eq!(read, written);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_clears_what_became_empty() {
    let (base, _world, lease) = paying().await;
    let cleared = LeaseRecord {
        container: None,
        started_at: None,
        label: None,
        ..lease
    };
    let (saved, back, meter) = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let saved = store::lease::save(tx, &cleared).await?;
            let mut meter = store::meter::of_lease(tx, cleared.id).await?.remove(0);
            meter.proof = None;
            meter.until = None;
            store::meter::save(tx, &meter).await?;
            let back = store::lease::get(tx, cleared.id).await?;
            let read = store::meter::of_lease(tx, cleared.id).await?.remove(0);
            Ok((saved, back, (meter, read)))
        })
        .await
        .unwrap();
    assert_eq!(saved.version, cleared.version + 1);
    assert_eq!(back, Some(saved));
    assert_eq!(meter.0, meter.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_from_open_to_closed_and_an_expiring_one() {
    let (base, _world, lease) = paying().await;
    let closed = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let mut holds = store::ledger::open_holds(tx, &[lease.id]).await?;
            let before = Ledger::new([], holds.clone());
            holds[0].expires_at = Some(after(100));
            store::ledger::save(tx, &before, &Ledger::new([], holds.clone())).await?;
            assert_eq!(store::ledger::holds_over(tx, after(99)).await?, []);
            assert_eq!(store::ledger::holds_over(tx, after(100)).await?, holds);
            let before = Ledger::new([], holds.clone());
            holds[0].state = HoldState::Expired;
            store::ledger::save(tx, &before, &Ledger::new([], holds.clone())).await?;
            store::ledger::open_holds(tx, &[lease.id]).await
        })
        .await;
    assert_eq!(closed.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_keys_and_tokens() {
    let (base, world) = World::fresh().await;
    let key = ApiKeyRecord {
        id: ApiKeyId::from_uuid(id()),
        party: world.renter,
        user: world.renter_user,
        name: "ci".to_owned(),
        prefix: "gpm_abc".to_owned(),
        scopes: Scope::ALL.into(),
        created_at: T0,
        expires_at: Some(after(9)),
        last_used_at: None,
        revoked_at: None,
    };
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            store::api_key::insert(tx, &key, &[1; 32]).await?;
            for secs in [100, 130, 161, 159] {
                store::api_key::touch(tx, key.id, after(secs)).await?;
            }
            let found = store::api_key::by_hash(tx, &[1; 32]).await?.unwrap();
            assert_eq!(found.role, Role::Owner);
            // 130 was within a minute of 100, 159 before 161.
            assert_eq!(found.key.last_used_at, Some(after(161)));
            assert!(store::api_key::by_hash(tx, &[2; 32]).await?.is_none());
            assert_eq!(
                store::api_key::revoke(tx, world.provider, key.id, after(200)).await?,
                None
            );
            for secs in [200, 300] {
                let revoked = store::api_key::revoke(tx, world.renter, key.id, after(secs)).await?;
                assert_eq!(revoked.unwrap().revoked_at, Some(after(200)));
            }
            let listed = store::api_key::list(tx, world.renter, ALL).await?;
            assert_eq!(listed.rows.len(), 1);
            let user = store::party::user_by_email(tx, "renter@example.org").await?;
            assert_eq!(user.unwrap().id, world.renter_user);
            let promoted =
                store::party::set_staff_role(tx, "renter@example.org", StaffRole::Auditor).await?;
            assert_eq!(promoted, Some(world.renter_user));
            let place = store::party::membership(tx, world.renter_user)
                .await?
                .unwrap();
            assert_eq!(
                (place.party, place.staff),
                (world.renter, Some(StaffRole::Auditor))
            );
            assert_eq!(
                store::party::set_staff_role(tx, "x@y.z", StaffRole::Auditor).await?,
                None
            );
            Ok(())
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_spent_once_and_an_audit_line_written() {
    let (base, world) = World::fresh().await;
    let token = EnrollmentRecord {
        id: EnrollmentId::from_uuid(id()),
        party: world.provider,
        machine_name: "rack 8".to_owned(),
        created_at: T0,
        expires_at: after(3_600),
        machine: None,
    };
    let line = AuditLine {
        id: AuditId::from_uuid(id()),
        at: T0,
        party: Some(world.provider),
        actor: ActorRef::Market,
        action: "machine.enroll",
        object: world.machine.id.to_string(),
        reason: "test".to_owned(),
        request_id: None,
    };
    let spent = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            store::enrollment::insert(tx, &token, &[9; 32]).await?;
            let fresh = store::enrollment::by_token_hash_for_update(tx, &[9; 32]).await?;
            assert_eq!(fresh, Some(token.clone()));
            store::enrollment::spend(tx, token.id, world.machine.id).await?;
            store::audit::insert(tx, &line).await?;
            store::enrollment::by_token_hash_for_update(tx, &[9; 32]).await
        })
        .await
        .unwrap();
    assert_eq!(spent.unwrap().machine, Some(world.machine.id));
    let again = base
        .db
        .write::<_, Error, _>(async |tx: &mut Tx| store::audit::insert(tx, &line).await)
        .await;
    assert!(matches!(again, Err(Error::Conflict(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_code_does_not_know_is_told_as_corrupt() {
    let (base, world) = World::fresh().await;
    let rewrite = "ALTER TABLE machine DROP CONSTRAINT machine_state_check";
    base.run(&[rewrite, "UPDATE machine SET state = 'haunted'"])
        .await;
    let read = base
        .db
        .read(async |ro: &mut Ro| store::machine::get(ro, world.machine.id).await);
    assert!(matches!(read.await, Err(Error::Corrupt("machine state"))));
}
