//! Holds: money set aside before it is used, sized for a window of time.
//!
//! A lease runs only inside a hold already taken, so a wallet cannot go below zero. A hold contains
//! the promised disk retention, which compute may not use.

use domain::clock::{Span, Timestamp};
use domain::id::{HoldId, LeaseId};
use domain::lease::RETENTION;
use domain::money::{Micros, MoneyError, Rate};

use crate::account::AccountId;
use crate::exhaustion::{Flame, dry_at};
use crate::rating::share;

/// The window that a hold covers when the wallet allows it: settlement period and stop latency.
pub const WINDOW: Span = Span::from_mins(12);
/// The shortest window: below it a start is refused.
pub const WINDOW_MIN: Span = Span::from_mins(3);
/// When so little is covered and the hold cannot grow, the stop is sent.
pub const STOP_LATENCY: Span = Span::from_secs(30);

/// Is a hold still in force?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// Money can be charged out of it.
    Open,
    /// The rest was released.
    Closed,
    /// It was released by time.
    Expired,
}

impl HoldState {
    /// The name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Expired => "expired",
        }
    }

    /// The state of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Closed, Self::Expired]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

/// Money set aside for one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// The wallet.
    pub account: AccountId,
    /// The lease.
    pub lease: LeaseId,
    /// Set aside in total.
    pub amount: Micros,
    /// Charged out of it.
    pub posted: Micros,
    /// In force?
    pub state: HoldState,
    /// Since when.
    pub opened_at: Timestamp,
    /// It ends by itself then, unless it is changed before (a start that never came).
    pub expires_at: Option<Timestamp>,
}

impl Hold {
    /// What can still be charged.
    pub fn remaining(&self) -> Micros {
        match self.state {
            HoldState::Open => self.amount.minus(self.posted).unwrap_or(Micros::ZERO),
            HoldState::Closed | HoldState::Expired => Micros::ZERO,
        }
    }

    /// Over by time at `now`? Computed on read; the sweep only tidies up.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The rates that a lease burns at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burn {
    /// All GPUs.
    pub compute: Rate,
    /// The whole disk.
    pub storage: Rate,
    /// Tax on top.
    pub tax_bps: u32,
}

impl Burn {
    /// What `span` of running costs, tax included, rounded up.
    pub fn running(self, span: Span) -> Result<Micros, MoneyError> {
        // Each meter rounds its own tax, so each needs its own margin.
        let compute = with_tax(self.compute.cost_ceil(span.millis())?, self.tax_bps)?;
        let storage = with_tax(self.storage.cost_ceil(span.millis())?, self.tax_bps)?;
        compute.plus(storage)
    }

    /// What the promised retention of the disk costs, tax included, rounded up.
    pub fn retention(self) -> Result<Micros, MoneyError> {
        with_tax(self.storage.cost_ceil(RETENTION.millis())?, self.tax_bps)
    }
}

fn with_tax(gross: Micros, tax_bps: u32) -> Result<Micros, MoneyError> {
    // One more than the floor: a hold may be too large by a micro, never too small.
    let tax = share(gross, tax_bps)?;
    let lifted = if tax_bps == 0 || gross == Micros::ZERO {
        tax
    } else {
        tax.plus(Micros::new(1))?
    };
    gross.plus(lifted)
}

/// The size of a first hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSize {
    /// To set aside.
    pub amount: Micros,
    /// Of it, for the disk after a stop.
    pub retention: Micros,
    /// Time of running that is covered.
    pub window: Span,
}

/// Sizes the first hold: [`WINDOW`] if the wallet allows it, less if not, `Err(least)` with the
/// amount that would do if even [`WINDOW_MIN`] is not covered.
pub fn size(burn: Burn, available: Micros) -> Result<Result<HoldSize, Micros>, MoneyError> {
    let retention = burn.retention()?;
    for window in [WINDOW, Span::from_mins(9), Span::from_mins(6), WINDOW_MIN] {
        // A free lease still needs a hold: of one micro-unit.
        let amount = burn.running(window)?.plus(retention)?.max(Micros::new(1));
        if amount <= available {
            return Ok(Ok(HoldSize {
                amount,
                retention,
                window,
            }));
        }
    }
    Ok(Err(burn
        .running(WINDOW_MIN)?
        .plus(retention)?
        .max(Micros::new(1))))
}

