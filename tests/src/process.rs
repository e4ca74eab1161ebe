//! Real processes: started, watched, killed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The binary `name` of this build.
pub fn binary(name: &str) -> PathBuf {
    // A test is …/PROFILE/deps/it-…, a program …/PROFILE/name.
    let exe = std::env::current_exe().unwrap();
    let folder = exe.parent().unwrap();
    let folder = if folder.ends_with("deps") {
        folder.parent().unwrap()
    } else {
        folder
    };
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built: `make test` builds it first",
        path.display()
    );
    path
}

/// A folder that goes away with the test.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// A fresh one.
    pub fn create(what: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gpumarket-{what}-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} was not removed: {error}", self.0.display());
        }
    }
}

/// A running process; killed with the test.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `command` with its output in `log`.
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::from(file.try_clone().unwrap()))
            .stderr(Stdio::from(file));
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self { child, log }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it printed.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Fails if it has ended by itself.
    pub fn expect_alive(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("a process ended with {status}:\n{}", self.output());
        }
    }

    /// Its exit code once it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.child
            .try_wait()
            .unwrap()
            .map(|s| s.code().unwrap_or(-1))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let gone = self.child.kill().and_then(|()| self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.output());
        }
        drop(gone);
    }
}
