//! The lines of a meter in a statement: its prices and its charges, and how they are recomputed.

use std::borrow::Borrow;

use domain::money::{Micros, Period, Rate};
use serde::{Deserialize, Serialize};

use super::{StatementFault, form};
use crate::rating::{Due, Shares, share};
use crate::segment::Exact;

/// A price of a meter, and from when on it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentLine {
    /// 1, 2, …
    pub no: i64,
    /// From here until the next one's beginning, microseconds since 1970 (UTC, server time).
    pub from_us: i64,
    /// Price of one period for the whole lease.
    pub price_micros: i64,
}

/// One charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChargeLine {
    /// 1, 2, …
    pub seq: i64,
    /// The price segment that the range lies in. Since format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<i64>,
    /// Start of the range, microseconds since 1970 (UTC, server time).
    pub from_us: i64,
    /// End of the range, not contained.
    pub to_us: i64,
    /// Proven time in the range.
    pub billable_ms: i64,
    /// Charge before tax, fee included.
    pub gross_micros: i64,
    /// The platform's share of it.
    pub fee_micros: i64,
    /// Tax on top.
    pub tax_micros: i64,
    /// When it was booked; not before the end of its range. Since format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_at_us: Option<i64>,
    /// BLAKE3 over the hash before and this line, hex.
    pub hash: String,
}

/// Sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Paid by the renter: gross + tax.
    pub renter_pays_micros: i64,
    /// Credited to the provider: gross − fee.
    pub provider_gets_micros: i64,
    /// The platform's fee.
    pub fee_micros: i64,
    /// Tax.
    pub tax_micros: i64,
}

impl Totals {
    /// The sums of these charges.
    pub fn of(
        lines: impl Iterator<Item = impl Borrow<ChargeLine>>,
    ) -> Result<Self, StatementFault> {
        let mut sum = Due::default();
        for line in lines {
            sum = sum.plus(line.borrow().due())?;
        }
        Ok(Self {
            renter_pays_micros: sum.renter()?.get(),
            provider_gets_micros: sum.provider()?.get(),
            fee_micros: sum.fee.get(),
            tax_micros: sum.tax.get(),
        })
    }
}

impl ChargeLine {
    pub(super) const fn due(&self) -> Due {
        Due {
            gross: Micros::new(self.gross_micros),
            fee: Micros::new(self.fee_micros),
            tax: Micros::new(self.tax_micros),
        }
    }

    fn chained(&self, before: &str) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "{before}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
            self.seq,
            self.from_us,
            self.to_us,
            self.billable_ms,
            self.gross_micros,
            self.fee_micros,
            self.tax_micros,
        );
        if let (Some(segment), Some(booked)) = (self.segment, self.booked_at_us) {
            // A `String` takes everything.
            let _always = write!(text, "\n{segment}\n{booked}");
        }
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

/// Fills in the hash chain.
pub(super) fn chain(first: &str, lines: &mut [ChargeLine]) {
    let mut before = first.to_owned();
    for line in lines {
        line.hash = line.chained(&before);
        before.clone_from(&line.hash);
    }
}

/// What a meter's lines are checked against.
pub(super) struct Terms<'a> {
    pub(super) resource: &'a str,
    pub(super) period_ms: i64,
    pub(super) shares: Shares,
    pub(super) segments: &'a [SegmentLine],
    /// What the first line's hash follows.
    pub(super) first: String,
    /// Charges and their exact worth before the first line.
    pub(super) before: (i64, Exact),
}

impl Terms<'_> {
    fn period(&self) -> Result<Period, StatementFault> {
        let most = |bps: u32| bps <= 10_000;
        let mut expected = 1i64;
        let mut from = i64::MIN;
        for segment in self.segments {
            let in_order = segment.no == expected && segment.from_us >= from;
            if !in_order || segment.price_micros < 0 {
                return Err(form("price segments out of order or range"));
            }
            (expected, from) = (expected.saturating_add(1), segment.from_us);
        }
        if expected == 1 || !most(self.shares.fee_bps) || !most(self.shares.tax_bps) {
            return Err(form("a rate out of range"));
        }
        Period::from_millis(self.period_ms).ok_or_else(|| form("unknown period"))
    }

    fn due(&self, gross: Micros) -> Result<Due, StatementFault> {
        Ok(Due {
            gross,
            fee: share(gross, self.shares.fee_bps)?,
            tax: share(gross, self.shares.tax_bps)?,
        })
    }

    /// The price of a line, if its range lies within its segment.
    fn price(&self, line: &ChargeLine) -> Option<i64> {
        let no = line.segment.unwrap_or(1);
        let at = self.segments.iter().position(|s| s.no == no)?;
        let segment = self.segments.get(at)?;
        let next = self.segments.get(at.saturating_add(1));
        let within =
            line.from_us >= segment.from_us && next.is_none_or(|n| line.to_us <= n.from_us);
        within.then_some(segment.price_micros)
    }

    /// Recomputes the lines: order, chain, every amount; gives the proven time in them.
    pub(super) fn check(&self, lines: &[ChargeLine]) -> Result<i64, StatementFault> {
        let per = self.period()?;
        let (mut seq, mut worth) = self.before;
        let (mut before, mut through, mut ms) = (self.first.clone(), i64::MIN, 0i64);
        let mut booked = i64::MIN;
        for line in lines {
            seq = seq.saturating_add(1);
            let resource = || self.resource.to_owned();
            let length_ms = line.to_us.saturating_sub(line.from_us).div_euclid(1_000);
            let in_order = line.from_us >= through && line.from_us < line.to_us;
            let plausible = (0..=length_ms).contains(&line.billable_ms);
            let at = line.booked_at_us.unwrap_or(line.to_us);
            let price = self.price(line);
            let follows = line.seq == seq && in_order && plausible;
            let Some(price) = price.filter(|_| follows && at >= line.to_us && at >= booked) else {
                return Err(StatementFault::Range {
                    resource: resource(),
                    seq: line.seq,
                });
            };
            if line.hash != line.chained(&before) {
                return Err(StatementFault::Chain {
                    resource: resource(),
                    seq,
                });
            }
            ms = ms
                .checked_add(line.billable_ms)
                .ok_or(StatementFault::Overflow)?;
            let rate = Rate {
                price: Micros::new(price),
                per,
            };
            let after = worth.plus(rate, line.billable_ms)?;
            let due = self.due(after.whole)?.minus(self.due(worth.whole)?)?;
            if due != line.due() {
                return Err(StatementFault::Amount {
                    resource: resource(),
                    seq,
                });
            }
            (worth, through, booked) = (after, line.to_us, at);
            before.clone_from(&line.hash);
        }
        Ok(ms)
    }
}
