//! The commands of bills: usage, invoices, budgets.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::id::{BudgetId, InvoiceId, LeaseId, TransferId, UserId};
use domain::money::Micros;

use crate::text;

/// Which period.
#[derive(Debug, Args)]
pub(crate) struct Span {
    /// Start: a UTC day (2026-11-01) or an instant [default: the beginning of this UTC month]
    #[arg(long, value_name = "WHEN", value_parser = text::instant)]
    pub(crate) from: Option<String>,
    /// End, not contained: a UTC day or an instant [default: now]
    #[arg(long, value_name = "WHEN", value_parser = text::instant)]
    pub(crate) to: Option<String>,
    /// What your machines earned, instead of what you used
    #[arg(long)]
    pub(crate) earnings: bool,
}

/// What sums are made for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Group {
    /// Each UTC day
    Day,
    /// Each lease
    Lease,
    /// Each label
    Label,
    /// GPU time and disk
    Resource,
}

impl Group {
    /// As the API wants it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Lease => "lease",
            Self::Label => "label",
            Self::Resource => "resource",
        }
    }
}

/// Sums, or a file.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Usage {
    /// What else.
    #[command(subcommand)]
    pub(crate) command: Option<UsageCommand>,
    /// Which period.
    #[command(flatten)]
    pub(crate) span: Span,
    /// What sums are made for
    #[arg(long, value_enum, default_value = "day")]
    pub(crate) by: Group,
}

/// What else to do with usage.
#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// Export it as a FOCUS 1.2 file (CSV)
    Focus {
        /// Which period.
        #[command(flatten)]
        span: Span,
        /// Write it to a file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The form of a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    /// To read and print
    Pdf,
    /// To calculate with
    Csv,
}

/// What to do with invoices.
#[derive(Debug, Subcommand)]
pub(crate) enum InvoiceCommand {
    /// Make one now, of charges that are on none yet
    Create {
        /// A UTC month that is over, e.g. 2026-11
        #[arg(long, value_parser = text::month, required_unless_present_all = ["from", "to"])]
        month: Option<String>,
        /// Start: a UTC day or an instant
        #[arg(long, value_name = "WHEN", value_parser = text::instant, requires = "to", conflicts_with = "month")]
        from: Option<String>,
        /// End, not contained: a UTC day or an instant
        #[arg(long, value_name = "WHEN", value_parser = text::instant, requires = "from", conflicts_with = "month")]
        to: Option<String>,
        /// Of what your machines earned, instead of what you used
        #[arg(long)]
        earnings: bool,
    },
    /// Show one with its lines
    Show {
        /// Which invoice
        #[arg(value_name = "INVOICE")]
        invoice: InvoiceId,
    },
    /// Get one as a file
    Download {
        /// Which invoice
        #[arg(value_name = "INVOICE")]
        invoice: InvoiceId,
        /// Its form
        #[arg(long, value_enum, default_value = "pdf")]
        form: Form,
        /// Where to [default: its number, here]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take a part of one back (for the operator's finance people)
    Credit {
        /// Which invoice
        #[arg(value_name = "INVOICE")]
        invoice: InvoiceId,
        /// US dollars, tax in it
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        amount: Micros,
        /// Why; stands on the note
        #[arg(long)]
        reason: String,
        /// The movement that gives the money back
        #[arg(long, value_name = "TRANSFER")]
        transfer: Option<TransferId>,
    },
    /// Show who you are on invoices
    Profile,
    /// Change who you are on invoices; the country and VAT ID decide the tax of quotes
    SetProfile {
        /// Legal name
        #[arg(long)]
        name: Option<String>,
        /// A line of the address; may be repeated, replaces the whole address
        #[arg(long = "address", value_name = "LINE")]
        address: Vec<String>,
        /// Country, two capital letters
        #[arg(long)]
        country: Option<String>,
        /// VAT or other tax number; an empty one removes it
        #[arg(long)]
        vat_id: Option<String>,
    },
}

/// Over which time.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Period {
    /// Each UTC month anew
    Month,
    /// For ever
    Total,
}

/// What happens at 100 %.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Action {
    /// Somebody is told
    Alert,
    /// Leases are stopped (disks stay), bookings refused
    Stop,
}

/// What to do with budgets.
#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// Make one, of the whole party unless a member, label or lease is given
    Create {
        /// Only what this member booked
        #[arg(long, value_name = "USER", conflicts_with_all = ["label", "lease"])]
        member: Option<UserId>,
        /// Only leases with this label
        #[arg(long, conflicts_with = "lease")]
        label: Option<String>,
        /// Only this lease
        #[arg(long, value_name = "LEASE")]
        lease: Option<LeaseId>,
        /// The most, in US dollars, tax included
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        limit: Micros,
        /// Over which time
        #[arg(long, value_enum, default_value = "month")]
        period: Period,
        /// What happens at 100 %
        #[arg(long, value_enum, default_value = "alert")]
        action: Action,
        /// Tell at these percentages of the limit, too [default: 50,80]
        #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
        alerts: Option<Vec<u16>>,
    },
    /// Show one with what is spent of it
    Show {
        /// Which budget
        #[arg(value_name = "BUDGET")]
        budget: BudgetId,
    },
    /// Change one
    Set {
        /// Which budget
        #[arg(value_name = "BUDGET")]
        budget: BudgetId,
        /// The most, in US dollars, tax included
        #[arg(long, value_name = "USD", value_parser = text::amount)]
        limit: Option<Micros>,
        /// What happens at 100 %
        #[arg(long, value_enum)]
        action: Option<Action>,
        /// Tell at these percentages of the limit, too
        #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
        alerts: Option<Vec<u16>>,
    },
    /// Remove one
    Remove {
        /// Which budget
        #[arg(value_name = "BUDGET")]
        budget: BudgetId,
    },
}
