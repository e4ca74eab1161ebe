//! The statement of a lease: the bill that both sides can recompute, offline.
//!
//! The document is canonical JSON: verification renders it again and wants the very same bytes, so
//! any changed byte fails. Every charge line carries the BLAKE3 hash of itself and the line before;
//! the body's hash is signed by the market (Ed25519, RFC 8032).

use std::collections::BTreeSet;

use domain::money::{Currency, Micros, Period, Rate};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::meter::Resource;
use crate::rating::{Due, Shares, due};

/// Version of the document's form.
pub const FORMAT: &str = "gpumarket-lease-statement/1";

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// What is stated.
    pub body: StatementBody,
    /// BLAKE3 of the body's canonical bytes, hex.
    pub body_hash: String,
    /// Public key of the market, hex.
    pub signed_by: String,
    /// Ed25519 signature over [`FORMAT`], `\n` and the body's hash, hex.
    pub signature: String,
}

/// What is stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementBody {
    /// [`FORMAT`].
    pub format: String,
    /// `lse_…`
    pub lease: String,
    /// `pty_…` of the renter.
    pub renter: String,
    /// `pty_…` of the provider.
    pub provider: String,
    /// `mch_…`
    pub machine: String,
    /// Catalogue slug.
    pub gpu_model: String,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// The GPUs are simulated.
    pub simulated: bool,
    /// ISO 4217; all amounts are micro-units (10⁻⁶) of it.
    pub currency: String,
    /// State of the lease; the statement is final when it is `ended` or `failed`.
    pub state: String,
    /// When the statement was made, microseconds since 1970 (UTC).
    pub issued_at_us: i64,
    /// One for each resource.
    pub meters: Vec<MeterLines>,
    /// Sums over all meters.
    pub total: Totals,
}

/// One meter and its charges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterLines {
    /// `mtr_…`
    pub meter: String,
    /// `compute` or `storage`.
    pub resource: String,
    /// Price of one period for the whole lease.
    pub price_micros: i64,
    /// Length of the period.
    pub period_ms: i64,
    /// The platform's share of the price, in 1/10,000.
    pub fee_bps: u32,
    /// Tax on top, in 1/10,000.
    pub tax_bps: u32,
    /// The charges, in order.
    pub charges: Vec<ChargeLine>,
    /// Proven time in all charges.
    pub billable_ms: i64,
}

/// One charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChargeLine {
    /// 1, 2, …
    pub seq: i64,
    /// Start of the range, microseconds since 1970 (UTC, server time).
    pub from_us: i64,
    /// End of the range, not contained.
    pub to_us: i64,
    /// Proven time in the range.
    pub billable_ms: i64,
    /// Charge before tax, fee included.
    pub gross_micros: i64,
    /// The platform's share of it.
    pub fee_micros: i64,
    /// Tax on top.
    pub tax_micros: i64,
    /// BLAKE3 over the hash before and this line, hex. The first follows the meter's id.
    pub hash: String,
}

/// Sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Paid by the renter: gross + tax.
    pub renter_pays_micros: i64,
    /// Credited to the provider: gross − fee.
    pub provider_gets_micros: i64,
    /// The platform's fee.
    pub fee_micros: i64,
    /// Tax.
    pub tax_micros: i64,
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
    /// A line is out of order or its range overlaps the one before.
    #[error("{resource} charge {seq}: the range does not follow the one before")]
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
    /// A line's amount is not what rate and time give.
    #[error("{resource} charge {seq}: the amount is not what rate and time give")]
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

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The document.
    pub statement: Statement,
    /// Charges that were recomputed.
    pub charges: usize,
    /// Was the signing key given as trusted, or only consistent?
    pub key_is_trusted: bool,
}

fn render<T: Serialize>(value: &T) -> Result<Vec<u8>, StatementFault> {
    serde_json::to_vec_pretty(value).map_err(|e| StatementFault::Form(e.to_string()))
}

fn signed_bytes(body_hash: &str) -> Vec<u8> {
    format!("{FORMAT}\n{body_hash}").into_bytes()
}