/// When a running lease's hold has to be looked at again, if `remaining` is left in it now: at half
/// a window, or, below that, when the stop is due. At least each half window, since rates may change.
pub fn next_look(burn: Burn, remaining: Micros, now: Timestamp) -> Result<Timestamp, MoneyError> {
    let half_window = Span::from_micros(WINDOW.micros().div_euclid(2));
    let retention = burn.retention()?;
    let half = burn.running(half_window)?.plus(retention)?;
    let last = burn.running(STOP_LATENCY)?.plus(retention)?;
    let floor = if remaining > half { half } else { last };
    let budget = remaining.minus(floor)?.max(Micros::ZERO);
    let flame = |rate| Flame {
        rate,
        tax_bps: burn.tax_bps,
    };
    let dry = dry_at(budget, &[flame(burn.compute), flame(burn.storage)], now);
    let latest = now.plus(half_window);
    let earliest = now.plus(Span::from_secs(1));
    Ok(dry.unwrap_or(latest).clamp(earliest, latest))
}

/// Is a running lease's hold below half a window? It is filled when money comes.
pub fn is_short(burn: Burn, remaining: Micros) -> Result<bool, MoneyError> {
    let half_window = Span::from_micros(WINDOW.micros().div_euclid(2));
    Ok(remaining < burn.running(half_window)?.plus(burn.retention()?)?)
}

/// What a hold must be raised by when a lease burns at `new` instead of `old` from now on: the
/// larger promise of the disk, and [`WINDOW_MIN`] until the next renewal.
pub fn grown(old: Burn, new: Burn) -> Result<Micros, MoneyError> {
    let needs = |b: Burn| b.running(WINDOW_MIN)?.plus(b.retention()?);
    Ok(needs(new)?.minus(needs(old)?)?.max(Micros::ZERO))
}

/// What to do with a running lease's hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It covers enough.
    Enough,
    /// Set aside so much more.
    Raise(Micros),
    /// The money is used up but for the stop: send it now.
    Stop,
}

/// Decides on a running lease's hold. `remaining` is what the hold has left after everything proven
/// was charged. A raise that would still cover no more than [`STOP_LATENCY`] is not taken: the stop
/// is due now, and the next decision may come too late for it.
pub fn renew(burn: Burn, remaining: Micros, available: Micros) -> Result<Renewal, MoneyError> {
    let retention = burn.retention()?;
    let half = burn
        .running(Span::from_micros(WINDOW.micros().div_euclid(2)))?
        .plus(retention)?;
    if remaining >= half {
        return Ok(Renewal::Enough);
    }
    let missing = burn.running(WINDOW)?.plus(retention)?.minus(remaining)?;
    let raise = missing.min(available).max(Micros::ZERO);
    let last = burn.running(STOP_LATENCY)?.plus(retention)?;
    Ok(if remaining.plus(raise)? <= last {
        Renewal::Stop
    } else if raise > Micros::ZERO {
        Renewal::Raise(raise)
    } else {
        Renewal::Enough
    })
}

#[cfg(test)]
mod tests {
    use domain::money::Period;

    use super::*;

    fn burn(gpu_hour: i64, gib_month: i64) -> Burn {
        Burn {
            compute: Rate {
                price: Micros::new(gpu_hour),
                per: Period::Hour,
            },
            storage: Rate {
                price: Micros::new(gib_month),
                per: Period::Month,
            },
            tax_bps: 0,
        }
    }

    #[test]
    fn a_small_wallet_gets_a_shorter_window_before_a_refusal() {
        let b = burn(2_100_000, 0);
        let rich = size(b, Micros::new(100_000_000)).unwrap().unwrap();
        assert_eq!((rich.window, rich.amount), (WINDOW, Micros::new(420_000)));
        let poor = size(b, Micros::new(110_000)).unwrap().unwrap();
        assert_eq!(
            (poor.window, poor.amount),
            (WINDOW_MIN, Micros::new(105_000))
        );
        assert_eq!(
            size(b, Micros::new(104_999)).unwrap(),
            Err(Micros::new(105_000))
        );
    }

