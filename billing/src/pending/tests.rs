//! A two-phase transfer ends once, and what it set aside comes back whole.

use domain::money::Currency;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::account::{Account, AccountCode};
use crate::transfer::TransferKind;

const FROM: AccountId = AccountId(1);
const TO: AccountId = AccountId(2);

fn ledger(money: i64) -> Ledger {
    let mut from = Account::new(FROM, AccountCode::RenterWallet, Currency::Usd, Uuid::nil());
    from.credits = Micros::new(money);
    let to = Account::new(TO, AccountCode::Suspense, Currency::Usd, Uuid::nil());
    Ledger::new([from, to], [])
}

fn pending(amount: i64) -> Pending {
    Pending {
        id: TransferId::from_uuid(Uuid::from_u128(7)),
        debit: FROM,
        credit: TO,
        amount: Micros::new(amount),
        state: PendingState::Pending,
        expires_at: Some(Timestamp::from_micros(100)),
    }
}

fn posting(amount: i64, at: i64) -> Transfer {
    Transfer {
        id: TransferId::from_uuid(Uuid::from_u128(7)),
        kind: TransferKind::AdjustmentDebit,
        debit: FROM,
        credit: TO,
        amount: Micros::new(amount),
        cause: Uuid::from_u128(8),
        at: Timestamp::from_micros(at),
    }
}

fn balances(ledger: &Ledger) -> [i64; 4] {
    let (from, to) = (ledger.account(FROM).unwrap(), ledger.account(TO).unwrap());
    [
        from.available().unwrap().get(),
        from.debits_pending.get(),
        to.posted().unwrap().get(),
        to.credits_pending.get(),
    ]
}

#[test]
fn pending_money_is_nobody_s_to_spend() {
    let mut book = ledger(10);
    let open = pending(6).open(&mut book).unwrap();
    assert_eq!(balances(&book), [4, 6, 0, 6]);
    assert_eq!(
        book.transfer(&posting(5, 0)),
        Err(TransferRefusal::ExceedsCredits)
    );
    let before = book.clone();
    assert_eq!(
        pending(5).open(&mut book),
        Err(PendingRefusal::Ledger(TransferRefusal::ExceedsCredits))
    );
    assert_eq!(book, before);
    let done = open.post(&mut book, &posting(6, 99)).unwrap();
    assert_eq!(done.state, PendingState::Posted(Micros::new(6)));
    assert_eq!(balances(&book), [4, 0, 6, 0]);
}

#[test]
fn a_part_is_posted_and_the_rest_comes_back() {
    let mut book = ledger(10);
    let open = pending(6).open(&mut book).unwrap();
    assert_eq!(
        open.post(&mut book, &posting(7, 0)),
        Err(PendingRefusal::ExceedsPending)
    );
    let other = Transfer {
        id: TransferId::from_uuid(Uuid::from_u128(9)),
        ..posting(1, 0)
    };
    assert_eq!(
        open.post(&mut book, &other),
        Err(PendingRefusal::ExceedsPending)
    );
    open.post(&mut book, &posting(2, 0)).unwrap();
    assert_eq!(balances(&book), [8, 0, 2, 0]);
}

#[test]
fn time_ends_it_before_any_sweep_does() {
    let mut book = ledger(10);
    let open = pending(6).open(&mut book).unwrap();
    let late = Timestamp::from_micros(100);
    assert_eq!(open.state_at(late), PendingState::Expired);
    assert_eq!(
        open.post(&mut book, &posting(6, 100)),
        Err(PendingRefusal::NotPending)
    );
    assert_eq!(open.void(&mut book, late), Err(PendingRefusal::NotPending));
    assert_eq!(
        open.expire(&mut book, Timestamp::from_micros(99)),
        Err(PendingRefusal::NotPending)
    );
    let over = open.expire(&mut book, late).unwrap();
    assert_eq!(balances(&book), [10, 0, 0, 0]);
    assert_eq!(
        over.expire(&mut book, late),
        Err(PendingRefusal::NotPending)
    );
}

proptest! {
    #[test]
    fn it_ends_at_most_once(steps in prop::collection::vec((0u8..3, 0i64..8, 0i64..200), 0..12)) {
        let mut book = ledger(10);
        let mut one = pending(6).open(&mut book).unwrap();
        let mut ends = 0;
        for (step, amount, at) in steps {
            let before = book.clone();
            let now = Timestamp::from_micros(at);
            let next = match step {
                0 => one.post(&mut book, &posting(amount, at)),
                1 => one.void(&mut book, now),
                _ => one.expire(&mut book, now),
            };
            match next {
                Ok(next) => {
                    one = next;
                    ends += 1;
                }
                Err(_refused) => prop_assert_eq!(&book, &before),
            }
            let [_, set_aside, _, announced] = balances(&book);
            let open = if ends == 0 { 6 } else { 0 };
            prop_assert_eq!((set_aside, announced), (open, open));
            prop_assert_eq!(balances(&book)[0] + set_aside + balances(&book)[2], 10);
        }
        prop_assert!(ends <= 1);
    }
}
