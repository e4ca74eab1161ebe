//! The ledger's rules over a set of accounts and holds in memory.
//!
//! `store` loads and locks the rows, this decides, `store` saves what changed. It is the oracle of
//! the tests as well. Invariant: nothing changes on a refusal.

use std::collections::{BTreeMap, BTreeSet};

use domain::clock::Timestamp;
use domain::id::{HoldId, LeaseId};
use domain::money::Micros;

use crate::account::{Account, AccountId, Guard};
use crate::charge::Charge;
use crate::hold::{Hold, HoldState};
use crate::transfer::{Transfer, TransferRefusal};

/// Accounts and holds, with the rules that change them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<AccountId, Account>,
    holds: BTreeMap<HoldId, Hold>,
    /// Leases with an open hold.
    open: BTreeSet<LeaseId>,
}

impl Ledger {
    /// A ledger of these accounts and holds.
    pub fn new(
        accounts: impl IntoIterator<Item = Account>,
        holds: impl IntoIterator<Item = Hold>,
    ) -> Self {
        let holds: BTreeMap<HoldId, Hold> = holds.into_iter().map(|h| (h.id, h)).collect();
        let open = holds.values().filter(|h| h.state == HoldState::Open);
        Self {
            accounts: accounts.into_iter().map(|a| (a.id, a)).collect(),
            open: open.map(|h| h.lease).collect(),
            holds,
        }
    }

