//! A small market in rows: a renter, a provider, one machine, and what a test adds.

use std::sync::atomic::{AtomicU64, Ordering};

use billing::account::{Account, AccountCode, PLATFORM};
use billing::hold::{Hold, HoldState};
use billing::ledger::Ledger;
use billing::meter::{Meter, NewMeter, Resource};
use billing::rating::Shares;
use billing::transfer::{Transfer, TransferKind};
use domain::audit::ActorRef;
use domain::clock::{Span, Timestamp};
use domain::id::*;
use domain::lease::{LeaseReason, LeaseState};
use domain::machine::MachineState;
use domain::money::{Currency, Micros};
use domain::party::Role;
use matching::offer::OfferTerms;
use serde_json::json;
use store::db::Tx;
use store::enrollment::EnrollmentRecord;
use store::error::Error;
use store::lease::{LeaseRecord, Workload};
use store::lease_event::LeaseEventRecord;
use store::ledger::TopUpRecord;
use store::machine::{MachineFacts, MachineRecord, NewGpu};
use store::offer::OfferRecord;
use store::party::NewUser;
use store::quote::QuoteRecord;
use uuid::Uuid;

use crate::database::Database;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A fresh id; later ones are greater.
pub(crate) fn id() -> Uuid {
    Uuid::from_u128(u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0x0000_7000_8000)
}

/// The instant that everything is counted from.
pub(crate) const T0: Timestamp = Timestamp::from_micros(1_780_000_000_123_456);

/// `secs` after [`T0`].
pub(crate) fn after(secs: i64) -> Timestamp {
    T0.plus(Span::from_secs(secs))
}

/// What is there in every test.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Who rents.
    pub renter: PartyId,
    /// The person behind.
    pub renter_user: UserId,
    /// Who lists.
    pub provider: PartyId,
    /// With eight GPUs in two islands.
    pub machine: MachineRecord,
    /// By slot.
    pub gpus: Vec<GpuId>,
    /// 2.10 an hour, 0.10 a GiB-month.
    pub offer: OfferRecord,
}

/// A user with a party.
pub(crate) fn user(name: &str) -> NewUser {
    NewUser {
        user: UserId::from_uuid(id()),
        email: format!("{name}@example.org"),
        password_hash: "$argon2id$".to_owned(),
        party: PartyId::from_uuid(id()),
        party_name: name.to_owned(),
        role: Role::Owner,
        at: T0,
    }
}

/// A listed machine of `party`, heard of at [`T0`].
pub(crate) fn machine(party: PartyId) -> MachineRecord {
    let token = EnrollmentRecord {
        id: EnrollmentId::from_uuid(id()),
        party,
        machine_name: "rack 7".to_owned(),
        created_at: T0,
        expires_at: after(3_600),
        machine: None,
    };
    let mut key = [7; 32];
    key[..16].copy_from_slice(id().as_bytes());
    MachineRecord {
        state: MachineState::Listed,
        last_seen_at: Some(T0),
        facts: MachineFacts {
            simulated: true,
            hostname: "rack7".to_owned(),
            cpu_cores: 128,
            ram_mib: 2_097_152,
            disk_gib: 1_000,
            country: Some("DE".to_owned()),
            driver_version: Some("570.1".to_owned()),
            cuda_version: None,
            engine: "podman".to_owned(),
            agent_version: "0.1.0".to_owned(),
        },
        ..MachineRecord::enrolled(MachineId::from_uuid(id()), &token, key, T0)
    }
}

/// A probed GPU in `slot`.
pub(crate) fn gpu(slot: u16, uuid: &str) -> NewGpu {
    NewGpu {
        id: GpuId::from_uuid(id()),
        slot,
        uuid: uuid.to_owned(),
        model: "h100-sxm-80gb".to_owned(),
        memory_mib: 81_559,
        island: slot / 4,
        busy_elsewhere: false,
    }
}

