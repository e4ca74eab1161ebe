//! `make bench`: each row of the table is a ratio to a yardstick that is measured in the same run,
//! in turns with ours, since a machine is never as quiet as one thinks.
//!
//! usage: bench CLUSTER_URL PGBENCH OUT.json [--rows NAME,…] [--seconds N] [--rounds N] [--leases N]

mod booking;
mod cluster;
mod copy;
mod cpu;
mod disk;
mod placement;
mod report;
mod row_locks;
mod running;
mod supply;
mod transfers;
mod wire;
mod world;

use std::path::PathBuf;
use std::time::Duration;

use cluster::Cluster;
use report::Report;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    rows: Vec<String>,
    /// Length of one measurement.
    pub time: Duration,
    /// Measurements of each side; the median counts.
    pub rounds: usize,
    /// Running leases in the row about them.
    pub leases: i64,
}

/// Names of the rows, in their order.
pub const ROWS: [&str; 7] = [
    "bookings",
    "ledger_batches",
    "ledger_copy",
    "ledger_single",
    "running_leases",
    "disk",
    "placement",
];

impl Asked {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut asked = Self {
            rows: ROWS.map(str::to_owned).to_vec(),
            time: Duration::from_secs(5),
            rounds: 3,
            leases: 100_000,
        };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let value = args.next().ok_or(format!("{name} needs a value"))?;
            let number = || value.parse::<u32>().map_err(|e| format!("{name}: {e}"));
            match name.as_str() {
                "--rows" => asked.rows = value.split(',').map(str::to_owned).collect(),
                "--seconds" => asked.time = Duration::from_secs(number()?.max(1).into()),
                "--rounds" => asked.rounds = usize::try_from(number()?.max(1)).unwrap(),
                "--leases" => asked.leases = number()?.max(1_000).into(),
                _ => return Err(format!("{name} is unknown")),
            }
        }
        match asked.rows.iter().find(|r| !ROWS.contains(&r.as_str())) {
            Some(row) => Err(format!("no row `{row}`; there are {}", ROWS.join(", "))),
            None => Ok(asked),
        }
    }

    /// Is this row wanted?
    pub fn wants(&self, row: &str) -> bool {
        self.rows.iter().any(|r| r == row)
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ([url, pgbench, out], flags) = args.split_first_chunk().unwrap_or_else(|| {
        eprintln!("usage: bench CLUSTER_URL PGBENCH OUT.json [FLAGS]; `make bench` sets it up");
        std::process::exit(2);
    });
    let asked = Asked::parse(flags).unwrap_or_else(|fault| {
        eprintln!("bench: {fault}");
        std::process::exit(2);
    });
    let cluster = Cluster::connect(url, PathBuf::from(pgbench)).await;
    let mut report = Report::default();
    if asked.wants("bookings") {
        booking::measure(&cluster, &asked, &mut report).await;
    }
    if ["ledger_batches", "ledger_copy", "ledger_single"]
        .iter()
        .any(|row| asked.wants(row))
    {
        transfers::measure(&cluster, &asked, &mut report).await;
    }
    if asked.wants("running_leases") {
        running::measure(&cluster, &asked, &mut report).await;
    }
    if asked.wants("disk") {
        disk::measure(&cluster, &mut report).await;
    }
    if asked.wants("placement") {
        placement::measure(&asked, &mut report);
    }
    report.print();
    report.write(&PathBuf::from(out));
}
