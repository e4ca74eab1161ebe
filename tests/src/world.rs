//! The use-cases over a real database, with a clock that the test moves: days pass in seconds.

use std::collections::BTreeMap;

use app::error::Refusal;
use app::lease::{LeaseAct, LeaseView, NewLease};
use app::link::{ReportIn, report};
use app::offer::OfferPatch;
use app::quote::{QuoteAsk, QuoteView};
use app::reconcile::STEPS;
use app::{Caller, Cx, Once};
use billing::tax_rule::TaxTable;
use domain::access::{Actor, Scope};
use domain::audit::ActorRef;
use domain::clock::{Span, Timestamp};
use domain::id::{GpuId, LeaseId, MachineId, OfferId, PartyId, QuoteId, UserId};
use domain::money::{Currency, Micros};
use domain::party::Role;
use matching::offer::OfferTerms;
use store::db::{Ro, Tx};
use store::error::Error;
use store::lease::{LeaseRecord, Workload};
use store::machine::NewGpu;
use store::offer::OfferRecord;
use store::party::NewUser;

use crate::database::TestDatabase;
use crate::node::{StandingClock, context};

use self::host::{machine, obeyed};

mod host;

/// 2026-06-01T00:00:00Z.
const BEGIN: i64 = 1_780_272_000_000_000;

/// A machine whose agent does what it is told at once.
#[derive(Debug)]
pub struct Host {
    /// Its id.
    pub id: MachineId,
    /// Its live offer.
    pub offer: OfferId,
    /// Its owner.
    pub provider: Caller,
    /// Its boots so far.
    boots: u32,
    /// Time since its boot.
    mono_ms: i64,
    /// Does it report?
    pub online: bool,
}

/// A market in which time is made by the test.
pub struct World {
    /// The use-cases' context.
    pub cx: Cx,
    /// Its database.
    pub database: TestDatabase,
    clock: StandingClock,
    /// Its machines.
    pub hosts: Vec<Host>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({} hosts)", self.hosts.len())
    }
}

/// How much time passes between two rounds of reports and reconcilers.
const ROUND: Span = Span::from_secs(10);

impl World {
    /// An empty market.
    pub async fn create() -> Self {
        let database = TestDatabase::create().await;
        let clock = StandingClock::at(Timestamp::from_micros(BEGIN));
        let cx = context(
            &database.url,
            Box::new(clock.clone()),
            TaxTable::flat(1_900),
        );
        Self {
            cx,
            database,
            clock,
            hosts: Vec::new(),
        }
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        self.cx.now()
    }

    async fn person(&self, name: &str) -> Caller {
        let new = NewUser {
            user: UserId::from_uuid(self.cx.id()),
            email: format!("{name}@example.org"),
            password_hash: "$argon2id$".to_owned(),
            party: PartyId::from_uuid(self.cx.id()),
            party_name: name.to_owned(),
            role: Role::Owner,
            at: self.now(),
        };
        self.cx
            .db
            .write::<_, Error, _>(async |tx: &mut Tx| store::party::insert_user(tx, &new).await)
            .await
            .unwrap();
        Caller {
            actor: Actor {
                who: ActorRef::User(new.user),
                user: new.user,
                party: new.party,
                role: Role::Owner,
                scopes: Scope::ALL.into_iter().collect(),
                staff: None,
            },
            request_id: name.to_owned(),
        }
    }

    /// A renter with so many dollars.
    pub async fn renter(&self, name: &str, usd: i64) -> Caller {
        let renter = self.person(name).await;
        self.top_up(&renter, usd).await;
        renter
    }

    /// Puts dollars into a wallet.
    pub async fn top_up(&self, renter: &Caller, usd: i64) {
        let once = Once {
            key: None,
            status: 201,
            render: &|_| serde_json::Value::Null,
        };
        let amount = Micros::new(usd * 1_000_000);
        app::wallet::top_up(&self.cx, renter, amount, once)
            .await
            .unwrap();
    }

