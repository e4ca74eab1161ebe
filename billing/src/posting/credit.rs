//! Credit from the market: promotional (it expires) or for lost service. Spent first, never paid
//! out.
//!
//! Credit stands beside the wallet. When a lease sets money aside, as much of it as there is moves
//! into the wallet and straight into the hold; when the hold ends, what no charge has used moves
//! back. So a charge is always paid by one wallet out of one hold, and credit can be used by charges
//! only. What expires is what is left.

use domain::clock::Timestamp;
use domain::money::Micros;
use uuid::Uuid;

use super::{Books, Key, Legs, PostingRefusal, covered, leg, platform, positive, some};
use crate::account::AccountCode;
use crate::transfer::TransferKind;

/// Why credit was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditKind {
    /// To win a renter; expires.
    Promo,
    /// For lost service of a lease.
    Sla,
    /// For anything else.
    Goodwill,
}

impl CreditKind {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promo => "promo",
            Self::Sla => "sla",
            Self::Goodwill => "goodwill",
        }
    }

    /// The kind of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Promo, Self::Sla, Self::Goodwill]
            .into_iter()
            .find(|k| k.as_str() == text)
    }
}

/// What is left of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Its id.
    pub id: Uuid,
    /// Not used and not expired.
    pub left: Micros,
    /// It cannot be used from then on.
    pub expires_at: Option<Timestamp>,
}

impl Credit {
    /// Over at `now`? Computed on read; the sweep only books it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// What can be used at `now`.
    pub fn usable(&self, now: Timestamp) -> Micros {
        if self.is_over(now) {
            Micros::ZERO
        } else {
            self.left
        }
    }
}

/// A part of one credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which credit.
    pub credit: Uuid,
    /// How much of it.
    pub amount: Micros,
}

const fn promo(renter: Uuid) -> Key {
    (AccountCode::RenterPromo, renter)
}

const fn wallet(renter: Uuid) -> Key {
    (AccountCode::RenterWallet, renter)
}

/// Splits `wanted` (or as much as there is) over credits: the soonest to expire first.
pub fn spend(credits: &[Credit], wanted: Micros, now: Timestamp) -> Vec<Part> {
    let mut order: Vec<&Credit> = credits.iter().collect();
    order.sort_by_key(|c| (c.expires_at.is_none(), c.expires_at, c.id));
    let usable = order.into_iter().map(|c| Part {
        credit: c.id,
        amount: c.usable(now),
    });
    split(usable, wanted)
}

/// Splits what a hold gives back over the parts that it took, in the order in which it took them: the
/// last taken first.
pub fn give_back(taken: &[Part], unused: Micros) -> Vec<Part> {
    split(taken.iter().rev().copied(), unused)
}

fn split(parts: impl Iterator<Item = Part>, wanted: Micros) -> Vec<Part> {
    let mut rest = wanted;
    let mut out = Vec::new();
    for part in parts {
        let amount = part.amount.min(rest);
        if amount > Micros::ZERO {
            rest = rest.minus(amount).unwrap_or(Micros::ZERO);
            out.push(Part { amount, ..part });
        }
    }
    out
}

/// What a hold has taken of credit and its charges have not used: charges use credit first.
pub fn unused(taken: Micros, charged: Micros) -> Micros {
    taken
        .minus(charged)
        .unwrap_or(Micros::ZERO)
        .max(Micros::ZERO)
}

/// A credit is given.
pub fn grant(kind: CreditKind, renter: Uuid, amount: Micros) -> Legs {
    let (kind, bearer) = match kind {
        CreditKind::Promo => (TransferKind::PromoGranted, AccountCode::DeferredPromo),
        CreditKind::Sla => (TransferKind::SlaCredit, AccountCode::SlaExpense),
        CreditKind::Goodwill => (TransferKind::GoodwillCredit, AccountCode::SlaExpense),
    };
    some([leg(
        kind,
        platform(bearer),
        promo(renter),
        positive(amount)?,
    )])
}

/// What is still to be credited for lost service, when `owed` is all that is owed for it so far: any
/// number of reports of one incident gives the same total.
pub fn sla_due(owed: Micros, credited: Micros) -> Result<Micros, PostingRefusal> {
    let due = owed.minus(credited)?;
    if due > Micros::ZERO {
        Ok(due)
    } else {
        Err(PostingRefusal::NothingDue)
    }
}

/// Credit moves into the wallet, to be set aside at once.
pub fn release(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    let paths = (promo(renter), wallet(renter));
    covered(books, TransferKind::PromoReleased, paths, amount)
}

/// Unused credit moves back, after the hold that had it was closed.
pub fn returned(books: Books<'_>, renter: Uuid, amount: Micros) -> Legs {
    let paths = (wallet(renter), promo(renter));
    covered(books, TransferKind::PromoReturned, paths, amount)
}

/// What is left of a credit expires.
pub fn expire(books: Books<'_>, renter: Uuid, left: Micros) -> Legs {
    let paths = (promo(renter), platform(AccountCode::Breakage));
    covered(books, TransferKind::PromoExpired, paths, left)
}