    /// The accounts, by number.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    /// The holds, by id.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// One account.
    pub fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(&id)
    }

    /// One hold.
    pub fn hold(&self, id: HoldId) -> Option<&Hold> {
        self.holds.get(&id)
    }

    /// Books a transfer.
    pub fn transfer(&mut self, t: &Transfer) -> Result<(), TransferRefusal> {
        if t.amount <= Micros::ZERO {
            return Err(TransferRefusal::AmountNotPositive);
        }
        if t.debit == t.credit {
            return Err(TransferRefusal::SameAccount);
        }
        self.same_currency(&[t.debit, t.credit])?;
        let debit = self.debited(t.debit, t.amount)?;
        let credit = self.credited(t.credit, t.amount)?;
        self.put([debit, credit]);
        Ok(())
    }

    /// Sets money aside. The hold must be new: open, nothing charged, the only open one of its lease.
    pub fn open_hold(&mut self, hold: Hold) -> Result<(), TransferRefusal> {
        if hold.amount <= Micros::ZERO {
            return Err(TransferRefusal::AmountNotPositive);
        }
        self.get(hold.account)?;
        if hold.state != HoldState::Open || hold.posted != Micros::ZERO {
            return Err(TransferRefusal::HoldNotOpen);
        }
        if self.holds.contains_key(&hold.id) || self.open.contains(&hold.lease) {
            return Err(TransferRefusal::HoldOfOther);
        }
        let account = self.pending(hold.account, hold.amount)?;
        self.put([account]);
        self.open.insert(hold.lease);
        self.holds.insert(hold.id, hold);
        Ok(())
    }

    /// Sets more aside in an open hold.
    pub fn raise_hold(&mut self, id: HoldId, more: Micros) -> Result<(), TransferRefusal> {
        if more <= Micros::ZERO {
            return Err(TransferRefusal::AmountNotPositive);
        }
        let mut hold = self.open(id)?.clone();
        let account = self.pending(hold.account, more)?;
        hold.amount = hold.amount.plus(more)?;
        self.put([account]);
        self.holds.insert(id, hold);
        Ok(())
    }

    /// Releases a part of an open hold; less than what is left in it.
    pub fn lower_hold(&mut self, id: HoldId, less: Micros) -> Result<(), TransferRefusal> {
        if less <= Micros::ZERO {
            return Err(TransferRefusal::AmountNotPositive);
        }
        let mut hold = self.open(id)?.clone();
        if less >= hold.remaining() {
            return Err(TransferRefusal::ExceedsHold);
        }
        let mut account = self.get(hold.account)?.clone();
        account.debits_pending = account.debits_pending.minus(less)?;
        hold.amount = hold.amount.minus(less)?;
        self.put([account]);
        self.holds.insert(id, hold);
        Ok(())
    }

    /// An open hold does not expire by itself any more (its lease has started).
    pub fn keep_hold(&mut self, id: HoldId) -> Result<(), TransferRefusal> {
        let mut hold = self.open(id)?.clone();
        hold.expires_at = None;
        self.holds.insert(id, hold);
        Ok(())
    }

    /// Books a charge out of its lease's hold, which must not be over at the charge's time.
    pub fn charge(&mut self, charge: &Charge) -> Result<(), TransferRefusal> {
        let (due, to) = (charge.settlement.due, charge.accounts);
        let zero = Micros::ZERO;
        if due.gross < zero || due.fee < zero || due.tax < zero || due.fee > due.gross {
            return Err(TransferRefusal::AmountNotPositive);
        }
        if [to.earned, to.fee, to.tax].contains(&to.wallet) {
            return Err(TransferRefusal::SameAccount);
        }
        self.same_currency(&[to.wallet, to.earned, to.fee, to.tax])?;
        let mut hold = self.open(charge.hold)?.clone();
        if hold.is_over(charge.at) {
            return Err(TransferRefusal::HoldNotOpen);
        }
        if hold.account != to.wallet || hold.lease != charge.settlement.lease {
            return Err(TransferRefusal::HoldOfOther);
        }
        // A sum beyond 64 bits is beyond any hold as well.
        let pays = due.renter().map_err(|_wide| TransferRefusal::ExceedsHold)?;
        if pays > hold.remaining() {
            return Err(TransferRefusal::ExceedsHold);
        }
        hold.posted = hold.posted.plus(pays)?;
        let mut wallet = self.get(to.wallet)?.clone();
        wallet.debits = wallet.debits.plus(pays)?;
        wallet.debits_pending = wallet.debits_pending.minus(pays)?;
        let mut moved = vec![wallet];
        for (id, amount) in [
            (to.earned, due.provider()?),
            (to.fee, due.fee),
            (to.tax, due.tax),
        ] {
            // Two of them may be one account: then the second adds to the first.
            let before = moved.iter().rev().find(|a| a.id == id);
            let mut account = before.map_or_else(|| self.get(id), Ok)?.clone();
            account.credits = account.credits.plus(amount)?;
            moved.push(account);
        }
        for account in moved {
            self.put([account]);
        }
        self.holds.insert(hold.id, hold);
        Ok(())
    }

    /// Releases what is left of a hold.
    pub fn close_hold(&mut self, id: HoldId) -> Result<(), TransferRefusal> {
        self.release(id, HoldState::Closed)
    }

    /// Releases a hold whose time is over at `now`.
    pub fn expire_hold(&mut self, id: HoldId, now: Timestamp) -> Result<(), TransferRefusal> {
        if !self.open(id)?.is_over(now) {
            return Err(TransferRefusal::HoldNotOpen);
        }
        self.release(id, HoldState::Expired)
    }

    /// Announces a two-phase transfer on both sides.
    pub(crate) fn announce(
        &mut self,
        debit: AccountId,
        credit: AccountId,
        amount: Micros,
    ) -> Result<(), TransferRefusal> {
        if amount <= Micros::ZERO {
            return Err(TransferRefusal::AmountNotPositive);
        }
        if debit == credit {
            return Err(TransferRefusal::SameAccount);
        }
        self.same_currency(&[debit, credit])?;
        let from = self.pending(debit, amount)?;
        let mut to = self.get(credit)?.clone();
        to.credits_pending = to.credits_pending.plus(amount)?;
        self.put([from, to]);
        Ok(())
    }

    /// Takes the announcement of a two-phase transfer back.
    pub(crate) fn withdraw(
        &mut self,
        debit: AccountId,
        credit: AccountId,
        amount: Micros,
    ) -> Result<(), TransferRefusal> {
        let (mut from, mut to) = (self.get(debit)?.clone(), self.get(credit)?.clone());
        from.debits_pending = from.debits_pending.minus(amount)?;
        to.credits_pending = to.credits_pending.minus(amount)?;
        self.put([from, to]);
        Ok(())
    }

    fn release(&mut self, id: HoldId, state: HoldState) -> Result<(), TransferRefusal> {
        let mut hold = self.open(id)?.clone();
        let mut account = self.get(hold.account)?.clone();
        account.debits_pending = account.debits_pending.minus(hold.remaining())?;
        hold.state = state;
        self.open.remove(&hold.lease);
        self.put([account]);
        self.holds.insert(id, hold);
        Ok(())
    }

    fn get(&self, id: AccountId) -> Result<&Account, TransferRefusal> {
        self.accounts
            .get(&id)
            .ok_or(TransferRefusal::AccountMissing)
    }

    fn open(&self, id: HoldId) -> Result<&Hold, TransferRefusal> {
        let hold = self.holds.get(&id).ok_or(TransferRefusal::HoldMissing)?;
        if hold.state == HoldState::Open {
            Ok(hold)
        } else {
            Err(TransferRefusal::HoldNotOpen)
        }
    }

    fn same_currency(&self, ids: &[AccountId]) -> Result<(), TransferRefusal> {
        let mut currency = None;
        for id in ids {
            let this = self.get(*id)?.currency;
            if currency.is_some_and(|c| c != this) {
                return Err(TransferRefusal::CurrencyMismatch);
            }
            currency = Some(this);
        }
        Ok(())
    }

    fn debited(&self, id: AccountId, amount: Micros) -> Result<Account, TransferRefusal> {
        let mut account = self.get(id)?.clone();
        if account.code.is_constrained() && amount > account.available()? {
            return Err(TransferRefusal::ExceedsCredits);
        }
        account.debits = account.debits.plus(amount)?;
        Ok(account)
    }

    fn credited(&self, id: AccountId, amount: Micros) -> Result<Account, TransferRefusal> {
        let mut account = self.get(id)?.clone();
        if account.code.guard() == Guard::Owed && amount > account.worth()? {
            return Err(TransferRefusal::ExceedsDebits);
        }
        account.credits = account.credits.plus(amount)?;
        Ok(account)
    }

    fn pending(&self, id: AccountId, amount: Micros) -> Result<Account, TransferRefusal> {
        let mut account = self.get(id)?.clone();
        if account.code.is_constrained() && amount > account.available()? {
            return Err(TransferRefusal::ExceedsCredits);
        }
        account.debits_pending = account.debits_pending.plus(amount)?;
        Ok(account)
    }

    fn put<const N: usize>(&mut self, changed: [Account; N]) {
        for account in changed {
            self.accounts.insert(account.id, account);
        }
    }
}

#[cfg(test)]
mod tests;
