//! Reference prices: what other clouds ask, read from published price lists.
//!
//! Lists are wrong in known ways: units, prices of one GPU for eight and the other way round, zeros
//! that mean "unknown". Each row becomes one price or a [`Note`] that says why not; a row that was
//! put right gets a note as well. Prices are read as decimals, never as floats.

use std::collections::BTreeSet;

use domain::gpu::Catalogue;
use domain::money::Micros;

mod count;
mod decimal;
mod fault;
mod model;

pub use fault::Fault;

/// A row as it stands in the list: plain text, nothing read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRow {
    /// Line of the file; the header is line 1.
    pub line: u32,
    /// Who sells it: lower-case letters, digits, dashes.
    pub cloud: String,
    /// The seller's name of the size; empty: the price is for the accelerator alone.
    pub instance_type: String,
    /// The seller's name of the GPU.
    pub gpu: String,
    /// GPUs of the instance.
    pub gpu_count: String,
    /// Memory of one GPU.
    pub vram_mib_each: String,
    /// Virtual cores.
    pub vcpus: String,
    /// Main memory.
    pub memory_gib: String,
    /// Price of the whole instance for an hour.
    pub price_usd_h: String,
    /// The same for an interruptible one.
    pub spot_usd_h: String,
    /// Where.
    pub region: String,
    /// Where within the region.
    pub zone: String,
    /// Which state of the source the row was taken from.
    pub commit: String,
}

/// What another cloud asks for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePrice {
    /// Who sells it.
    pub cloud: String,
    /// The seller's name of the size; empty: the price is for the accelerators alone.
    pub instance_type: String,
    /// Canonical model.
    pub model: String,
    /// GPUs of the instance, at least 1.
    pub gpus: u16,
    /// Memory of one GPU as the list tells it.
    pub memory_mib: Option<u32>,
    /// Virtual cores.
    pub vcpus: Option<u32>,
    /// Main memory.
    pub ram_mib: Option<u64>,
    /// The whole instance for an hour; `None`: not sold on demand, or unknown.
    pub hour: Option<Micros>,
    /// The whole instance for an hour when it may be interrupted.
    pub spot_hour: Option<Micros>,
    /// Where, in the seller's words.
    pub region: String,
    /// Where within the region; may be empty.
    pub zone: String,
    /// State of the source.
    pub commit: String,
}

impl ReferencePrice {
    /// One GPU for an hour, rounded half up to the micro-unit; the price of the instance is exact.
    pub fn gpu_hour(&self) -> Option<Micros> {
        self.hour.map(|price| each(price, self.gpus))
    }

    /// One interruptible GPU for an hour, rounded half up.
    pub fn spot_gpu_hour(&self) -> Option<Micros> {
        self.spot_hour.map(|price| each(price, self.gpus))
    }

    /// Is the price for the accelerators alone, so that a host comes on top?
    pub const fn accelerator_only(&self) -> bool {
        self.instance_type.is_empty()
    }
}

fn each(price: Micros, gpus: u16) -> Micros {
    let gpus = i64::from(gpus.max(1));
    let half = gpus.div_euclid(2);
    Micros::new(price.get().saturating_add(half).div_euclid(gpus))
}

/// Why a row was left out or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Line of the file.
    pub line: u32,
    /// Whose row.
    pub cloud: String,
    /// What is wrong.
    pub fault: Fault,
    /// In words: what stood there and what was made of it.
    pub text: String,
}

/// A list, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceList {
    /// In the order of the rows.
    pub prices: Vec<ReferencePrice>,
    /// In the order of the rows, except that those about several rows come last.
    pub notes: Vec<Note>,
}

/// A price with the line that it came from.
#[derive(Clone, Debug)]
struct Draft {
    line: u32,
    price: ReferencePrice,
}

/// A fault with its words.
type Told = (Fault, String);

const TEXT_MAX: usize = 128;
const GPU_HOUR_LEAST: Micros = Micros::new(10_000);
const GPU_HOUR_MOST: Micros = Micros::new(200_000_000);

/// Reads rows of one source: each becomes a price, or a note that says why not.
pub fn normalise(catalogue: &Catalogue, rows: &[ListRow]) -> PriceList {
    let mut list = PriceList::default();
    let mut drafts = Vec::with_capacity(rows.len());
    for row in rows {
        let mut told = Vec::new();
        match read(catalogue, row, &mut told) {
            Ok(price) => drafts.push(Draft {
                line: row.line,
                price,
            }),
            Err(fault) => told.push(fault),
        }
        list.notes.extend(
            told.into_iter()
                .map(|told| note(row.line, &row.cloud, told)),
        );
    }
    count::put_right(&mut drafts, &mut list.notes);
    let mut seen = BTreeSet::new();
    for mut draft in drafts {
        match finish(&mut draft, &mut seen) {
            Ok(told) => {
                list.notes
                    .extend(told.map(|told| note(draft.line, &draft.price.cloud, told)));
                list.prices.push(draft.price);
            }
            Err(told) => list.notes.push(note(draft.line, &draft.price.cloud, told)),
        }
    }
    list
}

fn note(line: u32, cloud: &str, (fault, text): Told) -> Note {
    Note {
        line,
        cloud: cloud.chars().take(TEXT_MAX).collect(),
        fault,
        text,
    }
}

