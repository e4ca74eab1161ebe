//! What the database answers when it does not do it.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use thiserror::Error;

/// A violated rule of the schema, by its constraint or index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// A GPU is in another live lease.
    LeaseGpuOnce,
    /// The machine has a live offer.
    OfferLiveOnce,
    /// The quote became a lease already.
    QuoteUsed,
    /// The e-mail address has an account.
    EmailTaken,
    /// The GPU belongs to another machine.
    GpuUuidOnce,
    /// The key belongs to another machine.
    MachineKey,
    /// A wallet would go below zero.
    NoOverdraft,
    /// A second would be charged twice.
    ChargeRangesApart,
    /// A charge's number exists.
    ChargeSeqOnce,
    /// The lease has an open hold.
    HoldOpenOnce,
    /// More than the hold.
    HoldNotExceeded,
    /// The cause had this effect already.
    TransferEffectOnce,
    /// A charge would be invoiced twice.
    InvoiceLineOnce,
    /// The party has the market's invoice of the month.
    InvoiceMonthOnce,
    /// Another credit note saw the same state of the invoice.
    InvoiceCreditInOrder,
    /// The movement belongs to another credit note.
    InvoiceTransferOnce,
    /// Who proposed an adjustment cannot approve it.
    AdjustmentFourEyes,
    /// An adjustment needs a reason.
    AdjustmentReason,
    /// A credit needs a reason.
    CreditReason,
    /// More of a credit than there is.
    CreditWithin,
    /// Earnings up to that instant have matured before.
    MaturingOnce,
    /// Another one, by name.
    Other(String),
}

impl Constraint {
    /// Names in the schema and what they mean.
    pub const NAMED: [(&'static str, Self); 21] = [
        ("lease_gpu_once", Self::LeaseGpuOnce),
        ("offer_live_once", Self::OfferLiveOnce),
        ("lease_quote_id_key", Self::QuoteUsed),
        ("app_user_email_key", Self::EmailTaken),
        ("gpu_uuid_once", Self::GpuUuidOnce),
        ("machine_public_key_key", Self::MachineKey),
        ("no_overdraft", Self::NoOverdraft),
        ("charge_ranges_apart", Self::ChargeRangesApart),
        ("charge_seq_once", Self::ChargeSeqOnce),
        ("hold_open_once", Self::HoldOpenOnce),
        ("hold_not_exceeded", Self::HoldNotExceeded),
        ("transfer_effect_once", Self::TransferEffectOnce),
        ("invoice_line_once", Self::InvoiceLineOnce),
        ("invoice_month_once", Self::InvoiceMonthOnce),
        ("invoice_credit_in_order", Self::InvoiceCreditInOrder),
        ("invoice_transfer_id_key", Self::InvoiceTransferOnce),
        ("adjustment_four_eyes", Self::AdjustmentFourEyes),
        ("adjustment_reason", Self::AdjustmentReason),
        ("credit_reason", Self::CreditReason),
        ("credit_within", Self::CreditWithin),
        ("maturing_once", Self::MaturingOnce),
    ];

    fn named(name: &str) -> Self {
        Self::NAMED
            .into_iter()
            .find(|(known, _)| *known == name)
            .map_or_else(
                || Self::Other(name.to_owned()),
                |(_, constraint)| constraint,
            )
    }
}

/// Why the database did not do it.
#[derive(Debug, Error)]
pub enum Error {
    /// A rule of the schema.
    #[error("the constraint {0:?} refuses")]
    Conflict(Constraint),
    /// Others wanted the same rows at the same time; nothing was changed.
    #[error("too much contention")]
    Contended,
    /// The database cannot be reached or is overloaded. Nothing was changed, unless the connection
    /// broke while it committed: then only the idempotency key can tell.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The idempotency key was used with another request.
    #[error("the idempotency key was used with another request")]
    IdempotencyMismatch,
    /// The idempotency key is being worked on.
    #[error("the idempotency key is being worked on")]
    IdempotencyInFlight,
    /// An invariant of the ledger is violated: no money moves until an operator has looked.
    #[error("the ledger is stopped: {0}")]
    LedgerStopped(String),
    /// A row holds what the code does not know.
    #[error("a row has an unknown {0}")]
    Corrupt(&'static str),
    /// A fault of ours.
    #[error("the database refused a statement")]
    Statement(#[source] DieselError),
}

/// May the whole transaction be tried again?
pub trait Retryable {
    /// Nothing was changed, and another try may succeed.
    fn retryable(&self) -> bool;
}

impl Retryable for Error {
    fn retryable(&self) -> bool {
        matches!(self, Self::Contended)
    }
}

impl From<DieselError> for Error {
    fn from(cause: DieselError) -> Self {
        let DieselError::DatabaseError(kind, info) = &cause else {
            return Self::Statement(cause);
        };
        let gone = [
            DatabaseErrorKind::ClosedConnection,
            DatabaseErrorKind::UnableToSendCommand,
        ];
        if matches!(kind, DatabaseErrorKind::SerializationFailure) {
            return Self::Contended;
        }
        if gone
            .iter()
            .any(|k| std::mem::discriminant(k) == std::mem::discriminant(kind))
        {
            return Self::Unavailable(info.message().to_owned());
        }
        match info.constraint_name() {
            Some(name) => Self::Conflict(Constraint::named(name)),
            None => by_message(info.message()).unwrap_or(Self::Statement(cause)),
        }
    }
}

/// The driver does not hand SQLSTATE through for these.
fn by_message(message: &str) -> Option<Error> {
    let contended = ["deadlock detected", "lock timeout"];
    let away = [
        "connection closed",
        "terminating connection",
        "the database system is",
        "statement timeout",
        "error communicating with the server",
    ];
    if contended.iter().any(|m| message.contains(m)) {
        return Some(Error::Contended);
    }
    away.iter()
        .any(|m| message.contains(m))
        .then(|| Error::Unavailable(message.to_owned()))
}
