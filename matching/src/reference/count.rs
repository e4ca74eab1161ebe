//! Prices of several GPUs against those of one: multiplied twice, or not at all.
//!
//! The yardstick is a row of the same cloud, model and region with one GPU. An instance may cost
//! somewhat more or less for each of its GPUs; exactly `n` times as much, or an `n`-th, is a slip.

use domain::money::Micros;

use super::{Draft, Fault, Note};

/// Puts prices right that were multiplied by the count once too often or too seldom.
pub(super) fn put_right(drafts: &mut [Draft], notes: &mut Vec<Note>) {
    let mut singles: Vec<(Place, i128)> = drafts
        .iter()
        .filter(|d| d.price.gpus == 1)
        .filter_map(|d| Some((place(d), i128::from(d.price.hour?.get()))))
        .collect();
    singles.sort();
    for draft in drafts.iter_mut().filter(|d| d.price.gpus > 1) {
        let here = place(draft);
        let begin = singles.partition_point(|(at, _)| *at < here);
        let ones = singles.iter().skip(begin).take_while(|(at, _)| *at == here);
        let ones: Vec<i128> = ones.map(|(_, price)| *price).collect();
        notes.extend(judge(draft, &ones));
    }
}

/// Where a price can be compared: cloud, model, region, and whether it is for accelerators alone.
type Place = (String, String, String, bool);

fn place(draft: &Draft) -> Place {
    let p = &draft.price;
    (
        p.cloud.clone(),
        p.model.clone(),
        p.region.clone(),
        p.accelerator_only(),
    )
}

/// Is `price` within one part in `parts` of `other`?
fn near(price: i128, other: i128, parts: i128) -> bool {
    let apart = price.saturating_sub(other).abs();
    apart.saturating_mul(parts) <= other
}

fn judge(draft: &mut Draft, ones: &[i128]) -> Option<Note> {
    let hour = draft.price.hour?;
    let gpus = i64::from(draft.price.gpus);
    let (price, n) = (i128::from(hour.get()), i128::from(gpus));
    if ones.iter().any(|one| near(price, one.saturating_mul(n), 4)) {
        return None;
    }
    let square = n.saturating_mul(n);
    let (fault, right, spot) = if ones
        .iter()
        .any(|one| near(price, one.saturating_mul(square), 50))
    {
        let right = share(hour, gpus);
        let spot = draft.price.spot_hour;
        let spot = spot.map(|spot| {
            if spot > right {
                share(spot, gpus)
            } else {
                spot
            }
        });
        (Fault::CountSquared, right, spot)
    } else if ones.iter().any(|one| near(price, *one, 50)) {
        let right = hour.times(gpus).ok()?;
        (Fault::PriceOfOne, right, draft.price.spot_hour)
    } else {
        return None;
    };
    draft.price.hour = Some(right);
    draft.price.spot_hour = spot;
    Some(Note {
        line: draft.line,
        cloud: draft.price.cloud.clone(),
        fault,
        text: format!(
            "{hour} for {gpus} GPUs does not meet the price of one in {}: read as {right}",
            draft.price.region
        ),
    })
}

fn share(price: Micros, gpus: i64) -> Micros {
    let half = gpus.div_euclid(2);
    Micros::new(price.get().saturating_add(half).div_euclid(gpus))
}
