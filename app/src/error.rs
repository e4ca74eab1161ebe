//! Why a use-case did not do it: a public refusal, or a private fault.
//!
//! Decide here, once: a *refusal* is a rule's answer and is shown; a *fault* is logged at the door
//! with its cause and shown only as `internal` or `unavailable`.

use std::fmt;

use domain::clock::Span;
use domain::money::MoneyError;
use domain::refusal::Code;
use store::error::{Constraint, Error as StoreError};

/// One field at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// JSON pointer into the body.
    pub pointer: String,
    /// For programs, e.g. `out_of_range`.
    pub code: &'static str,
    /// For people.
    pub detail: String,
}

/// A refusal or a fault of a use-case.
#[derive(Debug)]
pub enum Error {
    /// A rule's answer.
    Refused(Box<Refusal>),
    /// A fault below; never shown.
    Store(StoreError),
    /// A fault of ours, for the log.
    Fault(&'static str),
}

/// What a client may know of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub code: Code,
    /// What happened, and what to do.
    pub detail: String,
    /// Fields at fault.
    pub fields: Vec<FieldFault>,
    /// What would work instead.
    pub suggestion: Option<String>,
    /// When to try again.
    pub retry_after: Option<Span>,
}

impl Error {
    /// A refusal with a sentence.
    pub fn refused(code: Code, detail: impl Into<String>) -> Self {
        Self::Refused(Box::new(Refusal {
            code,
            detail: detail.into(),
            fields: Vec::new(),
            suggestion: None,
            retry_after: None,
        }))
    }

    /// 404 for `what`.
    pub fn not_found(what: &str) -> Self {
        Self::refused(
            Code::NotFound,
            format!("There is no such {what}, or it is not yours."),
        )
    }

    /// 422 for one field.
    pub fn field(pointer: &str, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let fault = FieldFault {
            pointer: pointer.to_owned(),
            code,
            detail: detail.clone(),
        };
        Self::refused(Code::InvalidField, format!("{pointer}: {detail}")).with_fields(vec![fault])
    }

    /// Adds fields at fault.
    #[must_use]
    pub fn with_fields(mut self, fields: Vec<FieldFault>) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.fields = fields;
        }
        self
    }

    /// Adds what would work instead.
    #[must_use]
    pub fn suggesting(mut self, suggestion: impl Into<String>) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.suggestion = Some(suggestion.into());
        }
        self
    }

    /// The public face: faults are reduced to a code without detail.
    pub fn public(&self) -> Refusal {
        let plain = |code: Code, detail: &str, retry: Option<Span>| Refusal {
            code,
            detail: detail.to_owned(),
            fields: Vec::new(),
            suggestion: None,
            retry_after: retry,
        };
        match self {
            Self::Refused(refusal) => (**refusal).clone(),
            Self::Store(StoreError::IdempotencyMismatch) => plain(
                Code::IdempotencyMismatch,
                "Use a fresh Idempotency-Key for another request.",
                None,
            ),
            Self::Store(StoreError::IdempotencyInFlight) => plain(
                Code::IdempotencyInFlight,
                "Wait for the first request, or send the same one again.",
                Some(Span::from_secs(1)),
            ),
            Self::Store(StoreError::Contended | StoreError::Unavailable(_)) => plain(
                Code::Unavailable,
                "Nothing was changed. Try again in a moment.",
                Some(Span::from_secs(1)),
            ),
            Self::Store(StoreError::LedgerStopped(_)) => plain(
                Code::Unavailable,
                "The ledger is stopped for an inspection. Running leases go on; nothing was changed.",
                Some(Span::from_mins(1)),
            ),
            Self::Store(_) | Self::Fault(_) => plain(
                Code::Internal,
                "The fault is logged under this request id. Nothing was changed.",
                None,
            ),
        }
    }

    /// The violated constraint, if that is what it is.
    pub fn constraint(&self) -> Option<&Constraint> {
        match self {
            Self::Store(StoreError::Conflict(constraint)) => Some(constraint),
            Self::Store(_) | Self::Refused(_) | Self::Fault(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "{}: {}", refusal.code, refusal.detail),
            Self::Store(_) => f.write_str("the database refused"),
            Self::Fault(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(cause) => Some(cause),
            Self::Refused(_) | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

impl From<MoneyError> for Error {
    fn from(_cause: MoneyError) -> Self {
        Self::refused(
            Code::AmountOutOfRange,
            "An amount is too large to be booked.",
        )
    }
}

impl store::error::Retryable for Error {
    fn retryable(&self) -> bool {
        match self {
            Self::Store(cause) => cause.retryable(),
            Self::Refused(_) | Self::Fault(_) => false,
        }
    }
}
