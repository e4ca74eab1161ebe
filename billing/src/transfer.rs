//! Transfers: one debit, one credit, one positive amount, immutable.

use domain::clock::Timestamp;
use domain::id::TransferId;
use domain::money::{Micros, MoneyError};
use thiserror::Error;
use uuid::Uuid;

use crate::account::AccountId;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal, $words:literal;)+) => {
        /// What a transfer is for. Each cause has at most one transfer of each kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum TransferKind { $($(#[$doc])* $name,)+ }

        impl TransferKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The number in the database.
            pub const fn code(self) -> i16 {
                match self { $(Self::$name => $code,)+ }
            }

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// For people, in a list of movements.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)+ }
            }
        }
    };
}

kinds! {
    /// `sandbox_clearing` → `renter_wallet`; cause: the top-up.
    SandboxTopUp = 1, "sandbox_top_up", "top-up with play money (sandbox)";
    /// `stripe_clearing` → `renter_wallet`; cause: the payment.
    Deposit = 2, "deposit", "top-up by card";
    /// `stripe_fees` → `stripe_clearing`; cause: the processor's balance transaction.
    StripeFee = 3, "stripe_fee", "fee of the card processor";
    /// `bank` → `stripe_clearing`; cause: the processor's payout to the market.
    BankSettled = 4, "bank_settled", "the card processor has paid the market out";
    /// `tax_payable` → `bank`; cause: the tax return.
    TaxRemitted = 5, "tax_remitted", "tax paid to the authority";
    /// `stripe_clearing` → `suspense`; cause: the unmatched money.
    SuspenseIn = 6, "suspense_in", "money from outside without a match";
    /// `suspense` → the wallet that it belongs to; cause: the unmatched money.
    SuspenseOut = 7, "suspense_out", "unmatched money found its owner";
    /// `renter_wallet` → `refund_pending`; cause: the refund.
    RefundRequested = 10, "refund_requested", "refund to the card, on its way";
    /// `refund_pending` → clearing; cause: the refund.
    RefundSettled = 11, "refund_settled", "refund has reached the card";
    /// `refund_pending` → `renter_wallet`; cause: the refund.
    RefundFailed = 12, "refund_failed", "refund failed, the money is back in the wallet";
    /// `deferred_promo` → `renter_promo`; cause: the credit.
    PromoGranted = 20, "promo_granted", "promotional credit";
    /// `renter_promo` → `renter_wallet`; cause: the use of the credit.
    PromoReleased = 21, "promo_released", "credit used for a lease";
    /// `renter_wallet` → `renter_promo`; cause: the use that it gives back.
    PromoReturned = 22, "promo_returned", "unused credit given back by a lease";
    /// `renter_promo` → `breakage`; cause: the expiry.
    PromoExpired = 23, "promo_expired", "credit has expired";
    /// `sla_expense` → `renter_promo`; cause: the credit.
    SlaCredit = 24, "sla_credit", "credit for lost service";
    /// `sla_expense` → `renter_promo`; cause: the credit.
    GoodwillCredit = 25, "goodwill_credit", "goodwill credit";
    /// A platform account → an account of a party; cause: the adjustment.
    AdjustmentCredit = 30, "adjustment_credit", "adjustment in your favour";
    /// An account of a party → a platform account; cause: the adjustment.
    AdjustmentDebit = 31, "adjustment_debit", "adjustment against you";
    /// The reverse of a transfer; cause: that transfer.
    Correction = 32, "correction", "reversal of an earlier movement";
    /// `provider_earned` → `renter_wallet`; cause: the charge.
    ChargeNetReversed = 33, "charge_net_reversed", "reversal of a charge: the provider's part";
    /// `fee_revenue` → `renter_wallet`; cause: the charge.
    ChargeFeeReversed = 34, "charge_fee_reversed", "reversal of a charge: the fee";
    /// `tax_payable` → `renter_wallet`; cause: the charge.
    ChargeTaxReversed = 35, "charge_tax_reversed", "reversal of a charge: the tax";
    /// `provider_earned` → `provider_payable`; cause: the maturing.
    Matured = 40, "matured", "earnings may be paid out now";
    /// `provider_payable` → `provider_reserve`; cause: the maturing.
    ReserveWithheld = 41, "reserve_withheld", "share kept back as a reserve";
    /// `provider_reserve` → `provider_payable`; cause: the maturing that withheld it.
    ReserveReleased = 42, "reserve_released", "reserve released";
    /// `provider_payable` → `renter_wallet`; cause: the charge that is reversed.
    ClawbackPayable = 43, "clawback_payable", "earnings taken back";
    /// `provider_receivable` → `renter_wallet`; cause: the charge that is reversed.
    ClawbackOwed = 44, "clawback_owed", "earnings taken back, owed";
    /// `provider_payable` → `provider_receivable`; cause: the maturing.
    ClawbackRepaid = 45, "clawback_repaid", "debt paid out of earnings";
    /// `provider_reserve` → `renter_wallet`; cause: the charge that is reversed.
    ClawbackReserve = 46, "clawback_reserve", "earnings taken back out of the reserve";
    /// `provider_payable` → `provider_receivable`; cause: the payout.
    ClawbackSettled = 47, "clawback_settled", "debt paid before a payout";
    /// `provider_payable` → `payout_in_flight`; cause: the payout.
    PayoutRequested = 50, "payout_requested", "payout requested";
    /// `payout_in_flight` → clearing; cause: the payout.
    PayoutSent = 51, "payout_sent", "payout sent to the bank";
    /// `payout_in_flight` → `provider_payable`; cause: the payout.
    PayoutFailed = 52, "payout_failed", "payout failed, the money is payable again";
    /// Clearing → `provider_payable`; cause: the payout.
    PayoutReturned = 53, "payout_returned", "the bank sent a payout back";
    /// `renter_wallet` → `dispute_reserve`; cause: the dispute.
    DisputeOpened = 60, "dispute_opened", "a card payment is disputed";
    /// `dispute_receivable` → `dispute_reserve`; cause: the dispute.
    DisputeOwed = 61, "dispute_owed", "disputed beyond what the wallet has: owed";
    /// `dispute_reserve` → `renter_wallet`; cause: the dispute.
    DisputeWon = 62, "dispute_won", "dispute decided for you: money is back";
    /// `dispute_reserve` → `dispute_receivable`; cause: the dispute.
    DisputeOwedWon = 63, "dispute_owed_won", "dispute decided for you: nothing is owed";
    /// `dispute_reserve` → clearing; cause: the dispute.
    DisputeLost = 64, "dispute_lost", "dispute decided for the card holder";
    /// `dispute_loss` → clearing; cause: the dispute.
    DisputeFee = 65, "dispute_fee", "fee of a dispute";
    /// `renter_wallet` → `dispute_receivable`; cause: the top-up.
    ReceivableRepaid = 66, "receivable_repaid", "debt of a dispute paid by a top-up";
    /// `bad_debt` → `dispute_receivable`; cause: the decision.
    WrittenOff = 67, "written_off", "debt written off";
    /// `renter_wallet` → `dispute_receivable`; cause: the dispute that was won.
    ReceivableSettled = 68, "receivable_settled", "debt of a dispute paid out of another that was won";
    /// `renter_wallet` → `dispute_receivable`; cause: itself.
    ReceivableCollected = 69, "receivable_collected", "debt of a dispute paid out of the wallet";
    /// An account → `interbranch`; cause: the move, the same in both databases.
    InterbranchOut = 70, "interbranch_out", "moved to another branch";
    /// `interbranch` → an account; cause: the move, the same in both databases.
    InterbranchIn = 71, "interbranch_in", "moved from another branch";
}