/// A live offer for `machine`.
pub(crate) fn offer(machine: &MachineRecord) -> OfferRecord {
    OfferRecord {
        id: OfferId::from_uuid(id()),
        party: machine.party,
        machine: machine.id,
        version: 1,
        currency: Currency::Usd,
        terms: OfferTerms {
            gpu_hour: Micros::new(2_100_000),
            bid_floor: Some(Micros::new(900_000)),
            keep_gpu_hour: Some(Micros::new(400_000)),
            storage_gib_month: Micros::new(100_000),
            min_gpus: 1,
            max_gpus: 8,
        },
        live: true,
        created_at: T0,
        updated_at: T0,
    }
}

impl World {
    /// A fresh database with the world in it.
    pub(crate) async fn fresh() -> (Database, Self) {
        let base = Database::fresh().await;
        let world = base.db.write::<_, Error, _>(Self::insert).await.unwrap();
        (base, world)
    }

    async fn insert(tx: &mut Tx) -> Result<Self, Error> {
        let (renter, provider) = (user("renter"), user("provider"));
        store::party::insert_user(tx, &renter).await?;
        store::party::insert_user(tx, &provider).await?;
        let machine = machine(provider.party);
        store::machine::insert(tx, &machine).await?;
        let probed: Vec<NewGpu> = (0..8)
            .map(|n| gpu(n, &format!("GPU-{}-{n}", machine.id)))
            .collect();
        store::machine::replace_gpus(tx, machine.id, &probed, T0).await?;
        let offer = offer(&machine);
        store::offer::insert(tx, &offer).await?;
        Ok(Self {
            renter: renter.party,
            renter_user: renter.user,
            provider: provider.party,
            gpus: probed.iter().map(|g| g.id).collect(),
            machine,
            offer,
        })
    }

    /// A quote for `gpus` GPUs and 100 GiB.
    pub(crate) fn quote(&self, gpus: u16) -> QuoteRecord {
        QuoteRecord {
            id: QuoteId::from_uuid(id()),
            party: self.renter,
            offer: self.offer.id,
            offer_version: 1,
            gpu_model: "h100-sxm-80gb".to_owned(),
            gpu_count: gpus,
            disk_gib: 100,
            duration: Span::from_hours(2),
            currency: Currency::Usd,
            gpu_hour: Micros::new(2_100_000),
            keep_gpu_hour: Micros::new(1_050_000),
            storage_gib_month: Micros::new(100_000),
            fee_bps: 500,
            tax_bps: 1_900,
            simulated: true,
            signature: [3; 64],
            created_at: T0,
            expires_at: after(600),
        }
    }

    /// A lease of `terms` in `placing`.
    pub(crate) fn lease(&self, terms: QuoteRecord) -> LeaseRecord {
        LeaseRecord {
            id: LeaseId::from_uuid(id()),
            party: self.renter,
            provider: self.provider,
            offer: self.offer.id,
            machine: self.machine.id,
            workload: Workload {
                image: "busybox:1".to_owned(),
                command: vec!["sleep".to_owned(), "1".to_owned()],
                env: [("A".to_owned(), "ä=1".to_owned())].into(),
            },
            placement: json!({"why": "cheapest"}),
            booked_by: Some(self.renter_user),
            keeps_gpus: false,
            label: None,
            max_spend: None,
            end_at: None,
            state: LeaseState::Placing,
            reason: LeaseReason::Booked,
            detail: "booked".to_owned(),
            state_at: T0,
            progress: 0,
            progress_at: T0,
            start_no: 1,
            version: 1,
            created_at: T0,
            started_at: None,
            end_requested_at: None,
            ended_at: None,
            container: None,
            compute_meter: MeterId::from_uuid(id()),
            storage_meter: MeterId::from_uuid(id()),
            terms,
        }
    }