fn line_hash(before: &str, line: &ChargeLine) -> String {
    let text = format!(
        "{before}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
        line.seq,
        line.from_us,
        line.to_us,
        line.billable_ms,
        line.gross_micros,
        line.fee_micros,
        line.tax_micros,
    );
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl MeterLines {
    /// Fills in the hash chain.
    pub fn chain(&mut self) {
        let mut before = self.meter.clone();
        for line in &mut self.charges {
            line.hash = line_hash(&before, line);
            before.clone_from(&line.hash);
        }
    }

    fn check(&self) -> Result<Due, StatementFault> {
        let most = |bps: u32| bps <= 10_000;
        if self.price_micros < 0 || !most(self.fee_bps) || !most(self.tax_bps) {
            return Err(StatementFault::Form("a rate out of range".to_owned()));
        }
        let period = Period::from_millis(self.period_ms)
            .ok_or_else(|| StatementFault::Form("unknown period".to_owned()))?;
        let rate = Rate {
            price: Micros::new(self.price_micros),
            per: period,
        };
        let shares = Shares {
            fee_bps: self.fee_bps,
            tax_bps: self.tax_bps,
        };
        let (mut before, mut through, mut ms) = (self.meter.clone(), i64::MIN, 0i64);
        let (mut charged, mut expected_seq) = (Due::default(), 1i64);
        for line in &self.charges {
            let (resource, seq) = (self.resource.clone(), line.seq);
            let length_ms = line.to_us.saturating_sub(line.from_us).div_euclid(1_000);
            let in_order = line.from_us >= through && line.from_us < line.to_us;
            let plausible = (0..=length_ms).contains(&line.billable_ms);
            if seq != expected_seq || !in_order || !plausible {
                return Err(StatementFault::Range { resource, seq });
            }
            if line.hash != line_hash(&before, line) {
                return Err(StatementFault::Chain { resource, seq });
            }
            ms = ms
                .checked_add(line.billable_ms)
                .ok_or(StatementFault::Overflow)?;
            let accrued = due(rate, shares, ms)?;
            if accrued.minus(charged)? != line.due() {
                return Err(StatementFault::Amount { resource, seq });
            }
            (charged, through) = (accrued, line.to_us);
            before.clone_from(&line.hash);
            expected_seq = expected_seq.saturating_add(1);
        }
        if ms == self.billable_ms {
            Ok(charged)
        } else {
            Err(StatementFault::Total)
        }
    }
}

impl ChargeLine {
    const fn due(&self) -> Due {
        Due {
            gross: Micros::new(self.gross_micros),
            fee: Micros::new(self.fee_micros),
            tax: Micros::new(self.tax_micros),
        }
    }
}

impl StatementBody {
    /// The sums of the charges.
    pub fn totals(&self) -> Result<Totals, StatementFault> {
        let mut sum = Due::default();
        for line in self.meters.iter().flat_map(|m| &m.charges) {
            sum = sum.plus(line.due())?;
        }
        Ok(Totals {
            renter_pays_micros: sum.renter()?.get(),
            provider_gets_micros: sum.provider()?.get(),
            fee_micros: sum.fee.get(),
            tax_micros: sum.tax.get(),
        })
    }

    /// Recomputes everything that does not need the signature.
    pub fn check(&self) -> Result<(), StatementFault> {
        if self.format != FORMAT {
            return Err(StatementFault::Form(format!(
                "unknown format `{}`",
                self.format
            )));
        }
        if self.currency.parse::<Currency>().is_err() {
            return Err(StatementFault::Form("unknown currency".to_owned()));
        }
        // Two meters of one resource would bill one second twice.
        let mut seen = BTreeSet::new();
        for meter in &self.meters {
            let known = Resource::parse(&meter.resource);
            if !known.is_some_and(|resource| seen.insert(resource)) {
                return Err(StatementFault::Form(
                    "a resource is unknown or metered twice".to_owned(),
                ));
            }
            meter.check()?;
        }
        if self.totals()? == self.total {
            Ok(())
        } else {
            Err(StatementFault::Total)
        }
    }
}

/// Completes chain and totals, signs, and renders the document.
pub fn sign(mut body: StatementBody, key: &SigningKey) -> Result<Vec<u8>, StatementFault> {
    body.meters.iter_mut().for_each(MeterLines::chain);
    body.total = body.totals()?;
    body.check()?;
    let body_hash = blake3::hash(&render(&body)?).to_hex().to_string();
    let signature = hex::encode(key.sign(&signed_bytes(&body_hash)).to_bytes());
    let signed_by = hex::encode(key.verifying_key().to_bytes());
    let mut bytes = render(&Statement {
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
pub fn verify(bytes: &[u8], trusted: Option<[u8; 32]>) -> Result<Verified, StatementFault> {
    let statement: Statement =
        serde_json::from_slice(bytes).map_err(|e| StatementFault::Form(e.to_string()))?;
    let mut canonical = render(&statement)?;
    canonical.push(b'\n');
    if canonical != bytes {
        return Err(StatementFault::Form(
            "the bytes are not those that were signed".to_owned(),
        ));
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
    VerifyingKey::from_bytes(&key)
        .and_then(|k| k.verify_strict(&signed_bytes(&hash), &signature))
        .map_err(|_bad| StatementFault::Signature)?;
    statement.body.check()?;
    let charges = statement.body.meters.iter().map(|m| m.charges.len()).sum();
    Ok(Verified {
        statement,
        charges,
        key_is_trusted: trusted.is_some(),
    })
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
