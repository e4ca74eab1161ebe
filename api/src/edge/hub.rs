//! The live links of this node: which machine's agent is connected, and how to reach it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use app::context::Wake;
use domain::id::MachineId;
use tokio::sync::{Notify, mpsc, oneshot};
use web_openapi::agent::ToAgent;
use web_openapi::lease::LogLine;

/// How long an agent may take to answer a request for logs.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Messages that may wait for one link.
const QUEUE: usize = 64;

/// Lines of a container's output, or why there are none.
pub type LogsAnswer = Result<(Vec<LogLine>, bool), String>;

/// What a link is told from outside.
#[derive(Debug)]
pub enum Order {
    /// The desired state may have changed: send it.
    SendDesired,
    /// Send this message.
    Say(ToAgent),
    /// Another connection of this machine took over, or the machine is not trusted any more.
    Close(&'static str),
    /// Are you alive? Answer at once.
    Ping(oneshot::Sender<()>),
}

struct Link {
    number: u64,
    orders: mpsc::Sender<Order>,
}

/// All live links of this node.
#[derive(Default)]
pub struct Hub {
    links: Mutex<BTreeMap<MachineId, Link>>,
    /// By machine as well: no machine can answer for another.
    waiting: Mutex<BTreeMap<(MachineId, u64), oneshot::Sender<LogsAnswer>>>,
    counter: AtomicU64,
    reconcile: Notify,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hub")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Hub {
    fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// The orders channel of a machine's present link.
    pub fn present(&self, machine: MachineId) -> Option<mpsc::Sender<Order>> {
        lock(&self.links)
            .get(&machine)
            .map(|link| link.orders.clone())
    }

    /// Registers a link in place of any other; gives its number and its orders.
    pub fn register(&self, machine: MachineId) -> (u64, mpsc::Receiver<Order>) {
        let (orders, receiver) = mpsc::channel(QUEUE);
        let number = self.next();
        lock(&self.links).insert(machine, Link { number, orders });
        (number, receiver)
    }

    /// Forgets a link, unless another has taken its place.
    pub fn leave(&self, machine: MachineId, number: u64) {
        let mut links = lock(&self.links);
        if links
            .get(&machine)
            .is_some_and(|link| link.number == number)
        {
            links.remove(&machine);
        }
    }

    /// How many agents are connected here.
    pub fn count(&self) -> usize {
        lock(&self.links).len()
    }

    /// Asks a machine for a container's output.
    pub async fn logs(
        &self,
        machine: MachineId,
        lease_id: String,
        (tail, after): (u32, Option<String>),
    ) -> Option<LogsAnswer> {
        let orders = self.present(machine)?;
        let request = self.next();
        let (answer, answered) = oneshot::channel();
        lock(&self.waiting).insert((machine, request), answer);
        let message = ToAgent::GetLogs {
            request,
            lease_id,
            tail,
            after,
        };
        let exchange = async {
            orders.send(Order::Say(message)).await.ok()?;
            answered.await.ok()
        };
        let result = tokio::time::timeout(ANSWER_LIMIT, exchange).await;
        lock(&self.waiting).remove(&(machine, request));
        result.ok().flatten()
    }

    /// An agent's answer to a request for logs.
    pub fn answered(&self, machine: MachineId, request: u64, answer: LogsAnswer) {
        match lock(&self.waiting).remove(&(machine, request)) {
            None => tracing::debug!(%machine, request, "logs that nobody asked for"),
            Some(waiting) => {
                if waiting.send(answer).is_err() {
                    tracing::debug!(%machine, request, "nobody waits for these logs any more");
                }
            }
        }
    }

    /// Waits until somebody says that reconcilers have something to do.
    pub async fn something_to_do(&self) {
        self.reconcile.notified().await;
    }
}

/// The hub as use-cases see it.
#[derive(Clone, Debug)]
pub struct HubWake(pub std::sync::Arc<Hub>);

impl Wake for HubWake {
    fn machine(&self, id: MachineId) {
        if let Some(orders) = self.0.present(id)
            && orders.try_send(Order::SendDesired).is_err()
        {
            // Full or gone: the link sends the desired state by its own timer as well.
            tracing::debug!(machine = %id, "a link is busy");
        }
    }

    fn reconcile(&self) {
        self.0.reconcile.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: u128) -> MachineId {
        MachineId::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn only_the_machine_that_was_asked_can_answer() {
        let hub = std::sync::Arc::new(Hub::default());
        let (_number, mut orders) = hub.register(machine(1));
        let asked = {
            let hub = std::sync::Arc::clone(&hub);
            tokio::spawn(async move { hub.logs(machine(1), "lse_x".to_owned(), (5, None)).await })
        };
        let Some(Order::Say(ToAgent::GetLogs { request, .. })) = orders.recv().await else {
            panic!("the machine is asked");
        };
        hub.answered(machine(2), request, Ok((Vec::new(), false)));
        hub.answered(machine(1), request, Ok((Vec::new(), true)));
        assert_eq!(asked.await.unwrap(), Some(Ok((Vec::new(), true))));
        assert!(lock(&hub.waiting).is_empty());
    }

    #[tokio::test]
    async fn an_absent_machine_is_not_waited_for() {
        let hub = Hub::default();
        assert_eq!(hub.logs(machine(1), String::new(), (1, None)).await, None);
        assert!(lock(&hub.waiting).is_empty());
    }

    #[tokio::test]
    async fn a_newer_link_takes_the_place_and_the_older_one_ends() {
        let hub = Hub::default();
        let (first, mut orders) = hub.register(machine(1));
        let (second, _orders) = hub.register(machine(1));
        assert!(orders.recv().await.is_none());
        hub.leave(machine(1), first);
        assert_eq!(hub.count(), 1);
        hub.leave(machine(1), second);
        assert_eq!(hub.count(), 0);
    }
}
