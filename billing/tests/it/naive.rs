//! The model: rates by its own floors, in `i128`; and makers of what the tests need.

use billing::hold::Burn;
use billing::meter::{Meter, NewMeter, Proof, Resource};
use billing::rating::Shares;
use domain::clock::Timestamp;
use domain::id::{LeaseId, MeterId};
use domain::money::{Micros, Period, Rate};
use proptest::prelude::*;
use uuid::Uuid;

pub(crate) const HOUR_MS: i128 = 3_600_000;
pub(crate) const MONTH_MS: i128 = 2_628_000_000;
pub(crate) const DAY_MS: i128 = 24 * HOUR_MS;

/// (gross, fee, tax) of a time, by the letter of the contract.
pub(crate) fn naive(price: i64, per: i128, (fee, tax): (u32, u32), ms: i128) -> (i128, i128, i128) {
    let gross = i128::from(price) * ms / per;
    (
        gross,
        gross * i128::from(fee) / 10_000,
        gross * i128::from(tax) / 10_000,
    )
}

pub(crate) fn wide(m: Micros) -> i128 {
    i128::from(m.get())
}

pub(crate) fn hourly(price: i64) -> Rate {
    Rate {
        price: Micros::new(price),
        per: Period::Hour,
    }
}

pub(crate) fn monthly(price: i64) -> Rate {
    Rate {
        price: Micros::new(price),
        per: Period::Month,
    }
}

pub(crate) fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

pub(crate) fn us(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(crate) fn proof(mono_ms: i64, at_us: i64) -> Proof {
    Proof {
        boot: "boot".into(),
        run: "run".into(),
        mono_ms,
        at: us(at_us),
    }
}

pub(crate) fn meter(resource: Resource, rate: Rate, shares: Shares) -> Meter {
    let new = NewMeter {
        id: MeterId::from_uuid(id(match resource {
            Resource::Compute => 1,
            Resource::Storage => 2,
        })),
        lease: LeaseId::from_uuid(id(7)),
        resource,
        rate,
        shares,
    };
    Meter::open(new, us(0))
}

pub(crate) fn burns() -> impl Strategy<Value = (Burn, Shares)> {
    (
        0i64..40_000_000,
        0i64..900_000_000,
        0u32..=10_000,
        0u32..=3_000,
    )
        .prop_map(|(gpu, disk, fee_bps, tax_bps)| {
            let burn = Burn {
                compute: hourly(gpu),
                storage: monthly(disk),
                tax_bps,
            };
            (burn, Shares { fee_bps, tax_bps })
        })
}
