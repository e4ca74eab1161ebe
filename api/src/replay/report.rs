//! What a replay says: a table, JSON, CSV of the curves.

use std::time::Duration;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use matching::replay::Outcome;
use serde::Serialize;

use super::trace::Trace;

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// One play of the trace.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) policy: String,
    pub(super) seed: u64,
    pub(super) outcome: Outcome,
    /// How long all decisions took, with the bookkeeping of the curve.
    pub(super) took: Duration,
    /// Of all placements in order: BLAKE3.
    pub(super) hash: String,
}

/// All plays.
#[derive(Debug)]
pub(super) struct Report {
    nodes: usize,
    gpus: u64,
    pods: usize,
    pub(super) runs: Vec<Run>,
}

/// A policy's figures: means over its seeds. Shares are in per cent of the pool's GPUs.
#[derive(Serialize)]
struct PolicyView {
    policy: String,
    seeds: usize,
    allocated_at_100_pct: Option<f64>,
    allocated_at_130_pct: Option<f64>,
    fragmented_at_100_pct: Option<f64>,
    rejected_requests: f64,
    rejected_gpus: f64,
    first_rejected_at_pct: Option<f64>,
    decisions_per_second: f64,
    runs: Vec<RunView>,
}

#[derive(Serialize)]
struct RunView {
    seed: u64,
    arrivals: usize,
    rejected_requests: usize,
    allocated_at_100_pct: Option<f64>,
    allocated_at_130_pct: Option<f64>,
    fragmented_at_50_pct: Option<f64>,
    fragmented_at_100_pct: Option<f64>,
    first_rejected_at_pct: Option<f64>,
    states: usize,
    placements_blake3: String,
}

#[derive(Serialize)]
struct ReportView {
    nodes: usize,
    gpus: u64,
    listed_requests: usize,
    price_paid: Option<String>,
    policies: Vec<PolicyView>,
}

#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "figures for people: millionths and counts lie far below 2^52"
)]
fn float(number: u64) -> f64 {
    number as f64
}

fn count(number: usize) -> f64 {
    float(u64::try_from(number).unwrap_or(u64::MAX))
}

/// Millionths as per cent.
pub(super) fn percent(ppm: u64) -> f64 {
    float(ppm) / 10_000.0
}

/// The mean of what is known; `None` if nothing is.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = values.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / count(known.len()))
}

impl Run {
    fn allocated(&self, at: usize) -> Option<f64> {
        self.outcome.curve.allocated_ppm(at).map(percent)
    }

    fn fragmented(&self, at: usize) -> Option<f64> {
        self.outcome.curve.lost_ppm(at).map(percent)
    }

    fn first_rejected(&self) -> Option<f64> {
        self.outcome.first_rejected_ppm.map(percent)
    }

    fn view(&self) -> RunView {
        RunView {
            seed: self.seed,
            arrivals: self.outcome.arrivals,
            rejected_requests: self.outcome.rejected,
            allocated_at_100_pct: self.allocated(100),
            allocated_at_130_pct: self.allocated(130),
            fragmented_at_50_pct: self.fragmented(50),
            fragmented_at_100_pct: self.fragmented(100),
            first_rejected_at_pct: self.first_rejected(),
            states: self.outcome.states,
            placements_blake3: self.hash.clone(),
        }
    }
}

impl Report {
    pub(super) fn new(trace: &Trace) -> Self {
        Self {
            nodes: trace.nodes.len(),
            gpus: trace.capacity_milli() / 1_000,
            pods: trace.pods.len(),
            runs: Vec::new(),
        }
    }

