//! `gpumarket-server replay`: plays a trace of requests against placement policies and says how
//! much of it each can place.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use matching::pool::Placement;
use matching::pool::fragment::Fragment;
use matching::pool::mix::Mix;
use matching::pool::policy::Policy;
use matching::pool::published::{BestFit, DotProduct, Packing, Random};
use matching::pool::worth::Worth;
use matching::replay::arrival::{Dice, shuffled};
use matching::replay::{Decision, Play, play};

mod plot;
mod report;
mod trace;

use report::{Report, Run};
use trace::Trace;

/// Requests count as usual up to this per cent of all, as published.
const USUAL: u32 = 95;

/// Plays a trace of requests against placement policies: no database, no market, nothing is booked.
///
/// The protocol is that of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023): an empty pool,
/// requests one by one until 130 % of its GPUs are asked for, none leaves, one that fits nowhere is
/// dropped.
#[derive(Args, Debug)]
pub struct ReplayArguments {
    /// Nodes: CSV (or CSV.gz) with the columns sn, cpu_milli, memory_mib, gpu, model
    #[arg(long)]
    nodes: PathBuf,
    /// Requests: CSV (or CSV.gz) with name, cpu_milli, memory_mib, num_gpu, gpu_milli, and gpu_spec
    /// ("A|B": only these models) if there is one
    #[arg(long)]
    pods: PathBuf,
    /// Which policies, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = Name::ALL)]
    policy: Vec<Name>,
    /// Seeds of the order of arrival: "42", "42,43" or "42..51" (both included)
    #[arg(long, default_value = "1..10", value_parser = seeds)]
    seeds: Seeds,
    /// How much GPU time arrives, in per cent of the pool's
    #[arg(long, default_value_t = 130, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    load: u64,
    /// Take the order of arrival from files instead ("{seed}" stands for the seed): a row of the
    /// requests on each line, from 0
    #[arg(long)]
    order: Option<String>,
    /// Take the nodes' ranks from files ("{seed}" stands for the seed): of equally good nodes the
    /// lowest is taken; line n is the n-th node by name
    #[arg(long)]
    ranks: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the share of GPUs allocated after each per cent of arrived load: CSV
    #[arg(long)]
    curve: Option<PathBuf>,
    /// Write where each request went: CSV, to be checked by others
    #[arg(long)]
    placements: Option<PathBuf>,
    /// Draw the curves: SVG
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// A policy's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// The market's own
    Worth,
    /// Fragmentation gradient descent, as published
    Fgd,
    /// The node that is left with least
    Bestfit,
    /// Shared GPUs first, then used nodes
    Packing,
    /// The node least like the request
    Dotprod,
    /// By lot
    Random,
}

impl Name {
    const ALL: [Self; 6] = [
        Self::Worth,
        Self::Fgd,
        Self::Bestfit,
        Self::Packing,
        Self::Dotprod,
        Self::Random,
    ];

    fn policy(self, trace: &Trace) -> Box<dyn Policy> {
        match self {
            Self::Worth => Box::new(Worth::learn(&trace.pods, &trace.nodes)),
            Self::Fgd => Box::new(Fragment::new(Mix::of(&trace.pods, USUAL))),
            Self::Bestfit => Box::new(BestFit),
            Self::Packing => Box::new(Packing),
            Self::Dotprod => Box::new(DotProduct),
            Self::Random => Box::new(Random),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Worth => "worth",
            Self::Fgd => "fgd",
            Self::Bestfit => "bestfit",
            Self::Packing => "packing",
            Self::Dotprod => "dotprod",
            Self::Random => "random",
        })
    }
}

#[derive(Clone, Debug)]
struct Seeds(Vec<u64>);

fn seeds(text: &str) -> Result<Seeds, String> {
    let number = |part: &str| {
        let fault = |_| format!("\"{part}\" is no seed; write \"42\", \"42,43\" or \"42..51\"");
        part.trim().parse::<u64>().map_err(fault)
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) => all.extend(number(first)?..=number(last)?),
            None => all.push(number(part)?),
        }
    }
    if all.is_empty() || all.len() > 10_000 {
        return Err("between 1 and 10,000 seeds, please".to_owned());
    }
    Ok(Seeds(all))
}

