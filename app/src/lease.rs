//! Leases: booked, shown, stopped, resumed, ended, stated.

use domain::access::Scope;
use domain::clock::{Span, Timestamp};
use domain::id::{LeaseId, MachineId, QuoteId};
use domain::lease::LeaseState;
use domain::money::Micros;
use domain::refusal::Code;
use store::db::Ro;
use store::lease::{LeaseRecord, Workload};
use store::lease_event::LeaseEventRecord;
use store::machine::GpuRecord;
use store::page::{Page, Paged};

use crate::context::{Caller, Cx};
use crate::error::Error;

mod act;
mod book;
pub(crate) mod change;
pub(crate) mod money;
mod resize;
mod resume;
pub(crate) mod statement;
mod view;

pub use act::act;
pub use book::book;
pub(crate) use book::{Ask, group as bookings};
pub use statement::statement;

/// Book a quote.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// The quote.
    pub quote: QuoteId,
    /// What runs.
    pub workload: Workload,
    /// For people.
    pub label: Option<String>,
    /// Guard: stop at this cost, tax included.
    pub max_spend: Option<Micros>,
    /// Guard: end then.
    pub end_at: Option<Timestamp>,
}

/// What a renter does with a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAct {
    /// Stop, keep the disk.
    Stop {
        /// Also keep the GPUs, at the price of keeping.
        keep_gpus: bool,
    },
    /// Start again on the same machine.
    Resume,
    /// End, delete the disk.
    End,
    /// Grow the disk.
    Resize {
        /// The new size.
        disk_gib: u32,
    },
}

/// What a lease has cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostView {
    /// Booked in the ledger, tax included.
    pub settled: Micros,
    /// Proven, settled or not.
    pub accrued: Micros,
    /// The same, carried on to now while the machine reports: for showing.
    pub so_far: Micros,
    /// Still held for it.
    pub held: Micros,
    /// Proven GPU time.
    pub billable_ms: i64,
    /// Proven up to here.
    pub proven_through: Option<Timestamp>,
    /// Present rate, tax included.
    pub rate_per_hour: Micros,
}

/// What a stopped lease goes on to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterStop {
    /// Disk and kept GPUs, per day, tax included.
    pub per_day: Micros,
    /// When the disk is deleted unless money comes or it is resumed.
    pub delete_at: Timestamp,
}

/// A lease with its GPUs and cost.
#[derive(Clone, Debug)]
pub struct LeaseView {
    /// The lease.
    pub lease: LeaseRecord,
    /// GPUs that it has now.
    pub gpus: Vec<GpuRecord>,
    /// What it has cost.
    pub cost: CostView,
    /// Set while it is stopped or being stopped.
    pub after_stop: Option<AfterStop>,
}

/// A proof of life this old still lets the shown cost run on.
pub(crate) const FRESH: Span = Span::from_secs(30);

/// The lease, if the caller's party rents it.
pub(crate) fn own(found: Option<LeaseRecord>, caller: &Caller) -> Result<LeaseRecord, Error> {
    found
        .filter(|l| l.party == caller.actor.party)
        .ok_or_else(|| Error::not_found("lease"))
}

/// One lease of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller, id: LeaseId) -> Result<LeaseView, Error> {
    caller.may(Scope::LeasesRead, None)?;
    let now = cx.now();
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let lease = own(store::lease::get(ro, id).await?, caller)?;
            view::one(ro, lease, now).await
        })
        .await
}

/// The party's leases, newest first; `states` empty = all.
pub async fn list(
    cx: &Cx,
    caller: &Caller,
    page: Page,
    states: &[LeaseState],
) -> Result<Paged<LeaseView>, Error> {
    caller.may(Scope::LeasesRead, None)?;
    let (party, now) = (caller.actor.party, cx.now());
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let found = store::lease::list(ro, party, page, states).await?;
            Ok(Paged {
                rows: view::many(ro, found.rows, now).await?,
                next: found.next,
            })
        })
        .await
}

/// The events of a lease, oldest first.
pub async fn events(
    cx: &Cx,
    caller: &Caller,
    id: LeaseId,
    page: Page,
) -> Result<Paged<LeaseEventRecord>, Error> {
    caller.may(Scope::LeasesRead, None)?;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            own(store::lease::get(ro, id).await?, caller)?;
            Ok(store::lease_event::list(ro, id, page).await?)
        })
        .await
}

/// The machine that can be asked for the lease's output.
pub async fn log_source(cx: &Cx, caller: &Caller, id: LeaseId) -> Result<MachineId, Error> {
    caller.may(Scope::LeasesRead, None)?;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let lease = own(store::lease::get(ro, id).await?, caller)?;
            if lease.state.is_final() {
                return Err(Error::refused(
                    Code::LeaseState,
                    format!(
                        "The lease is {}: its container and output are gone.",
                        lease.state
                    ),
                ));
            }
            if lease.container.is_none() {
                return Err(Error::refused(
                    Code::LeaseState,
                    format!("The lease is {}: there is no output yet.", lease.state),
                )
                .suggesting("Try again when it runs."));
            }
            Ok(lease.machine)
        })
        .await
}
