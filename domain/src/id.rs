//! Typed identifiers: a noun's prefix, `_`, and a UUID in 26 characters of Crockford base32.
//!
//! Ids are made by the caller (see [`crate::clock::IdSource`]); UUIDv7 keeps them time-ordered.
//! Alphabet: Douglas Crockford, "Base 32", <https://www.crockford.com/base32.html>.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters after the prefix: 128 bits in groups of five.
pub const ENCODED_LEN: usize = 26;

/// Why a text is not an id of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseIdError {
    /// The text does not start with the prefix of this kind of id.
    #[error("expected an id that starts with `{0}_`")]
    Prefix(&'static str),
    /// The part after the prefix is not 26 lower-case base32 characters of a 128-bit number.
    #[error("the part after the prefix is not 26 base32 characters")]
    Body,
}

fn encode(value: u128) -> String {
    let mut out = String::with_capacity(ENCODED_LEN);
    for shift in (0..130u32).step_by(5).rev() {
        let five_bits = usize::try_from(value.wrapping_shr(shift) & 31).unwrap_or(0);
        out.push(char::from(ALPHABET.get(five_bits).copied().unwrap_or(b'0')));
    }
    out
}

fn decode(text: &str) -> Option<u128> {
    if text.len() != ENCODED_LEN {
        return None;
    }
    let mut value: u128 = 0;
    for (place, byte) in text.bytes().enumerate() {
        let digit = u128::try_from(ALPHABET.iter().position(|c| *c == byte)?).ok()?;
        // 26 × 5 = 130 bits: the first character carries only three.
        if place == 0 && digit > 7 {
            return None;
        }
        value = (value << 5) | digit;
    }
    Some(value)
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Prefix on the wire, without the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a UUID that the caller made.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The bare UUID, as stored.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, encode(self.0.as_u128()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let body = text
                    .strip_prefix(concat!($prefix, "_"))
                    .ok_or(ParseIdError::Prefix($prefix))?;
                decode(body).map(|n| Self(Uuid::from_u128(n))).ok_or(ParseIdError::Body)
            }
        }
    )+};
}

ids! {
    /// A party: renter, provider or both.
    PartyId = "pty";
    /// A person who can log in.
    UserId = "usr";
    /// An API key.
    ApiKeyId = "key";
    /// A machine with GPUs.
    MachineId = "mch";
    /// One GPU of a machine.
    GpuId = "gpu";
    /// A one-time enrolment token of a machine.
    EnrollmentId = "enr";
    /// What a provider asks for a machine.
    OfferId = "ofr";
    /// A firm, expiring all-in price.
    QuoteId = "quo";
    /// Money set aside for a lease.
    HoldId = "hld";
    /// A rental.
    LeaseId = "lse";
    /// A meter of a lease: one resource, one price segment.
    MeterId = "mtr";
    /// One settlement of a meter.
    ChargeId = "chg";
    /// A movement between two accounts.
    TransferId = "txn";
    /// An event that clients can follow.
    EventId = "evt";
    /// An audit line.
    AuditId = "aud";
    /// One HTTP request.
    RequestId = "rqs";
    /// Money that a renter puts into the wallet.
    TopUpId = "top";
    /// An invoice or credit note.
    InvoiceId = "inv";
    /// A budget.
    BudgetId = "bud";
    /// Credit from the market to a renter.
    CreditId = "crd";
    /// A change of an account by a person of the operator.
    AdjustmentId = "adj";
    /// Earnings that became payable.
    MaturingId = "mat";
    /// Money to a provider's bank.
    PayoutId = "pay";
    /// A disputed card payment.
    DisputeId = "dsp";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_extremes() {
        for n in [0, 1, u128::MAX, 0x0192_0000_0000_7000_8000_0000_0000_0001] {
            let id = LeaseId::from_uuid(Uuid::from_u128(n));
            assert_eq!(id.to_string().parse::<LeaseId>(), Ok(id));
            assert_eq!(id.to_string().len(), 4 + ENCODED_LEN);
        }
    }

    #[test]
    fn text_order_is_id_order() {
        let a = LeaseId::from_uuid(Uuid::from_u128(5 << 80));
        let b = LeaseId::from_uuid(Uuid::from_u128(6 << 80));
        assert!(a < b && a.to_string() < b.to_string());
    }

    #[test]
    fn refuses_other_kinds_and_bad_bodies() {
        let id = LeaseId::from_uuid(Uuid::from_u128(7)).to_string();
        assert_eq!(id.parse::<OfferId>(), Err(ParseIdError::Prefix("ofr")));
        for bad in [
            "lse_",
            "lse_0",
            "lse_8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "lse_0000000000000000000000000U",
        ] {
            assert_eq!(bad.parse::<LeaseId>(), Err(ParseIdError::Body), "{bad}");
        }
    }
}
