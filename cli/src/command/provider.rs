//! The provider's commands: machines and offers.

use clap::{Args, Subcommand};
use domain::id::{MachineId, OfferId};
use domain::money::Micros;

use crate::text;

/// What to do with machines.
#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// Get a one-time token that enrols a machine
    Token {
        /// Name that the machine will have
        #[arg(long, default_value = "machine")]
        name: String,
    },
    /// Show a machine and its GPUs
    Show {
        /// Which machine
        #[arg(value_name = "MACHINE")]
        machine: MachineId,
    },
    /// Offer it on the market (it needs an offer)
    List(MachineAct),
    /// Take it off the market; its leases go on
    Unlist(MachineAct),
    /// Take no new leases; its leases go on until they end
    Drain(MachineAct),
    /// Take it out of service once it is empty
    Maintenance(MachineAct),
    /// Remove it for good; refused while a lease lives on it
    Retire(MachineAct),
}

/// Direct a machine.
#[derive(Debug, Args)]
pub(crate) struct MachineAct {
    /// Which machine
    #[arg(value_name = "MACHINE")]
    pub(crate) machine: MachineId,
    /// Why, for the record
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

/// What to do with offers.
#[derive(Debug, Subcommand)]
pub(crate) enum OfferCommand {
    /// Put a machine on the market
    Create {
        /// Which machine
        #[arg(long)]
        machine: MachineId,
        /// One GPU for one hour, in US dollars
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        price: Micros,
        /// The rest of the terms.
        #[command(flatten)]
        terms: Terms,
    },
    /// Show an offer
    Show {
        /// Which offer
        #[arg(value_name = "OFFER")]
        offer: OfferId,
    },
    /// Change an offer; running leases keep their price
    Set {
        /// Which offer
        #[arg(value_name = "OFFER")]
        offer: OfferId,
        /// One GPU for one hour, in US dollars
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        price: Option<Micros>,
        /// The rest of the terms.
        #[command(flatten)]
        terms: Terms,
        /// Take no bids any more
        #[arg(long, conflicts_with = "floor")]
        no_floor: bool,
        /// Keeping costs what use costs again
        #[arg(long, conflicts_with = "keep")]
        no_keep: bool,
        /// Only if the offer still has this version [default: the present one]
        #[arg(long, value_name = "VERSION")]
        if_version: Option<i64>,
    },
    /// Withdraw an offer; running leases go on
    Withdraw {
        /// Which offer
        #[arg(value_name = "OFFER")]
        offer: OfferId,
    },
}

/// Terms that have a default.
#[derive(Debug, Args)]
pub(crate) struct Terms {
    /// Lowest bid for one GPU for one hour, in US dollars [default: no bids]
    #[arg(long, value_name = "USD", value_parser = text::amount)]
    pub(crate) floor: Option<Micros>,
    /// One GPU for one hour that a stopped lease keeps for its resume [default: the price]
    #[arg(long, value_name = "USD", value_parser = text::price)]
    pub(crate) keep: Option<Micros>,
    /// One GiB of disk for a month of 730 hours, in US dollars [default: free]
    #[arg(long, value_name = "USD", value_parser = text::price)]
    pub(crate) storage: Option<Micros>,
    /// Fewest GPUs in one lease
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) min: Option<u16>,
    /// Most GPUs in one lease
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) max: Option<u16>,
}
