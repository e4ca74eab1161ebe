//! What a group of bookings is decided on: quotes, supply and wallets, loaded at once, and changed
//! in memory by each booking before the next is looked at.

use std::collections::{BTreeMap, BTreeSet};

use billing::account::AccountCode;
use billing::budget::Spender;
use billing::hold::{Hold, HoldState, size};
use billing::ledger::Ledger;
use domain::clock::Timestamp;
use domain::id::{GpuId, HoldId, OfferId, PartyId, QuoteId};
use domain::lease::PLACE_LIMIT;
use domain::money::{Currency, Micros};
use domain::refusal::Code;
use matching::book::Supply;
use matching::plan::{Placement, place};
use matching::price::Fees;
use store::db::Tx;
use store::lease::LeaseRecord;
use store::quote::QuoteRecord;

use super::{Ask, draft, quote_used};
use crate::budget::Gate;
use crate::context::Cx;
use crate::credit::Purse;
use crate::error::Error;
use crate::lease::money::burn;
use crate::offer::not_own;
use crate::quote::{refuse_miss, request_of};
use crate::wallet::refuse;

/// A booking that goes through.
#[derive(Debug)]
pub(super) struct Booked {
    pub(super) lease: LeaseRecord,
    pub(super) gpus: Vec<GpuId>,
}

/// Everything that bookings are decided on.
#[derive(Debug)]
pub(super) struct Stock {
    quotes: BTreeMap<QuoteId, QuoteRecord>,
    supplies: BTreeMap<OfferId, Supply>,
    used: BTreeSet<QuoteId>,
    wallets: BTreeMap<PartyId, billing::account::AccountId>,
    gate: Gate,
    purses: BTreeMap<PartyId, Purse>,
    frozen: BTreeSet<PartyId>,
    before: Ledger,
    after: Ledger,
}

impl Stock {
    /// Loads what these bookings need. Bookings of other processes on the same machines wait from
    /// here on, so that each sees the GPUs that are really left.
    pub(super) async fn load(tx: &mut Tx, asks: &[&Ask], now: Timestamp) -> Result<Self, Error> {
        let ids: Vec<QuoteId> = asks.iter().map(|a| a.input.quote).collect();
        let quotes = store::quote::by_ids(tx, &ids).await?;
        let offers: BTreeSet<OfferId> = quotes.iter().map(|q| q.offer).collect();
        let offers: Vec<OfferId> = offers.into_iter().collect();
        let records = store::offer::by_ids(tx, &offers).await?;
        let machines: Vec<_> = records.iter().map(|o| o.machine).collect();
        store::machine::lock(tx, &machines).await?;
        // Again: an offer may have changed until its machine was locked.
        let records = store::offer::by_ids(tx, &offers).await?;
        let supplies = store::offer::supplies_of(tx, records, now).await?;
        let used = store::lease::quotes_used(tx, &ids).await?;
        let parties: BTreeSet<PartyId> = asks.iter().map(|a| a.caller.actor.party).collect();
        let wanted: Vec<_> = parties
            .iter()
            .map(|p| (AccountCode::RenterWallet, p.uuid()))
            .collect();
        let owners: Vec<PartyId> = parties.iter().copied().collect();
        let gate = Gate::load(tx, &owners, now).await?;
        let accounts = store::ledger::lock_accounts(tx, Currency::Usd, &wanted).await?;
        let wallets = parties.iter().copied().zip(accounts.iter().map(|a| a.id));
        let wallets = wallets.collect();
        let parties: Vec<PartyId> = parties.into_iter().collect();
        let frozen = store::dispute::frozen(tx, &parties).await?;
        let purses = Purse::load_all(tx, &parties, Currency::Usd).await?;
        let wanted: Vec<_> = purses.values().flat_map(Purse::accounts).collect();
        let accounts = match wanted.as_slice() {
            [] => accounts,
            some => {
                let more = store::ledger::lock_accounts(tx, Currency::Usd, some).await?;
                accounts.into_iter().chain(more).collect()
            }
        };
        let before = Ledger::new(accounts, []);
        Ok(Self {
            quotes: quotes.into_iter().map(|q| (q.id, q)).collect(),
            supplies: supplies.into_iter().map(|s| (s.offer.id, s)).collect(),
            used,
            wallets,
            gate,
            purses,
            frozen,
            after: before.clone(),
            before,
        })
    }

