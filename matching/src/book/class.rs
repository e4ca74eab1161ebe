//! Classes of supplies that no request can tell apart, and the sets of classes by attribute.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::id::OfferId;
use domain::money::Micros;

use super::Supply;
use super::bits::{Bits, Column};
use crate::constraint::Constraint;
use crate::offer::OfferTerms;
use crate::request::Request;

/// Supplies with equal facts, terms and free GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// One of them; what a request asks of it is the same for all.
    pub(crate) sample: Arc<Supply>,
    /// Their offers.
    pub(crate) members: BTreeSet<OfferId>,
    key: Key,
}

/// What a search reads of each class that fits; they lie together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    /// Offers.
    pub(crate) members: u32,
    /// Number of its price level.
    pub(crate) level: u32,
    /// Number of its model.
    pub(crate) model: u32,
    /// Number of its country; [`NOWHERE`] if not told.
    pub(crate) country: u32,
    /// Memory of each GPU, MiB.
    pub(crate) gpu_memory_mib: u32,
    /// Free GPUs.
    pub(crate) free: u16,
    /// Free GPUs of the island that has most.
    pub(crate) island: u16,
}

/// No country.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What two supplies of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    flags: (bool, bool),
    model: u32,
    country: Option<u32>,
    facts: (u32, u32, u64, u64),
    terms: OfferTerms,
    free: (u16, u16),
}

/// Texts with a number each, and the classes that have each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    ids: BTreeMap<String, u32>,
    sets: Vec<Bits>,
}

impl Names {
    /// The names with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ids.iter().map(|(name, id)| (name.as_str(), *id))
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        self.ids.insert(name.to_owned(), id);
        self.sets.push(Bits::default());
        id
    }

    fn set(&mut self, name: u32, class: u32, on: bool) {
        let at = usize::try_from(name).unwrap_or(usize::MAX);
        if let Some(set) = self.sets.get_mut(at) {
            set.set(class, on);
        }
    }

    /// The classes with any of these names.
    fn any_of(&self, names: &BTreeSet<String>) -> Bits {
        let known = names.iter().filter_map(|name| self.ids.get(name));
        let sets = known.filter_map(|id| self.sets.get(usize::try_from(*id).ok()?));
        sets.fold(Bits::default(), Bits::or)
    }
}

/// A pair of prices, and how many classes have it.
#[derive(Clone, Copy, Debug)]
struct Level {
    prices: (Micros, Micros),
    classes: u32,
}

/// All classes, found by attribute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    classes: Vec<Class>,
    briefs: Vec<Brief>,
    by_key: HashMap<Key, u32>,
    /// Numbers of classes that have no members, to be used again.
    empty: Vec<u32>,
    live: Bits,
    bookable: Bits,
    simulated: Bits,
    models: Names,
    countries: Names,
    told_country: Bits,
    columns: Columns,
    levels: Vec<Level>,
    level_of: HashMap<(Micros, Micros), u32>,
    empty_levels: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Columns {
    members: Column,
    min_gpus: Column,
    max_gpus: Column,
    gpu_memory: Column,
    cores: Column,
    ram: Column,
    disk: Column,
    price: Column,
    free: Column,
}

fn at<T>(all: &[T], number: u32) -> Option<&T> {
    all.get(usize::try_from(number).ok()?)
}

impl Index {
    /// Puts a supply into its class, gives the class's number.
    pub(crate) fn join(&mut self, supply: &Arc<Supply>) -> u32 {
        let free = supply.free();
        let island = super::largest_island(&supply.slots);
        let key = Key {
            flags: (supply.bookable, supply.simulated),
            model: self.models.number(&supply.model),
            country: supply.country.as_ref().map(|c| self.countries.number(c)),
            facts: (
                supply.gpu_memory_mib,
                supply.cpu_cores,
                supply.ram_mib,
                supply.disk_free_gib,
            ),
            terms: supply.offer.terms,
            free: (free, island),
        };
        let number = match self.by_key.entry(key.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(fresh) => {
                let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
                let number = self.empty.pop().unwrap_or(next);
                fresh.insert(number);
                let brief = Brief {
                    members: 0,
                    level: self.enter_level(supply.offer.terms),
                    model: key.model,
                    country: key.country.unwrap_or(NOWHERE),
                    gpu_memory_mib: supply.gpu_memory_mib,
                    free,
                    island,
                };
                let class = Class {
                    sample: Arc::clone(supply),
                    members: BTreeSet::new(),
                    key,
                };
                self.mark(number, &class.key, true);
                let place = usize::try_from(number).unwrap_or(usize::MAX);
                let used = self.classes.get_mut(place).zip(self.briefs.get_mut(place));
                if let Some((old, old_brief)) = used {
                    (*old, *old_brief) = (class, brief);
                } else {
                    self.classes.push(class);
                    self.briefs.push(brief);
                }
                number
            }
        };
        self.count(number, |members| members.insert(supply.offer.id));
        number
    }

    /// Takes an offer out of its class; an empty class is forgotten.
    pub(crate) fn leave(&mut self, number: u32, offer: OfferId) {
        self.count(number, |members| members.remove(&offer));
        let Some(class) = at(&self.classes, number).filter(|c| c.members.is_empty()) else {
            return;
        };
        let key = class.key.clone();
        self.mark(number, &key, false);
        self.by_key.remove(&key);
        self.empty.push(number);
        if let Some(brief) = at(&self.briefs, number) {
            self.leave_level(brief.level);
        }
    }

