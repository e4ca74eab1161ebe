//! Reads nodes and requests of a trace.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use matching::pool::state::{MOST_GPUS, Models, Shape, State};
use serde::Deserialize;

/// The most models that are told apart, and the most ways of naming several.
const MOST_MODELS: usize = 40;
const MOST_SPECS: usize = 22;

/// A pool and what is asked of it.
#[derive(Debug)]
pub(super) struct Trace {
    /// Nodes by name, empty.
    pub(super) nodes: Vec<State>,
    names: Vec<String>,
    /// Requests as listed.
    pub(super) pods: Vec<Shape>,
}

#[derive(Deserialize)]
struct NodeRow {
    sn: String,
    cpu_milli: u32,
    memory_mib: u32,
    gpu: u16,
    model: String,
}

#[derive(Deserialize)]
struct PodRow {
    cpu_milli: u32,
    memory_mib: u32,
    num_gpu: u16,
    gpu_milli: u16,
    #[serde(default)]
    gpu_spec: String,
}

/// The bytes of a file, unpacked if its name ends in `.gz`.
fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = BufReader::new(file);
    if path.extension().is_some_and(|e| e == "gz") {
        Ok(Box::new(MultiGzDecoder::new(file)))
    } else {
        Ok(Box::new(file))
    }
}

fn rows<R: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<R>, String> {
    let mut reader = csv::Reader::from_reader(open(path)?);
    let mut all = Vec::new();
    for row in reader.deserialize() {
        all.push(row.map_err(|e| format!("{}: {e}", path.display()))?);
    }
    if all.is_empty() {
        return Err(format!("{}: there are no rows", path.display()));
    }
    Ok(all)
}

/// The place of a row in its file, for messages: the header is line 1.
fn at(path: &Path, row: usize) -> String {
    format!("{}:{}", path.display(), row.saturating_add(2))
}

impl Trace {
    /// Reads both files; a fault names file and line.
    pub(super) fn read(nodes: &Path, pods: &Path) -> Result<Self, String> {
        let mut models: Vec<String> = Vec::new();
        let mut named: Vec<(String, State)> = Vec::new();
        for (row, node) in rows::<NodeRow>(nodes)?.into_iter().enumerate() {
            if usize::from(node.gpu) > MOST_GPUS {
                let (at, gpus) = (at(nodes, row), node.gpu);
                return Err(format!("{at}: {gpus} GPUs; a node has at most {MOST_GPUS}"));
            }
            let model = number(&mut models, &node.model)
                .ok_or_else(|| format!("{}: more than {MOST_MODELS} models", at(nodes, row)))?;
            let room = (node.cpu_milli, node.memory_mib);
            named.push((node.sn, State::empty(room, node.gpu, model)));
        }
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let (names, nodes) = named.into_iter().unzip();
        let listed = rows::<PodRow>(pods)?;
        let mut specs: Vec<&str> = listed.iter().map(|pod| pod.gpu_spec.as_str()).collect();
        specs.sort_unstable();
        specs.dedup();
        let mut all = Vec::with_capacity(listed.len());
        for (row, pod) in listed.iter().enumerate() {
            let models = suitable(&pod.gpu_spec, &mut models, &specs)
                .ok_or_else(|| format!("{}: more than {MOST_MODELS} models", at(pods, row)))?;
            all.push(shape(pod, models).map_err(|e| format!("{}: {e}", at(pods, row)))?);
        }
        Ok(Self {
            nodes,
            names,
            pods: all,
        })
    }

    /// GPU time of the pool, in thousandths of a GPU.
    pub(super) fn capacity_milli(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.idle())).sum()
    }

    /// A node's name.
    pub(super) fn node_name(&self, node: u32) -> String {
        let place = usize::try_from(node).ok();
        let name = place.and_then(|place| self.names.get(place));
        name.cloned().unwrap_or_default()
    }
}

fn number(models: &mut Vec<String>, name: &str) -> Option<u8> {
    let place = models.iter().position(|m| m == name).unwrap_or_else(|| {
        models.push(name.to_owned());
        models.len().saturating_sub(1)
    });
    u8::try_from(place).ok().filter(|_| place < MOST_MODELS)
}

/// The models that `spec` names. As published, requests whose specs are written differently are
/// different ones, even if they mean the same: a number above all models tells them apart, in the
/// order of the alphabet.
fn suitable(spec: &str, models: &mut Vec<String>, specs: &[&str]) -> Option<Models> {
    let mut set = Models::NONE;
    for name in spec.split('|').filter(|name| !name.is_empty()) {
        set = set.with(number(models, name)?);
    }
    if set == Models::NONE {
        return Some(Models::ANY);
    }
    let spelling = specs.iter().position(|s| *s == spec);
    let spelling = spelling.filter(|place| *place < MOST_SPECS)?;
    let mark = MOST_MODELS.checked_add(spelling)?;
    Some(set.with(u8::try_from(mark).ok()?))
}

fn shape(pod: &PodRow, models: Models) -> Result<Shape, String> {
    let (gpus, milli) = (pod.num_gpu, pod.gpu_milli);
    let fits = match gpus {
        0 => milli == 0,
        1 => (1..=1_000).contains(&milli),
        _ => milli == 1_000 && usize::from(gpus) <= MOST_GPUS,
    };
    if !fits {
        return Err(format!(
            "{gpus} GPUs of {milli} thousandths; one GPU may be shared, several (at most {MOST_GPUS}) are whole"
        ));
    }
    Ok(Shape {
        cpu_milli: pod.cpu_milli,
        memory_mib: pod.memory_mib,
        gpus,
        gpu_milli: milli,
        models,
    })
}

fn numbers(path: &Path) -> Result<Vec<u64>, String> {
    let mut text = String::new();
    open(path)?
        .read_to_string(&mut text)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let mut all = Vec::new();
    for (line, word) in text.lines().enumerate() {
        let fault = |_| {
            let line = line.saturating_add(1);
            format!("{}:{line}: \"{word}\" is no number", path.display())
        };
        all.push(word.trim().parse().map_err(fault)?);
    }
    Ok(all)
}

/// An order of arrival: rows of the requests, from 0.
pub(super) fn order(path: &Path, pods: usize) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for (line, row) in numbers(path)?.into_iter().enumerate() {
        let row = usize::try_from(row).ok().filter(|row| *row < pods);
        all.push(row.ok_or_else(|| {
            let line = line.saturating_add(1);
            format!("{}:{line}: there are only {pods} requests", path.display())
        })?);
    }
    Ok(all)
}

/// Ranks of the nodes by name: a permutation of 0, 1, 2, …
pub(super) fn ranks(path: &Path, nodes: usize) -> Result<Vec<u32>, String> {
    let fault = || {
        format!(
            "{}: each of the {nodes} nodes needs a rank of its own, from 0",
            path.display()
        )
    };
    let read = numbers(path)?.into_iter().map(u32::try_from);
    let all: Vec<u32> = read.collect::<Result<_, _>>().map_err(|_large| fault())?;
    let mut sorted = all.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq((0..).take(nodes)) {
        return Err(fault());
    }
    Ok(all)
}
