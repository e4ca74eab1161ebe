//! Usage: sums that are the ledger's, and days that are UTC days.

use billing::focus::Side;
use billing::invoice::InvoiceKind;
use billing::month::Month;
use billing::rating::Due;
use store::db::Ro;
use store::error::Error;
use store::usage::GroupBy;

use crate::billed::paying;
use crate::invoiced::{EVER, charged};
use crate::world::T0;

/// 20:36 UTC is the next day in Kiritimati and still the same in Honolulu: the answers are the same.
#[tokio::test(flavor = "multi_thread")]
async fn no_time_zone_of_the_database_moves_a_charge() {
    let (base, world, lease) = paying().await;
    let name: &str = base.url.rsplit('/').next().unwrap();
    let sum = charged(&base, &lease).await;
    let month = Month::of(T0).period();
    let mut answers = Vec::new();
    for zone in [
        "UTC",
        "Pacific/Kiritimati",
        "Pacific/Honolulu",
        "Europe/Berlin",
        "America/St_Johns",
    ] {
        base.run(&[&format!("ALTER DATABASE {name} SET timezone = '{zone}'")])
            .await;
        let db = store::Db::connect(&base.url, 2).unwrap();
        let found = db
            .read::<_, Error, _>(async |ro: &mut Ro| {
                let who = (world.renter, Side::Cost);
                Ok((
                    store::usage::sums(ro, who, (month, GroupBy::Day), 100).await?,
                    store::usage::days(ro, who, month, 100).await?,
                    store::invoice::open_lines(ro, world.renter, InvoiceKind::Sale, month).await?,
                    store::invoice::due_parties(ro, InvoiceKind::Sale, month, month.from).await?,
                ))
            })
            .await
            .unwrap();
        answers.push(format!("{found:?}"));
        let (by_day, days, _lines, _due) = found;
        assert_eq!(by_day.len(), 1, "{zone}");
        let midnight = billing::month::day_of(T0).from.micros();
        assert_eq!(by_day[0].key, midnight.to_string());
        let mut all = Due::default();
        for day in &days {
            assert_eq!(day.day, billing::month::day_of(T0), "{zone}");
            all = all.plus(day.due).unwrap();
        }
        assert_eq!((by_day[0].due, all), (sum, sum));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_adds_up_whichever_way_it_is_grouped() {
    let (base, world, lease) = paying().await;
    let sum = charged(&base, &lease).await;
    for (party, side) in [(world.renter, Side::Cost), (world.provider, Side::Earnings)] {
        for group in [
            GroupBy::Lease,
            GroupBy::Label,
            GroupBy::Resource,
            GroupBy::Day,
        ] {
            let rows: Result<_, Error> = base
                .db
                .read(async |ro: &mut Ro| {
                    store::usage::sums(ro, (party, side), (EVER, group), 100).await
                })
                .await;
            let mut all = Due::default();
            for row in rows.unwrap() {
                all = all.plus(row.due).unwrap();
            }
            assert_eq!(all, sum, "{side:?} {group:?}");
        }
    }
    let stranger: Result<_, Error> = base
        .db
        .read(async |ro: &mut Ro| {
            store::usage::sums(ro, (world.provider, Side::Cost), (EVER, GroupBy::Day), 9).await
        })
        .await;
    assert_eq!(stranger.unwrap(), []);
}
