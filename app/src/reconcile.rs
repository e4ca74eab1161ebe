//! Reconcilers: no input, idempotent, woken by timer and signal, safe on several nodes at once.
//!
//! Each step looks for what is due, and handles each thing in a transaction of its own, after
//! locking it and looking again: somebody else may have been faster.

use std::future::Future;
use std::pin::Pin;

use domain::audit::ActorRef;
use domain::clock::Span;
use domain::id::MachineId;
use domain::machine::{MachineEvent, MachineState, OFFLINE_AFTER, STALE_AFTER};
use store::db::{Ro, Tx};
use store::machine::MachineRecord;

use crate::context::{Audited, Cx};
use crate::error::Error;

mod budget;
mod credit;
mod earnings;
mod invoice;
mod lease;
mod money;
mod wallet;

pub use budget::watch_budgets;
pub use credit::{collect_debts, expire_adjustments, expire_credit};
pub use earnings::{mature_earnings, release_reserves, send_payouts};
pub use invoice::issue_invoices;
pub use lease::{guard_leases, overdue_leases};
pub use money::{renew_holds, settle};
pub use wallet::watch_wallets;

/// A step's future.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<usize, Error>> + Send + 'a>>;

/// A reconciler as the worker drives it.
#[derive(Clone, Copy)]
pub struct Step {
    /// For logs and metrics.
    pub name: &'static str,
    /// How often, without a signal.
    pub every: Span,
    /// Runs it once; gives the number of things changed.
    pub run: fn(&Cx) -> StepFuture<'_>,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Step({})", self.name)
    }
}

/// Every reconciler.
pub const STEPS: &[Step] = &[
    Step {
        name: "watch_machines",
        every: Span::from_secs(5),
        run: |cx| Box::pin(watch_machines(cx)),
    },
    Step {
        name: "verify_machines",
        every: Span::from_secs(2),
        run: |cx| Box::pin(verify_machines(cx)),
    },
    Step {
        name: "overdue_leases",
        every: Span::from_secs(5),
        run: |cx| Box::pin(overdue_leases(cx)),
    },
    Step {
        name: "guard_leases",
        every: Span::from_secs(1),
        run: |cx| Box::pin(guard_leases(cx)),
    },
    Step {
        name: "renew_holds",
        every: Span::from_secs(1),
        run: |cx| Box::pin(renew_holds(cx)),
    },
    Step {
        name: "watch_wallets",
        every: Span::from_secs(1),
        run: |cx| Box::pin(watch_wallets(cx)),
    },
    Step {
        name: "settle",
        every: Span::from_secs(5),
        run: |cx| Box::pin(settle(cx)),
    },
    Step {
        name: "watch_budgets",
        every: Span::from_secs(2),
        run: |cx| Box::pin(watch_budgets(cx)),
    },
    Step {
        name: "issue_invoices",
        every: Span::from_hours(1),
        run: |cx| Box::pin(issue_invoices(cx)),
    },
    Step {
        name: "mature_earnings",
        every: Span::from_secs(10),
        run: |cx| Box::pin(mature_earnings(cx)),
    },
    Step {
        name: "release_reserves",
        every: Span::from_secs(10),
        run: |cx| Box::pin(release_reserves(cx)),
    },
    Step {
        name: "send_payouts",
        every: Span::from_secs(2),
        run: |cx| Box::pin(send_payouts(cx)),
    },
    Step {
        name: "expire_credit",
        every: Span::from_secs(10),
        run: |cx| Box::pin(expire_credit(cx)),
    },
    Step {
        name: "collect_debts",
        every: Span::from_secs(5),
        run: |cx| Box::pin(collect_debts(cx)),
    },
    Step {
        name: "expire_adjustments",
        every: Span::from_mins(1),
        run: |cx| Box::pin(expire_adjustments(cx)),
    },
    Step {
        name: "drain_outbox",
        every: Span::from_secs(1),
        run: |cx| Box::pin(drain_outbox(cx)),
    },
    Step {
        name: "follow_book",
        every: Span::from_secs(1),
        run: |cx| Box::pin(crate::book::follow_book(cx)),
    },
    Step {
        name: "sweep_book",
        every: Span::from_mins(1),
        run: |cx| Box::pin(crate::book::sweep_book(cx)),
    },
    Step {
        name: "sign_days",
        every: Span::from_mins(10),
        run: |cx| Box::pin(crate::day::sign_days(cx)),
    },
    Step {
        name: "sweep_idempotency",
        every: Span::from_hours(1),
        run: |cx| Box::pin(sweep_idempotency(cx)),
    },
];