/// Runs the command; gives what is to be printed.
pub fn replay(arguments: &ReplayArguments) -> Result<String, String> {
    let trace = Trace::read(&arguments.nodes, &arguments.pods)?;
    let mix = Mix::of(&trace.pods, USUAL);
    let mut placements = arguments
        .placements
        .as_deref()
        .map(Placements::create)
        .transpose()?;
    let mut report = Report::new(&trace);
    let all = arguments
        .policy
        .len()
        .saturating_mul(arguments.seeds.0.len());
    let mut done = 0_usize;
    for name in &arguments.policy {
        for seed in &arguments.seeds.0 {
            done = done.saturating_add(1);
            progress(&format!("{done}/{all}  {name}, seed {seed}"));
            let (order, ranks) = arrivals(arguments, &trace, *seed)?;
            let one = Play {
                nodes: &trace.nodes,
                ranks: &ranks,
                pods: &trace.pods,
                order: &order,
                mix: &mix,
                seed: *seed,
            };
            let run = run(&one, (*name, *seed), &trace, placements.as_mut())?;
            report.runs.push(run);
        }
    }
    progress("");
    if let Some(path) = &arguments.curve {
        write(path, &report.curves()?)?;
    }
    if let Some(path) = &arguments.plot {
        write(path, plot::svg(&report)?.as_bytes())?;
    }
    if let Some(placements) = placements {
        placements.finish()?;
    }
    if arguments.json {
        report.json()
    } else {
        Ok(report.table())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the decisions take is measured here, at the edge"
)]
fn run(
    one: &Play<'_>,
    (name, seed): (Name, u64),
    trace: &Trace,
    mut placements: Option<&mut Placements>,
) -> Result<Run, String> {
    let policy = name.policy(trace);
    let mut hasher = blake3::Hasher::new();
    let mut fault = None;
    let begin = Instant::now();
    let outcome = play(one, policy, |decision| {
        let (node, slots) = decision
            .placement
            .map_or((u32::MAX, 0), |p| (p.node, p.slots));
        hasher.update(&node.to_le_bytes());
        hasher.update(&slots.to_le_bytes());
        if let Some(file) = placements.as_mut() {
            let written = file.note((name, seed), decision, trace);
            fault = fault.take().or(written.err());
        }
    });
    let took = begin.elapsed();
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Run {
            policy: name.to_string(),
            seed,
            outcome,
            took,
            hash: hasher.finalize().to_hex().to_string(),
        }),
    }
}

/// The order of arrival and the nodes' ranks for a seed.
fn arrivals(
    arguments: &ReplayArguments,
    trace: &Trace,
    seed: u64,
) -> Result<(Vec<usize>, Vec<u32>), String> {
    let named = |pattern: &String| PathBuf::from(pattern.replace("{seed}", &seed.to_string()));
    let order = match &arguments.order {
        Some(pattern) => trace::order(&named(pattern), trace.pods.len())?,
        None => shuffled(&trace.pods, trace.capacity_milli(), arguments.load, seed),
    };
    let ranks = match &arguments.ranks {
        Some(pattern) => trace::ranks(&named(pattern), trace.nodes.len())?,
        None => drawn_ranks(trace.nodes.len(), seed),
    };
    Ok((order, ranks))
}

/// Ranks by lot, another than those of the arrivals.
fn drawn_ranks(nodes: usize, seed: u64) -> Vec<u32> {
    let mut dice = Dice::new(!seed);
    let mut ranks: Vec<u32> = (0..).take(nodes).collect();
    for last in (1..nodes).rev() {
        ranks.swap(last, dice.below(last.saturating_add(1)));
    }
    ranks
}

/// The file of placements.
struct Placements {
    path: PathBuf,
    file: std::io::BufWriter<fs::File>,
}

impl Placements {
    fn create(path: &Path) -> Result<Self, String> {
        let file = fs::File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut made = Self {
            path: path.to_owned(),
            file: std::io::BufWriter::new(file),
        };
        made.line("policy,seed,arrival,pod,node,gpus")?;
        Ok(made)
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        writeln!(self.file, "{text}").map_err(|e| format!("{}: {e}", self.path.display()))
    }

    fn note(
        &mut self,
        (name, seed): (Name, u64),
        decision: Decision,
        trace: &Trace,
    ) -> Result<(), String> {
        let Decision { arrival, pod, .. } = decision;
        let (node, gpus) = decision
            .placement
            .map_or((String::new(), String::new()), |p| {
                (trace.node_name(p.node), gpus(p))
            });
        self.line(&format!("{name},{seed},{arrival},{pod},{node},{gpus}"))
    }

    fn finish(mut self) -> Result<(), String> {
        let path = self.path.display().to_string();
        self.file.flush().map_err(|e| format!("{path}: {e}"))
    }
}

/// The places of the GPUs, as "0 3".
fn gpus(placement: Placement) -> String {
    let set = |slot: &u16| placement.slots & (1 << slot) != 0;
    let places: Vec<String> = (0..16).filter(set).map(|slot| slot.to_string()).collect();
    places.join(" ")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// Says on a terminal how far it is; an empty text ends that.
#[expect(clippy::print_stderr, reason = "a command's word to its user")]
fn progress(text: &str) {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

#[cfg(test)]
mod tests;
