//! A million seconds of one renter who never has much money: top-ups, larger disks, crashes.

use billing::meter::Proof;
use domain::clock::Timestamp;
use domain::money::Micros;

use super::book::Book;
use super::chance::Chance;
use super::lease::Stage;

const TICKS: i64 = 1_000_000;

/// What a tick may bring; gives the money that was asked for.
fn happen(book: &mut Book, chance: &mut Chance, no: Option<u128>, now: Timestamp) -> i64 {
    match (no.map(|no| book.leases[&no].stage), no) {
        (None, _) | (_, None) => book.book((0, 0), (chance.from(1_000, 20_000_000), 10), now),
        (Some(Stage::Stopping | Stage::Ending), Some(no)) => book.done(no, now),
        (Some(Stage::Stopped), Some(no)) if chance.hits(20) => book.resume(no),
        (Some(_), Some(no)) if chance.hits(1) => {
            let gib = book.leases[&no].gib + chance.from(1, 500);
            book.resize(no, gib, now);
        }
        (Some(_), Some(_)) => {}
    }
    let poor = book.available(0) < Micros::new(1_000_000);
    if poor && chance.hits(2) {
        let amount = chance.from(300_000, 9_000_000);
        book.top_up(0, amount, now);
        amount
    } else {
        0
    }
}

#[test]
fn a_million_ticks_overdraw_nothing_and_leave_no_second_unpaid() {
    let mut chance = Chance(55);
    let mut book = Book::new();
    book.top_up(0, 20_000_000, Timestamp::from_micros(0));
    let (mut saved, mut redo, mut asked) = (book.clone(), 0, 20_000_000i128);
    let (mut crashes, mut proven) = (0, 0i64);
    for tick in 1..=TICKS {
        let now = Timestamp::from_millis(tick * 1_000);
        let no = book.leases.keys().next().copied();
        let topped = happen(&mut book, &mut chance, no, now);
        asked += i128::from(topped);
        redo += topped;
        if let Some(no) = no {
            let lease = &book.leases[&no];
            let (stage, run) = (lease.stage, lease.run);
            let proof = |run: String| Proof {
                boot: "boot".to_owned(),
                run,
                mono_ms: tick * 1_000,
                at: now,
            };
            if stage == Stage::Running {
                let before = book.leases[&no].meters[0].billable_ms;
                let unpaid = book.prove(no, 0, &proof(format!("{no} {run}")));
                assert_eq!(unpaid, 0, "tick {tick}");
                proven += book.leases[&no].meters[0].billable_ms - before;
            }
            if stage != Stage::Ended {
                book.prove(no, 1, &proof("disk".to_owned()));
            }
            if tick % 5 == 0 {
                book.renew(no, now);
            }
        }
        assert!(book.available(0) >= Micros::ZERO, "tick {tick}");
        if tick % 100 == 0 {
            book.check();
        }
        if tick % 10 == 0 {
            book.tidy();
            (saved, redo) = (book.clone(), 0);
        } else if chance.hits(1) {
            // What was not committed is lost, and what was asked for is done again.
            book = saved.clone();
            crashes += 1;
            if redo > 0 {
                book.top_up(0, redo, now);
            }
        }
    }
    book.check();
    assert_eq!(book.topped_up, asked);
    assert!(crashes > 500 && proven > 100_000_000, "{crashes} {proven}");
}
