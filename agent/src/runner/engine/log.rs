//! Lines of a container's output, oldest first, each with a time of its own in nanoseconds.
//!
//! Engines stamp lines that they take together alike. So that a reader can go on after any line,
//! such a line is given the next nanosecond; reading from the start gives the same times again.
//!
//! Podman's API gives whole seconds only, so its log file is read instead where this process can;
//! form of that file: <https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md>.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptions;
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use web_openapi::lease::LogLine;

use super::plan::Flavour;
use super::sight::Inspected;
use super::{Engine, fault};
use crate::runner::{LOG_BYTES, LOG_LINES, LogQuery, RunnerError};

/// Most bytes of one line; the rest is cut off.
const LINE_BYTES: usize = 16 * 1024;

impl Engine {
    /// Reads the lines.
    pub(super) async fn read_logs(
        &self,
        id: &str,
        query: &LogQuery,
    ) -> Result<Vec<LogLine>, RunnerError> {
        if self.flavour == Flavour::Podman {
            let found: Inspected = self.socket.get(&format!("/containers/{id}/json")).await?;
            if let Ok(file) = File::open(&found.log_path) {
                let (query, live) = (query.clone(), found.is_live());
                let read = tokio::task::spawn_blocking(move || from_file(file, &query, live));
                return read
                    .await
                    .map_err(|e| RunnerError::Unavailable(e.to_string()))?;
            }
        }
        self.ask_api(id, query).await
    }

    async fn ask_api(&self, id: &str, query: &LogQuery) -> Result<Vec<LogLine>, RunnerError> {
        let since = query
            .after
            .map_or(0, |at| i32::try_from(at.as_second()).unwrap_or(i32::MAX));
        let tail = if query.after.is_some() {
            "all".to_owned()
        } else {
            capped(query).to_string()
        };
        let options = LogsOptions {
            stdout: true,
            stderr: true,
            timestamps: true,
            since,
            tail,
            ..Default::default()
        };
        let mut told = self.docker.logs(id, Some(options));
        let mut page = Page::new(query);
        while let Some(part) = told.next().await {
            let (stream, bytes) = match part.map_err(fault)? {
                LogOutput::StdErr { message } => ("stderr", message),
                LogOutput::StdOut { message } | LogOutput::Console { message } => {
                    ("stdout", message)
                }
                LogOutput::StdIn { .. } => continue,
            };
            let text = String::from_utf8_lossy(&bytes);
            let Some((at, text)) = text.split_once(' ') else {
                continue;
            };
            if !page.take(at, stream, text) {
                break;
            }
        }
        Ok(page.lines())
    }
}

fn capped(query: &LogQuery) -> u32 {
    query.tail.min(LOG_LINES)
}

/// Reads Podman's file: `TIME STREAM F|P TEXT`, where `P` is a part that goes on.
fn from_file(file: File, query: &LogQuery, live: bool) -> Result<Vec<LogLine>, RunnerError> {
    from_lines(BufReader::new(file), query, live)
        .map_err(|e| RunnerError::Unavailable(format!("reading the log: {e}")))
}

fn from_lines(
    mut reader: impl BufRead,
    query: &LogQuery,
    live: bool,
) -> std::io::Result<Vec<LogLine>> {
    let mut page = Page::new(query);
    let mut parts: [Option<(String, String)>; 2] = [None, None];
    let mut raw = Vec::new();
    loop {
        raw.clear();
        if reader.read_until(b'\n', &mut raw)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&raw);
        let mut words = line.trim_end_matches('\n').splitn(4, ' ');
        let (Some(at), Some(stream), Some(flag)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let text = words.next().unwrap_or_default();
        let [out, err] = &mut parts;
        let part = if stream == "stderr" { err } else { out };
        let (at, mut whole) = part
            .take()
            .unwrap_or_else(|| (at.to_owned(), String::new()));
        if whole.len() < LINE_BYTES {
            whole.push_str(text);
        }
        if flag == "P" {
            *part = Some((at, whole));
        } else if !page.take(&at, stream, &whole) {
            return Ok(page.lines());
        }
    }
    // A line without its end is shown only when nothing can follow: it would change afterwards.
    for (stream, part) in ["stdout", "stderr"].into_iter().zip(parts) {
        if let Some((at, whole)) = part.filter(|_| !live) {
            page.take(&at, stream, &whole);
        }
    }
    Ok(page.lines())
}

/// Collects lines within the limits: the last ones, or the first ones after a time.
struct Page {
    after: Option<Timestamp>,
    last: Option<Timestamp>,
    most: usize,
    bytes: usize,
    lines: VecDeque<(LogLine, usize)>,
}

impl Page {
    fn new(query: &LogQuery) -> Self {
        let most = usize::try_from(capped(query)).unwrap_or(0);
        Self {
            after: query.after,
            last: None,
            most,
            bytes: 0,
            lines: VecDeque::new(),
        }
    }

