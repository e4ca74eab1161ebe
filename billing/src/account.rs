//! Accounts and the chart of accounts.
//!
//! Normal side: what a renter or provider owns is the market's liability, so it stands on the
//! credit side; `posted = credits − debits`. The numbers follow `docs/ledger.md`.

use domain::money::{Currency, Micros, MoneyError};
use uuid::Uuid;

/// Number of an account row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub i64);

/// The side on which an account grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Assets and expenses.
    Debit,
    /// Liabilities and income.
    Credit,
    /// Either: an account that returns to zero.
    Both,
}

impl Side {
    /// The word in `docs/ledger.md`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debit => "debit",
            Self::Credit => "credit",
            Self::Both => "both",
        }
    }
}

/// What guards an account's balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A CHECK in the row: debits, pending ones included, stay within credits.
    Covered,
    /// The operations that credit it take no more than it is owed; proven, not checked in the row.
    Owed,
    /// None: it may be on either side of zero for a while.
    Free,
}

macro_rules! chart {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal, $owner:ident, $side:ident, $guard:ident, $striped:literal;)+) => {
        /// The chart of accounts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum AccountCode { $($(#[$doc])* $name,)+ }

        impl AccountCode {
            /// The whole chart.
            pub const ALL: [Self; chart!(@count $($name)+)] = [$(Self::$name,)+];

            /// The number in the chart.
            pub const fn code(self) -> i16 {
                match self { $(Self::$name => $code,)+ }
            }

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The side on which it grows.
            pub const fn side(self) -> Side {
                match self { $(Self::$name => Side::$side,)+ }
            }

            /// What guards its balance.
            pub const fn guard(self) -> Guard {
                match self { $(Self::$name => Guard::$guard,)+ }
            }

            /// Does every writer have a row of its own, since most movements touch it?
            pub const fn is_striped(self) -> bool {
                match self { $(Self::$name => $striped,)+ }
            }

            /// Does it belong to the platform rather than to a party?
            pub const fn is_platform(self) -> bool {
                match self { $(Self::$name => chart!(@owner $owner),)+ }
            }
        }
    };
    (@owner platform) => { true };
    (@owner party) => { false };
    (@count) => { 0 };
    (@count $head:ident $($tail:ident)*) => { 1 + chart!(@count $($tail)*) };
}

chart! {
    /// Money that the card processor holds for the market.
    StripeClearing = 100, "stripe_clearing", platform, Debit, Free, true;
    /// Play money that entered: never to be mistaken for real money.
    SandboxClearing = 105, "sandbox_clearing", platform, Debit, Free, true;
    /// The market's own bank account.
    Bank = 110, "bank", platform, Debit, Free, false;
    /// What a renter owes after a dispute, so that no wallet goes below zero.
    DisputeReceivable = 120, "dispute_receivable", party, Debit, Owed, false;
    /// What a provider owes: earnings taken back after they were paid out.
    ProviderReceivable = 130, "provider_receivable", party, Debit, Owed, false;
    /// A renter's spendable money.
    RenterWallet = 200, "renter_wallet", party, Credit, Covered, false;
    /// A renter's credit from the market: spent first, never paid out.
    RenterPromo = 205, "renter_promo", party, Credit, Covered, false;
    /// On its way back to a renter's card.
    RefundPending = 220, "refund_pending", party, Credit, Covered, false;
    /// What a provider has earned, net of the fee, and may still be disputed.
    ProviderEarned = 230, "provider_earned", party, Credit, Covered, false;
    /// What may be paid out to a provider.
    ProviderPayable = 235, "provider_payable", party, Credit, Covered, false;
    /// On its way to a provider's bank.
    PayoutInFlight = 240, "payout_in_flight", party, Credit, Covered, false;
    /// A share of matured earnings that is kept back for a while. It is the provider's, so it is no
    /// platform account; it must not be paid out, so it is not payable either.
    ProviderReserve = 245, "provider_reserve", party, Credit, Covered, false;
    /// Disputed money until the bank decides.
    DisputeReserve = 250, "dispute_reserve", platform, Credit, Free, false;
    /// Tax owed.
    TaxPayable = 260, "tax_payable", platform, Credit, Free, true;
    /// What promotional credit has cost, before what expired.
    DeferredPromo = 270, "deferred_promo", platform, Debit, Free, true;
    /// The platform's fees.
    FeeRevenue = 300, "fee_revenue", platform, Credit, Free, true;
    /// Credit that expired.
    Breakage = 310, "breakage", platform, Credit, Free, true;
    /// What the card processor takes.
    StripeFees = 400, "stripe_fees", platform, Debit, Free, true;
    /// Credits for what did not work.
    SlaExpense = 410, "sla_expense", platform, Debit, Free, false;
    /// Fees of disputes.
    DisputeLoss = 420, "dispute_loss", platform, Debit, Free, false;
    /// What is owed and will not be paid.
    BadDebt = 430, "bad_debt", platform, Debit, Free, false;
    /// Between two databases; over all of them it is zero.
    Interbranch = 510, "interbranch", platform, Both, Free, false;
    /// Money from outside that belongs to nobody yet.
    Suspense = 900, "suspense", platform, Both, Free, false;
}

impl AccountCode {
    /// The account of a number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.code() == code)
    }

    /// The account of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.as_str() == name)
    }

    /// Must debits, pending ones included, stay within credits?
    pub const fn is_constrained(self) -> bool {
        matches!(self.guard(), Guard::Covered)
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
    /// Credits announced by pending transfers.
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

    /// The balance on the side on which the account grows; credits minus debits where it is both.
    pub fn worth(&self) -> Result<Micros, MoneyError> {
        match self.code.side() {
            Side::Debit => self.debits.minus(self.credits),
            Side::Credit | Side::Both => self.posted(),
        }
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
    fn the_chart_round_trips_and_numbers_grow() {
        for code in AccountCode::ALL {
            assert_eq!(AccountCode::from_code(code.code()), Some(code));
            assert_eq!(AccountCode::parse(code.as_str()), Some(code));
        }
        assert!(AccountCode::ALL.is_sorted_by_key(|a| a.code()));
        assert_eq!(AccountCode::from_code(0), None);
        assert_eq!(AccountCode::parse("renter_purse"), None);
    }

    #[test]
    fn what_is_owed_to_a_party_is_covered_and_what_a_party_owes_is_on_the_other_side() {
        for code in AccountCode::ALL {
            let of_a_party = !code.is_platform();
            let expected = match (of_a_party, code.side()) {
                (true, Side::Credit) => Guard::Covered,
                (true, Side::Debit) => Guard::Owed,
                (true, Side::Both) => panic!("{code:?}"),
                (false, _) => Guard::Free,
            };
            assert_eq!(code.guard(), expected, "{code:?}");
            assert!(!(of_a_party && code.is_striped()), "{code:?}");
        }
    }

    #[test]
    fn worth_is_on_the_normal_side() {
        let on = |code| {
            let mut account = Account::new(AccountId(1), code, Currency::Usd, PLATFORM);
            account.debits = Micros::new(7);
            account.credits = Micros::new(3);
            account.worth().unwrap().get()
        };
        assert_eq!(on(AccountCode::Bank), 4);
        assert_eq!(on(AccountCode::FeeRevenue), -4);
        assert_eq!(on(AccountCode::Suspense), -4);
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
