//! A way to PostgreSQL that a test can close between any two messages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Where messages stop.
#[derive(Clone, Debug)]
pub enum Stop {
    /// Before the client's message of this number, over all connections.
    At(usize),
    /// After it: it reaches the server, and no answer comes back any more.
    After(usize),
    /// Before the first message of the client with this text.
    Before(&'static str),
}

#[derive(Debug)]
struct Gate {
    stop: Stop,
    count: AtomicUsize,
    hit: AtomicBool,
    reached: Notify,
    open: watch::Sender<bool>,
}

/// A listening proxy; its connections end with it.
#[derive(Debug)]
pub struct Proxy {
    /// What to connect to instead.
    pub url: String,
    gate: Arc<Gate>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// A proxy in front of the database of `url` (`postgres://user@host:port/name`).
    pub async fn start(url: &str, stop: Stop) -> Self {
        let (head, tail) = url.split_once('@').unwrap();
        let (host, name) = tail.split_once('/').unwrap();
        let target: SocketAddr = host.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let gate = Arc::new(Gate {
            stop,
            count: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
            reached: Notify::new(),
            open: watch::Sender::new(false),
        });
        let accepting = Arc::clone(&gate);
        let task = tokio::spawn(async move {
            // Aborted with the task.
            let mut links = tokio::task::JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(target).await.unwrap();
                links.spawn(link(client, server, Arc::clone(&accepting)));
            }
        });
        Self {
            url: format!("{head}@{here}/{name}"),
            gate,
            task,
        }
    }

    /// Waits until a message was held back.
    pub async fn reached(&self) {
        loop {
            let notified = self.gate.reached.notified();
            if self.gate.hit.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }

    /// Lets everything through from here on.
    pub fn open(&self) {
        self.gate.open.send_replace(true);
    }
}

impl Gate {
    fn hit(&self) {
        self.hit.store(true, Ordering::SeqCst);
        self.reached.notify_waiters();
    }

    /// Ends when the gate is opened; with the proxy it is dropped.
    async fn opened(&self) {
        let mut open = self.open.subscribe();
        drop(open.wait_for(|open| *open).await);
    }

    async fn before(&self, message: &[u8], number: usize) {
        let stops = match self.stop {
            Stop::At(limit) => number >= limit,
            Stop::After(limit) => number > limit,
            Stop::Before(text) => message.windows(text.len()).any(|w| w == text.as_bytes()),
        };
        if stops && !*self.open.borrow() {
            self.hit();
            self.opened().await;
        }
    }

    fn is_deaf(&self) -> bool {
        let count = self.count.load(Ordering::SeqCst);
        matches!(self.stop, Stop::After(limit) if count >= limit)
    }
}

async fn link(client: TcpStream, server: TcpStream, gate: Arc<Gate>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = messages(from_client, to_server, &gate) => {}
        () = answers(from_server, to_client, &gate) => {}
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: &Gate) {
    let mut bytes = vec![0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if gate.is_deaf() {
            gate.opened().await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Passes the client's messages on one by one. The first has no type byte.
async fn messages(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: &Gate) {
    let mut head = 0;
    loop {
        let mut message = vec![0; head + 4];
        if from.read_exact(&mut message).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes(message[head..].try_into().unwrap());
        let body = usize::try_from(length).unwrap() - 4;
        message.resize(head + 4 + body, 0);
        if from.read_exact(&mut message[head + 4..]).await.is_err() {
            return;
        }
        let number = gate.count.fetch_add(1, Ordering::SeqCst) + 1;
        gate.before(&message, number).await;
        if to.write_all(&message).await.is_err() {
            return;
        }
        if gate.is_deaf() {
            gate.hit();
        }
        head = 1;
    }
}
