//! From use-cases' views to the wire.

use app::lease::LeaseView;
use app::machine::MachineView;
use app::offer::{OfferView, PriceView};
use app::quote::QuoteView;
use app::wallet::WalletView;
use domain::clock::Timestamp;
use domain::money::Micros;
use store::machine::GpuRecord;
use web_openapi::money::{Money, Per, Rate};
use web_openapi::time::to_text;
use web_openapi::{lease, machine, offer, quote, wallet};

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(to_text)
}

fn rate(amount: Micros, per: Per) -> Rate {
    Rate::usd(amount, per)
}

/// A whole price.
pub fn price(p: &PriceView) -> offer::AllInPrice {
    let seconds = p.size.duration_ms.div_euclid(1_000);
    offer::AllInPrice {
        gpu_hour: rate(p.gpu.price, Per::GpuHour),
        keep_price: rate(p.keep.price, Per::GpuHour),
        compute_per_hour: rate(p.compute_rate.price, Per::Hour),
        storage_per_month: rate(p.storage_rate.price, Per::Month),
        duration_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
        compute: Money::usd(p.compute),
        storage: Money::usd(p.storage),
        fee_included: Money::usd(p.fee_included),
        tax: Money::usd(p.tax),
        total: Money::usd(p.total),
        total_per_hour: rate(p.total_per_hour, Per::Hour),
    }
}

/// An offer.
pub fn offer(v: &OfferView) -> offer::Offer {
    let (o, terms) = (&v.offer, v.offer.terms);
    offer::Offer {
        id: o.id.to_string(),
        version: o.version,
        machine_id: o.machine.to_string(),
        gpu_model: v.gpu_model.clone(),
        gpu_count: v.gpu_count,
        gpus_free: v.gpus_free,
        price: rate(terms.gpu_hour, Per::GpuHour),
        bid_floor: terms.bid_floor.map(|f| rate(f, Per::GpuHour)),
        keep_price: rate(terms.keep_gpu_hour(), Per::GpuHour),
        storage_price: rate(terms.storage_gib_month, Per::GibMonth),
        min_gpus: terms.min_gpus,
        max_gpus: terms.max_gpus,
        state: if o.live { "live" } else { "withdrawn" }.to_owned(),
        simulated: v.simulated,
        created_at: to_text(o.created_at),
        updated_at: to_text(o.updated_at),
    }
}

/// A quote.
pub fn quote(v: &QuoteView) -> quote::Quote {
    let q = &v.quote;
    quote::Quote {
        id: q.id.to_string(),
        offer_id: q.offer.to_string(),
        offer_version: q.offer_version,
        gpu_model: q.gpu_model.clone(),
        gpu_count: q.gpu_count,
        disk_gib: q.disk_gib,
        simulated: q.simulated,
        price: price(&v.price),
        created_at: to_text(q.created_at),
        expires_at: to_text(q.expires_at),
        signature: hex::encode(q.signature),
    }
}

fn gpu(g: &GpuRecord) -> machine::Gpu {
    machine::Gpu {
        id: g.id.to_string(),
        index: g.slot,
        uuid: g.uuid.clone(),
        model: g.model.clone(),
        memory_mib: g.memory_mib,
        island: g.island,
        leased: g.leased,
    }
}

/// A machine.
pub fn machine(v: &MachineView) -> machine::Machine {
    let (m, facts) = (&v.machine, &v.machine.facts);
    machine::Machine {
        id: m.id.to_string(),
        name: m.name.clone(),
        state: m.state.as_str().to_owned(),
        state_reason: m.state_reason.clone(),
        simulated: facts.simulated,
        country: facts.country.clone(),
        cpu_cores: facts.cpu_cores,
        ram_mib: facts.ram_mib,
        disk_gib: facts.disk_gib,
        driver_version: facts.driver_version.clone(),
        agent_version: facts.agent_version.clone(),
        last_seen_at: time(m.last_seen_at),
        created_at: to_text(m.created_at),
        gpus: v.gpus.iter().map(gpu).collect(),
    }
}

/// A lease.
pub fn lease(v: &LeaseView) -> lease::Lease {
    let (l, terms, cost) = (&v.lease, &v.lease.terms, &v.cost);
    let one = |g: &GpuRecord| lease::LeaseGpu {
        id: g.id.to_string(),
        uuid: g.uuid.clone(),
        index: g.slot,
    };
    lease::Lease {
        id: l.id.to_string(),
        label: l.label.clone(),
        state: l.state.as_str().to_owned(),
        state_reason: l.reason.as_str().to_owned(),
        state_detail: l.detail.clone(),
        version: l.version,
        kind: "on_demand".to_owned(),
        offer_id: l.offer.to_string(),
        machine_id: l.machine.to_string(),
        gpu_model: terms.gpu_model.clone(),
        gpu_count: terms.gpu_count,
        gpus: v.gpus.iter().map(one).collect(),
        disk_gib: terms.disk_gib,
        simulated: terms.simulated,
        workload: lease::Workload {
            image: l.workload.image.clone(),
            command: l.workload.command.clone(),
            env: l.workload.env.clone(),
        },
        gpu_hour: rate(terms.gpu_hour, Per::GpuHour),
        keep_price: rate(terms.keep_gpu_hour, Per::GpuHour),
        keeps_gpus: l.keeps_gpus,
        storage_price: rate(terms.storage_gib_month, Per::GibMonth),
        cost: lease::LeaseCost {
            settled: Money::usd(cost.settled),
            accrued: Money::usd(cost.accrued),
            so_far: Money::usd(cost.so_far),
            held: Money::usd(cost.held),
            billable_seconds: cost.billable_ms.div_euclid(1_000),
            proven_through_at: time(cost.proven_through),
            rate: rate(cost.rate_per_hour, Per::Hour),
        },
        max_spend: l.max_spend.map(Money::usd),
        end_at: time(l.end_at),
        created_at: to_text(l.created_at),
        started_at: time(l.started_at),
        end_requested_at: time(l.end_requested_at),
        ended_at: time(l.ended_at),
        container_id: l.container.as_ref().map(|c| c.id.clone()),
        container_started_at: l.container.as_ref().map(|c| c.started_at.clone()),
        continuing_cost_per_day: v.after_stop.map(|a| Money::usd(a.per_day)),
        delete_at: v.after_stop.map(|a| to_text(a.delete_at)),
    }
}

/// A wallet.
pub fn wallet(v: &WalletView) -> wallet::Wallet {
    wallet::Wallet {
        posted: Money::usd(v.posted),
        held: Money::usd(v.held),
        available: Money::usd(v.available),
        promo: Money::usd(v.promo),
        receivable: Money::usd(v.receivable),
        frozen: v.frozen,
        burn_rate: rate(v.burn_per_hour, Per::Hour),
        runs_out_at: time(v.runs_out_at),
        payments: v.payments.as_str().to_owned(),
    }
}

/// Renders a view as the stored answer of a mutation.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or(serde_json::Value::Null)
}
