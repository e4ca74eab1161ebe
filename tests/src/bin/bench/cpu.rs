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

/// What this process and those that it has waited for have used.
pub fn own() -> Duration {
    let fields = stat("self").unwrap_or_default();
    time(fields.iter().skip(11).take(4).sum())
}

/// What something cost: so many pieces, so much time of the processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Pieces.
    pub count: f64,
    /// Of PostgreSQL.
    pub server: Duration,
    /// Of the other side.
    pub client: Duration,
}

impl Cost {
    /// Adds what `work` cost; it gives the number of pieces and their rate.
    pub async fn of(&mut self, postmaster: u32, work: impl Future<Output = (u64, f64)>) -> f64 {
        let before = (of_cluster(postmaster), own());
        let (count, rate) = work.await;
        self.count += f64::from(u32::try_from(count).unwrap());
        self.server += of_cluster(postmaster).saturating_sub(before.0);
        self.client += own().saturating_sub(before.1);
        rate
    }

    /// Microseconds of a piece, on both sides.
    pub fn each(&self) -> [f64; 2] {
        [self.server, self.client].map(|t| t.as_secs_f64() * 1e6 / self.count)
    }

    /// How many pieces one gets for the time of one of `other`'s.
    pub fn ratio(&self, other: &Self) -> f64 {
        other.each().iter().sum::<f64>() / self.each().iter().sum::<f64>()
    }
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