    #[test]
    fn a_free_lease_has_a_hold_of_one() {
        let free = Burn {
            tax_bps: 1_900,
            ..burn(0, 0)
        };
        assert_eq!(
            size(free, Micros::new(1)).unwrap().unwrap().amount,
            Micros::new(1)
        );
        assert_eq!(size(free, Micros::ZERO).unwrap(), Err(Micros::new(1)));
        assert_eq!(
            renew(free, Micros::ZERO, Micros::ZERO).unwrap(),
            Renewal::Enough
        );
    }

    #[test]
    fn only_an_open_hold_has_something_left() {
        let hold = Hold {
            id: HoldId::from_uuid(uuid::Uuid::nil()),
            account: AccountId(1),
            lease: LeaseId::from_uuid(uuid::Uuid::nil()),
            amount: Micros::new(10),
            posted: Micros::new(4),
            state: HoldState::Open,
            opened_at: Timestamp::from_micros(0),
            expires_at: None,
        };
        assert_eq!(hold.remaining(), Micros::new(6));
        assert!(!hold.is_over(Timestamp::MAX));
        for state in [HoldState::Open, HoldState::Closed, HoldState::Expired] {
            assert_eq!(HoldState::parse(state.as_str()), Some(state));
            let left = Hold {
                state,
                ..hold.clone()
            }
            .remaining();
            assert_eq!(left > Micros::ZERO, state == HoldState::Open);
        }
        assert_eq!(HoldState::parse("Open"), None);
    }

    #[test]
    fn retention_is_part_of_the_hold() {
        let b = burn(0, 7_300_000);
        let one = size(b, Micros::new(100_000_000)).unwrap().unwrap();
        assert_eq!(one.retention, Micros::new(240_000));
        let least = size(b, Micros::new(240_000)).unwrap();
        assert_eq!(least, Err(Micros::new(240_500)));
        let taxed = Burn {
            tax_bps: 1_900,
            ..b
        };
        assert_eq!(taxed.retention(), Ok(Micros::new(285_601)));
    }

    #[test]
    fn a_larger_disk_needs_a_larger_promise() {
        // 24 h and 3 min of 0.01 USD an hour more.
        let (old, new) = (burn(2_100_000, 7_300_000), burn(2_100_000, 14_600_000));
        assert_eq!(grown(old, new), Ok(Micros::new(240_500)));
        assert_eq!(grown(old, old), Ok(Micros::ZERO));
        assert_eq!(grown(new, old), Ok(Micros::ZERO));
    }

    #[test]
    fn renewal_raises_then_stops() {
        let b = burn(2_100_000, 0);
        assert_eq!(
            renew(b, Micros::new(420_000), Micros::ZERO).unwrap(),
            Renewal::Enough
        );
        let half_used = renew(b, Micros::new(200_000), Micros::new(1_000_000)).unwrap();
        assert_eq!(half_used, Renewal::Raise(Micros::new(220_000)));
        let last_cent = renew(b, Micros::new(200_000), Micros::new(7)).unwrap();
        assert_eq!(last_cent, Renewal::Raise(Micros::new(7)));
        assert_eq!(
            renew(b, Micros::new(200_000), Micros::ZERO).unwrap(),
            Renewal::Enough
        );
        for (remaining, available, expected) in [
            (17_500, 0, Renewal::Stop),
            (17_501, 0, Renewal::Enough),
            // A crumb in the wallet must not put the stop off.
            (17_000, 500, Renewal::Stop),
            (17_000, 501, Renewal::Raise(Micros::new(501))),
            (209_999, 0, Renewal::Enough),
            (209_999, 1_000_000, Renewal::Raise(Micros::new(210_001))),
            (210_000, 1_000_000, Renewal::Enough),
        ] {
            let decided = renew(b, Micros::new(remaining), Micros::new(available)).unwrap();
            assert_eq!(decided, expected, "{remaining} {available}");
        }
    }
}
