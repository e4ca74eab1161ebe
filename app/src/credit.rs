//! Credit from the market: granted by the operator's people, spent by leases before money is.

use std::collections::BTreeMap;

use billing::account::{Account, AccountCode, PLATFORM};
use billing::hold::Hold;
use billing::ledger::Ledger;
use billing::posting::credit::{self, Credit, CreditKind, Part};
use billing::posting::{Books, Operation, book};
use billing::transfer::Transfer;
use domain::clock::Timestamp;
use domain::id::{CreditId, HoldId, LeaseId, PartyId, TransferId};
use domain::money::{Currency, Micros};
use domain::party::StaffRole;
use domain::refusal::Code;
use store::credit::{CreditRecord, CreditUse, UseKind};
use store::db::{Ro, Tx};
use store::page::{Page, Paged};

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::posting::{post, refuse_posting};
use crate::staff;
use crate::wallet::refuse;

/// A credit to grant.
#[derive(Clone, Debug)]
pub struct NewCredit {
    /// To whom; with a lease, it is that lease's renter.
    pub party: Option<PartyId>,
    /// Why.
    pub kind: CreditKind,
    /// How much; for lost service: owed in total for the lease, what was credited before included.
    pub amount: Micros,
    /// For which lease.
    pub lease: Option<LeaseId>,
    /// It cannot be used from then on.
    pub expires_at: Option<Timestamp>,
    /// In words.
    pub reason: String,
}

fn check(cx: &Cx, input: &NewCredit, now: Timestamp) -> Result<String, Error> {
    if input.amount <= Micros::ZERO {
        let text = "The amount must be above zero.";
        return Err(Error::refused(Code::AmountOutOfRange, text));
    }
    if input.amount > cx.policy.approval_above {
        let limit = cx.policy.approval_above;
        return Err(Error::refused(
            Code::AmountOutOfRange,
            format!("One person may grant up to {limit} USD."),
        )
        .suggesting("Propose it with POST /v1/admin/adjustments: a second person approves it."));
    }
    if input.expires_at.is_some_and(|end| end <= now) {
        let text = "The end must be in the future.";
        return Err(Error::field("/expires_at", "in_the_past", text));
    }
    if input.kind == CreditKind::Promo && input.expires_at.is_none() {
        let text = "Promotional credit must expire.";
        return Err(Error::field("/expires_at", "missing", text));
    }
    if input.kind == CreditKind::Sla && input.lease.is_none() {
        let text = "Credit for lost service belongs to a lease.";
        return Err(Error::field("/lease_id", "missing", text));
    }
    staff::reason(&input.reason)
}

/// The party that gets it, and how much of it was not credited before.
async fn due(tx: &mut Tx, input: &NewCredit) -> Result<(PartyId, Micros), Error> {
    let Some(id) = input.lease else {
        let missing = || Error::field("/party_id", "missing", "Say which party, or which lease.");
        let party = input.party.ok_or_else(missing)?;
        let known = store::party::party_name(tx, party).await?;
        known.ok_or_else(|| Error::field("/party_id", "unknown", "There is no such party."))?;
        return Ok((party, input.amount));
    };
    // Its lock makes one grant wait for the other, so that both see what was credited.
    let lease = store::lease::get_for_update(tx, id)
        .await?
        .ok_or_else(|| Error::field("/lease_id", "unknown", "There is no such lease."))?;
    if input.party.is_some_and(|party| party != lease.party) {
        let text = "The lease is of another party.";
        return Err(Error::field("/party_id", "mismatch", text));
    }
    let amount = match input.kind {
        CreditKind::Sla => {
            let before = store::credit::sla_of_lease(tx, id).await?;
            credit::sla_due(input.amount, before).map_err(refuse_posting)?
        }
        CreditKind::Promo | CreditKind::Goodwill => input.amount,
    };
    Ok((lease.party, amount))
}

