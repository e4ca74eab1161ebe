//! `docs/ledger.md` is executed: each example's transfers and balances, and the chart, are the code's.

use std::collections::BTreeSet;

use crate::account::Guard;
use crate::charge::{Charge, ChargeAccounts, Settlement};
use crate::hold::{Hold, HoldState};
use crate::pending::{Pending, PendingState};
use domain::id::{ChargeId, HoldId, LeaseId, MeterId};

use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/ledger.md");
const HOLD: HoldId = HoldId::from_uuid(Uuid::from_u128(5));

fn examples() -> Vec<Vec<&'static str>> {
    let blocks = DOCUMENT.split("```ledger\n").skip(1);
    let lines = |b: &'static str| b.split("```").next().unwrap().lines().collect();
    blocks.map(lines).collect()
}

fn money(text: &str) -> Micros {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn account(name: &str) -> AccountCode {
    AccountCode::parse(name).unwrap_or_else(|| panic!("no account {name}"))
}

/// One example as it is played.
struct Stage {
    ledger: Ledger,
    n: u128,
    /// Transfers of the last operation that the document has not shown yet.
    open: Vec<String>,
    refused: Option<String>,
    last: Vec<Leg>,
    corrected: bool,
    disputed: Option<dispute::Disputed>,
    pending: Option<Pending>,
    shown: BTreeSet<&'static str>,
}

impl Stage {
    fn new() -> Self {
        Self {
            ledger: chart(),
            n: 0,
            open: Vec::new(),
            refused: None,
            last: Vec::new(),
            corrected: false,
            disputed: None,
            pending: None,
            shown: BTreeSet::new(),
        }
    }

    /// Nothing of the operation before was left out.
    fn settled(&mut self, line: &str) {
        assert!(self.open.is_empty(), "before {line:?}: {:?}", self.open);
        assert_eq!(self.refused, None, "before {line:?}");
    }

    fn line(&mut self, line: &'static str) {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["given", pairs @ ..] => {
                self.settled(line);
                let opening = pairs.chunks(2).map(|p| (account(p[0]), money(p[1]).get()));
                self.give(&opening.collect::<Vec<_>>());
            }
            ["do", operation @ ..] => {
                self.settled(line);
                self.perform(operation);
            }
            ["then", pairs @ ..] => {
                self.settled(line);
                for pair in pairs.chunks(2) {
                    assert_eq!(
                        self.balance(pair[0]),
                        money(pair[1]),
                        "{line:?}: {}",
                        pair[0]
                    );
                }
            }
            ["refused", ..] => {
                let why = line.trim_start_matches("refused").trim();
                assert_eq!(self.refused.take().as_deref(), Some(why), "{line:?}");
            }
            [kind, debit, "→", credit, amount] => {
                let shown = shown(kind, account(debit), account(credit), money(amount));
                assert!(!self.open.is_empty(), "{line:?}: there is no such transfer");
                assert_eq!(self.open.remove(0), shown);
                self.shown.insert(kind);
            }
            _ => panic!("what is {line:?}?"),
        }
    }
}

fn shown(kind: &str, debit: AccountCode, credit: AccountCode, amount: Micros) -> String {
    format!("{kind} {} → {} {amount}", debit.as_str(), credit.as_str())
}

impl Stage {
    fn give(&mut self, opening: &[(AccountCode, i64)]) {
        let mut accounts: Vec<Account> = self.ledger.accounts().cloned().collect();
        for (code, amount) in opening {
            let one = accounts.iter_mut().find(|a| a.code == *code).unwrap();
            let more = Micros::new(*amount);
            match code.side() {
                Side::Debit => one.debits = one.debits.plus(more).unwrap(),
                Side::Credit | Side::Both => one.credits = one.credits.plus(more).unwrap(),
            }
        }
        let holds = self.ledger.holds().cloned().collect::<Vec<_>>();
        self.ledger = Ledger::new(accounts, holds);
    }

    fn balance(&self, name: &str) -> Micros {
        let wallet = find(&self.ledger, key(AccountCode::RenterWallet)).unwrap();
        match name {
            "held" => wallet.held(),
            "available" => wallet.available().unwrap(),
            code => Books(&self.ledger).worth(key(account(code))).unwrap(),
        }
    }

    fn perform(&mut self, operation: &[&str]) {
        self.n += 1;
        if self.phase(operation) {
            return;
        }
        let legs = self.legs(operation);
        match legs {
            Ok(legs) => {
                play(&mut self.ledger, self.n, &legs);
                let record = dispute::Disputed::of(&legs).unwrap();
                if record.amount().unwrap() > Micros::ZERO {
                    self.disputed = Some(record);
                }
                self.corrected |= operation == ["correct"];
                self.open = legs.iter().map(describe).collect();
                self.last = legs;
            }
            Err(refusal) => self.refused = Some(refusal.to_string()),
        }
    }

