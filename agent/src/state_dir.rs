//! The directory in which an agent keeps its identity, its journal and the last desired state.
//!
//! Invariants: only its owner can read it (0700, files 0600); one agent at a time (a lock that the
//! kernel releases with the process); a file is replaced whole or not at all, also at power loss.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why the state cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// The directory is locked.
    #[error("another agent uses {}; give each agent its own --state directory", .0.display())]
    Taken(PathBuf),
    /// The system refuses.
    #[error("cannot use {}: {source}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file was changed by somebody else or is of another version.
    #[error("{} is not in the expected form: {why}", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// A locked state directory.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Makes the directory if it is not there, and locks it until this value is dropped.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let io = |source| StateError::Io {
            path: path.to_owned(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(io)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(io)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StateError::Taken(path.to_owned())),
            Err(errno) => Err(io(errno.into())),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a file, if it is there.
    pub fn read(&self, name: &str) -> Result<Option<String>, StateError> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError::Io { path, source }),
        }
    }

    /// Replaces a file; it is durable when this returns.
    pub fn write(&self, name: &str, text: &str) -> Result<(), StateError> {
        let path = self.path.join(name);
        let spare = self.path.join(format!("{name}.tmp"));
        let replace = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&spare)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&spare, &path)?;
            File::open(&self.path)?.sync_all()
        };
        replace().map_err(|source| StateError::Io {
            path: path.clone(),
            source,
        })
    }

    /// A JSON file, if it is there.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let Some(text) = self.read(name)? else {
            return Ok(None);
        };
        let form = |e: serde_json::Error| StateError::Form {
            path: self.path.join(name),
            why: e.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(form)
    }

    /// Replaces a JSON file; it is durable when this returns.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StateError> {
        let form = |e: serde_json::Error| StateError::Form {
            path: self.path.join(name),
            why: e.to_string(),
        };
        self.write(name, &serde_json::to_string_pretty(value).map_err(form)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gm-state-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        path
    }

    #[test]
    fn two_agents_never_share_a_directory() {
        let path = fresh("lock");
        let first = StateDir::open(&path).unwrap();
        assert!(matches!(StateDir::open(&path), Err(StateError::Taken(_))));
        drop(first);
        assert!(StateDir::open(&path).is_ok());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn only_the_owner_can_read() {
        let path = fresh("mode");
        let dir = StateDir::open(&path).unwrap();
        dir.write("key", "secret").unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("key"))), (0o700, 0o600));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_torn_write_leaves_the_old_file() {
        let path = fresh("torn");
        let dir = StateDir::open(&path).unwrap();
        dir.write_json("a.json", &vec![1]).unwrap();
        // What a crash between write and rename leaves behind.
        fs::write(path.join("a.json.tmp"), "[1, 2").unwrap();
        assert_eq!(dir.read_json::<Vec<u8>>("a.json").unwrap(), Some(vec![1]));
        dir.write_json("a.json", &vec![3]).unwrap();
        assert_eq!(dir.read_json::<Vec<u8>>("a.json").unwrap(), Some(vec![3]));
        assert_eq!(dir.read_json::<Vec<u8>>("b.json").unwrap(), None);
        fs::remove_dir_all(path).unwrap();
    }
}
