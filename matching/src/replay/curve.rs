//! How full a pool is after each per cent of load that arrived.

/// The pool after an arrival, in thousandths of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Asked for so far.
    pub arrived: u64,
    /// Placed.
    pub allocated: u64,
    /// Idle, but of no use to usual requests.
    pub lost: u64,
    /// Of the whole pool.
    pub capacity: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    allocated: u64,
    lost: u64,
    capacity: u64,
}

/// Means by per cent of arrived load. As published, a point counts for the per cent that its
/// arrived load is nearest to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve(Vec<Sum>);

impl Curve {
    pub(super) fn note(&mut self, point: Point) {
        let percent = (point.arrived * 200 + point.capacity)
            .checked_div(2 * point.capacity)
            .and_then(|percent| usize::try_from(percent).ok());
        let Some(percent) = percent.filter(|percent| *percent <= 1_000) else {
            return;
        };
        if self.0.len() <= percent {
            self.0.resize(percent + 1, Sum::default());
        }
        if let Some(sum) = self.0.get_mut(percent) {
            sum.count += 1;
            sum.allocated += point.allocated;
            sum.lost += point.lost;
            sum.capacity = point.capacity;
        }
    }

    fn mean(&self, percent: usize, of: impl Fn(&Sum) -> u64) -> Option<u64> {
        let sum = self.0.get(percent)?;
        (of(sum) * 1_000_000).checked_div(sum.count * sum.capacity)
    }

    /// Placed GPU time at `percent` of arrived load, in millionths of the pool; `None` where
    /// nothing arrived.
    pub fn allocated_ppm(&self, percent: usize) -> Option<u64> {
        self.mean(percent, |sum| sum.allocated)
    }

    /// Idle GPU time that is of no use to usual requests, in millionths of the pool.
    pub fn lost_ppm(&self, percent: usize) -> Option<u64> {
        self.mean(percent, |sum| sum.lost)
    }

    /// The largest per cent that anything is known of.
    pub fn end(&self) -> usize {
        self.0.len().saturating_sub(1)
    }
}
