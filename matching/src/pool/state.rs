//! What a node has left, and what a request takes of it.

/// The most GPUs of one node.
pub const MOST_GPUS: usize = 16;
/// A whole GPU, in thousandths.
pub const WHOLE: u16 = 1_000;

/// A set of GPU models, each known by a number below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Models(u64);

impl Models {
    /// Every model.
    pub const ANY: Self = Self(u64::MAX);
    /// No model.
    pub const NONE: Self = Self(0);

    /// With `model` too; a number of 64 or more changes nothing.
    #[must_use]
    pub fn with(self, model: u8) -> Self {
        let bit = 1_u64.checked_shl(u32::from(model)).unwrap_or(0);
        Self(self.0 | bit)
    }

    /// A number to sort by; that of [`Models::ANY`] is the lowest.
    pub const fn order(self) -> u64 {
        self.0.wrapping_add(1)
    }

    /// Is `model` in it?
    pub fn has(self, model: u8) -> bool {
        1_u64
            .checked_shl(u32::from(model))
            .is_some_and(|bit| self.0 & bit != 0)
    }
}

/// What a request takes of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// CPU, in thousandths of a core.
    pub cpu_milli: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// GPUs; none for work without.
    pub gpus: u16,
    /// Of each GPU, in thousandths; less than [`WHOLE`] only for one GPU.
    pub gpu_milli: u16,
    /// GPU models that will do.
    pub models: Models,
}

impl Shape {
    /// Does it ask for a part of a GPU?
    pub const fn is_share(&self) -> bool {
        self.gpus == 1 && self.gpu_milli < WHOLE
    }

    /// GPU time per time, in thousandths of a GPU.
    pub fn milli(&self) -> u64 {
        u64::from(self.gpus) * u64::from(self.gpu_milli)
    }
}

/// Which GPUs of a node are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// None.
    Nothing,
    /// A part of the first GPU that has just so much left, in thousandths.
    PartOf(u16),
    /// The first so many whole ones.
    Whole(u16),
}

/// As much of a state as says what fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    cpu_milli: u32,
    memory_mib: u32,
    model: u8,
    /// GPUs that nobody uses.
    whole: u16,
    /// The most that one GPU has left, in thousandths.
    largest: u16,
}

impl Room {
    /// Is it enough for `shape`?
    pub fn fits(&self, shape: &Shape) -> bool {
        if self.cpu_milli < shape.cpu_milli || self.memory_mib < shape.memory_mib {
            return false;
        }
        if shape.gpus == 0 {
            return true;
        }
        let enough = if shape.is_share() {
            self.largest >= shape.gpu_milli
        } else {
            self.whole >= shape.gpus
        };
        enough && shape.models.has(self.model)
    }
}

/// What a node has left. Equal states are alike for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// CPU, in thousandths of a core.
    pub cpu_milli: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Model of its GPUs.
    pub model: u8,
    gpus: u8,
    left: [u16; MOST_GPUS],
}

impl State {
    /// An empty node with `gpus` GPUs; [`MOST_GPUS`] count at most.
    pub fn empty((cpu_milli, memory_mib): (u32, u32), gpus: u16, model: u8) -> Self {
        let gpus = usize::from(gpus).min(MOST_GPUS);
        let mut left = [0; MOST_GPUS];
        for gpu in left.iter_mut().take(gpus) {
            *gpu = WHOLE;
        }
        Self {
            cpu_milli,
            memory_mib,
            model,
            gpus: u8::try_from(gpus).unwrap_or(0),
            left,
        }
    }

    /// What each GPU has left, in thousandths.
    pub fn left(&self) -> &[u16] {
        self.left.get(..usize::from(self.gpus)).unwrap_or(&[])
    }

    /// GPUs that nobody uses.
    pub fn whole(&self) -> u16 {
        // Over all places, also those without a GPU: a loop of fixed length.
        self.left.iter().map(|left| u16::from(*left == WHOLE)).sum()
    }

    /// What all GPUs have left, in thousandths.
    pub fn idle(&self) -> u32 {
        u32::from(self.left.iter().sum::<u16>())
    }

    /// What GPUs with less than `milli` left have left, in thousandths.
    pub fn below(&self, milli: u16) -> u32 {
        let small = |left: &u16| if *left < milli { *left } else { 0 };
        u32::from(self.left.iter().map(small).sum::<u16>())
    }

    /// The rough measure of what fits.
    pub fn room(&self) -> Room {
        Room {
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            model: self.model,
            whole: self.whole(),
            largest: self.left.iter().copied().max().unwrap_or(0),
        }
    }

    /// Has it room for `shape`?
    pub fn fits(&self, shape: &Shape) -> bool {
        self.room().fits(shape)
    }

    /// The state once `take` is taken for `shape`, and the GPUs taken, as bits by their place;
    /// `None` if it is not there.
    pub fn taking(&self, shape: &Shape, take: Take) -> Option<(Self, u16)> {
        let mut after = *self;
        after.cpu_milli = self.cpu_milli.checked_sub(shape.cpu_milli)?;
        after.memory_mib = self.memory_mib.checked_sub(shape.memory_mib)?;
        let (milli, of, mut wanted) = match take {
            Take::Nothing => (0, 0, 0),
            Take::PartOf(left) => (shape.gpu_milli, left, 1),
            Take::Whole(count) => (WHOLE, WHOLE, count),
        };
        let mut slots = 0;
        let gpus = usize::from(self.gpus);
        for (place, left) in after.left.iter_mut().take(gpus).enumerate() {
            if wanted == 0 {
                break;
            }
            if *left == of {
                *left = left.checked_sub(milli)?;
                slots |= 1 << place;
                wanted -= 1;
            }
        }
        (wanted == 0).then_some((after, slots))
    }

    /// The state once what was taken for `shape` on the GPUs `slots` is given back.
    #[must_use]
    pub fn giving(&self, shape: &Shape, slots: u16) -> Self {
        let mut after = *self;
        after.cpu_milli = self.cpu_milli.saturating_add(shape.cpu_milli);
        after.memory_mib = self.memory_mib.saturating_add(shape.memory_mib);
        for (place, left) in after.left.iter_mut().enumerate() {
            if slots & (1 << place) != 0 {
                *left = left.saturating_add(shape.gpu_milli).min(WHOLE);
            }
        }
        after
    }

    /// The same with its GPUs in order, the fullest last: which GPU is which makes no difference.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut sorted = *self;
        sorted.left.sort_unstable_by(|a, b| b.cmp(a));
        sorted
    }
}
