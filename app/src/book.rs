//! The book of this node: a copy in memory of what is offered, kept up from the feed.
//!
//! Invariant: a search sees every change that was committed before the search came. For that it
//! waits for a catch-up that began after it; all that wait share one. Booking does not look here:
//! the database decides again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use domain::clock::{Span, Timestamp};
use domain::gpu::Catalogue;
use domain::id::{MachineId, OfferId};
use domain::machine::STALE_AFTER;
use matching::book::{Book, Seen, Supply};
use store::db::Ro;
use tokio::sync::Mutex;

use crate::context::Cx;
use crate::error::Error;

/// How often machines are looked for that fell silent or speak again.
const LOOK_EVERY: Span = Span::from_secs(1);

/// The book, and what it is kept up with.
pub(crate) struct LiveBook {
    view: RwLock<View>,
    /// Catch-ups that have begun.
    begun: AtomicU64,
    /// Held by the one that catches up: the number of the last one that came through.
    done: Mutex<u64>,
}

struct View {
    book: Book,
    offers: BTreeMap<MachineId, OfferId>,
    unbookable: BTreeSet<MachineId>,
    /// When it was last caught up; `None`: never read.
    as_of: Option<Timestamp>,
    looked_at: Timestamp,
}

/// What a catch-up read.
enum News {
    Whole(store::book::Whole),
    Some {
        seen: Seen,
        machines: BTreeMap<MachineId, u64>,
        supplies: Vec<Supply>,
        looked: bool,
    },
}

impl LiveBook {
    /// An empty book that was never read.
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let rates = catalogue.models().iter();
        let rates = rates.filter_map(|m| Some((m.slug.clone(), m.fp16_gflops?)));
        Self {
            view: RwLock::new(View {
                book: Book::default().with_rates(rates.collect()),
                offers: BTreeMap::new(),
                unbookable: BTreeSet::new(),
                as_of: None,
                looked_at: Timestamp::from_micros(0),
            }),
            begun: AtomicU64::new(0),
            done: Mutex::new(0),
        }
    }

    /// Runs `look` over the book as it is, with the time that it was caught up at.
    fn with<R>(&self, look: impl FnOnce(&Book, Timestamp) -> R) -> Option<R> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        view.as_of.map(|as_of| look(&view.book, as_of))
    }
}

/// Runs `look` over the book with every change that was committed before the call. If the database
/// is away, over the book as it was, unless that is longer ago than a machine may be silent.
pub(crate) async fn with_book<R>(
    cx: &Cx,
    look: impl FnOnce(&Book, Timestamp) -> R + Send,
) -> Result<R, Error> {
    let caught_up = catch_up(cx).await;
    let now = cx.now();
    if let Err(error) = caught_up {
        let known = cx.book().with(|_, as_of| as_of);
        if known.is_none_or(|as_of| now.since(as_of) > STALE_AFTER) {
            return Err(error);
        }
        tracing::warn!(%error, "the book is not caught up; search answers from memory");
    }
    cx.book()
        .with(look)
        .ok_or(Error::Fault("the book was never read"))
}

/// Keeps the book up when nobody searches.
pub async fn follow_book(cx: &Cx) -> Result<usize, Error> {
    catch_up(cx).await
}

/// Forgets old changes of the feed.
pub async fn sweep_book(cx: &Cx) -> Result<usize, Error> {
    cx.db
        .write::<_, Error, _>(async |tx: &mut store::db::Tx| Ok(store::book::sweep(tx).await?))
        .await
}

/// The offers of which this node's book, once caught up, does not say what the database does; for
/// tests and doubts, in a market that stands still.
pub async fn compare_book(cx: &Cx) -> Result<Vec<OfferId>, Error> {
    catch_up(cx).await?;
    let News::Whole(whole) = whole(cx, cx.now()).await? else {
        return Ok(Vec::new());
    };
    let fresh = Book::new(whole.supplies.into_iter().map(|(supply, _)| supply));
    let differs = |book: &Book, _as_of| {
        let offers = fresh.iter().chain(book.iter()).map(|s| s.offer.id);
        let differs = |offer: &OfferId| fresh.get(*offer) != book.get(*offer);
        offers.filter(differs).collect()
    };
    cx.book()
        .with(differs)
        .ok_or(Error::Fault("the book was never read"))
}

