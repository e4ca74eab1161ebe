//! Wallet, top-ups, transactions and earnings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::money::{Money, Rate};

/// A renter's wallet: `posted − held = available`, always.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wallet {
    /// Booked in the ledger.
    pub posted: Money,
    /// Set aside for running leases.
    pub held: Money,
    /// Free to use.
    pub available: Money,
    /// Credit beside it, e.g. promotional: leases use it first; it is never paid out.
    pub promo: Money,
    /// What is owed after disputed payments; the next top-up pays it first.
    pub receivable: Money,
    /// Nothing new can be booked: a dispute is open, or something is owed.
    pub frozen: bool,
    /// What all live leases cost per hour now, tax included.
    pub burn_rate: Rate,
    /// When `posted` and `promo` are used up at this rate; absent if nothing runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub runs_out_at: Option<String>,
    /// `sandbox` (play money) or `live`.
    pub payments: String,
}

/// Put money into the wallet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTopUp {
    /// Between 1 and 100,000 USD.
    pub amount: Money,
}

/// A top-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopUp {
    /// `top_…`
    pub id: String,
    /// How much.
    pub amount: Money,
    /// `succeeded`.
    pub status: String,
    /// `sandbox`: play money, no card was charged.
    pub payments: String,
    /// When.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// The wallet afterwards.
    pub wallet: Wallet,
}

/// One movement on an account of the party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Transaction {
    /// `txn_…` or `chg_…`
    pub id: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// `sandbox_top_up`, `charge`, `matured`, …: see `docs/ledger.md`.
    pub kind: String,
    /// `renter_wallet`, `provider_earned`, …
    pub account: String,
    /// Positive: the account grew.
    pub amount: Money,
    /// What caused it: `lse_…`, `top_…`, `crd_…`, `adj_…`, `mat_…`, `pay_…`, …
    pub cause: String,
    /// For people.
    pub description: String,
}

crate::page::page! {
    /// A page of transactions.
    TransactionPage of Transaction
}

/// What a provider has earned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Earnings {
    /// Renters' charges before the fee, ever.
    pub gross: Money,
    /// The platform's fee, ever.
    pub fee: Money,
    /// Net, booked in the ledger, ever.
    pub net: Money,
    /// Tax that renters paid on top, ever; it goes to the authority.
    pub tax: Money,
    /// Of the net: still inside the maturing period.
    pub maturing: Money,
    /// Of the net: kept back for a while after it matured.
    pub reserve: Money,
    /// Of the net: may be paid out now.
    pub payable: Money,
    /// Of the net: on its way to the bank.
    pub in_flight: Money,
    /// Of the net: paid out, without what the bank sent back.
    pub paid: Money,
    /// What the provider owes: taken back after it was paid out.
    pub receivable: Money,
    /// Net of proven seconds that are not booked yet.
    pub pending: Money,
    /// What live leases earn per hour now, net.
    pub earning_rate: Rate,
    /// Live leases on own machines.
    pub live_leases: u32,
}

/// The proof of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerProof {
    /// All invariants hold.
    pub proven: bool,
    /// When it was checked.
    #[schema(format = "date-time")]
    pub checked_at: String,
    /// One row for each invariant.
    pub invariants: Vec<InvariantResult>,
}

/// One invariant of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvariantResult {
    /// E.g. `I2`.
    pub id: String,
    /// What it says.
    pub statement: String,
    /// Rows that violate it.
    pub violations: i64,
    /// The first of them, for people.
    pub examples: Vec<String>,
}
