//! Statements: bills that everybody can recompute, offline.
//!
//! A document is canonical JSON: verification renders it again and wants the very same bytes, so
//! any changed byte fails. Every charge line carries the BLAKE3 hash of itself and the line before;
//! the body's hash is signed by the market (Ed25519, RFC 8032).
//!
//! Two kinds: the statement of a lease (`lease`), the same for renter and provider; and the
//! provider's earnings of a period (`earnings`). Where they cover the same lease they meet (`meet`).

mod earnings;
mod lease;
mod lines;
mod meet;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use earnings::{EARNINGS_FORMAT, EarningsBody, EarningsLease, EarningsMeter, Opening};
pub use lease::{FORMAT, FORMAT_1, MeterLines, StatementBody};
pub use lines::{ChargeLine, SegmentLine, Totals};
pub use meet::{MeetFault, Met, meet};

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed<B> {
    /// What is stated.
    pub body: B,
    /// BLAKE3 of the body's canonical bytes, hex.
    pub body_hash: String,
    /// Public key of the market, hex.
    pub signed_by: String,
    /// Ed25519 signature over the body's format, `\n` and the body's hash, hex.
    pub signature: String,
}

/// The statement of a lease.
pub type Statement = Signed<StatementBody>;

/// What can be stated.
pub trait Stated: Serialize + DeserializeOwned {
    /// Version of the document's form.
    fn format(&self) -> &str;
    /// Fills in chain and totals.
    fn complete(&mut self) -> Result<(), StatementFault>;
    /// Recomputes everything that does not need the signature; gives the number of charges.
    fn check(&self) -> Result<usize, StatementFault>;
}

/// What does not add up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StatementFault {
    /// Not the canonical bytes of a statement.
    #[error("not a statement in canonical form: {0}")]
    Form(String),
    /// The hash of the body is another.
    #[error("the body's hash does not match")]
    BodyHash,
    /// Signed by another key than the trusted one.
    #[error("signed by another key than the trusted one")]
    OtherKey,
    /// The signature is not valid.
    #[error("the signature is not valid")]
    Signature,
    /// A line is out of order, or its range overlaps the one before or leaves its price segment.
    #[error("{resource} charge {seq}: the range does not follow the one before, at its price")]
    Range {
        /// Which meter.
        resource: String,
        /// Which charge.
        seq: i64,
    },
    /// A line's hash does not follow from the line before.
    #[error("{resource} charge {seq}: the hash chain is broken")]
    Chain {
        /// Which meter.
        resource: String,
        /// Which charge.
        seq: i64,
    },
    /// A line's amount is not what price and time give.
    #[error("{resource} charge {seq}: the amount is not what price and time give")]
    Amount {
        /// Which meter.
        resource: String,
        /// Which charge.
        seq: i64,
    },
    /// The sums are wrong.
    #[error("the totals are not the sum of the charges")]
    Total,
    /// An amount does not fit.
    #[error("an amount is out of range")]
    Overflow,
}

impl From<domain::money::MoneyError> for StatementFault {
    fn from(_cause: domain::money::MoneyError) -> Self {
        Self::Overflow
    }
}

fn form(what: &str) -> StatementFault {
    StatementFault::Form(what.to_owned())
}

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<B> {
    /// The document.
    pub statement: Signed<B>,
    /// Charges that were recomputed.
    pub charges: usize,
    /// Was the signing key given as trusted, or only consistent?
    pub key_is_trusted: bool,
}

fn render<T: Serialize>(value: &T) -> Result<Vec<u8>, StatementFault> {
    serde_json::to_vec_pretty(value).map_err(|e| StatementFault::Form(e.to_string()))
}

fn signed_bytes(format: &str, body_hash: &str) -> Vec<u8> {
    format!("{format}\n{body_hash}").into_bytes()
}

/// Completes chain and totals, signs, and renders the document.
pub fn sign<B: Stated>(mut body: B, key: &SigningKey) -> Result<Vec<u8>, StatementFault> {
    body.complete()?;
    body.check()?;
    let body_hash = blake3::hash(&render(&body)?).to_hex().to_string();
    let message = signed_bytes(body.format(), &body_hash);
    let signature = hex::encode(key.sign(&message).to_bytes());
    let signed_by = hex::encode(key.verifying_key().to_bytes());
    let mut bytes = render(&Signed {
        body,
        body_hash,
        signed_by,
        signature,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Recomputes a statement: form, hash, signature, chain, every amount, every sum.
///
/// `trusted` is the market's key (32 bytes) if it is known; without it the signature only shows that
/// the document is as its signer made it.
pub fn verify<B: Stated>(
    bytes: &[u8],
    trusted: Option<[u8; 32]>,
) -> Result<Verified<B>, StatementFault> {
    let statement: Signed<B> =
        serde_json::from_slice(bytes).map_err(|e| StatementFault::Form(e.to_string()))?;
    let mut canonical = render(&statement)?;
    canonical.push(b'\n');
    if canonical != bytes {
        return Err(form("the bytes are not those that were signed"));
    }
    let hash = blake3::hash(&render(&statement.body)?).to_hex().to_string();
    if hash != statement.body_hash {
        return Err(StatementFault::BodyHash);
    }
    let key = decode::<32>(&statement.signed_by)?;
    if trusted.is_some_and(|t| t != key) {
        return Err(StatementFault::OtherKey);
    }
    let signature = Signature::from_bytes(&decode::<64>(&statement.signature)?);
    let message = signed_bytes(statement.body.format(), &hash);
    VerifyingKey::from_bytes(&key)
        .and_then(|k| k.verify_strict(&message, &signature))
        .map_err(|_bad| StatementFault::Signature)?;
    let charges = statement.body.check()?;
    Ok(Verified {
        statement,
        charges,
        key_is_trusted: trusted.is_some(),
    })
}

/// A verified document of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// The statement of a lease.
    Lease(Box<Verified<StatementBody>>),
    /// A provider's earnings.
    Earnings(Box<Verified<EarningsBody>>),
}

/// As [`verify`], for a document of whichever kind it says it is.
pub fn read(bytes: &[u8], trusted: Option<[u8; 32]>) -> Result<Document, StatementFault> {
    #[derive(Deserialize)]
    struct Format {
        format: String,
    }
    #[derive(Deserialize)]
    struct Kind {
        body: Format,
    }
    let kind: Kind =
        serde_json::from_slice(bytes).map_err(|e| StatementFault::Form(e.to_string()))?;
    if kind.body.format == EARNINGS_FORMAT {
        verify(bytes, trusted).map(|v| Document::Earnings(Box::new(v)))
    } else {
        verify(bytes, trusted).map(|v| Document::Lease(Box::new(v)))
    }
}

fn decode<const N: usize>(text: &str) -> Result<[u8; N], StatementFault> {
    let mut out = [0u8; N];
    hex::decode_to_slice(text, &mut out).map_err(|_bad| StatementFault::Signature)?;
    // Upper-case digits would be another spelling of the same bytes.
    if hex::encode(out) == text {
        Ok(out)
    } else {
        Err(StatementFault::Signature)
    }
}

#[cfg(test)]
mod tests;
