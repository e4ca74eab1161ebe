//! Holds: large enough for any window, renewed by the words of the contract.

use billing::hold::{Renewal, STOP_LATENCY, WINDOW, renew};
use domain::clock::Span;
use domain::money::Micros;
use proptest::prelude::*;

use crate::naive::*;

proptest! {
    /// A hold for a window pays any such window, whatever was charged before.
    #[test]
    fn a_window_covers_every_phase(
        (burn, shares) in burns(),
        before in 0i64..10_000_000_000,
        window_ms in 0i64..100_000_000,
    ) {
        let bill = |ms: i64| {
            let c = naive(burn.compute.price.get(), HOUR_MS, (shares.fee_bps, shares.tax_bps), i128::from(ms));
            let s = naive(burn.storage.price.get(), MONTH_MS, (shares.fee_bps, shares.tax_bps), i128::from(ms));
            c.0 + c.2 + s.0 + s.2
        };
        let set_aside = wide(burn.running(Span::from_millis(window_ms)).unwrap());
        let spent = bill(before + window_ms) - bill(before);
        prop_assert!(spent <= set_aside);
        prop_assert!(set_aside <= spent + 8, "too much by {}", set_aside - spent);
        let disk = |ms: i128| {
            let s = naive(burn.storage.price.get(), MONTH_MS, (0, shares.tax_bps), ms);
            s.0 + s.2
        };
        let before = i128::from(before);
        let day = disk(before + DAY_MS) - disk(before);
        let kept = wide(burn.retention().unwrap());
        prop_assert!(day <= kept && kept <= day + 4, "{day} of {kept}");
    }

    /// The disk's promise is a day of it, and the decision on a hold follows its words.
    #[test]
    fn renewal_keeps_its_words(
        (burn, _) in burns(),
        remaining in 0i64..20_000_000,
        available in 0i64..20_000_000,
    ) {
        let retention = wide(burn.retention().unwrap());
        let day = naive(burn.storage.price.get(), MONTH_MS, (0, burn.tax_bps), DAY_MS);
        prop_assert!((0..=3).contains(&(retention - day.0 - day.2)));
        let cover = |span| wide(burn.running(span).unwrap()) + retention;
        let (remaining_w, available_w) = (i128::from(remaining), i128::from(available));
        let decided = renew(burn, Micros::new(remaining), Micros::new(available)).unwrap();
        let half = cover(Span::from_micros(WINDOW.micros() / 2));
        let grown = remaining_w + (cover(WINDOW) - remaining_w).min(available_w);
        let expected = if remaining_w >= half {
            Renewal::Enough
        } else if grown <= cover(STOP_LATENCY) {
            Renewal::Stop
        } else if grown > remaining_w {
            Renewal::Raise(Micros::from_wide(grown - remaining_w).unwrap())
        } else {
            Renewal::Enough
        };
        prop_assert_eq!(decided, expected);
    }
}
