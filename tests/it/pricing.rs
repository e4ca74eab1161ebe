//! The quote and the bill come from two rooms that never meet: their sums must.

use billing::rating::{Due, Shares, due};
use domain::money::Micros;
use matching::offer::OfferTerms;
use matching::price::{Fees, Size, all_in};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// A lease that runs exactly as long as its quote says costs exactly what it says, whatever the
    /// settlements in between.
    #[test]
    fn bill_is_quote(
        gpu_hour in 1i64..1_000_000_000,
        gib_month in 0i64..100_000_000,
        gpus in 1u16..=64,
        disk_gib in 1u32..100_000,
        duration_ms in 1i64..40_000_000_000,
        fee_bps in 0u32..=10_000,
        tax_bps in 0u32..=3_000,
        cuts in prop::collection::vec(0i64..40_000_000_000, 0..8),
    ) {
        let terms = OfferTerms {
            gpu_hour: Micros::new(gpu_hour),
            bid_floor: None,
                keep_gpu_hour: None,
            storage_gib_month: Micros::new(gib_month),
            min_gpus: 1,
            max_gpus: gpus,
        };
        let size = Size { gpus, disk_gib, duration_ms };
        let quote = all_in(&terms, size, Fees { fee_bps, tax_bps }).unwrap();
        let shares = Shares { fee_bps, tax_bps };
        let mut times: Vec<i64> = cuts.into_iter().filter(|c| *c < duration_ms).collect();
        times.push(duration_ms);
        times.sort_unstable();
        let mut bill = Due::default();
        for rate in [quote.compute_rate, quote.storage_rate] {
            let mut before = Due::default();
            for at in &times {
                let accrued = due(rate, shares, *at).unwrap();
                bill = bill.plus(accrued.minus(before).unwrap()).unwrap();
                before = accrued;
            }
        }
        prop_assert_eq!(bill.renter().unwrap(), quote.total);
        prop_assert_eq!(bill.fee, quote.fee_included);
        prop_assert_eq!(bill.tax, quote.tax);
    }
}
