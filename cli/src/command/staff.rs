//! The commands of payouts, and of the operator's people.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use domain::id::{AdjustmentId, LeaseId, PartyId, PayoutId};
use domain::money::Micros;

use super::Page;
use crate::text;

/// What to do with payouts.
#[derive(Debug, Subcommand)]
pub(crate) enum PayoutCommand {
    /// Ask for a payout of what is payable
    Create {
        /// US dollars, in whole cents [default: all that is payable]
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        amount: Option<Micros>,
    },
    /// Show a payout
    Show {
        /// Which payout
        #[arg(value_name = "PAYOUT")]
        payout: PayoutId,
    },
}

/// For the operator's people. API keys have no such role, so each command logs in.
#[derive(Debug, Args)]
pub(crate) struct Admin {
    /// E-mail address to log in with
    #[arg(long)]
    pub(crate) email: String,
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub(crate) password_stdin: bool,
    /// What.
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

/// What the operator's people do with money.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// List credits
    Credits(Page),
    /// Grant a renter a credit: spent first, never paid out
    Credit(Credit),
    /// List adjustments
    Adjustments(Page),
    /// Propose an adjustment of a party's account; a small one is made at once
    Adjust(Adjust),
    /// Approve an adjustment that somebody else has proposed
    Approve {
        /// Which adjustment
        #[arg(value_name = "ADJUSTMENT")]
        adjustment: AdjustmentId,
    },
    /// Reject a proposed adjustment
    Reject {
        /// Which adjustment
        #[arg(value_name = "ADJUSTMENT")]
        adjustment: AdjustmentId,
        /// Why, for the record
        #[arg(long)]
        reason: String,
    },
}

/// Why credit is given.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CreditType {
    /// To win a renter; expires
    Promo,
    /// For lost service of a lease; the amount is what is owed in total
    Sla,
    /// For anything else
    Goodwill,
}

/// A credit.
#[derive(Debug, Args)]
pub(crate) struct Credit {
    /// Why
    #[arg(value_enum, value_name = "TYPE")]
    pub(crate) kind: CreditType,
    /// US dollars
    #[arg(value_name = "AMOUNT", value_parser = text::amount)]
    pub(crate) amount: Micros,
    /// To whom
    #[arg(long, required_unless_present = "lease")]
    pub(crate) party: Option<PartyId>,
    /// For which lease; its renter gets it
    #[arg(long)]
    pub(crate) lease: Option<LeaseId>,
    /// When it ends, counted from now, e.g. 30d
    #[arg(long, value_name = "DURATION", value_parser = text::duration)]
    pub(crate) expires_after: Option<Duration>,
    /// Why, for the record
    #[arg(long)]
    pub(crate) reason: String,
}

/// Which way an adjustment goes, seen from the party.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Direction {
    /// The party gets money
    Credit,
    /// The party loses money
    Debit,
}

/// An adjustment.
#[derive(Debug, Args)]
pub(crate) struct Adjust {
    /// Which way
    #[arg(value_enum, value_name = "DIRECTION")]
    pub(crate) direction: Direction,
    /// US dollars
    #[arg(value_name = "AMOUNT", value_parser = text::amount)]
    pub(crate) amount: Micros,
    /// Whose account
    #[arg(long)]
    pub(crate) party: PartyId,
    /// Account: renter_wallet, provider_earned or provider_payable
    #[arg(long, value_name = "ACCOUNT", default_value = "renter_wallet")]
    pub(crate) account: String,
    /// Who bears it: sla_expense, dispute_loss, bad_debt or suspense
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) borne_by: String,
    /// Why, for the record
    #[arg(long)]
    pub(crate) reason: String,
}