    /// A listed machine of a provider of its own: GPUs, price of a GPU-hour and of a GiB-month in
    /// micro-dollars.
    pub async fn host(&mut self, gpus: u16, (gpu_hour, gib_month): (i64, i64)) -> usize {
        let number = self.hosts.len();
        let provider = self.person(&format!("provider{number}")).await;
        let (cx, now) = (&self.cx, self.now());
        let machine = machine(cx, provider.actor.party, now);
        let probed: Vec<NewGpu> = (0..gpus)
            .map(|slot| NewGpu {
                id: GpuId::from_uuid(cx.id()),
                slot,
                uuid: format!("GPU-{}-{slot}", machine.id),
                model: "h100-sxm-80gb".to_owned(),
                memory_mib: 81_559,
                island: 0,
                busy_elsewhere: false,
            })
            .collect();
        let offer = OfferRecord {
            id: OfferId::from_uuid(cx.id()),
            party: provider.actor.party,
            machine: machine.id,
            version: 1,
            currency: Currency::Usd,
            terms: OfferTerms {
                gpu_hour: Micros::new(gpu_hour),
                bid_floor: None,
                keep_gpu_hour: None,
                storage_gib_month: Micros::new(gib_month),
                min_gpus: 1,
                max_gpus: gpus,
            },
            live: true,
            created_at: now,
            updated_at: now,
        };
        let (machine, probed, offer) = (&machine, &probed, &offer);
        cx.db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                store::machine::insert(tx, machine).await?;
                store::machine::replace_gpus(tx, machine.id, probed, now).await?;
                store::offer::insert(tx, offer).await
            })
            .await
            .unwrap();
        self.hosts.push(Host {
            id: machine.id,
            offer: offer.id,
            provider,
            boots: 1,
            mono_ms: 1_000,
            online: true,
        });
        number
    }

    /// A host boots anew, and reports again.
    pub fn reboot(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        host.boots += 1;
        host.mono_ms = 1_000;
        host.online = true;
    }

    /// Changes a host's offer.
    pub async fn change_offer(&self, host: usize, patch: OfferPatch) {
        let host = &self.hosts[host];
        app::offer::patch(&self.cx, &host.provider, (host.offer, None), patch)
            .await
            .unwrap();
    }

    /// A lease as its renter sees it.
    pub async fn view(&self, renter: &Caller, id: LeaseId) -> LeaseView {
        app::lease::get(&self.cx, renter, id).await.unwrap()
    }

    /// Books one GPU and so much disk.
    pub async fn book(
        &self,
        renter: &Caller,
        host: usize,
        disk_gib: u32,
    ) -> Result<LeaseId, app::Error> {
        self.book_capped(renter, host, (disk_gib, None)).await
    }

    /// Books one GPU and so much disk, for so much money at most.
    pub async fn book_capped(
        &self,
        renter: &Caller,
        host: usize,
        (disk_gib, max_spend): (u32, Option<Micros>),
    ) -> Result<LeaseId, app::Error> {
        let ask = QuoteAsk {
            offer: self.hosts[host].offer,
            offer_version: None,
            gpu_count: 1,
            disk_gib,
            duration: Span::from_hours(1),
        };
        let once = Once {
            key: None,
            status: 201,
            render: &|q: &QuoteView| q.quote.id.to_string().into(),
        };
        let quote = app::quote::create(&self.cx, renter, ask, once).await?;
        let quote: QuoteId = quote.body.as_str().unwrap().parse().unwrap();
        let new = NewLease {
            quote,
            workload: Workload {
                image: "localhost/x:1".to_owned(),
                command: Vec::new(),
                env: BTreeMap::new(),
            },
            label: None,
            max_spend,
            end_at: None,
        };
        let once = Once {
            key: None,
            status: 201,
            render: &|l: &LeaseView| l.lease.id.to_string().into(),
        };
        let lease = app::lease::book(&self.cx, renter, new, once).await?;
        Ok(lease.body.as_str().unwrap().parse().unwrap())
    }

    /// Acts on a lease, which its state allows.
    pub async fn act(&self, renter: &Caller, id: LeaseId, act: LeaseAct) {
        assert!(self.try_act(renter, id, act).await, "{act:?} is refused");
    }

    /// Acts on a lease; false if that is refused. A fault is none.
    pub async fn try_act(&self, renter: &Caller, id: LeaseId, act: LeaseAct) -> bool {
        self.refusal(renter, id, act).await.is_none()
    }

    /// Acts on a lease; the refusal, if it is refused. A fault is none.
    pub async fn refusal(&self, renter: &Caller, id: LeaseId, act: LeaseAct) -> Option<Refusal> {
        let once = Once {
            key: None,
            status: 200,
            render: &|_| serde_json::Value::Null,
        };
        match app::lease::act(&self.cx, renter, (id, act, None), once).await {
            Ok(_) => None,
            Err(app::Error::Refused(refusal)) => Some(*refusal),
            Err(fault) => panic!("{act:?}: {fault} {fault:?}"),
        }
    }

    /// A lease as it is now.
    pub async fn lease(&self, id: LeaseId) -> LeaseRecord {
        let found = self
            .cx
            .db
            .read::<_, Error, _>(async |ro: &mut Ro| store::lease::get(ro, id).await);
        found.await.unwrap().unwrap()
    }

    /// Every machine that is online reports what it was told to do.
    pub async fn report(&mut self) {
        for host in self.hosts.iter().filter(|h| h.online) {
            let wanted = self
                .cx
                .db
                .read::<_, Error, _>(async |ro: &mut Ro| {
                    store::lease::wanted_of_machine(ro, host.id).await
                })
                .await
                .unwrap();
            let input = ReportIn {
                boot_id: format!("boot {} of {}", host.boots, host.id),
                mono_ms: host.mono_ms,
                leases: wanted.iter().map(obeyed).collect(),
            };
            report(&self.cx, host.id, input).await.unwrap();
        }
    }

    /// Lets time pass in rounds: machines report, reconcilers run.
    pub async fn pass(&mut self, span: Span) {
        let mut left = span;
        while left > Span::ZERO {
            let step = left.min(ROUND);
            self.step(step).await;
            left = Span::from_micros(left.micros() - step.micros());
        }
    }

    /// One round after `step`.
    pub async fn step(&mut self, step: Span) {
        self.clock.pass(step);
        for host in &mut self.hosts {
            host.mono_ms += step.millis();
        }
        self.report().await;
        for reconciler in STEPS {
            (reconciler.run)(&self.cx)
                .await
                .unwrap_or_else(|e| panic!("{}: {e}: {e:?}", reconciler.name));
        }
    }

    /// Every invariant of the ledger holds.
    pub async fn prove(&self) {
        let proof = app::prove::prove(&self.cx).await.unwrap();
        let broken: Vec<_> = proof.rows.iter().filter(|r| r.violations > 0).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