/// One row by itself.
fn read(
    catalogue: &Catalogue,
    row: &ListRow,
    told: &mut Vec<Told>,
) -> Result<ReferencePrice, Told> {
    check_text(row)?;
    if row.gpu.to_ascii_lowercase().starts_with("tpu") {
        let text = format!("`{}` is a slice of TPUs, not a GPU", row.gpu);
        return Err((Fault::TpuSlice, text));
    }
    let gpus = gpus(row)?;
    let hour = price("price", &row.price_usd_h, told)?;
    let spot_hour = price("spot price", &row.spot_usd_h, told)?;
    if hour.is_none() && spot_hour.is_none() {
        return Err((Fault::NoPrice, "no price is known".to_owned()));
    }
    let (model, memory_mib) = model::resolve(catalogue, row, gpus, told)?;
    if row.instance_type.is_empty() {
        let text = "no instance type: the price is for the accelerators alone, a host comes on top";
        told.push((Fault::AcceleratorOnly, text.to_owned()));
    }
    let vcpus = whole("vcpus", &row.vcpus, 1)?;
    let ram = whole("memory_gib", &row.memory_gib, 1_024)?;
    Ok(ReferencePrice {
        cloud: row.cloud.clone(),
        instance_type: row.instance_type.clone(),
        model,
        gpus,
        memory_mib,
        vcpus: vcpus.and_then(|n| u32::try_from(n).ok()),
        ram_mib: ram.and_then(|n| u64::try_from(n).ok()),
        hour,
        spot_hour,
        region: row.region.clone(),
        zone: row.zone.clone(),
        commit: row.commit.clone(),
    })
}

fn malformed(what: &str, text: &str) -> Told {
    let shown: String = text.chars().take(40).collect();
    (
        Fault::Malformed,
        format!("{what}: `{shown}` cannot be read"),
    )
}

fn check_text(row: &ListRow) -> Result<(), Told> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if row.cloud.is_empty() || row.cloud.len() > 32 || !row.cloud.bytes().all(plain) {
        return Err(malformed("cloud", &row.cloud));
    }
    for (what, text) in [
        ("instance_type", &row.instance_type),
        ("gpu", &row.gpu),
        ("region", &row.region),
        ("zone", &row.zone),
        ("commit", &row.commit),
    ] {
        if text.len() > TEXT_MAX || text.chars().any(char::is_control) {
            return Err(malformed(what, text));
        }
    }
    Ok(())
}

fn gpus(row: &ListRow) -> Result<u16, Told> {
    let count =
        decimal::read(&row.gpu_count).ok_or_else(|| malformed("gpu_count", &row.gpu_count))?;
    if !count.is_whole() || count.micros == 0 || model::part(row) {
        let text = format!(
            "{} of `{}` in `{}` is a part of a GPU",
            row.gpu_count, row.gpu, row.instance_type
        );
        return Err((Fault::PartOfGpu, text));
    }
    let whole = u16::try_from(count.whole()).ok().filter(|n| *n <= 64);
    whole.ok_or_else(|| malformed("gpu_count", &row.gpu_count))
}

/// A price in micro-units; `None` if it is blank or 0.
fn price(what: &str, text: &str, told: &mut Vec<Told>) -> Result<Option<Micros>, Told> {
    if text.is_empty() {
        return Ok(None);
    }
    let read = decimal::read(text).ok_or_else(|| malformed(what, text))?;
    if read.cut {
        let amount = Micros::new(read.micros);
        told.push((
            Fault::FloatTail,
            format!("{what} {text} is read as {amount}"),
        ));
    }
    if read.micros == 0 {
        told.push((
            Fault::PriceUnknown,
            format!("{what} {text} means unknown, not free"),
        ));
        return Ok(None);
    }
    Ok(Some(Micros::new(read.micros)))
}

/// A decimal times `unit`, rounded down; `None` if it is blank or 0.
fn whole(what: &str, text: &str, unit: i64) -> Result<Option<i64>, Told> {
    if text.is_empty() {
        return Ok(None);
    }
    let read = decimal::read(text).ok_or_else(|| malformed(what, text))?;
    let product = read
        .micros
        .checked_mul(unit)
        .ok_or_else(|| malformed(what, text))?;
    Ok(Some(product.div_euclid(1_000_000)).filter(|n| *n > 0))
}

type Key = (
    String,
    String,
    String,
    u16,
    Option<u32>,
    Option<u64>,
    String,
    String,
);

/// What can only be judged once counts are right: prices against each other, and against bounds.
fn finish(draft: &mut Draft, seen: &mut BTreeSet<Key>) -> Result<Option<Told>, Told> {
    let p = &mut draft.price;
    let mut told = None;
    if let (Some(hour), Some(spot)) = (p.hour, p.spot_hour)
        && spot > hour
    {
        let text = format!("the spot price {spot} is above the price {hour}: left out");
        told = Some((Fault::SpotAbovePrice, text));
        p.spot_hour = None;
    }
    for gpu_hour in [p.gpu_hour(), p.spot_gpu_hour()].into_iter().flatten() {
        if !(GPU_HOUR_LEAST..=GPU_HOUR_MOST).contains(&gpu_hour) {
            let text = format!(
                "{gpu_hour} USD for a GPU-hour of {} is not plausible",
                p.model
            );
            return Err((Fault::Implausible, text));
        }
    }
    let key = (
        p.cloud.clone(),
        p.instance_type.clone(),
        p.model.clone(),
        p.gpus,
        p.vcpus,
        p.ram_mib,
        p.region.clone(),
        p.zone.clone(),
    );
    if seen.insert(key) {
        Ok(told)
    } else {
        let text = format!("{} x {} in {} was listed before", p.gpus, p.model, p.region);
        Err((Fault::Duplicate, text))
    }
}

#[cfg(test)]
mod tests;
