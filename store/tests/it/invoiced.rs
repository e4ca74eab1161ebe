//! Invoices: exact sums, numbers without a gap, no charge twice, nothing edited, UTC only.

use billing::focus::Side;
use billing::invoice::{Identity, Invoice, InvoiceKind, total};
use billing::meter::Resource;
use billing::month::{Month, Period};
use billing::rating::Due;
use domain::clock::Timestamp;
use domain::id::{InvoiceId, PartyId};
use domain::money::{Currency, Micros};
use store::db::{Ro, Tx};
use store::error::{Constraint, Error};
use store::invoice::Occasion;
use store::lease::LeaseRecord;

use crate::billed::{broken, paying, settle};
use crate::database::Database;
use crate::world::{T0, World, after, id};

/// All time.
pub(crate) const EVER: Period = Period {
    from: Timestamp::from_micros(0),
    to: Timestamp::MAX,
};

/// Makes an invoice of what is open within `bounds`.
async fn issue(
    tx: &mut Tx,
    (party, kind): (PartyId, InvoiceKind),
    bounds: Period,
    occasion: Occasion,
) -> Result<Invoice, Error> {
    store::invoice::lock_party(tx, party).await?;
    let lines = store::invoice::open_lines(tx, party, kind, bounds).await?;
    let invoice = Invoice {
        id: InvoiceId::from_uuid(id()),
        kind,
        number: store::invoice::next_number(tx, kind, 2026).await?,
        party,
        period: bounds,
        currency: Currency::Usd,
        issued_at: after(9_000),
        seller: Identity::default(),
        buyer: Identity {
            name: "renter".to_owned(),
            address: vec!["a".to_owned()],
            country: Some("DE".to_owned()),
            vat_id: None,
        },
        tax_note: Some("note".to_owned()),
        sandbox: true,
        credited: None,
        totals: total(kind, &lines).unwrap(),
        lines,
    };
    store::invoice::insert(tx, &invoice, occasion).await?;
    Ok(invoice)
}

