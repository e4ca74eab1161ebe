//! How credit is split over credits, and how it comes back.

use super::*;

pub(super) fn left(n: u128, amount: i64, expires_at: Option<i64>) -> credit::Credit {
    credit::Credit {
        id: Uuid::from_u128(n),
        left: Micros::new(amount),
        expires_at: expires_at.map(Timestamp::from_micros),
    }
}

fn parts(parts: &[credit::Part]) -> Vec<(u128, i64)> {
    parts
        .iter()
        .map(|p| (p.credit.as_u128(), p.amount.get()))
        .collect()
}

#[test]
fn credit_that_expires_sooner_is_spent_first_and_expired_credit_never() {
    let all = [
        left(1, 10, None),
        left(2, 10, Some(90)),
        left(3, 10, Some(40)),
        left(4, 10, Some(20)),
    ];
    let spend = |wanted, now| {
        parts(&credit::spend(
            &all,
            Micros::new(wanted),
            Timestamp::from_micros(now),
        ))
    };
    assert_eq!(spend(25, 20), [(3, 10), (2, 10), (1, 5)]);
    assert_eq!(spend(100, 39), [(3, 10), (2, 10), (1, 10)]);
    assert_eq!(spend(5, 40), [(2, 5)]);
    assert_eq!(spend(0, 0), []);
}

#[test]
fn charges_use_credit_first_and_the_last_taken_comes_back_first() {
    let taken = [
        credit::Part {
            credit: Uuid::from_u128(1),
            amount: Micros::new(10),
        },
        credit::Part {
            credit: Uuid::from_u128(2),
            amount: Micros::new(5),
        },
    ];
    let back = |charged| {
        let unused = credit::unused(Micros::new(15), Micros::new(charged));
        parts(&credit::give_back(&taken, unused))
    };
    assert_eq!(back(0), [(2, 5), (1, 10)]);
    assert_eq!(back(8), [(2, 5), (1, 2)]);
    assert_eq!(back(12), [(2, 3)]);
    assert_eq!(back(15), []);
    assert_eq!(back(99), []);
}

#[test]
fn reports_of_one_incident_give_one_total() {
    let due = |owed, before| credit::sla_due(Micros::new(owed), Micros::new(before));
    assert_eq!(due(10, 0), Ok(Micros::new(10)));
    assert_eq!(due(13, 10), Ok(Micros::new(3)));
    assert_eq!(due(13, 13), Err(PostingRefusal::NothingDue));
    assert_eq!(due(12, 13), Err(PostingRefusal::NothingDue));
}