    /// The accounts that a lease of this world moves money between, locked: clearing, wallet,
    /// earned, fee, tax.
    pub(crate) async fn accounts(&self, tx: &mut Tx) -> Result<Vec<Account>, Error> {
        let wanted = [
            (AccountCode::SandboxClearing, PLATFORM),
            (AccountCode::RenterWallet, self.renter.uuid()),
            (AccountCode::ProviderEarned, self.provider.uuid()),
            (AccountCode::FeeRevenue, PLATFORM),
            (AccountCode::TaxPayable, PLATFORM),
        ];
        store::ledger::lock_accounts(tx, Currency::Usd, &wanted).await
    }

    /// Puts play money into the wallet.
    pub(crate) async fn top_up(&self, tx: &mut Tx, amount: i64) -> Result<Transfer, Error> {
        let accounts = self.accounts(tx).await?;
        let before = Ledger::new(accounts.clone(), []);
        let cause = id();
        let transfer = Transfer {
            id: TransferId::from_uuid(id()),
            kind: TransferKind::SandboxTopUp,
            debit: accounts[0].id,
            credit: accounts[1].id,
            amount: Micros::new(amount),
            cause,
            at: T0,
        };
        let mut book = before.clone();
        book.transfer(&transfer).unwrap();
        store::ledger::save(tx, &before, &book).await?;
        store::ledger::insert_transfer(tx, &transfer, Currency::Usd);
        let top_up = TopUpRecord {
            id: TopUpId::from_uuid(cause),
            party: self.renter,
            amount: Micros::new(amount),
            currency: Currency::Usd,
            payments: "sandbox",
            created_at: T0,
        };
        store::ledger::insert_top_up(tx, &top_up, &transfer).await?;
        Ok(transfer)
    }

    /// Books a lease: lease, meters, GPUs, a hold of `amount`, its first event.
    pub(crate) async fn book(
        &self,
        tx: &mut Tx,
        lease: &LeaseRecord,
        gpus: &[GpuId],
        amount: i64,
    ) -> Result<Hold, Error> {
        store::quote::insert(tx, &lease.terms).await?;
        store::lease::insert(tx, std::slice::from_ref(lease)).await?;
        store::meter::insert(tx, &meters(lease)).await?;
        let taken: Vec<_> = gpus.iter().map(|gpu| (lease.id, *gpu)).collect();
        store::lease::take_gpus(tx, &taken, T0).await?;
        let event = LeaseEventRecord {
            id: EventId::from_uuid(id()),
            lease: lease.id,
            at: T0,
            from: None,
            to: lease.state,
            reason: lease.reason,
            detail: lease.detail.clone(),
            actor_kind: "user".to_owned(),
        };
        let actor = ActorRef::User(self.renter_user);
        store::lease_event::insert(tx, &[(event, actor)]).await?;
        let accounts = self.accounts(tx).await?;
        let before = Ledger::new(accounts.clone(), []);
        let hold = hold(lease.id, &accounts[1], amount);
        let mut book = before.clone();
        book.open_hold(hold.clone()).unwrap();
        store::ledger::save(tx, &before, &book).await?;
        Ok(hold)
    }
}

/// An open hold that does not expire.
pub(crate) fn hold(lease: LeaseId, wallet: &Account, amount: i64) -> Hold {
    Hold {
        id: HoldId::from_uuid(id()),
        account: wallet.id,
        lease,
        amount: Micros::new(amount),
        posted: Micros::ZERO,
        state: HoldState::Open,
        opened_at: T0,
        expires_at: None,
    }
}

/// The meters of a lease, compute first.
pub(crate) fn meters(lease: &LeaseRecord) -> [Meter; 2] {
    let shares = Shares {
        fee_bps: lease.terms.fee_bps,
        tax_bps: lease.terms.tax_bps,
    };
    [
        (
            lease.compute_meter,
            Resource::Compute,
            lease.terms.compute_rate(),
        ),
        (
            lease.storage_meter,
            Resource::Storage,
            lease.terms.storage_rate(),
        ),
    ]
    .map(|(meter, resource, rate)| {
        let new = NewMeter {
            id: meter,
            lease: lease.id,
            resource,
            rate: rate.unwrap(),
            shares,
        };
        Meter::open(new, T0)
    })
}