impl TransferKind {
    /// The kind of a number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.code() == code)
    }

    /// The kind of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.as_str() == name)
    }
}

/// A movement of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Made by the caller.
    pub id: TransferId,
    /// What for.
    pub kind: TransferKind,
    /// Account that is debited.
    pub debit: AccountId,
    /// Account that is credited.
    pub credit: AccountId,
    /// More than zero.
    pub amount: Micros,
    /// The business operation behind it.
    pub cause: Uuid,
    /// When.
    pub at: Timestamp,
}

/// Why money did not move. Tested in this order; the first rule that refuses is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum TransferRefusal {
    /// The amount is zero or negative.
    #[error("the amount must be more than zero")]
    AmountNotPositive,
    /// Both sides are one account.
    #[error("debit and credit are the same account")]
    SameAccount,
    /// An account is not there.
    #[error("an account does not exist")]
    AccountMissing,
    /// The accounts have different currencies.
    #[error("the accounts have different currencies")]
    CurrencyMismatch,
    /// The hold is not there.
    #[error("the hold does not exist")]
    HoldMissing,
    /// The hold is closed, or its time is over.
    #[error("the hold is not open")]
    HoldNotOpen,
    /// The hold was taken on another account or for another lease, or (on opening) its id or its
    /// lease has a hold already.
    #[error("the hold belongs to another account or lease")]
    HoldOfOther,
    /// More than is left in the hold.
    #[error("the hold does not cover the amount")]
    ExceedsHold,
    /// More than is available.
    #[error("the account does not cover the amount")]
    ExceedsCredits,
    /// More than is owed.
    #[error("the amount is more than is owed")]
    ExceedsDebits,
    /// A sum would not fit into 64 bits.
    #[error("an account would overflow")]
    Overflow,
}

impl From<MoneyError> for TransferRefusal {
    fn from(_cause: MoneyError) -> Self {
        Self::Overflow
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_round_trip_and_have_numbers_names_and_words_of_their_own() {
        for kind in TransferKind::ALL.iter().copied() {
            assert_eq!(TransferKind::from_code(kind.code()), Some(kind));
            assert_eq!(TransferKind::parse(kind.as_str()), Some(kind));
        }
        let words: BTreeSet<_> = TransferKind::ALL.iter().map(|k| k.words()).collect();
        assert_eq!(words.len(), TransferKind::ALL.len());
        assert_eq!(TransferKind::from_code(0), None);
        // Rows of the first market say 1.
        assert_eq!(TransferKind::SandboxTopUp.code(), 1);
    }
}