    /// Takes a line; false when no further one is wanted.
    fn take(&mut self, at: &str, stream: &str, text: &str) -> bool {
        let Ok(at) = at.parse::<Timestamp>() else {
            return true;
        };
        let next = self
            .last
            .and_then(|l| l.checked_add(SignedDuration::from_nanos(1)).ok());
        let at = next.map_or(at, |next| at.max(next));
        self.last = Some(at);
        if self.after.is_some_and(|after| at <= after) {
            return true;
        }
        let text = cut(text.trim_end_matches(['\n', '\r']));
        let line = LogLine {
            at: format!("{at:.9}"),
            stream: stream.to_owned(),
            text,
        };
        let size = serde_json::to_string(&line).map_or(LOG_BYTES, |json| json.len());
        if self.after.is_some() {
            if self.lines.len() >= self.most || self.bytes.saturating_add(size) > LOG_BYTES {
                return false;
            }
        } else {
            while self.lines.len() >= self.most || self.bytes.saturating_add(size) > LOG_BYTES {
                let Some((_, freed)) = self.lines.pop_front() else {
                    return false;
                };
                self.bytes = self.bytes.saturating_sub(freed);
            }
        }
        self.bytes = self.bytes.saturating_add(size);
        self.lines.push_back((line, size));
        true
    }

    fn lines(self) -> Vec<LogLine> {
        self.lines.into_iter().map(|(line, _)| line).collect()
    }
}

fn cut(text: &str) -> String {
    let mut end = LINE_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "2026-12-01T00:00:01.000000001+00:00 stdout F one\n\
        2026-12-01T00:00:01.000000002+00:00 stdout P tw\n\
        2026-12-01T00:00:01.000000003+00:00 stderr F bad thing\n\
        2026-12-01T01:00:01.000000004+01:00 stdout F o\n\
        broken\n\
        2026-12-01T00:00:02.000000005+00:00 stdout F \n\
        2026-12-01T00:00:03.000000006+00:00 stdout P open end";

    fn read(tail: u32, after: Option<&str>) -> Vec<String> {
        let after = after.map(|a| a.parse().unwrap());
        let lines = from_lines(FILE.as_bytes(), &LogQuery { tail, after }, false).unwrap();
        lines
            .into_iter()
            .map(|l| format!("{} {} {}", l.at, l.stream, l.text))
            .collect()
    }

    #[test]
    fn lines_are_joined_and_timed_in_utc() {
        assert_eq!(
            read(100, None),
            [
                "2026-12-01T00:00:01.000000001Z stdout one",
                "2026-12-01T00:00:01.000000003Z stderr bad thing",
                // It began before the line above, but is known only now.
                "2026-12-01T00:00:01.000000004Z stdout two",
                "2026-12-01T00:00:02.000000005Z stdout ",
                "2026-12-01T00:00:03.000000006Z stdout open end",
            ]
        );
    }

    #[test]
    fn tail_gives_the_last_and_after_the_first_that_follow() {
        assert_eq!(
            read(1, None),
            ["2026-12-01T00:00:03.000000006Z stdout open end"]
        );
        let after = Some("2026-12-01T00:00:01.000000004Z");
        assert_eq!(read(1, after), ["2026-12-01T00:00:02.000000005Z stdout "]);
        assert!(read(0, None).is_empty());
        assert!(read(9, Some("2026-12-01T00:00:04Z")).is_empty());
    }

    #[test]
    fn lines_stamped_alike_can_be_told_apart_and_read_on() {
        let at = "2026-12-01T00:00:01.000000001+00:00";
        let lines: Vec<String> = (0..5).map(|n| format!("{at} stdout F {n}")).collect();
        let file = lines.join("\n") + "\n";
        let read = |after: Option<&str>| {
            let query = LogQuery {
                tail: 2,
                after: after.map(|a| a.parse().unwrap()),
            };
            from_lines(file.as_bytes(), &query, true).unwrap()
        };
        let mut texts = Vec::new();
        let mut after = "2026-12-01T00:00:00Z".to_owned();
        while let Some(last) = read(Some(&after)).last() {
            texts.extend(read(Some(&after)).into_iter().map(|l| l.text));
            after.clone_from(&last.at);
        }
        assert_eq!(texts, ["0", "1", "2", "3", "4"]);
        assert_eq!(read(None)[1].at, after);
    }

    #[test]
    fn an_open_line_waits_for_its_end_while_the_container_lives() {
        let lines = from_lines(
            FILE.as_bytes(),
            &LogQuery {
                tail: 9,
                after: None,
            },
            true,
        )
        .unwrap();
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn an_answer_stays_within_its_limits_whatever_is_printed() {
        let mut page = Page::new(&LogQuery {
            tail: u32::MAX,
            after: None,
        });
        for n in 0..800 {
            let at = format!("2026-12-01T00:00:01.{n:09}Z");
            assert!(page.take(&at, "stdout", &"\u{1}".repeat(3_000)));
        }
        let lines = page.lines();
        let bytes: usize = lines
            .iter()
            .map(|l| serde_json::to_string(l).unwrap().len())
            .sum();
        assert!(bytes <= LOG_BYTES && lines.len() > 10);
        assert!(lines.last().unwrap().at.contains(".000000799Z"));
        assert_eq!(cut(&"ä".repeat(LINE_BYTES)).len(), LINE_BYTES);
    }
}
