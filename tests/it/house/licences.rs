//! Licences and bans over the whole dependency graph.

use super::arrows::metadata;
use super::expect_none;

const ALLOWED: [&str; 14] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "BSL-1.0",
    "CC0-1.0",
    "0BSD",
    "MIT-0",
    "Unlicense",
    "CDLA-Permissive-2.0",
    "OpenSSL",
];

/// A crate and why it must not come in.
const BANNED: [(&str, &str); 8] = [
    ("openssl", "one TLS stack: rustls with aws-lc"),
    ("openssl-sys", "one TLS stack: rustls with aws-lc"),
    ("native-tls", "one TLS stack: rustls with aws-lc"),
    ("pq-sys", "no libpq: the driver is pure Rust"),
    ("actix-governor", "GPL-3.0-or-later"),
    ("stripe-rust", "dead; async-stripe is its successor"),
    ("dashmap", "guards that deadlock across await"),
    ("rsa", "RUSTSEC-2023-0071"),
];

/// `A AND (B OR C)` is fine when every `AND` part has an allowed alternative.
fn acceptable(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    flat.split(" AND ").all(|part| {
        part.split(" OR ").any(|one| {
            let name = one.split(" WITH ").next().unwrap().trim();
            ALLOWED.contains(&name)
        })
    })
}

#[test]
fn licences_are_permissive() {
    let metadata = metadata(&[]);
    let faults: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| !p["source"].is_null())
        .filter(|p| !p["license"].as_str().is_some_and(acceptable))
        .map(|p| format!("{} {}: {}", p["name"], p["version"], p["license"]))
        .collect();
    expect_none("licences outside the list", &faults);
}

#[test]
fn banned_crates_stay_out() {
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let resolved = metadata["resolve"]["nodes"].as_array().unwrap();
    let faults: Vec<String> = BANNED
        .iter()
        .filter(|(name, _)| {
            resolved.iter().any(|node| {
                let id = node["id"].as_str().unwrap();
                id.contains(&format!("#{name}@")) || id.ends_with(&format!("/{name}"))
            })
        })
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    expect_none("banned crates in the graph", &faults);
}

#[test]
fn the_licence_reader_knows_and_from_or() {
    assert!(acceptable("MIT OR GPL-3.0"));
    assert!(acceptable("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(acceptable("Apache-2.0 WITH LLVM-exception"));
    assert!(!acceptable("GPL-3.0-or-later"));
    assert!(!acceptable("MIT AND GPL-3.0"));
}
