//! The shape of the sources.

use std::path::Path;

use super::{ROOMS, expect_none, files, root, sources};

const LINES_MAX: usize = 400;
const NO_NAMES: [&str; 7] = [
    "util", "utils", "common", "helpers", "core", "misc", "shared",
];
const PURE: [&str; 4] = ["domain", "matching", "billing", "web-openapi"];

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn is_test(path: &Path) -> bool {
    let text = shown(path);
    text.starts_with("tests/") || text.contains("/tests/") || text.ends_with("/tests.rs")
}

/// The text up to the first `#[cfg(test)]`.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or("")
}

/// The lines of `text` with one of `words` outside of comments.
fn code_with(words: &[&str], path: &Path, text: &str) -> Vec<String> {
    let found = text.lines().enumerate().filter_map(|(number, line)| {
        let code = line.split("//").next().unwrap_or("");
        let word = words.iter().find(|w| code.contains(**w))?;
        Some(format!("{}:{}: {word}", shown(path), number + 1))
    });
    found.collect()
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > LINES_MAX && !path.ends_with("schema.rs") {
            faults.push(format!("{}: {lines} lines", shown(&path)));
        }
        if !text.starts_with("//!") && !path.ends_with("schema.rs") {
            faults.push(format!("{}: no `//!` on the first line", shown(&path)));
        }
    }
    expect_none(
        "files have one reason to exist, say it, and fit on a few screens",
        &faults,
    );
}

#[test]
fn names_mean_something() {
    let mut faults = Vec::new();
    for room in ROOMS {
        for path in files(&root().join(room), &["rs", "toml", "sql", "md"]) {
            let relative = path.strip_prefix(root()).unwrap();
            for part in relative.components() {
                let part = part.as_os_str().to_string_lossy().into_owned();
                let stem = part.split('.').next().unwrap_or("");
                if NO_NAMES.contains(&stem) || part == "mod.rs" {
                    faults.push(shown(relative));
                }
            }
        }
    }
    expect_none(
        "no util, common, helpers, core, misc, shared, mod.rs",
        &faults,
    );
}

#[test]
fn nothing_is_left_over_or_silenced() {
    let words = [
        "FIXME",
        "TODO",
        "XXX",
        concat!("#[", "allow("),
        concat!("#![", "allow("),
        concat!("dbg", "!("),
    ];
    let mut faults = Vec::new();
    for (path, text) in sources()
        .into_iter()
        .filter(|(p, _)| !p.ends_with("house/sources.rs"))
    {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(**w)) {
                faults.push(format!("{}:{}: {word}", shown(&path), number + 1));
            }
        }
    }
    expect_none(
        "left-overs; use #[expect(lint, reason = …)] for an exception",
        &faults,
    );
}

#[test]
fn pure_rooms_are_pure() {
    let words = [
        "async ",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "SystemTime",
        "Instant::",
        "tracing::",
        "println!",
        "rand::",
        "tokio",
    ];
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let room = path
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        if !PURE.contains(&room.as_str()) || is_test(&path) {
            continue;
        }
        faults.extend(code_with(&words, &path, product(&text)));
    }
    expect_none(
        "no async, IO, clock, randomness, environment, logging in the pure rooms",
        &faults,
    );
}

#[test]
fn sql_lives_in_store() {
    let words = [
        "SELECT ",
        "INSERT INTO",
        "UPDATE ",
        "DELETE FROM",
        "sql_query",
    ];
    let mut faults = Vec::new();
    for (path, text) in sources() {
        if path.starts_with("store") || path.starts_with("tests") {
            continue;
        }
        faults.extend(code_with(&words, &path, &text));
    }
    expect_none("SQL outside store and migrations", &faults);
}

/// Two constants for one period gave other markets two prices for one lease.
#[test]
fn periods_are_defined_once() {
    let words = [
        "3_600_000",
        "3600000",
        "2_628_000_000",
        "3_600.0",
        "730 *",
        "* 730",
        "3600 *",
        "* 3600",
        "* 3_600",
    ];
    let mut faults = Vec::new();
    for (path, text) in sources() {
        if path.ends_with("domain/src/money.rs") || is_test(&path) {
            continue;
        }
        faults.extend(code_with(&words, &path, product(&text)));
    }
    expect_none(
        "the lengths of an hour and a month stand in domain::money::Period only",
        &faults,
    );
}

#[test]
fn no_float_near_money() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        let near = ["domain", "matching", "billing", "store", "app"]
            .iter()
            .any(|r| path.starts_with(r));
        if !near || is_test(&path) {
            continue;
        }
        faults.extend(code_with(&["f64", "f32"], &path, product(&text)));
    }
    expect_none("no floats near money", &faults);
}

#[test]
fn no_registry_host_and_no_private_path_is_named() {
    let words = [
        concat!("crates", ".io/api"),
        concat!("registry", ".npmjs"),
        concat!("/work", "/main"),
        concat!("deb", ".debian.org"),
    ];
    let mut faults = Vec::new();
    for path in files(&root(), &["rs", "toml", "md", "sh", "sql", "json", "yml"]) {
        let relative = path.strip_prefix(root()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for word in words.iter().filter(|w| text.contains(**w)) {
            faults.push(format!("{}: {word}", shown(relative)));
        }
    }
    expect_none("names of hosts and paths that do not belong here", &faults);
}
