//! Charges: one settlement of a meter, out of a hold.

use domain::clock::Timestamp;
use domain::id::{ChargeId, HoldId, LeaseId, MeterId};

use crate::account::AccountId;
use crate::rating::Due;

/// The accounts that a charge touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeAccounts {
    /// Debited with gross + tax.
    pub wallet: AccountId,
    /// Credited with gross − fee.
    pub earned: AccountId,
    /// Credited with the fee.
    pub fee: AccountId,
    /// Credited with the tax.
    pub tax: AccountId,
}

/// What a settlement of a meter amounts to, before it has an id and accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The meter.
    pub meter: MeterId,
    /// Its lease.
    pub lease: LeaseId,
    /// 1, 2, … in each meter.
    pub seq: i64,
    /// The price segment that the range lies in.
    pub segment: i64,
    /// Start of the range, server time.
    pub from: Timestamp,
    /// End of the range (not contained), server time.
    pub to: Timestamp,
    /// Proven time in the range.
    pub billable_ms: i64,
    /// What it costs.
    pub due: Due,
}

/// A settlement as booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Made by the caller.
    pub id: ChargeId,
    /// What and how much.
    pub settlement: Settlement,
    /// The hold that pays.
    pub hold: HoldId,
    /// Where the money goes.
    pub accounts: ChargeAccounts,
    /// When it was booked.
    pub at: Timestamp,
}
