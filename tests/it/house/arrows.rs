//! Who may import whom. An arrow goes to a lower floor only; rooms on one floor never meet.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::root;

/// What `cargo` knows of the workspace.
pub fn metadata(extra: &[&str]) -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(extra)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn arrows() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let rooms: BTreeSet<&str> = packages
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    let mut arrows = BTreeMap::new();
    for package in packages {
        let normal = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|d| d["kind"].is_null());
        let names = normal.map(|d| d["name"].as_str().unwrap().to_owned());
        let split: (BTreeSet<_>, BTreeSet<_>) = names.partition(|n| rooms.contains(n.as_str()));
        arrows.insert(package["name"].as_str().unwrap().to_owned(), split);
    }
    arrows
}

#[test]
fn arrows_go_down() {
    let drawn: Vec<String> = arrows()
        .into_iter()
        .map(|(room, (inner, _))| {
            format!(
                "{room} -> {}",
                inner.into_iter().collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    let law = [
        "agent -> domain web-openapi",
        "api -> app billing domain matching store web-openapi",
        "app -> billing domain matching store",
        "billing -> domain",
        "cli -> billing domain web-openapi",
        "domain -> ",
        "matching -> domain",
        "store -> billing domain matching",
        "tests -> agent api app billing cli domain matching store web-openapi",
        "web-openapi -> domain",
    ];
    assert_eq!(
        drawn, law,
        "the arrows of the house changed: see ARCHITECTURE.md"
    );
}

#[test]
fn pure_rooms_know_no_outside_crate() {
    let law: [(&str, &[&str]); 4] = [
        ("domain", &["serde", "thiserror", "toml", "uuid"]),
        ("matching", &["thiserror"]),
        (
            "billing",
            &[
                "blake3",
                "csv",
                "ed25519-dalek",
                "hex",
                "jiff",
                "pdf-writer",
                "serde",
                "serde_json",
                "subsetter",
                "thiserror",
                "ttf-parser",
                "uuid",
            ],
        ),
        ("web-openapi", &["jiff", "serde", "serde_json", "utoipa"]),
    ];
    let arrows = arrows();
    for (room, allowed) in law {
        let extra: Vec<_> = arrows[room]
            .1
            .iter()
            .filter(|c| !allowed.contains(&c.as_str()))
            .collect();
        assert!(extra.is_empty(), "{room} is pure and may not use {extra:?}");
    }
}

#[test]
fn one_room_knows_each_outside_thing() {
    let law: [(&str, &[&str]); 6] = [
        ("diesel", &["store"]),
        ("diesel-async", &["store"]),
        ("tokio-postgres", &["store", "tests"]),
        ("actix-web", &["api"]),
        ("jsonwebtoken", &["api"]),
        ("bollard", &["agent"]),
    ];
    let arrows = arrows();
    for (krate, rooms) in law {
        for (room, (_, outside)) in &arrows {
            assert!(
                !outside.contains(krate) || rooms.contains(&room.as_str()),
                "{room} may not know {krate}: only {rooms:?} may"
            );
        }
    }
}
