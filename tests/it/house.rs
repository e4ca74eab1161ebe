//! The laws of the house (`STYLE.md`), as tests: no knowledge of them lives in CI only.

mod arrows;
mod docs;
mod licences;
mod sources;

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// The rooms that are crates, by folder.
pub const ROOMS: [&str; 10] = [
    "domain",
    "matching",
    "billing",
    "web-openapi",
    "store",
    "app",
    "api",
    "agent",
    "cli",
    "tests",
];

/// Every file below `dir` with one of `extensions`, in order, build outputs left out.
pub fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "node_modules" | ".git" | ".local") {
                    todo.push(path);
                }
            } else if extensions.iter().any(|e| name.ends_with(&format!(".{e}"))) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Rust sources of every room, with their text.
pub fn sources() -> Vec<(PathBuf, String)> {
    ROOMS
        .iter()
        .flat_map(|room| files(&root().join(room), &["rs"]))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_path_buf(), text)
        })
        .collect()
}

/// Fails with one line for each fault.
pub fn expect_none(law: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{law}\n  {}", faults.join("\n  "));
}