/// Reads what is new, unless somebody who began after this call has done so; gives how many
/// supplies may have changed.
async fn catch_up(cx: &Cx) -> Result<usize, Error> {
    let live = cx.book();
    let came = live.begun.load(Ordering::Acquire);
    let mut done = live.done.lock().await;
    if *done > came {
        return Ok(0);
    }
    let number = live.begun.fetch_add(1, Ordering::AcqRel).saturating_add(1);
    let now = cx.now();
    let news = read(cx, now).await?;
    let changed = {
        let mut view = live.view.write().unwrap_or_else(PoisonError::into_inner);
        view.apply(news, now)
    };
    *done = number;
    Ok(changed)
}

/// Reads the news in one snapshot: all of it after a gap.
async fn read(cx: &Cx, now: Timestamp) -> Result<News, Error> {
    let (known, unbookable) = {
        let view = cx
            .book()
            .view
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let known = view.as_of.map(|_| view.book.seen().clone());
        let since_look = now.since(view.looked_at);
        let look = since_look >= LOOK_EVERY || since_look < Span::from_secs(0);
        (known, look.then(|| view.unbookable.clone()))
    };
    let Some(since) = known else {
        return whole(cx, now).await;
    };
    let (since, unbookable) = (&since, unbookable.as_ref());
    let news = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let Some(changes) = store::book::changes(ro, since).await? else {
                return Ok(None);
            };
            let mut machines = changes.machines;
            if let Some(unbookable) = unbookable {
                let now_unbookable = store::book::unbookable(ro, now).await?;
                for machine in now_unbookable.symmetric_difference(unbookable) {
                    machines.entry(*machine).or_insert(0);
                }
            }
            let ids: Vec<MachineId> = machines.keys().copied().collect();
            let supplies = if ids.is_empty() {
                Vec::new()
            } else {
                store::book::supplies_on(ro, &ids, now).await?
            };
            Ok(Some(News::Some {
                seen: changes.seen,
                machines,
                supplies,
                looked: unbookable.is_some(),
            }))
        })
        .await?;
    if let Some(news) = news {
        return Ok(news);
    }
    tracing::info!("the feed has a gap: the book is read again");
    whole(cx, now).await
}

async fn whole(cx: &Cx, now: Timestamp) -> Result<News, Error> {
    let whole = cx
        .db
        .inspect::<_, Error, _>(async |ro: &mut Ro| Ok(store::book::whole(ro, now).await?))
        .await?;
    Ok(News::Whole(whole))
}

impl View {
    fn apply(&mut self, news: News, now: Timestamp) -> usize {
        self.as_of = Some(now);
        match news {
            News::Whole(whole) => {
                self.book = self.book.emptied();
                self.offers.clear();
                self.unbookable.clear();
                let count = whole.supplies.len();
                for (supply, at) in whole.supplies {
                    self.put(supply, at);
                }
                self.book.catch_up(whole.seen);
                self.looked_at = now;
                count
            }
            News::Some {
                seen,
                mut machines,
                supplies,
                looked,
            } => {
                let count = machines.len();
                for supply in supplies {
                    let at = machines.remove(&supply.offer.machine).unwrap_or(0);
                    self.put(supply, at);
                }
                // What has no supply any more.
                for machine in machines.keys() {
                    self.unbookable.remove(machine);
                    if let Some(offer) = self.offers.remove(machine) {
                        self.book.remove(offer);
                    }
                }
                self.book.catch_up(seen);
                if looked {
                    self.looked_at = now;
                }
                count
            }
        }
    }

    fn put(&mut self, supply: Supply, at: u64) {
        let (machine, offer) = (supply.offer.machine, supply.offer.id);
        if supply.bookable {
            self.unbookable.remove(&machine);
        } else {
            self.unbookable.insert(machine);
        }
        // A machine has one live offer; an older one is withdrawn.
        if let Some(old) = self
            .offers
            .insert(machine, offer)
            .filter(|old| *old != offer)
        {
            self.book.remove(old);
        }
        self.book.put(supply, at);
    }
}