    fn legs(&self, operation: &[&str]) -> Legs {
        let books = Books(&self.ledger);
        let card = Rail::Stripe;
        match *operation {
            ["sandbox_top_up", a] => payment::top_up(books, Rail::Sandbox, RENTER, money(a)),
            ["deposit", a] => payment::top_up(books, card, RENTER, money(a)),
            ["stripe_fee", a] => payment::stripe_fee(money(a)),
            ["bank_settled", a] => payment::bank_settled(money(a)),
            ["tax_remitted", a] => payment::tax_remitted(books, money(a)),
            ["suspense_in", a] => payment::suspense_in(money(a)),
            ["suspense_out", a] => payment::suspense_out(books, RENTER, money(a)),
            ["refund_requested", a] => payment::refund_requested(books, RENTER, money(a)),
            ["refund_settled", a] => payment::refund_settled(books, card, RENTER, money(a)),
            ["refund_failed", a] => payment::refund_failed(books, RENTER, money(a)),
            ["grant", kind, a] => {
                credit::grant(credit::CreditKind::parse(kind).unwrap(), RENTER, money(a))
            }
            ["sla", "owed", owed, "credited", before] => {
                let due = credit::sla_due(money(owed), money(before))?;
                credit::grant(credit::CreditKind::Sla, RENTER, due)
            }
            ["release", a] => credit::release(books, RENTER, money(a)),
            ["give_back", a] => credit::returned(books, RENTER, money(a)),
            ["expire", a] => credit::expire(books, RENTER, money(a)),
            ["mature", "recent", recent, "reserve_bps", bps] => {
                earning::mature(books, PROVIDER, money(recent), bps.parse().unwrap())
            }
            ["release_reserve", a] => earning::release_reserve(books, PROVIDER, money(a)),
            ["payout", wanted, "least", least] => {
                let wanted = (wanted != "all").then(|| money(wanted));
                earning::payout_requested(books, PROVIDER, wanted, money(least))
            }
            ["payout_sent", a] => earning::payout_sent(books, card, PROVIDER, money(a)),
            ["payout_failed", a] => earning::payout_failed(books, PROVIDER, money(a)),
            ["payout_returned", a] => earning::payout_returned(card, PROVIDER, money(a)),
            ["reverse_charge", ref due @ ..] => {
                earning::charge_reversed(books, PROVIDER, RENTER, due_of(due))
            }
            ["dispute", a] => dispute::opened(books, RENTER, money(a)),
            ["dispute_won"] => dispute::won(books, RENTER, self.disputed.unwrap()),
            ["dispute_lost"] => dispute::lost(card, self.disputed.unwrap()),
            ["dispute_fee", a] => dispute::fee(card, money(a)),
            ["repay"] => dispute::repay(books, RENTER),
            ["write_off"] => dispute::write_off(books, RENTER),
            ["adjust", way, of, bearer, a] => adjustment::adjust(
                books,
                adjustment::Direction::parse(way).unwrap(),
                (key(account(of)), account(bearer)),
                money(a),
            ),
            ["correct"] => Ok(vec![adjustment::correct(self.last[0], self.corrected)?]),
            ["interbranch_out", a] => {
                adjustment::interbranch_out(books, key(AccountCode::RenterWallet), money(a))
            }
            ["interbranch_in", a] => {
                adjustment::interbranch_in(key(AccountCode::RenterWallet), money(a))
            }
            _ => panic!("no operation {operation:?}"),
        }
    }