    /// The names of the policies, each once, as they were asked for.
    pub(super) fn policies(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !names.contains(&run.policy.as_str()) {
                names.push(&run.policy);
            }
        }
        names
    }

    /// The runs of a policy.
    pub(super) fn of<'a>(&'a self, policy: &'a str) -> impl Iterator<Item = &'a Run> + Clone {
        self.runs.iter().filter(move |run| run.policy == policy)
    }

    /// The mean share allocated at a per cent of arrived load, in per cent.
    pub(super) fn allocated(&self, policy: &str, at: usize) -> Option<f64> {
        mean(self.of(policy).map(|run| run.allocated(at)))
    }

    /// The last per cent of arrived load that is known.
    pub(super) fn end(&self) -> usize {
        let ends = self.runs.iter().map(|run| run.outcome.curve.end());
        ends.max().unwrap_or(0)
    }

    fn view(&self, policy: &str) -> PolicyView {
        let runs = || self.of(policy);
        let decisions: f64 = runs().map(|run| count(run.outcome.arrivals)).sum();
        let seconds: f64 = runs().map(|run| run.took.as_secs_f64()).sum();
        let rejected = runs().map(|run| Some(count(run.outcome.rejected)));
        let milli = runs().map(|run| Some(float(run.outcome.rejected_milli) / 1_000.0));
        PolicyView {
            policy: policy.to_owned(),
            seeds: runs().count(),
            allocated_at_100_pct: self.allocated(policy, 100),
            allocated_at_130_pct: self.allocated(policy, 130),
            fragmented_at_100_pct: mean(runs().map(|run| run.fragmented(100))),
            rejected_requests: mean(rejected).unwrap_or(0.0),
            rejected_gpus: mean(milli).unwrap_or(0.0),
            first_rejected_at_pct: mean(runs().map(Run::first_rejected)),
            decisions_per_second: if seconds > 0.0 {
                decisions / seconds
            } else {
                0.0
            },
            runs: runs().map(Run::view).collect(),
        }
    }

    /// For programs.
    pub(super) fn json(&self) -> Result<String, String> {
        let view = ReportView {
            nodes: self.nodes,
            gpus: self.gpus,
            listed_requests: self.pods,
            price_paid: None,
            policies: self.policies().iter().map(|p| self.view(p)).collect(),
        };
        serde_json::to_string_pretty(&view).map_err(|e| e.to_string())
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(STYLE).force_no_tty().set_header([
            "policy",
            "seeds",
            "allocated at 100 %",
            "at 130 %",
            "useless at 100 %",
            "rejected",
            "first rejected at",
            "decisions/s",
        ]);
        let share =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
        for name in self.policies() {
            let view = self.view(name);
            table.add_row([
                view.policy,
                view.seeds.to_string(),
                share(view.allocated_at_100_pct),
                share(view.allocated_at_130_pct),
                share(view.fragmented_at_100_pct),
                format!("{:.1}", view.rejected_requests),
                share(view.first_rejected_at_pct),
                format!("{:.0}", view.decisions_per_second),
            ]);
        }
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if number > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!(
            "{} nodes, {} GPUs, {} requests listed. A replay: nothing was booked.\n{table}\n\
             Shares are in % of the pool's GPUs, after requests for 100 % and 130 % of them came; means over the\n\
             seeds. Useless: idle, but of no use to usual requests. The trace names no prices, so none is paid.",
            self.nodes, self.gpus, self.pods
        )
    }

    /// The curves as CSV: a row for each per cent of arrived load, a column for each policy.
    pub(super) fn curves(&self) -> Result<Vec<u8>, String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let policies = self.policies();
        let mut header = vec!["arrived_pct".to_owned()];
        header.extend(policies.iter().map(|p| format!("{p}_allocated_pct")));
        writer.write_record(&header).map_err(|e| e.to_string())?;
        for at in 0..=self.end() {
            let mut row = vec![at.to_string()];
            row.extend(policies.iter().map(|policy| {
                let share = self.allocated(policy, at);
                share.map_or_else(String::new, |share| format!("{share:.4}"))
            }));
            writer.write_record(&row).map_err(|e| e.to_string())?;
        }
        writer.into_inner().map_err(|e| e.to_string())
    }
}