/// How long answers by idempotency key are kept.
const IDEMPOTENCY_KEPT: Span = Span::from_hours(30 * 24);

/// Machines that fell silent leave the market; their leases go on.
pub async fn watch_machines(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let before = now.minus(OFFLINE_AFTER);
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::machine::silent(ro, before).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += move_machine(cx, id, |machine| {
            if machine.last_seen_at.is_some_and(|seen| seen >= before) {
                return None;
            }
            let listed_before = machine.state == MachineState::Listed;
            let state = machine.state.after(MachineEvent::WentSilent).ok()?;
            let reason = format!("no heartbeat for {OFFLINE_AFTER}");
            Some((state, reason, listed_before))
        })
        .await?;
    }
    Ok(changed)
}

/// Machines whose probe was accepted and that report are verified.
pub async fn verify_machines(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let wanted = MachineState::Verifying;
    let ids = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::machine::in_state(ro, wanted).await?))
        .await?;
    let mut changed = 0;
    for id in ids {
        changed += move_machine(cx, id, |machine| {
            let reports = machine
                .last_seen_at
                .is_some_and(|seen| now.since(seen) <= STALE_AFTER);
            let state = machine
                .state
                .after(MachineEvent::Verified)
                .ok()
                .filter(|_| reports)?;
            let reason = "its probe is plausible and it reports; it has no offer yet".to_owned();
            Some((state, reason, false))
        })
        .await?;
    }
    Ok(changed)
}

/// Moves one machine, if `decide` still says so once it is locked.
async fn move_machine(
    cx: &Cx,
    id: MachineId,
    decide: impl Fn(&MachineRecord) -> Option<(MachineState, String, bool)> + Send + Sync,
) -> Result<usize, Error> {
    let (now, decide) = (cx.now(), &decide);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            let Some(mut machine) = store::machine::get_for_update(tx, id).await? else {
                return Ok(0);
            };
            let Some((state, reason, listed_before)) = decide(&machine) else {
                return Ok(0);
            };
            if state == machine.state {
                return Ok(0);
            }
            machine.state = state;
            machine.state_reason = reason;
            machine.listed_before = listed_before;
            let machine = store::machine::save(tx, &machine).await?;
            let what = Audited {
                action: "machine.state",
                object: id.to_string(),
                reason: &machine.state_reason,
            };
            let mut line = cx.audit_by(ActorRef::Market, now, what);
            line.party = Some(machine.party);
            store::audit::insert(tx, &line).await?;
            Ok(1)
        })
        .await
}

/// Delivers outbox messages: so far to the links of machines whose leases changed.
pub async fn drain_outbox(cx: &Cx) -> Result<usize, Error> {
    let now = cx.now();
    let messages = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::outbox::undelivered(ro, 500).await?))
        .await?;
    let machines = messages
        .iter()
        .filter_map(|m| m.payload.get("machine")?.as_str()?.parse().ok());
    for machine in machines {
        cx.wake.machine(machine);
    }
    let seqs: Vec<i64> = messages.iter().map(|m| m.seq).collect();
    if seqs.is_empty() {
        return Ok(0);
    }
    let seqs = &seqs;
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            Ok(store::outbox::mark_delivered(tx, seqs, now).await?)
        })
        .await
}

/// Forgets old answers by idempotency key.
pub async fn sweep_idempotency(cx: &Cx) -> Result<usize, Error> {
    let before = cx.now().minus(IDEMPOTENCY_KEPT);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| Ok(store::idempotency::sweep(tx, before).await?))
        .await
}
