//! What a transaction has moved so far: balances as its work sees them, transfers, charges. It is
//! written at the end, set-wise (`batch.rs`).

use std::collections::BTreeMap;

use billing::account::{Account, AccountCode, AccountId};
use billing::charge::Charge;
use billing::transfer::Transfer;
use domain::money::Currency;
use uuid::Uuid;

use crate::error::Error;
use crate::shard::Claim;

/// How an account is found: chart and owner, and for hot platform accounts the writer's stripe.
pub(crate) type Key = (Currency, AccountCode, Uuid, i16);

/// An account as read, and as the work left it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) account: Account,
    /// As it was read.
    before: Account,
    /// The row's version when it was read.
    pub(crate) version: i64,
    pub(crate) changed: bool,
}

impl Kept {
    /// Is it a wallet into which money came, or whose hold was released?
    pub(crate) fn grew(&self) -> bool {
        let (before, after) = (self.before.available(), self.account.available());
        self.is_wallet() && matches!((before, after), (Ok(b), Ok(a)) if a > b)
    }

    /// Is it a wallet whose money changed otherwise than by using what is held?
    pub(crate) fn moved(&self) -> bool {
        let used = self
            .account
            .debits_pending
            .get()
            .saturating_sub(self.before.debits_pending.get());
        let spent = self
            .account
            .debits
            .get()
            .saturating_sub(self.before.debits.get());
        self.is_wallet()
            && (self.account.credits != self.before.credits || spent.saturating_add(used) > 0)
    }

    fn is_wallet(&self) -> bool {
        self.account.code == AccountCode::RenterWallet
    }
}

/// The open entries of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    keys: BTreeMap<Key, AccountId>,
    kept: BTreeMap<AccountId, Kept>,
    pub(crate) transfers: Vec<(Transfer, Currency)>,
    pub(crate) charges: Vec<(Charge, Currency)>,
    /// Whose chain the batch will be in; chosen with the first account.
    pub(crate) claim: Option<Claim>,
    /// Read accounts without locking them: the version tells at the end whether they were stale.
    pub(crate) optimistic: bool,
}

impl Journal {
    pub(crate) fn find(&self, key: &Key) -> Option<&Account> {
        let id = self.keys.get(key)?;
        self.kept.get(id).map(|k| &k.account)
    }

    pub(crate) fn keep(&mut self, key: Key, account: Account, version: i64) {
        self.keys.insert(key, account.id);
        let kept = Kept {
            before: account.clone(),
            account,
            version,
            changed: false,
        };
        self.kept.entry(kept.account.id).or_insert(kept);
    }

    /// Takes an account as the work left it. It must have been read in this transaction.
    pub(crate) fn change(&mut self, account: &Account) -> Result<(), Error> {
        let kept = self
            .kept
            .get_mut(&account.id)
            .ok_or(Error::Corrupt("change of an account that was not read"))?;
        if kept.account != *account {
            kept.account = account.clone();
            kept.changed = true;
        }
        Ok(())
    }

    /// The changed accounts, by number.
    pub(crate) fn changed(&self) -> Vec<&Kept> {
        self.kept.values().filter(|k| k.changed).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.transfers.is_empty() && self.charges.is_empty() && self.changed().is_empty()
    }
}