pub(crate) async fn charged(base: &Database, lease: &LeaseRecord) -> Due {
    let charges: Result<_, Error> = base
        .db
        .read(async |ro: &mut Ro| store::charge::of_lease(ro, lease.id).await)
        .await;
    let mut sum = Due::default();
    for charge in charges.unwrap() {
        sum = sum.plus(charge.settlement.due).unwrap();
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_exactly_the_charges_and_reads_back_as_it_was_written() {
    let (base, world, lease) = paying().await;
    let sum = charged(&base, &lease).await;
    for (party, kind, amount) in [
        (world.renter, InvoiceKind::Sale, sum.renter().unwrap()),
        (
            world.provider,
            InvoiceKind::SelfBilling,
            sum.provider().unwrap(),
        ),
    ] {
        let made: Invoice = base
            .db
            .write(async |tx: &mut Tx| issue(tx, (party, kind), EVER, Occasion::Demand).await)
            .await
            .unwrap();
        assert_eq!(made.totals.total, amount);
        assert_eq!(made.lines.len(), 2);
        assert!(made.lines.iter().all(|l| l.seq == (1, 2)));
        let read = base
            .db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                store::invoice::get(ro, Some(party), made.id).await
            })
            .await;
        assert_eq!(read.unwrap(), Some(made.clone()));
        let left = base
            .db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                store::invoice::open_lines(ro, party, kind, EVER).await
            })
            .await;
        assert_eq!(left.unwrap(), []);
    }
    assert_eq!(broken(&base).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_between_two_invoices_goes_on_the_next_once() {
    let (base, world, lease) = paying().await;
    let (party, kind) = (world.renter, InvoiceKind::Sale);
    let write = async |bounds: Period| -> Invoice {
        base.db
            .write::<_, Error, _>(async |tx: &mut Tx| {
                issue(tx, (party, kind), bounds, Occasion::Demand).await
            })
            .await
            .unwrap()
    };
    for to in [2_000, 3_000] {
        base.db
            .write(async |tx: &mut Tx| settle(tx, &world, &lease, to).await)
            .await
            .unwrap();
    }
    // The second charges end at 1,234 s, the third at 2,000 s.
    let middle = write(Period {
        from: after(700),
        to: after(2_001),
    })
    .await;
    assert!(
        middle.lines.iter().all(|l| l.seq == (2, 3)),
        "{:?}",
        middle.lines
    );
    let rest = write(EVER).await;
    let mut ranges: Vec<_> = rest.lines.iter().map(|l| l.seq).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(1, 1), (1, 1), (4, 4), (4, 4)]);
    let sum = charged(&base, &lease).await.renter().unwrap();
    let both = middle.totals.total.plus(rest.totals.total).unwrap();
    assert_eq!(both, sum);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_cannot_be_on_two_invoices() {
    let (base, world, _lease) = paying().await;
    let first: Result<Invoice, Error> = base
        .db
        .write(async |tx: &mut Tx| {
            issue(
                tx,
                (world.renter, InvoiceKind::Sale),
                EVER,
                Occasion::Demand,
            )
            .await
        })
        .await;
    let first = first.unwrap();
    let again: Result<(), Error> = base
        .db
        .write(async |tx: &mut Tx| {
            let mut twin = first.clone();
            twin.id = InvoiceId::from_uuid(id());
            twin.number = store::invoice::next_number(tx, InvoiceKind::Sale, 2026).await?;
            store::invoice::insert(tx, &twin, Occasion::Demand).await
        })
        .await;
    assert!(
        matches!(again, Err(Error::Conflict(Constraint::InvoiceLineOnce))),
        "{again:?}"
    );
    // The number of the one that failed is the next one's.
    let next: Result<_, Error> = base
        .db
        .write(async |tx: &mut Tx| store::invoice::next_number(tx, InvoiceKind::Sale, 2026).await)
        .await;
    assert_eq!(next.unwrap().no, first.number.no + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_have_no_gap_whatever_fails_in_between() {
    let (base, world) = World::fresh().await;
    let tasks: Vec<_> = (0..40)
        .map(|n: i64| {
            let (db, party) = (base.db.clone(), world.renter);
            tokio::spawn(async move {
                let bounds = Period {
                    from: after(n),
                    to: after(n + 1),
                };
                db.write::<(), Error, _>(async |tx: &mut Tx| {
                    issue(tx, (party, InvoiceKind::Sale), bounds, Occasion::Demand).await?;
                    if n % 3 == 0 {
                        return Err(Error::Corrupt("a fault that rolls it back"));
                    }
                    Ok(())
                })
                .await
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap().is_ok());
    }
    assert_eq!(made, 26);
    let page = store::page::Page {
        limit: 200,
        after: None,
    };
    let all: Result<_, Error> = base
        .db
        .read(async |ro: &mut Ro| store::invoice::list(ro, world.renter, page).await)
        .await;
    let mut numbers: Vec<i64> = all.unwrap().rows.iter().map(|i| i.number.no).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=26).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_market_makes_one_invoice_for_a_month() {
    let (base, world, lease) = paying().await;
    let month = Month::of(T0).period();
    let due = async || -> Vec<PartyId> {
        base.db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                store::invoice::due_parties(ro, InvoiceKind::Sale, month, month.from).await
            })
            .await
            .unwrap()
    };
    assert_eq!(due().await, [world.renter]);
    let of_month = async || -> Result<Invoice, Error> {
        base.db
            .write(async |tx: &mut Tx| {
                issue(
                    tx,
                    (world.renter, InvoiceKind::Sale),
                    month,
                    Occasion::Month,
                )
                .await
            })
            .await
    };
    of_month().await.unwrap();
    assert_eq!(due().await, []);
    base.db
        .write(async |tx: &mut Tx| settle(tx, &world, &lease, 2_000).await)
        .await
        .unwrap();
    let second = of_month().await;
    assert!(
        matches!(second, Err(Error::Conflict(Constraint::InvoiceMonthOnce))),
        "{second:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_issued_stays() {
    let (base, world, _lease) = paying().await;
    base.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            issue(
                tx,
                (world.renter, InvoiceKind::Sale),
                EVER,
                Occasion::Demand,
            )
            .await
        })
        .await
        .unwrap();
    for statement in [
        "UPDATE invoice SET total = 0",
        "DELETE FROM invoice",
        "UPDATE invoice_line SET gross = 0",
        "TRUNCATE invoice_line",
        "DELETE FROM invoice_series",
    ] {
        let fault = base.fault(statement).await;
        assert!(fault.contains("append-only"), "{statement}: {fault}");
    }
    for jump in ["last + 2", "last - 1"] {
        let fault = base
            .fault(&format!("UPDATE invoice_series SET last = {jump}"))
            .await;
        assert!(fault.contains("counts by one"), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sums_of_a_row_are_checked_by_the_database() {
    let (base, world) = World::fresh().await;
    let wrong: Result<(), Error> = base
        .db
        .write(async |tx: &mut Tx| {
            let mut invoice = issue(
                tx,
                (world.renter, InvoiceKind::Sale),
                EVER,
                Occasion::Demand,
            )
            .await?;
            invoice.id = InvoiceId::from_uuid(id());
            invoice.number = store::invoice::next_number(tx, InvoiceKind::Sale, 2026).await?;
            invoice.totals.total = Micros::new(1);
            store::invoice::insert(tx, &invoice, Occasion::Demand).await
        })
        .await;
    let Err(Error::Conflict(Constraint::Other(name))) = wrong else {
        panic!("{wrong:?}");
    };
    assert_eq!(name, "invoice_sums");
}

/// A disk that was made twice as large between two charges: a line for each price, with its size.
#[tokio::test(flavor = "multi_thread")]
async fn each_price_has_its_line() {
    let (base, world, _lease) = paying().await;
    let storage = "(SELECT id FROM meter WHERE resource = 'storage')";
    base.tamper(&[
        "INSERT INTO meter_segment (meter_id, no, from_at, price)
            SELECT id, 2, opened_at + interval '600 s', price * 2 FROM meter WHERE resource = 'storage'",
        &format!("UPDATE charge SET segment = 2 WHERE seq = 2 AND meter_id = {storage}"),
    ])
    .await;
    let lines = base
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            store::invoice::open_lines(ro, world.renter, InvoiceKind::Sale, EVER).await
        })
        .await
        .unwrap();
    let disks = lines.iter().filter(|l| l.resource == Resource::Storage);
    let disks: Vec<_> = disks
        .map(|l| (l.seq, l.disk_gib, l.rate.price.get()))
        .collect();
    assert_eq!(
        disks,
        [((1, 1), 100, 10_000_000), ((2, 2), 200, 20_000_000)]
    );
    let days = base
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            store::usage::days(ro, (world.renter, Side::Cost), EVER, 10).await
        })
        .await
        .unwrap();
    let sizes = days.iter().filter(|d| d.resource == Resource::Storage);
    assert_eq!(sizes.map(|d| d.disk_gib).collect::<Vec<_>>(), [100, 200]);
}