    /// Holds, charges and two-phase transfers: the engine's own operations.
    fn phase(&mut self, operation: &[&str]) -> bool {
        let wallet = number(&self.ledger, AccountCode::RenterWallet);
        match *operation {
            ["hold", a] => self.ledger.open_hold(hold_of(wallet, money(a))).unwrap(),
            ["charge", ref due @ ..] => {
                let due = due_of(due);
                let charge = charge_of(&self.ledger, due);
                self.ledger.charge(&charge).unwrap();
                let parts = [
                    (AccountCode::ProviderEarned, due.provider().unwrap()),
                    (AccountCode::FeeRevenue, due.fee),
                    (AccountCode::TaxPayable, due.tax),
                ];
                let parts = parts.into_iter().filter(|p| p.1 > Micros::ZERO);
                let line = |(to, a)| shown("charge", AccountCode::RenterWallet, to, a);
                self.open = parts.map(line).collect();
            }
            ["close_hold"] => self.ledger.close_hold(HOLD).unwrap(),
            ["pending", a] => {
                let new = Pending {
                    id: TransferId::from_uuid(Uuid::from_u128(6)),
                    debit: wallet,
                    credit: number(&self.ledger, AccountCode::Suspense),
                    amount: money(a),
                    state: PendingState::Pending,
                    expires_at: None,
                };
                self.pending = Some(new.open(&mut self.ledger).unwrap());
            }
            ["post", a] => {
                let pending = self.pending.take().unwrap();
                let transfer = Transfer {
                    id: pending.id,
                    kind: TransferKind::AdjustmentDebit,
                    debit: pending.debit,
                    credit: pending.credit,
                    amount: money(a),
                    cause: Uuid::nil(),
                    at: Timestamp::from_micros(0),
                };
                pending.post(&mut self.ledger, &transfer).unwrap();
                let (from, to) = (AccountCode::RenterWallet, AccountCode::Suspense);
                self.open = vec![shown(transfer.kind.as_str(), from, to, transfer.amount)];
            }
            _ => return false,
        }
        true
    }
}

fn describe(leg: &Leg) -> String {
    shown(leg.kind.as_str(), leg.debit.0, leg.credit.0, leg.amount)
}

fn due_of(words: &[&str]) -> Due {
    let [_, gross, _, fee, _, tax] = words else {
        panic!("{words:?}: gross, fee, tax")
    };
    Due {
        gross: money(gross),
        fee: money(fee),
        tax: money(tax),
    }
}

fn number(ledger: &Ledger, code: AccountCode) -> AccountId {
    find(ledger, key(code)).unwrap().id
}

fn hold_of(account: AccountId, amount: Micros) -> Hold {
    Hold {
        id: HOLD,
        account,
        lease: LeaseId::from_uuid(Uuid::nil()),
        amount,
        posted: Micros::ZERO,
        state: HoldState::Open,
        opened_at: Timestamp::from_micros(0),
        expires_at: None,
    }
}

fn charge_of(ledger: &Ledger, due: Due) -> Charge {
    let now = Timestamp::from_micros(0);
    Charge {
        id: ChargeId::from_uuid(Uuid::nil()),
        settlement: Settlement {
            segment: 1,
            meter: MeterId::from_uuid(Uuid::nil()),
            lease: LeaseId::from_uuid(Uuid::nil()),
            seq: 1,
            from: now,
            to: now,
            billable_ms: 0,
            due,
        },
        hold: HOLD,
        accounts: ChargeAccounts {
            wallet: number(ledger, AccountCode::RenterWallet),
            earned: number(ledger, AccountCode::ProviderEarned),
            fee: number(ledger, AccountCode::FeeRevenue),
            tax: number(ledger, AccountCode::TaxPayable),
        },
        at: now,
    }
}

#[test]
fn every_example_of_the_document_is_what_the_code_does() {
    let mut shown = BTreeSet::new();
    for lines in examples() {
        let mut stage = Stage::new();
        for line in lines {
            stage.line(line);
        }
        stage.settled("the end");
        shown.append(&mut stage.shown);
    }
    let missing: Vec<_> = TransferKind::ALL
        .iter()
        .filter(|k| !shown.contains(k.as_str()))
        .collect();
    assert!(missing.is_empty(), "kinds without an example: {missing:?}");
}

#[test]
fn the_chart_of_the_document_is_the_code_s() {
    let rows: Vec<String> = AccountCode::ALL.map(row).to_vec();
    let cells = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit();
    let documented: Vec<&str> = DOCUMENT.lines().filter(cells).collect();
    assert_eq!(documented.len(), rows.len());
    for (line, row) in documented.iter().zip(rows) {
        let note = line.strip_prefix(row.as_str());
        let note = note.unwrap_or_else(|| panic!("{line}\nshould start with\n{row}"));
        assert!(note.trim_matches(['|', ' ']).len() > 5, "{line}");
    }
}

fn row(code: AccountCode) -> String {
    let owner = if code.is_platform() {
        "platform"
    } else {
        "party"
    };
    let guard = match code.guard() {
        Guard::Covered => "covered",
        Guard::Owed => "owed",
        Guard::Free => "free",
    };
    let striped = if code.is_striped() { "yes" } else { "no" };
    let side = code.side().as_str();
    let (number, name) = (code.code(), code.as_str());
    format!("| {number} | `{name}` | {owner} | {side} | {guard} | {striped} | ")
}
