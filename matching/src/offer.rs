//! What a provider asks.

use domain::id::{MachineId, OfferId, PartyId};
use domain::money::Micros;

/// The dearest GPU-hour that is taken for a price and not for a typing error: 1,000 major units.
pub const GPU_HOUR_MAX: Micros = Micros::new(1_000_000_000);
/// The dearest GiB-month: 100 major units.
pub const GIB_MONTH_MAX: Micros = Micros::new(100_000_000);

/// Terms of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OfferTerms {
    /// Price of one GPU for one hour, on demand.
    pub gpu_hour: Micros,
    /// Lowest bid per GPU-hour; `None` = no interruptible leases.
    pub bid_floor: Option<Micros>,
    /// Price of one GPU for one hour, kept for a stopped lease; `None` = that of use.
    pub keep_gpu_hour: Option<Micros>,
    /// Price of one GiB of disk for a month of 730 hours.
    pub storage_gib_month: Micros,
    /// Smallest number of GPUs in a lease.
    pub min_gpus: u16,
    /// Largest number of GPUs in a lease.
    pub max_gpus: u16,
}

/// A term that is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferFault {
    /// Not above zero, or above [`GPU_HOUR_MAX`].
    Price,
    /// Not above zero.
    FloorTooLow,
    /// Above the on-demand price.
    FloorAbovePrice,
    /// Negative, or above the on-demand price.
    KeepPrice,
    /// Negative, or above [`GIB_MONTH_MAX`].
    StoragePrice,
    /// Zero, or more than the largest.
    MinGpus,
    /// More than the machine has.
    MaxGpus,
}

impl OfferTerms {
    /// What keeping a GPU for a stopped lease costs for one hour.
    pub fn keep_gpu_hour(&self) -> Micros {
        self.keep_gpu_hour.unwrap_or(self.gpu_hour)
    }

    /// Checks the terms for a machine with `gpus` GPUs; the first fault in the order of the enum.
    pub fn check(&self, gpus: u16) -> Result<(), OfferFault> {
        if self.gpu_hour <= Micros::ZERO || self.gpu_hour > GPU_HOUR_MAX {
            return Err(OfferFault::Price);
        }
        if self.bid_floor.is_some_and(|floor| floor <= Micros::ZERO) {
            return Err(OfferFault::FloorTooLow);
        }
        if self.bid_floor.is_some_and(|floor| floor > self.gpu_hour) {
            return Err(OfferFault::FloorAbovePrice);
        }
        let keep = self.keep_gpu_hour();
        if keep < Micros::ZERO || keep > self.gpu_hour {
            return Err(OfferFault::KeepPrice);
        }
        if self.storage_gib_month < Micros::ZERO || self.storage_gib_month > GIB_MONTH_MAX {
            return Err(OfferFault::StoragePrice);
        }
        if self.min_gpus == 0 || self.min_gpus > self.max_gpus {
            return Err(OfferFault::MinGpus);
        }
        if self.max_gpus > gpus {
            Err(OfferFault::MaxGpus)
        } else {
            Ok(())
        }
    }
}

/// An offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its id.
    pub id: OfferId,
    /// Counts up with each change.
    pub version: i64,
    /// Who asks.
    pub provider: PartyId,
    /// For which machine.
    pub machine: MachineId,
    /// What is asked.
    pub terms: OfferTerms,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: OfferTerms = OfferTerms {
        gpu_hour: Micros::new(2_000_000),
        bid_floor: Some(Micros::new(2_000_000)),
        keep_gpu_hour: Some(Micros::new(2_000_000)),
        storage_gib_month: GIB_MONTH_MAX,
        min_gpus: 8,
        max_gpus: 8,
    };

    fn check(change: fn(&mut OfferTerms)) -> Result<(), OfferFault> {
        let mut terms = GOOD;
        change(&mut terms);
        terms.check(8)
    }

    #[test]
    fn the_last_good_values_are_good() {
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|t| t.gpu_hour = GPU_HOUR_MAX), Ok(()));
        assert_eq!(check(|t| t.bid_floor = None), Ok(()));
        assert_eq!(check(|t| t.keep_gpu_hour = None), Ok(()));
        assert_eq!(check(|t| t.keep_gpu_hour = Some(Micros::ZERO)), Ok(()));
        assert_eq!(check(|t| t.storage_gib_month = Micros::ZERO), Ok(()));
        assert_eq!(check(|t| t.min_gpus = 1), Ok(()));
    }

    #[test]
    fn the_first_bad_values_have_their_faults() {
        use OfferFault as F;
        let above = |most: Micros| Micros::new(most.get() + 1);
        let (dear, disk) = (above(GPU_HOUR_MAX), above(GIB_MONTH_MAX));
        let with = |terms: OfferTerms| terms.check(8);
        assert_eq!(check(|t| t.gpu_hour = Micros::ZERO), Err(F::Price));
        assert_eq!(
            with(OfferTerms {
                gpu_hour: dear,
                ..GOOD
            }),
            Err(F::Price)
        );
        assert_eq!(
            check(|t| t.bid_floor = Some(Micros::ZERO)),
            Err(F::FloorTooLow)
        );
        assert_eq!(
            check(|t| t.bid_floor = Some(Micros::new(2_000_001))),
            Err(F::FloorAbovePrice)
        );
        for keep in [Micros::new(-1), above(GOOD.gpu_hour)] {
            let terms = OfferTerms {
                keep_gpu_hour: Some(keep),
                ..GOOD
            };
            assert_eq!(with(terms), Err(F::KeepPrice));
        }
        assert_eq!(
            check(|t| t.storage_gib_month = Micros::new(-1)),
            Err(F::StoragePrice)
        );
        assert_eq!(
            with(OfferTerms {
                storage_gib_month: disk,
                ..GOOD
            }),
            Err(F::StoragePrice)
        );
        assert_eq!(check(|t| t.min_gpus = 0), Err(F::MinGpus));
        assert_eq!(check(|t| t.min_gpus = 9), Err(F::MinGpus));
        assert_eq!(check(|t| t.max_gpus = 9), Err(F::MaxGpus));
    }
}