    fn count(&mut self, number: u32, change: impl FnOnce(&mut BTreeSet<OfferId>) -> bool) {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let found = self.classes.get_mut(place).zip(self.briefs.get_mut(place));
        if let Some((class, brief)) = found {
            change(&mut class.members);
            brief.members = u32::try_from(class.members.len()).unwrap_or(u32::MAX);
            self.columns.members.set(number, brief.members.into());
        }
    }

    /// Writes a class into every set, or out of them.
    fn mark(&mut self, number: u32, key: &Key, on: bool) {
        let terms = &key.terms;
        let (gpu_memory, cores, ram, disk) = key.facts;
        self.live.set(number, on);
        self.bookable.set(number, on && key.flags.0);
        self.simulated.set(number, on && key.flags.1);
        self.models.set(key.model, number, on);
        self.told_country.set(number, on && key.country.is_some());
        if let Some(country) = key.country {
            self.countries.set(country, number, on);
        }
        let columns = &mut self.columns;
        let as_told = |n: u64| if on { n } else { 0 };
        columns.min_gpus.set(number, as_told(terms.min_gpus.into()));
        columns.max_gpus.set(number, as_told(terms.max_gpus.into()));
        columns.gpu_memory.set(number, as_told(gpu_memory.into()));
        columns.cores.set(number, as_told(cores.into()));
        columns.ram.set(number, as_told(ram));
        columns.disk.set(number, as_told(disk));
        columns.price.set(number, as_told(positive(terms.gpu_hour)));
        columns.free.set(number, as_told(key.free.0.into()));
    }

    fn enter_level(&mut self, terms: OfferTerms) -> u32 {
        let prices = (terms.gpu_hour, terms.storage_gib_month);
        let next = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let number = match self.level_of.entry(prices) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(fresh) => *fresh.insert(self.empty_levels.pop().unwrap_or(next)),
        };
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        match self.levels.get_mut(place) {
            Some(level) if level.classes > 0 => level.classes = level.classes.saturating_add(1),
            Some(level) => *level = Level { prices, classes: 1 },
            None => self.levels.push(Level { prices, classes: 1 }),
        }
        number
    }

    fn leave_level(&mut self, number: u32) {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(level) = self.levels.get_mut(place) else {
            return;
        };
        level.classes = level.classes.saturating_sub(1);
        if level.classes == 0 {
            self.level_of.remove(&level.prices);
            self.empty_levels.push(number);
        }
    }

    /// A class by its number.
    pub(crate) fn class(&self, number: u32) -> Option<&Class> {
        at(&self.classes, number)
    }

    /// What a search reads of a class.
    pub(crate) fn brief(&self, number: u32) -> Option<&Brief> {
        at(&self.briefs, number)
    }

    /// The prices of each level: GPU-hour, GiB-month.
    pub(crate) fn levels(&self) -> impl ExactSizeIterator<Item = (Micros, Micros)> {
        self.levels.iter().map(|level| level.prices)
    }

    /// The models' names.
    pub(crate) const fn models(&self) -> &Names {
        &self.models
    }

    /// The countries' names.
    pub(crate) const fn countries(&self) -> &Names {
        &self.countries
    }

    /// How many classes have members.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// How many offers the classes of a set have.
    pub(crate) fn offers(&self, set: &Bits) -> u32 {
        u32::try_from(self.columns.members.sum(set)).unwrap_or(u32::MAX)
    }

    /// Every class that has members.
    pub(crate) const fn live(&self) -> &Bits {
        &self.live
    }

    /// For each constraint, the classes that keep it.
    pub(crate) fn keepers(&self, request: &Request) -> Vec<(Constraint, Bits)> {
        let (all, columns) = (&self.live, &self.columns);
        let least = |column: &Column, n: Option<u64>| match n {
            Some(n) => column.at_least(n, all),
            None => all.clone(),
        };
        let count = u64::from(request.count);
        let wanted = |names: &Names, texts: &BTreeSet<String>| {
            if texts.is_empty() {
                all.clone()
            } else {
                names.any_of(texts)
            }
        };
        let avoided = if request.not_countries.is_empty() {
            all.clone()
        } else {
            let there = self.countries.any_of(&request.not_countries);
            self.told_country.clone().minus(&there)
        };
        let real = if request.simulated {
            all.clone()
        } else {
            all.clone().minus(&self.simulated)
        };
        let chunk = columns
            .min_gpus
            .at_most(count, all)
            .and(&columns.max_gpus.at_least(count, all));
        let price = match request.max_gpu_hour {
            Some(most) => columns.price.at_most(positive(most), all),
            None => all.clone(),
        };
        let memory = request.min_gpu_memory_mib.map(u64::from);
        let cores = request.min_cpu_cores.map(u64::from);
        vec![
            (Constraint::Bookable, self.bookable.clone()),
            (Constraint::Simulated, real),
            (Constraint::Model, wanted(&self.models, &request.models)),
            (Constraint::Chunk, chunk),
            (Constraint::GpuMemory, least(&columns.gpu_memory, memory)),
            (Constraint::CpuCores, least(&columns.cores, cores)),
            (Constraint::Ram, least(&columns.ram, request.min_ram_mib)),
            (
                Constraint::Country,
                wanted(&self.countries, &request.countries),
            ),
            (Constraint::NotCountry, avoided),
            (Constraint::Price, price),
            (
                Constraint::Disk,
                columns.disk.at_least(request.disk_gib.into(), all),
            ),
            (Constraint::FreeGpus, columns.free.at_least(count, all)),
        ]
    }
}

/// A price as a column's number; offers and ceilings are above zero.
fn positive(price: Micros) -> u64 {
    u64::try_from(price.get()).unwrap_or(0)
}
