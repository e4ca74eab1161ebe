//! What went wrong: the API's problems as they came, and our own in the same shape.

use std::io;

use serde_json::{Value, json};
use web_openapi::problem::Problem;

/// Exit code of a failure.
const FAILURE: u8 = 1;
/// Exit code of a wrong command line.
const USAGE: u8 = 2;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The market refused.
    Problem(Box<Refused>),
    /// No answer from the market.
    Unreachable {
        /// The address that was tried.
        server: String,
        /// The innermost cause.
        cause: String,
    },
    /// Something on our side, or an answer that cannot be used.
    Local(Box<Local>),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// Our own output failed, e.g. a closed pipe.
    Output(io::Error),
}

/// A refusal of the market.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Exactly as it came.
    pub(crate) raw: Value,
    /// The same, read.
    pub(crate) problem: Problem,
    /// When to try again, in seconds, if the market told.
    pub(crate) retry_after_seconds: Option<u64>,
}

/// A failure that is not the market's refusal.
#[derive(Debug)]
pub(crate) struct Local {
    code: &'static str,
    detail: String,
    suggestion: Option<String>,
    more: Option<(&'static str, Value)>,
}

impl Local {
    /// A failure with a stable code and a sentence.
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            suggestion: None,
            more: None,
        }
    }

    /// Adds what would help.
    pub(crate) fn suggest(mut self, text: impl Into<String>) -> Self {
        self.suggestion = Some(text.into());
        self
    }

    /// Adds a member for programs, e.g. the lease that failed.
    pub(crate) fn with(mut self, name: &'static str, value: Value) -> Self {
        self.more = Some((name, value));
        self
    }
}

impl From<Local> for Fault {
    fn from(local: Local) -> Self {
        Self::Local(Box::new(local))
    }
}

impl From<io::Error> for Fault {
    fn from(cause: io::Error) -> Self {
        Self::Output(cause)
    }
}

impl Fault {
    /// The process's exit code.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Problem(_) | Self::Unreachable { .. } | Self::Local(_) | Self::Output(_) => {
                FAILURE
            }
        }
    }

    /// The problem's code, if the market refused.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Problem(refused) => Some(&refused.problem.code),
            Self::Unreachable { .. } | Self::Local(_) | Self::Usage(_) | Self::Output(_) => None,
        }
    }

    /// May the same request succeed a little later?
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Problem(refused) => matches!(refused.problem.status, 429 | 502..=504),
            Self::Unreachable { .. } => true,
            Self::Local(_) | Self::Usage(_) | Self::Output(_) => false,
        }
    }

    /// For programs: `{"error": problem}`.
    pub(crate) fn document(&self) -> Value {
        let own = |code: &str, detail: &str, suggestion: Option<&str>| {
            let mut problem = json!({"type": "about:blank", "code": code, "detail": detail});
            if let (Some(map), Some(text)) = (problem.as_object_mut(), suggestion) {
                map.insert("suggestion".to_owned(), text.into());
            }
            problem
        };
        let problem = match self {
            Self::Problem(refused) => refused.raw.clone(),
            Self::Unreachable { server, cause } => own(
                "server_unreachable",
                &format!("No answer from {server}: {cause}."),
                Some(SERVER_HINT),
            ),
            Self::Local(local) => {
                let mut problem = own(local.code, &local.detail, local.suggestion.as_deref());
                if let (Some(map), Some((name, value))) = (problem.as_object_mut(), &local.more) {
                    map.insert((*name).to_owned(), value.clone());
                }
                problem
            }
            Self::Usage(detail) => own("usage", detail, None),
            Self::Output(cause) => own("output", &cause.to_string(), None),
        };
        json!({ "error": problem })
    }

    /// For people: what happened, which fields, what to do, and whom to quote.
    pub(crate) fn lines(&self) -> Vec<String> {
        let paragraphs = self.paragraphs();
        let lines = paragraphs.iter().flat_map(|p| p.lines());
        lines.map(str::to_owned).collect()
    }

    fn paragraphs(&self) -> Vec<String> {
        match self {
            Self::Problem(refused) => refused.paragraphs(),
            Self::Unreachable { server, cause } => vec![
                format!("error: no answer from {server}: {cause}"),
                format!("  try: {SERVER_HINT}"),
            ],
            Self::Local(local) => {
                let tries = local.suggestion.iter().map(|text| format!("  try: {text}"));
                std::iter::once(format!("error: {}", local.detail))
                    .chain(tries)
                    .collect()
            }
            Self::Usage(detail) => vec![
                format!("error: {detail}"),
                "For more information, try '--help'.".to_owned(),
            ],
            Self::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Vec::new(),
            Self::Output(cause) => vec![format!("error: cannot write the output: {cause}")],
        }
    }
}

const SERVER_HINT: &str = "is the market running there? Set another address with --server URL, \
    GPUMARKET_SERVER, or `server` in the profile";

impl Refused {
    fn paragraphs(&self) -> Vec<String> {
        let problem = &self.problem;
        let what = if problem.detail.is_empty() {
            &problem.title
        } else {
            &problem.detail
        };
        let mut lines = vec![format!("error: {what}")];
        for field in &problem.errors {
            lines.push(format!("  {}: {}", field.pointer, field.detail));
        }
        lines.extend(
            problem
                .suggestion
                .iter()
                .map(|text| format!("  try: {text}")),
        );
        if let Some(command) = remedy(&problem.code) {
            lines.push(format!("  command: {command}"));
        }
        if let Some(seconds) = self.retry_after_seconds {
            lines.push(format!("  again in: {seconds} s"));
        }
        lines.push(format!(
            "  {} · request {}",
            problem.code, problem.request_id
        ));
        lines
    }
}

/// The command that mends what a code says.
fn remedy(code: &str) -> Option<&'static str> {
    match code {
        "unauthenticated" => Some("gpumarket login --email EMAIL   (or set GPUMARKET_API_KEY)"),
        "insufficient_funds" => Some("gpumarket top-up AMOUNT"),
        "quote_expired" | "quote_used" => {
            Some("gpumarket quote …   (a quote is good for two minutes)")
        }
        "email_taken" => Some("gpumarket login --email EMAIL"),
        _other => None,
    }
}
