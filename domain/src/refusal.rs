//! Refusals: the closed list of codes that a client can meet, each with its kind.
//!
//! A code names the rule that refused. The kind decides the HTTP status (see `web-openapi::problem`).

use std::fmt;

/// What sort of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The request cannot be read.
    Malformed,
    /// No or bad credentials.
    Unauthenticated,
    /// Not enough money.
    Unpaid,
    /// Visible, but not allowed.
    Forbidden,
    /// Not there, or not visible.
    NotFound,
    /// The method does not exist here.
    NotAllowed,
    /// It does not fit the present state.
    Conflict,
    /// The client's version is old.
    Stale,
    /// The body is too large.
    TooLarge,
    /// The body's media type is not accepted.
    Unsupported,
    /// Read, but a rule refuses it.
    Unprocessable,
    /// Too many requests.
    Throttled,
    /// A fault of ours.
    Fault,
    /// Try again.
    Unavailable,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $kind:ident, $title:literal;)+) => {
        /// The rule that refused. Stable: clients may match on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name,)+ }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// What sort of refusal it is.
            pub const fn kind(self) -> Kind {
                match self { $(Self::$name => Kind::$kind,)+ }
            }

            /// One short sentence that is always true of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }
        }
    };
}

codes! {
    /// The request is not valid HTTP or JSON.
    MalformedRequest = "malformed_request", Malformed, "The request could not be read";
    /// A key or token stood in the URL.
    KeyInUrl = "key_in_url", Malformed, "Credentials must not be sent in a URL";
    /// No credentials.
    Unauthenticated = "unauthenticated", Unauthenticated, "Credentials are missing or not valid";
    /// E-mail or password is wrong.
    BadLogin = "bad_login", Unauthenticated, "E-mail address or password is wrong";
    /// The wallet cannot cover the hold.
    InsufficientFunds = "insufficient_funds", Unpaid, "The wallet cannot cover this";
    /// A budget that stops leases is used up.
    BudgetExhausted = "budget_exhausted", Unpaid, "A budget is used up";
    /// The role or scope does not allow it.
    Forbidden = "forbidden", Forbidden, "Your role or key does not allow this";
    /// No such object, or not yours.
    NotFound = "not_found", NotFound, "No such object";
    /// No such route.
    NoRoute = "no_route", NotFound, "No such route";
    /// The route has no such method.
    MethodNotAllowed = "method_not_allowed", NotAllowed, "The route does not have this method";
    /// The e-mail address has an account.
    EmailTaken = "email_taken", Conflict, "This e-mail address has an account";
    /// The same idempotency key with another body.
    IdempotencyMismatch = "idempotency_mismatch", Conflict, "The Idempotency-Key was used with another request";
    /// The same idempotency key is being worked on.
    IdempotencyInFlight = "idempotency_in_flight", Conflict, "A request with this Idempotency-Key is being worked on";
    /// The quoted offer has another price or terms now.
    OfferChanged = "offer_changed", Conflict, "The offer has changed since";
    /// The quote is over.
    QuoteExpired = "quote_expired", Conflict, "The quote has expired";
    /// The quote was used.
    QuoteUsed = "quote_used", Conflict, "The quote has been used for a lease";
    /// Somebody else has the GPUs.
    CapacityTaken = "capacity_taken", Conflict, "The GPUs are taken";
    /// The lease's state does not allow it.
    LeaseState = "lease_state", Conflict, "The lease is not in a state that allows this";
    /// The machine's state does not allow it.
    MachineState = "machine_state", Conflict, "The machine is not in a state that allows this";
    /// The enrolment token was used or is over.
    EnrollmentSpent = "enrollment_spent", Conflict, "The enrolment token was used or has expired";
    /// The machine has a live offer.
    OfferExists = "offer_exists", Conflict, "The machine has an offer";
    /// The period has no charges that are on no invoice.
    NothingToInvoice = "nothing_to_invoice", Conflict, "There is nothing to invoice";
    /// More than is left of the invoice, or a movement that has its note.
    CreditConflict = "credit_conflict", Conflict, "This cannot be credited";
    /// A dispute is open, or a debt of one is not paid.
    WalletFrozen = "wallet_frozen", Conflict, "The wallet is frozen";
    /// Nothing is due.
    NothingDue = "nothing_due", Conflict, "There is nothing to move";
    /// The adjustment was decided, or its time is over.
    AdjustmentState = "adjustment_state", Conflict, "The adjustment has been decided or has expired";
    /// Who proposed cannot approve.
    FourEyes = "four_eyes", Conflict, "Another person must approve this";
    /// The object changed since it was read.
    StaleVersion = "stale_version", Stale, "The object has changed since it was read";
    /// The body is too large.
    BodyTooLarge = "body_too_large", TooLarge, "The body is too large";
    /// The media type is not accepted.
    UnsupportedMediaType = "unsupported_media_type", Unsupported, "The media type is not accepted";
    /// A field is unknown, missing or malformed.
    InvalidField = "invalid_field", Unprocessable, "A field is unknown, missing or not valid";
    /// No such GPU model.
    UnknownGpuModel = "unknown_gpu_model", Unprocessable, "No such GPU model";
    /// The probe cannot be true.
    ImplausibleProbe = "implausible_probe", Unprocessable, "The machine's report cannot be true";
    /// Simulated supply is not allowed here.
    SimulatedNotAllowed = "simulated_not_allowed", Unprocessable, "This market does not allow simulated GPUs";
    /// A bid floor above the price.
    FloorAbovePrice = "floor_above_price", Unprocessable, "The floor must not exceed the on-demand price";
    /// The amount is not allowed.
    AmountOutOfRange = "amount_out_of_range", Unprocessable, "The amount is out of range";
    /// Payments are not set up.
    PaymentsDisabled = "payments_disabled", Unprocessable, "This market takes no payments of this kind";
    /// Too many requests.
    Throttled = "throttled", Throttled, "Too many requests";
    /// The machine cannot be asked right now.
    MachineUnreachable = "machine_unreachable", Unavailable, "The machine cannot be reached right now";
    /// A dependency is away or overloaded.
    Unavailable = "unavailable", Unavailable, "The service is not available right now";
    /// A fault of ours.
    Internal = "internal", Fault, "A fault of the service";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_snake_case() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(
            texts
                .iter()
                .all(|t| t.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        );
    }
}