/// Grants a credit. Operators and finance only.
pub async fn grant(
    cx: &Cx,
    caller: &Caller,
    input: NewCredit,
    once: Once<'_, CreditRecord>,
) -> Result<Answer, Error> {
    let by = staff::person(caller, &staff::MOVES_MONEY)?;
    let now = cx.now();
    let reason = check(cx, &input, now)?;
    let id = CreditId::from_uuid(cx.id());
    let (once, input, reason) = (&once, &input, &reason);
    mutate(cx, Some(caller), once, now, async |tx: &mut Tx| {
        let (party, amount) = due(tx, input).await?;
        let record = CreditRecord {
            id,
            party,
            kind: input.kind,
            currency: Currency::Usd,
            amount,
            remaining: amount,
            reason: reason.clone(),
            lease: input.lease,
            expires_at: input.expires_at,
            granted_by: by,
            created_at: now,
        };
        let bearer = match input.kind {
            CreditKind::Promo => AccountCode::DeferredPromo,
            CreditKind::Sla | CreditKind::Goodwill => AccountCode::SlaExpense,
        };
        let wanted = [(bearer, PLATFORM), (AccountCode::RenterPromo, party.uuid())];
        let operation = Operation {
            cause: id.uuid(),
            at: now,
        };
        post(cx, tx, (Currency::Usd, operation), &wanted, |_books| {
            credit::grant(input.kind, party.uuid(), amount)
        })
        .await?;
        store::credit::insert(tx, &record).await?;
        store::wallet::grew(tx, party, Currency::Usd).await?;
        let what = Audited {
            action: "credit.grant",
            object: id.to_string(),
            reason,
        };
        let mut line = cx.audit(caller, now, what);
        line.party = Some(party);
        store::audit::insert(tx, &line).await?;
        Ok(record)
    })
    .await
}

/// All credits, newest first, for the operator's people.
pub async fn list_all(cx: &Cx, caller: &Caller, page: Page) -> Result<Paged<CreditRecord>, Error> {
    staff::only(caller, &StaffRole::ALL)?;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::credit::list(ro, None, page).await?))
        .await
}

/// A renter's credit beside its wallet: what holds are taken from.
#[derive(Clone, Debug)]
pub(crate) struct Purse {
    party: PartyId,
    credits: Vec<Credit>,
    uses: Vec<CreditUse>,
    booked: Vec<Transfer>,
}

impl Purse {
    const fn empty(party: PartyId) -> Self {
        Self {
            party,
            credits: Vec::new(),
            uses: Vec::new(),
            booked: Vec::new(),
        }
    }

    /// What is left of these parties' credit; nobody who has none is in it. Whoever changes a credit
    /// has the wallet or the account of the credit locked, so lock the wallets before.
    pub(crate) async fn load_all(
        ro: &mut Ro,
        parties: &[PartyId],
        currency: Currency,
    ) -> Result<BTreeMap<PartyId, Self>, Error> {
        let mut purses = BTreeMap::new();
        for (party, credit) in store::credit::left(ro, parties, currency).await? {
            let purse = purses.entry(party).or_insert_with(|| Self::empty(party));
            purse.credits.push(credit);
        }
        Ok(purses)
    }

    /// The accounts that it moves money between; the wallet is the first.
    pub(crate) fn accounts(&self) -> Vec<(AccountCode, uuid::Uuid)> {
        let owner = self.party.uuid();
        let mut wanted = vec![(AccountCode::RenterWallet, owner)];
        if !self.credits.is_empty() {
            wanted.push((AccountCode::RenterPromo, owner));
        }
        wanted
    }

    /// Money and credit together.
    pub(crate) fn available(&self, wallet: &Account, now: Timestamp) -> Result<Micros, Error> {
        let mut sum = wallet.available()?;
        for credit in &self.credits {
            sum = sum.plus(credit.usable(now))?;
        }
        Ok(sum)
    }

    /// Moves credit for a hold of `wanted` into the wallet, as far as there is some.
    pub(crate) fn release(
        &mut self,
        cx: &Cx,
        ledger: &mut Ledger,
        (hold, now): (HoldId, Timestamp),
        wanted: Micros,
    ) -> Result<(), Error> {
        for part in credit::spend(&self.credits, wanted, now) {
            self.book(cx, ledger, (UseKind::Released, part), (hold, now))?;
            if let Some(one) = self.credits.iter_mut().find(|c| c.id == part.credit) {
                one.left = one.left.minus(part.amount)?;
            }
        }
        Ok(())
    }

