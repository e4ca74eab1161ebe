//! Accounts and the chart of accounts.
//!
//! Normal side: what a renter or provider owns is the market's liability, so it stands on the
//! credit side; `posted = credits − debits`. The numbers follow `docs/ledger.md`.

use domain::money::{Currency, Micros, MoneyError};
use uuid::Uuid;

/// Number of an account row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub i64);

/// The chart of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountCode {
    /// Play money that entered: never to be mistaken for real money. Platform, debit side.
    SandboxClearing,
    /// A renter's spendable money. Never below zero.
    RenterWallet,
    /// What a provider has earned, net of the fee.
    ProviderEarned,
    /// Tax owed. Platform.
    TaxPayable,
    /// The platform's fees. Platform.
    FeeRevenue,
}

impl AccountCode {
    /// The whole chart.
    pub const ALL: [Self; 5] = [
        Self::SandboxClearing,
        Self::RenterWallet,
        Self::ProviderEarned,
        Self::TaxPayable,
        Self::FeeRevenue,
    ];

    /// The number in the chart.
    pub const fn code(self) -> i16 {
        match self {
            Self::SandboxClearing => 105,
            Self::RenterWallet => 200,
            Self::ProviderEarned => 230,
            Self::TaxPayable => 260,
            Self::FeeRevenue => 300,
        }
    }

    /// The account of a number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.code() == code)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SandboxClearing => "sandbox_clearing",
            Self::RenterWallet => "renter_wallet",
            Self::ProviderEarned => "provider_earned",
            Self::TaxPayable => "tax_payable",
            Self::FeeRevenue => "fee_revenue",
        }
    }

    /// Must debits, pending ones included, stay within credits?
    pub const fn is_constrained(self) -> bool {
        matches!(self, Self::RenterWallet)
    }

    /// Does every writer have a row of its own, since every movement touches it?
    pub const fn is_striped(self) -> bool {
        self.is_platform()
    }

    /// Does it belong to the platform rather than to a party?
    pub const fn is_platform(self) -> bool {
        matches!(
            self,
            Self::SandboxClearing | Self::TaxPayable | Self::FeeRevenue
        )
    }
}

/// Who owns platform accounts: the nil UUID.
pub const PLATFORM: Uuid = Uuid::nil();

/// An account with its running sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Row number.
    pub id: AccountId,
    /// Place in the chart.
    pub code: AccountCode,
    /// Currency; a transfer never crosses currencies.
    pub currency: Currency,
    /// The party, or [`PLATFORM`].
    pub owner: Uuid,
    /// Sum of posted debits.
    pub debits: Micros,
    /// Sum of posted credits.
    pub credits: Micros,
    /// Debits set aside by open holds.
    pub debits_pending: Micros,
    /// Credits set aside; unused so far.
    pub credits_pending: Micros,
}

impl Account {
    /// A new account without movements.
    pub const fn new(id: AccountId, code: AccountCode, currency: Currency, owner: Uuid) -> Self {
        Self {
            id,
            code,
            currency,
            owner,
            debits: Micros::ZERO,
            credits: Micros::ZERO,
            debits_pending: Micros::ZERO,
            credits_pending: Micros::ZERO,
        }
    }

    /// Credits minus debits: what a credit-normal account is worth.
    pub fn posted(&self) -> Result<Micros, MoneyError> {
        self.credits.minus(self.debits)
    }

    /// Set aside by holds.
    pub const fn held(&self) -> Micros {
        self.debits_pending
    }

    /// `posted − held`: the one meaning of available.
    pub fn available(&self) -> Result<Micros, MoneyError> {
        self.posted()?.minus(self.debits_pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_round_trips_and_only_wallets_are_constrained() {
        for code in AccountCode::ALL {
            assert_eq!(AccountCode::from_code(code.code()), Some(code));
            let renter = code == AccountCode::RenterWallet;
            assert_eq!(code.is_constrained(), renter);
            let of_a_party = renter || code == AccountCode::ProviderEarned;
            assert_eq!(code.is_platform(), !of_a_party);
        }
        assert_eq!(
            AccountCode::ALL.map(AccountCode::code),
            [105, 200, 230, 260, 300]
        );
        assert_eq!(AccountCode::from_code(0), None);
    }

    #[test]
    fn available_is_posted_without_held() {
        let mut account = Account::new(
            AccountId(1),
            AccountCode::RenterWallet,
            Currency::Usd,
            PLATFORM,
        );
        account.credits = Micros::new(10);
        account.debits = Micros::new(3);
        account.debits_pending = Micros::new(2);
        assert_eq!(account.posted(), Ok(Micros::new(7)));
        assert_eq!(account.held(), Micros::new(2));
        assert_eq!(account.available(), Ok(Micros::new(5)));
    }
}
