//! The configuration file: profiles, each a market with our key to it and its pinned statement key.
//!
//! Invariants: the file is mode 0600 and replaced as a whole; what we do not know in it stays.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::environment::random;
use crate::fault::{Fault, Local};

/// The profile used unless another is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";
/// The market used unless another is named.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// One market and our credentials for it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profile {
    /// Address of the market.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) server: Option<String>,
    /// `gm_live_…`
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) api_key: Option<String>,
    /// The market's statement key (Ed25519, hex), pinned at the first log-in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) statement_key: Option<String>,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Profile({:?})", self.server)
    }
}

/// The file as read.
#[derive(Debug)]
pub(crate) struct Config {
    path: Option<PathBuf>,
    table: Table,
    /// Others may read the file.
    pub(crate) is_exposed: bool,
}

fn bad_config(path: &Path, why: impl std::fmt::Display) -> Fault {
    Local::new("config", format!("{}: {why}", path.display())).into()
}

impl Config {
    /// Reads the file; a missing one is empty.
    pub(crate) fn load(path: Option<PathBuf>) -> Result<Self, Fault> {
        let mut config = Self {
            path,
            table: Table::new(),
            is_exposed: false,
        };
        let Some(path) = &config.path else {
            return Ok(config);
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(missing) if missing.kind() == ErrorKind::NotFound => return Ok(config),
            Err(other) => return Err(bad_config(path, other)),
        };
        config.table = text.parse().map_err(|bad| bad_config(path, bad))?;
        let mode = std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
        config.is_exposed = mode & 0o077 != 0;
        Ok(config)
    }

    /// Where it is, for messages.
    pub(crate) fn shown_path(&self) -> String {
        self.path.as_ref().map_or_else(
            || "(no configuration file)".to_owned(),
            |p| p.display().to_string(),
        )
    }

    fn names(&self) -> Vec<&str> {
        let profiles = self.table.get("profiles").and_then(Value::as_table);
        profiles.map_or_else(Vec::new, |t| t.keys().map(String::as_str).collect())
    }

    /// A profile, if the file has it.
    pub(crate) fn profile(&self, name: &str) -> Result<Option<Profile>, Fault> {
        let found = self.table.get("profiles").and_then(|p| p.get(name));
        let Some(value) = found else { return Ok(None) };
        let profile = value.clone().try_into().map_err(|bad| {
            let path = self.shown_path();
            Local::new("config", format!("{path}: profile `{name}`: {bad}"))
        })?;
        Ok(Some(profile))
    }

    /// A profile that was asked for by name; only the default one may be missing.
    pub(crate) fn existing(&self, name: &str) -> Result<Profile, Fault> {
        if let Some(profile) = self.profile(name)? {
            return Ok(profile);
        }
        if name == DEFAULT_PROFILE {
            return Ok(Profile::default());
        }
        let names = self.names();
        let known = if names.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has: {}", names.join(", "))
        };
        let path = self.shown_path();
        Err(Local::new(
            "unknown_profile",
            format!("No profile `{name}` in {path} ({known})."),
        )
        .suggest(format!(
            "gpumarket login --profile {name} --server URL --email EMAIL"
        ))
        .into())
    }

    /// Puts a profile in and writes the file.
    pub(crate) fn store(&mut self, name: &str, profile: &Profile) -> Result<(), Fault> {
        let Some(path) = self.path.clone() else {
            return Err(
                Local::new("config", "There is no place for the configuration file.")
                    .suggest("set HOME, XDG_CONFIG_HOME or GPUMARKET_CONFIG")
                    .into(),
            );
        };
        let known = Table::try_from(profile).map_err(|bad| bad_config(&path, bad))?;
        let profiles = self
            .table
            .entry("profiles")
            .or_insert_with(|| Value::Table(Table::new()));
        let entry = profiles
            .as_table_mut()
            .ok_or_else(|| bad_config(&path, "`profiles` is not a table"))?
            .entry(name)
            .or_insert_with(|| Value::Table(Table::new()));
        let entry = entry
            .as_table_mut()
            .ok_or_else(|| bad_config(&path, format!("profile `{name}` is not a table")))?;
        for field in ["server", "api_key", "statement_key"] {
            entry.remove(field);
        }
        entry.extend(known);
        let text = toml::to_string_pretty(&self.table).map_err(|bad| bad_config(&path, bad))?;
        replace_file(&path, text.as_bytes(), 0o600).map_err(|bad| bad_config(&path, bad))
    }
}

/// Replaces a file as a whole: other readers see the old or the new one, never a half.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    // A symbolic link stays one: dotfiles are often linked.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_new| path.to_path_buf());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let tag = random::<8>().map_or_else(|| std::process::id().to_string(), hex::encode);
    let draft = folder.join(format!(".gpumarket-{tag}.tmp"));
    let written = write_new(&draft, bytes, mode).and_then(|()| std::fs::rename(&draft, path));
    if let Err(cause) = written {
        // The first fault is the one to tell; a draft that stays behind is harmless.
        drop(std::fs::remove_file(&draft));
        return Err(cause);
    }
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
