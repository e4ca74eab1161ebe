//! What is wrong with rows of price lists: a closed list.

/// What is wrong with a row. The closed list of docs/market.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A field cannot be read, or is too long.
    Malformed,
    /// A slice of TPUs, priced as one: no GPU.
    TpuSlice,
    /// No model has this name.
    UnknownModel,
    /// A part of a GPU.
    PartOfGpu,
    /// Neither price is known.
    NoPrice,
    /// A price that no GPU has: under 0.01 or over 200 USD for a GPU-hour.
    Implausible,
    /// The memory fits no size of the model, in no unit.
    MemoryUnclear,
    /// The same thing was listed before.
    Duplicate,
    /// The memory was in GB.
    MemoryUnit,
    /// The memory was that of all GPUs.
    MemoryOfAll,
    /// The memory of one GPU was spread over all.
    MemoryOfOne,
    /// Name, size and instance together mean another model than the name alone.
    ModelRefined,
    /// The price had been multiplied by the number of GPUs twice.
    CountSquared,
    /// The price of one GPU stood for all.
    PriceOfOne,
    /// A price of 0.00: unknown, not free.
    PriceUnknown,
    /// The interruptible price was above the other.
    SpotAbovePrice,
    /// Decimals that a float left behind.
    FloatTail,
    /// The price is for the accelerators alone.
    AcceleratorOnly,
}

impl Fault {
    /// Every fault, those that reject a row first.
    pub const ALL: [Self; 18] = [
        Self::Malformed,
        Self::TpuSlice,
        Self::UnknownModel,
        Self::PartOfGpu,
        Self::NoPrice,
        Self::Implausible,
        Self::MemoryUnclear,
        Self::Duplicate,
        Self::MemoryUnit,
        Self::MemoryOfAll,
        Self::MemoryOfOne,
        Self::ModelRefined,
        Self::CountSquared,
        Self::PriceOfOne,
        Self::PriceUnknown,
        Self::SpotAbovePrice,
        Self::FloatTail,
        Self::AcceleratorOnly,
    ];

    /// The name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TpuSlice => "tpu_slice",
            Self::UnknownModel => "unknown_model",
            Self::PartOfGpu => "part_of_gpu",
            Self::NoPrice => "no_price",
            Self::Implausible => "implausible",
            Self::MemoryUnclear => "memory_unclear",
            Self::Duplicate => "duplicate",
            Self::MemoryUnit => "memory_unit",
            Self::MemoryOfAll => "memory_of_all",
            Self::MemoryOfOne => "memory_of_one",
            Self::ModelRefined => "model_refined",
            Self::CountSquared => "count_squared",
            Self::PriceOfOne => "price_of_one",
            Self::PriceUnknown => "price_unknown",
            Self::SpotAbovePrice => "spot_above_price",
            Self::FloatTail => "float_tail",
            Self::AcceleratorOnly => "accelerator_only",
        }
    }

    /// Is the row left out (else: put right, or only marked)?
    pub const fn rejects(self) -> bool {
        match self {
            Self::Malformed
            | Self::TpuSlice
            | Self::UnknownModel
            | Self::PartOfGpu
            | Self::NoPrice
            | Self::Implausible
            | Self::MemoryUnclear
            | Self::Duplicate => true,
            Self::MemoryUnit
            | Self::MemoryOfAll
            | Self::MemoryOfOne
            | Self::ModelRefined
            | Self::CountSquared
            | Self::PriceOfOne
            | Self::PriceUnknown
            | Self::SpotAbovePrice
            | Self::FloatTail
            | Self::AcceleratorOnly => false,
        }
    }
}