    fn book(
        &mut self,
        cx: &Cx,
        ledger: &mut Ledger,
        (kind, part): (UseKind, Part),
        (hold, now): (HoldId, Timestamp),
    ) -> Result<(), Error> {
        let id = cx.id();
        let operation = Operation { cause: id, at: now };
        let (books, owner) = (Books(ledger), self.party.uuid());
        let legs = match kind {
            UseKind::Released => credit::release(books, owner, part.amount),
            UseKind::Returned => credit::returned(books, owner, part.amount),
            UseKind::Expired => credit::expire(books, owner, part.amount),
        };
        let legs = legs.map_err(refuse_posting)?;
        let transfer = || TransferId::from_uuid(cx.id());
        let booked = book(ledger, &legs, operation, transfer).map_err(refuse)?;
        self.booked.extend(booked);
        self.uses.push(CreditUse {
            id,
            part,
            kind,
            hold: Some(hold),
            at: now,
        });
        Ok(())
    }

    /// Writes what moved. Balances and holds are the caller's to save.
    pub(crate) async fn save(&self, tx: &mut Tx, currency: Currency) -> Result<(), Error> {
        for transfer in &self.booked {
            store::ledger::insert_transfer(tx, transfer, currency);
        }
        for one in &self.uses {
            store::credit::record_use(tx, one).await?;
        }
        Ok(())
    }
}

/// A lease's hold that is to grow: locks wallet and credit, asks `size` how much more is wanted of
/// what is there, and moves credit into the wallet for it. The amount is given back to be raised by.
pub(crate) async fn raise_by(
    cx: &Cx,
    tx: &mut Tx,
    (party, currency): (PartyId, Currency),
    (hold, now): (HoldId, Timestamp),
    size: impl Fn(Micros) -> Result<Micros, Error> + Send + Sync,
) -> Result<Micros, Error> {
    let wanted = [(AccountCode::RenterWallet, party.uuid())];
    store::ledger::lock_accounts(tx, currency, &wanted).await?;
    let purse = Purse::load_all(tx, &[party], currency)
        .await?
        .remove(&party);
    let mut purse = purse.unwrap_or_else(|| Purse::empty(party));
    let accounts = store::ledger::lock_accounts(tx, currency, &purse.accounts()).await?;
    let wallet = accounts
        .first()
        .ok_or(Error::Fault("a wallet was not locked"))?;
    let more = size(purse.available(wallet, now)?)?;
    let before = Ledger::new(accounts, []);
    let mut after = before.clone();
    purse.release(cx, &mut after, (hold, now), more)?;
    store::ledger::save(tx, &before, &after).await?;
    purse.save(tx, currency).await?;
    Ok(more)
}

/// Gives back the credit that a hold, just closed or lowered, has taken and can use no more: charges
/// use credit first, so what stays in the hold is credit as far as there is some.
pub(crate) async fn give_back(
    cx: &Cx,
    tx: &mut Tx,
    (party, currency): (PartyId, Currency),
    (hold, now): (&Hold, Timestamp),
) -> Result<(), Error> {
    let taken = store::credit::taken_by(tx, hold.id).await?;
    let sum = taken
        .iter()
        .try_fold(Micros::ZERO, |sum, p| sum.plus(p.amount))?;
    let unused = credit::unused(sum, hold.posted).minus(hold.remaining())?;
    let parts = credit::give_back(&taken, unused);
    if parts.is_empty() {
        return Ok(());
    }
    let owner = party.uuid();
    let wanted = [
        (AccountCode::RenterWallet, owner),
        (AccountCode::RenterPromo, owner),
    ];
    let accounts = store::ledger::lock_accounts(tx, currency, &wanted).await?;
    let before = Ledger::new(accounts, []);
    let mut after = before.clone();
    let mut purse = Purse::empty(party);
    for part in parts {
        purse.book(cx, &mut after, (UseKind::Returned, part), (hold.id, now))?;
    }
    store::ledger::save(tx, &before, &after).await?;
    purse.save(tx, currency).await
}
