//! Many callers, one transaction: whoever finds the desk free serves everybody who waits there.
//!
//! A durable commit costs a disk's flush, whatever is in it; so requests that arrive while one is
//! being written are taken together by the next. The caller that serves is one of those waiting:
//! there is no task in the background, and nothing waits when there is nothing to wait for.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

use tokio::sync::{Semaphore, oneshot};

use crate::error::Error;

/// What came of each item, in their order; or nothing was done for any.
pub type Served<'a, O, E> = Pin<Box<dyn Future<Output = Result<Vec<Result<O, E>>, E>> + Send + 'a>>;

/// Serves several items in one transaction.
pub type Serve<C, I, O, E> = for<'a> fn(&'a C, &'a [I]) -> Served<'a, O, E>;

struct Waiting<I, O, E> {
    item: I,
    done: oneshot::Sender<Result<O, E>>,
}

/// Where items wait to be served together.
pub struct Group<C, I, O, E> {
    queue: Mutex<VecDeque<Waiting<I, O, E>>>,
    desk: Semaphore,
    most: usize,
    serve: Serve<C, I, O, E>,
    name: fn(&I) -> Option<String>,
}

impl<C, I, O, E> fmt::Debug for Group<C, I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(most {})", self.most)
    }
}

const LEFT: Error = Error::Corrupt("group: whoever served is gone");
const MISSING: Error = Error::Corrupt("group: an item without a result");

impl<C: Sync, I: Send + Sync, O: Send, E: From<Error> + fmt::Display + Send> Group<C, I, O, E> {
    /// A group that serves at most `most` items in one transaction. Items of the same `name` are
    /// never served together: the later one sees what came of the former.
    pub fn new(most: usize, serve: Serve<C, I, O, E>, name: fn(&I) -> Option<String>) -> Self {
        Self {
            queue: Mutex::default(),
            desk: Semaphore::new(1),
            most,
            serve,
            name,
        }
    }

    /// Has `item` served, alone or with others. Let it run to its end: others may wait for it.
    pub async fn run(&self, context: &C, item: I) -> Result<O, E> {
        let (done, mut answer) = oneshot::channel();
        self.queue
            .lock()
            .map_err(|_poisoned| LEFT)?
            .push_back(Waiting { item, done });
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => return answered.map_err(|_gone| LEFT)?,
                free = self.desk.acquire() => {
                    let _serving = free.map_err(|_closed| LEFT)?;
                    self.serve_waiting(context).await?;
                }
            }
        }
    }

    /// Takes those that may be served together, in their order.
    fn take(&self) -> Result<Vec<Waiting<I, O, E>>, Error> {
        let mut queue = self.queue.lock().map_err(|_poisoned| LEFT)?;
        let (mut taken, mut left, mut names) = (Vec::new(), VecDeque::new(), HashSet::new());
        for waiting in queue.drain(..) {
            let fresh = (self.name)(&waiting.item).is_none_or(|name| names.insert(name));
            if fresh && taken.len() < self.most {
                taken.push(waiting);
            } else {
                left.push_back(waiting);
            }
        }
        *queue = left;
        drop(queue);
        Ok(taken)
    }

    async fn serve_waiting(&self, context: &C) -> Result<(), E> {
        let taken = self.take()?;
        let (items, answers): (Vec<I>, Vec<_>) =
            taken.into_iter().map(|w| (w.item, w.done)).unzip();
        if items.is_empty() {
            return Ok(());
        }
        match (self.serve)(context, &items).await {
            Ok(results) => deliver(answers, results),
            Err(error) if items.len() == 1 => deliver(answers, vec![Err(error)]),
            Err(error) => {
                // One of them spoilt it for all: each alone then.
                tracing::debug!(%error, items = items.len(), "a group is served one by one");
                for (item, answer) in items.iter().zip(answers) {
                    let alone = (self.serve)(context, std::slice::from_ref(item)).await;
                    let missing = || Err(E::from(MISSING));
                    let result = alone.and_then(|mut r| r.pop().unwrap_or_else(missing));
                    deliver(vec![answer], vec![result]);
                }
            }
        }
        Ok(())
    }
}

fn deliver<O, E: From<Error>>(
    answers: Vec<oneshot::Sender<Result<O, E>>>,
    results: Vec<Result<O, E>>,
) {
    let mut results = results.into_iter();
    for answer in answers {
        let result = results.next().unwrap_or_else(|| Err(MISSING.into()));
        // Whoever does not wait any more has been served all the same.
        let _unheard = answer.send(result);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts transactions; an item 13 spoils a whole one.
    type Desk = Group<AtomicUsize, u32, u32, Error>;

    fn desk(most: usize) -> Desk {
        Group::new(
            most,
            |count, items| {
                Box::pin(async move {
                    count.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    if items.contains(&13) {
                        return Err(Error::Contended);
                    }
                    Ok(items.iter().map(|i| Ok(i * 2)).collect())
                })
            },
            |item| (*item == 7).then(|| "seven".to_owned()),
        )
    }

    async fn all(desk: Desk, items: Vec<u32>) -> (Vec<Result<u32, Error>>, usize) {
        let (desk, count) = (Arc::new(desk), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = items
            .into_iter()
            .map(|item| {
                let (desk, count) = (Arc::clone(&desk), Arc::clone(&count));
                tokio::spawn(async move { desk.run(&count, item).await })
            })
            .collect();
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        (results, count.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn those_who_wait_are_served_together_and_each_gets_its_own_answer() {
        let (results, transactions) = all(desk(100), (100..200).collect()).await;
        for (n, result) in (100..200).zip(results) {
            assert_eq!(result.unwrap(), n * 2);
        }
        assert!(transactions <= 3, "{transactions}");
    }

    #[tokio::test]
    async fn no_more_than_most_are_served_together() {
        let (results, transactions) = all(desk(10), (100..200).collect()).await;
        assert!(results.iter().all(Result::is_ok));
        assert!(transactions >= 10, "{transactions}");
    }

    #[tokio::test]
    async fn one_that_spoils_it_fails_alone() {
        let (results, _) = all(desk(100), vec![1, 2, 13, 4]).await;
        let good: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, true, false, true]);
    }

    #[tokio::test]
    async fn namesakes_are_served_one_after_another() {
        let (results, transactions) = all(desk(100), vec![7, 7, 7]).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(transactions, 3);
    }
}