    /// Decides one booking, and takes its GPUs, disk and money out of the stock. A refusal changes
    /// nothing.
    pub(super) fn book(&mut self, cx: &Cx, ask: &Ask, now: Timestamp) -> Result<Booked, Error> {
        let quote = self
            .quotes
            .get(&ask.input.quote)
            .filter(|q| q.party == ask.caller.actor.party)
            .cloned()
            .ok_or_else(|| Error::not_found("quote"))?;
        if quote.expires_at <= now {
            return Err(Error::refused(
                Code::QuoteExpired,
                "The quote has expired. Nothing was charged.",
            )
            .suggesting("Ask for a new quote."));
        }
        if self.used.contains(&quote.id) {
            return Err(quote_used());
        }
        let actor = &ask.caller.actor;
        let spender = Spender {
            lease: None,
            member: Some(actor.user),
            label: ask.input.label.as_deref(),
        };
        self.gate.check(actor.party, spender)?;
        if self.frozen.contains(&quote.party) {
            return Err(crate::dispute::frozen());
        }
        let supply = self.supplies.get(&quote.offer);
        let fees = Fees {
            fee_bps: quote.fee_bps,
            tax_bps: quote.tax_bps,
        };
        let request = request_of(cx, (quote.gpu_count, quote.disk_gib), quote.duration, fees);
        let placed =
            place(supply, &request, quote.offer_version).map_err(|miss| refuse_miss(&miss))?;
        let provider = supply.map(|s| s.offer.provider);
        let provider = provider.ok_or_else(|| Error::not_found("live offer"))?;
        not_own(provider, ask.caller.actor.party)?;
        let mut lease = draft(cx, (ask.id, now), (quote, &placed), &ask.input);
        lease.provider = provider;
        lease.booked_by = Some(ask.caller.actor.user);
        self.hold(cx, &lease, now)?;
        self.take(&lease, &placed);
        Ok(Booked {
            lease,
            gpus: placed.gpus,
        })
    }

    fn take(&mut self, lease: &LeaseRecord, placed: &Placement) {
        self.used.insert(lease.terms.id);
        if let Some(supply) = self.supplies.get_mut(&placed.offer) {
            let disk = u64::from(lease.terms.disk_gib);
            supply.disk_free_gib = supply.disk_free_gib.saturating_sub(disk);
            for slot in &mut supply.slots {
                slot.free &= !placed.gpus.contains(&slot.gpu);
            }
        }
    }

    fn hold(&mut self, cx: &Cx, lease: &LeaseRecord, now: Timestamp) -> Result<(), Error> {
        let wallet = self.wallets.get(&lease.party);
        let wallet = wallet.and_then(|id| self.after.account(*id));
        let wallet = wallet.ok_or(Error::Fault("a wallet was not loaded"))?;
        let purse = self.purses.get(&lease.party);
        let available = match purse {
            Some(purse) => purse.available(wallet, now)?,
            None => wallet.available()?,
        };
        let sized = size(burn(lease)?, available)?.map_err(|least| {
            Error::refused(
                Code::InsufficientFunds,
                format!("The wallet has {available} USD available; the first hold needs at least {least} USD."),
            )
            .suggesting("Top up with POST /v1/wallet/top-ups.")
        })?;
        let hold = Hold {
            id: HoldId::from_uuid(cx.id()),
            account: wallet.id,
            lease: lease.id,
            amount: sized.amount,
            posted: Micros::ZERO,
            state: HoldState::Open,
            opened_at: now,
            expires_at: Some(now.plus(PLACE_LIMIT)),
        };
        let Some(mut purse) = purse.cloned() else {
            return self.after.open_hold(hold).map_err(refuse);
        };
        let mut after = self.after.clone();
        purse.release(cx, &mut after, (hold.id, now), hold.amount)?;
        after.open_hold(hold).map_err(refuse)?;
        self.after = after;
        self.purses.insert(lease.party, purse);
        Ok(())
    }

    /// Saves the holds.
    pub(super) async fn save(&self, tx: &mut Tx) -> Result<(), Error> {
        store::ledger::save(tx, &self.before, &self.after).await?;
        for purse in self.purses.values() {
            purse.save(tx, Currency::Usd).await?;
        }
        Ok(())
    }
}
