//! A stub of the market: an HTTP server that plays scripted answers and records what was asked.
//!
//! It is no market: it knows no rule, it only says what a test tells it to.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Environment, Patience};

/// One scripted answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
    /// Close the connection instead of answering.
    pub(super) hang_up: bool,
}

/// An answer with a body.
pub(super) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply {
        status,
        headers: Vec::new(),
        body: body.into(),
        hang_up: false,
    }
}

/// A refusal.
pub(super) fn refusal(status: u16, code: &str, detail: &str) -> Reply {
    let problem = serde_json::json!({
        "type": format!("/docs/errors#{code}"), "title": "A title", "status": status,
        "detail": detail, "code": code, "request_id": "rqs_1",
    });
    reply(status, problem.to_string())
}

impl Reply {
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn hang_up(mut self) -> Self {
        self.hang_up = true;
        self
    }
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `POST /v1/leases`
    pub(super) line: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A stub of the market.
pub(super) struct Stub {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    left: Arc<Mutex<VecDeque<Reply>>>,
}

impl Stub {
    /// Plays `script` in order; asked for more, it answers 500 without a problem.
    pub(super) async fn play(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(Mutex::new(VecDeque::from(script)));
        let (log, rest) = (Arc::clone(&asked), Arc::clone(&left));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                answer(stream, &log, &rest).await;
            }
        });
        Self { url, asked, left }
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Method and path of what was asked.
    pub(super) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|a| a.line).collect()
    }

    /// Answers that were not asked for.
    pub(super) fn unused(&self) -> usize {
        self.left.lock().unwrap().len()
    }
}

async fn answer(mut stream: TcpStream, log: &Mutex<Vec<Asked>>, rest: &Mutex<VecDeque<Reply>>) {
    let mut bytes = Vec::new();
    let asked = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(asked) = parse(&bytes) {
            break asked;
        }
    };
    log.lock().unwrap().push(asked);
    let next = rest.lock().unwrap().pop_front();
    let next = next.unwrap_or_else(|| reply(500, "the script is over"));
    if next.hang_up {
        return;
    }
    let mut head = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n",
        next.status,
        next.body.len()
    );
    for (name, value) in &next.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let whole = format!("{head}\r\n{}", next.body);
    drop(stream.write_all(whole.as_bytes()).await);
}

fn parse(bytes: &[u8]) -> Option<Asked> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let pairs = lines.filter_map(|l| l.split_once(": "));
    let headers: BTreeMap<_, _> = pairs
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |l| l.parse().unwrap());
    (body.len() >= length).then(|| Asked {
        line,
        headers,
        body: body.to_owned(),
    })
}

/// The result of one command line.
pub(super) struct Done {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Done {
    /// Standard output as one JSON document.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// 2026-12-01 10:00:00 UTC.
pub(super) fn noon() -> Timestamp {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

/// A process without variables, with an hour's offset from UTC, and little patience.
pub(super) fn environment(server: Option<&str>) -> Environment {
    Environment {
        server: server.map(str::to_owned),
        api_key: Some("gm_live_test".to_owned()),
        profile: None,
        password: None,
        config: None,
        host: "host".to_owned(),
        input: Box::new(Cursor::new(Vec::new())),
        input_is_terminal: false,
        output_is_terminal: false,
        zone: TimeZone::fixed(jiff::tz::offset(1)),
        now: noon,
        patience: Patience {
            attempts: 4,
            first: Duration::from_millis(1),
            longest: Duration::from_secs(2),
            poll: Duration::from_millis(1),
            failures: 3,
        },
    }
}

/// Runs one command line, given without the program's name.
pub(super) async fn gpumarket(environment: Environment, arguments: &[&str]) -> Done {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let all = std::iter::once("gpumarket").chain(arguments.iter().copied());
    let all: Vec<OsString> = all.map(OsString::from).collect();
    let code = crate::run(all, environment, &mut out, &mut err).await;
    Done {
        code,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

/// An empty folder of its own for a test.
pub(super) fn folder(name: &str) -> PathBuf {
    let bytes: [u8; 8] = crate::environment::random().unwrap();
    let path = std::env::temp_dir().join(format!("gpumarket-cli-{name}-{}", hex::encode(bytes)));
    std::fs::create_dir_all(&path).unwrap();
    path
}
