//! Processor time, which a busy neighbour does not change as much as it changes seconds.

use std::time::Duration;

/// Ticks of `/proc/…/stat` per second on Linux.
const TICKS: u64 = 100;

fn stat(pid: &str) -> Option<Vec<u64>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks.
    let (_, tail) = text.rsplit_once(") ")?;
    Some(tail.split(' ').map(|f| f.parse().unwrap_or(0)).collect())
}

fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1_000 / TICKS)
}

/// What a process has used.
pub fn of_process(pid: u32) -> Duration {
    let fields = stat(&pid.to_string()).unwrap_or_default();
    // utime and stime are fields 14 and 15; the state, field 3, is the first here.
    time(fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0))
}

/// What this process has used.
pub fn own() -> Duration {
    of_process(std::process::id())
}

/// What a cluster has used: its postmaster, its living children and those that it has reaped.
pub fn of_cluster(postmaster: u32) -> Duration {
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(fields) = stat(&name).filter(|f| f.len() > 14) else {
            continue;
        };
        let (parent, used) = (fields[1], fields[11] + fields[12]);
        if name == postmaster.to_string() {
            ticks += used + fields[13] + fields[14];
        } else if parent == u64::from(postmaster) {
            ticks += used;
        }
    }
    time(ticks)
}
