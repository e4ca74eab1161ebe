//! The all-in price: GPUs, disk, fee, tax, for a given size and duration.
//!
//! The same cumulative floors as the meters (`billing::rating`), so a lease that runs exactly that
//! long costs exactly this (`tests/it/pricing.rs` compares them).

use domain::money::{Micros, MoneyError, Period, Rate};

use crate::offer::OfferTerms;

/// The market's fee and tax, in 1/10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    /// The platform's share, contained in the price.
    pub fee_bps: u32,
    /// Tax, on top.
    pub tax_bps: u32,
}

/// What is priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// GPUs.
    pub gpus: u16,
    /// Disk, GiB.
    pub disk_gib: u32,
    /// Duration, ms.
    pub duration_ms: i64,
}

/// The whole price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllIn {
    /// One GPU.
    pub gpu: Rate,
    /// One GPU that a stopped lease keeps.
    pub keep: Rate,
    /// All GPUs.
    pub compute_rate: Rate,
    /// The whole disk.
    pub storage_rate: Rate,
    /// What is priced.
    pub size: Size,
    /// GPUs for the duration, fee included.
    pub compute: Micros,
    /// Disk for the duration, fee included.
    pub storage: Micros,
    /// The platform's fee, contained in both.
    pub fee_included: Micros,
    /// On top of both.
    pub tax: Micros,
    /// What the renter pays: compute + storage + tax.
    pub total: Micros,
    /// The same for one hour.
    pub total_per_hour: Micros,
}

fn share(amount: Micros, bps: u32) -> Result<Micros, MoneyError> {
    let product = i128::from(amount.get()).checked_mul(i128::from(bps));
    Micros::from_wide(product.ok_or(MoneyError::OutOfRange)?.div_euclid(10_000))
}

/// The all-in price of `size` at `terms`. [`MoneyError::OutOfRange`]: a negative duration, or an
/// amount beyond 64 bits (not for terms and requests that passed their checks).
pub fn all_in(terms: &OfferTerms, size: Size, fees: Fees) -> Result<AllIn, MoneyError> {
    if size.duration_ms < 0 {
        return Err(MoneyError::OutOfRange);
    }
    let gpu = Rate {
        price: terms.gpu_hour,
        per: Period::Hour,
    };
    let compute_rate = gpu.times(i64::from(size.gpus))?;
    let storage_rate = Rate {
        price: terms.storage_gib_month,
        per: Period::Month,
    }
    .times(i64::from(size.disk_gib))?;
    let cost = |ms: i64| -> Result<(Micros, Micros, Micros), MoneyError> {
        let (compute, storage) = (compute_rate.cost_floor(ms)?, storage_rate.cost_floor(ms)?);
        let tax = share(compute, fees.tax_bps)?.plus(share(storage, fees.tax_bps)?)?;
        Ok((compute, storage, tax))
    };
    let (compute, storage, tax) = cost(size.duration_ms)?;
    let hour = cost(Period::Hour.millis())?;
    Ok(AllIn {
        gpu,
        keep: Rate {
            price: terms.keep_gpu_hour(),
            per: Period::Hour,
        },
        compute_rate,
        storage_rate,
        size,
        compute,
        storage,
        fee_included: share(compute, fees.fee_bps)?.plus(share(storage, fees.fee_bps)?)?,
        tax,
        total: compute.plus(storage)?.plus(tax)?,
        total_per_hour: hour.0.plus(hour.1)?.plus(hour.2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(gpu_hour: i64, gib_month: i64) -> OfferTerms {
        OfferTerms {
            gpu_hour: Micros::new(gpu_hour),
            bid_floor: None,
            keep_gpu_hour: None,
            storage_gib_month: Micros::new(gib_month),
            min_gpus: 1,
            max_gpus: 8,
        }
    }

    #[test]
    fn per_gpu_times_count_is_the_total_exactly() {
        for gpus in [1, 2, 4, 8] {
            let size = Size {
                gpus,
                disk_gib: 10,
                duration_ms: 3_600_000,
            };
            let price = all_in(
                &terms(2_100_001, 0),
                size,
                Fees {
                    fee_bps: 500,
                    tax_bps: 0,
                },
            )
            .unwrap();
            assert_eq!(
                price.gpu.price.get() * i64::from(gpus),
                price.compute_rate.price.get()
            );
            assert_eq!(price.compute, price.compute_rate.price);
            assert_eq!(price.total_per_hour, price.total);
        }
    }

    #[test]
    fn the_disk_has_its_own_line() {
        let size = Size {
            gpus: 1,
            disk_gib: 10_240,
            duration_ms: 3_600_000,
        };
        let price = all_in(
            &terms(49_000, 50_000),
            size,
            Fees {
                fee_bps: 0,
                tax_bps: 0,
            },
        )
        .unwrap();
        assert_eq!(price.storage, Micros::new(701_369));
        assert_eq!(price.total, Micros::new(49_000 + 701_369));
    }

    #[test]
    fn tax_comes_on_top_and_the_fee_inside() {
        let size = Size {
            gpus: 1,
            disk_gib: 1,
            duration_ms: 3_600_000,
        };
        let price = all_in(
            &terms(1_000_000, 0),
            size,
            Fees {
                fee_bps: 500,
                tax_bps: 1_900,
            },
        )
        .unwrap();
        assert_eq!(
            (price.fee_included.get(), price.tax.get(), price.total.get()),
            (50_000, 190_000, 1_190_000)
        );
    }
}
