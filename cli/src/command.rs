//! The command line: what can be asked, and how it is spelt.

pub(crate) mod money;
pub(crate) mod provider;
pub(crate) mod renter;
pub(crate) mod staff;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use domain::id::{ApiKeyId, LeaseId};
use domain::money::Micros;

use crate::text;
use money::{BudgetCommand, InvoiceCommand, Usage};
use provider::{MachineCommand, OfferCommand};
use renter::{Book, LeaseAct, Logs, Quote, Search};
use staff::{Admin, PayoutCommand};

const AFTER_HELP: &str = "\
Environment:
  GPUMARKET_SERVER    address of the market (else the profile's, else http://127.0.0.1:8080)
  GPUMARKET_API_KEY   API key (else the profile's)
  GPUMARKET_PROFILE   profile of the configuration file (else `default`)
  GPUMARKET_CONFIG    configuration file (else ~/.config/gpumarket/config.toml)
  GPUMARKET_PASSWORD  password for register, login and admin (else asked for on the terminal)

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
With --json, results are the API's JSON documents; failures are {\"error\": problem} on standard output.";

/// Rent GPUs, offer GPUs, check the bill.
#[derive(Debug, Parser)]
#[command(name = "gpumarket", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    /// For every command.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// Which.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// For every command.
#[derive(Debug, Args)]
pub(crate) struct Globals {
    /// Address of the market
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    pub(crate) server: Option<String>,
    /// Profile of the configuration file
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub(crate) profile: Option<String>,
    /// Print the API's JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an account and log in
    Register(Register),
    /// Log in: make an API key, store it, pin the market's statement key
    Login(Login),
    /// Revoke the stored API key and forget it
    Logout,
    /// Show who you are to the market
    Whoami,
    /// List API keys
    Keys(Page),
    /// Make or revoke API keys
    Key {
        /// Which.
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// List the GPU models that the market knows
    Models(Page),
    /// Find offers; prices are all-in
    Search(Search),
    /// Get a firm price, good for two minutes
    Quote(Quote),
    /// Book: find the cheapest offer, quote it, start the container, wait until it runs
    Book(Box<Book>),
    /// List leases
    Leases(Page),
    /// Show a lease
    Show {
        /// Which lease
        #[arg(value_name = "LEASE")]
        lease: LeaseId,
        /// Show it again every second, until it is over
        #[arg(long, short)]
        watch: bool,
    },
    /// Print a container's output
    Logs(Logs),
    /// Stop the container and free the GPUs; the disk stays and costs storage
    Stop {
        /// Which lease, and whether to wait.
        #[command(flatten)]
        act: LeaseAct,
        /// Keep the GPUs for a resume, at the lease's price of keeping; stop again without it to free them
        #[arg(long)]
        keep_gpus: bool,
    },
    /// Start a stopped lease again
    Resume(LeaseAct),
    /// End a lease and delete its disk
    End(LeaseAct),
    /// Grow the disk of a lease; the new size is billed from that second on
    Resize {
        /// Which lease
        #[arg(value_name = "LEASE")]
        lease: LeaseId,
        /// The new size in GiB
        #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        disk: u32,
    },
    /// List what happened to a lease, and why; without a lease, what you were told (low money, …)
    Events {
        /// Which lease
        #[arg(value_name = "LEASE")]
        lease: Option<LeaseId>,
        /// Which page.
        #[command(flatten)]
        page: Page,
    },
    /// Get the signed statement of a lease: the bill that `verify` recomputes
    Statement {
        /// Which lease
        #[arg(value_name = "LEASE")]
        lease: LeaseId,
        /// Write it to a file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Recompute statements offline, and check that a lease's statement and its provider's
    /// earnings meet
    Verify {
        /// The statements
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The market's statement key (Ed25519, 64 hex digits) [default: the profile's]
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Show the wallet
    Wallet,
    /// Put money into the wallet
    TopUp {
        /// US dollars
        #[arg(value_name = "AMOUNT", value_parser = text::amount)]
        amount: Micros,
    },
    /// List movements of money
    Transactions(Page),
    /// Show what your machines earned, and where it is
    Earnings,
    /// List payouts
    Payouts(Page),
    /// Ask for a payout, or show one
    Payout {
        /// What.
        #[command(subcommand)]
        command: PayoutCommand,
    },
    /// For the operator's people: credits, adjustments
    Admin(Box<Admin>),
    /// Get the signed statement of a period's earnings: `verify` recomputes it
    EarningsStatement(EarningsStatement),
    /// Sum up what was charged, or export it
    Usage(Usage),
    /// List invoices and credit notes
    Invoices(Page),
    /// Make, show or download an invoice; say who you are on it
    Invoice {
        /// What.
        #[command(subcommand)]
        command: InvoiceCommand,
    },
    /// List budgets
    Budgets(Page),
    /// Make, show, change or remove a budget: alert, then stop
    Budget {
        /// What.
        #[command(subcommand)]
        command: BudgetCommand,
    },
    /// List your machines
    Machines(Page),
    /// Enrol, show or direct a machine
    Machine {
        /// What.
        #[command(subcommand)]
        command: MachineCommand,
    },
    /// List your offers
    Offers(Page),
    /// Make, show, change or withdraw an offer
    Offer {
        /// What.
        #[command(subcommand)]
        command: OfferCommand,
    },
}

/// A period of earnings.
#[derive(Debug, Args)]
pub(crate) struct EarningsStatement {
    /// Charges booked from this time on, e.g. 2026-11-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: String,
    /// And before this time [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Only this lease
    #[arg(long, value_name = "LEASE")]
    pub(crate) lease: Option<LeaseId>,
    /// Write it to a file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Rows wanted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200), default_value_t = 50)]
    pub(crate) limit: u32,
    /// Where the page before ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

impl Page {
    /// As the API wants it.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let cursor = self.cursor.iter().map(|c| ("cursor", c.clone()));
        std::iter::once(("limit", self.limit.to_string()))
            .chain(cursor)
            .collect()
    }
}

/// A new account.
#[derive(Debug, Args)]
pub(crate) struct Register {
    /// E-mail address
    #[arg(long)]
    pub(crate) email: String,
    /// Name of your organisation (the party that rents or provides)
    #[arg(long, value_name = "PARTY")]
    pub(crate) name: String,
    /// How the password comes and what is made.
    #[command(flatten)]
    pub(crate) how: LoginHow,
}

/// A log-in.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// E-mail address
    #[arg(long)]
    pub(crate) email: String,
    /// Pin the statement key that the market shows now, although another is pinned
    #[arg(long)]
    pub(crate) trust_new_key: bool,
    /// How the password comes and what is made.
    #[command(flatten)]
    pub(crate) how: LoginHow,
}

/// How the password comes and what is made.
#[derive(Debug, Args)]
pub(crate) struct LoginHow {
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub(crate) password_stdin: bool,
    /// Name of the API key that is made [default: gpumarket on HOST]
    #[arg(long, value_name = "NAME")]
    pub(crate) key_name: Option<String>,
}

/// API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key; its secret is shown once
    Create {
        /// Name, for people
        #[arg(long)]
        name: String,
        /// Limit it, e.g. leases:read; may be repeated [default: all that you may]
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// When it ends, counted from now, e.g. 30d
        #[arg(long, value_name = "DURATION", value_parser = text::duration)]
        expires_after: Option<std::time::Duration>,
    },
    /// Revoke a key, at once
    Revoke {
        /// Which key
        #[arg(value_name = "KEY")]
        key: ApiKeyId,
    },
}
