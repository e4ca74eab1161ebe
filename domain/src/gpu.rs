//! The GPU model catalogue: canonical names, figures with their sources, and the aliases by which
//! drivers, clouds and other markets call a model.
//!
//! The data is `domain/data/gpu-models.toml`; its head tells what each figure means and which model
//! an ambiguous name stands for. Invariant: a name, in lower case and without punctuation, leads to
//! one model only, and every figure is plausible.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

const EMBEDDED: &str = include_str!("../data/gpu-models.toml");

/// Longer names are cut before they are compared: a name from outside must not cost much time.
const NAME_MAX: usize = 64;

/// Who makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel (Gaudi).
    Intel,
    /// Amazon Web Services (Trainium, Inferentia).
    Aws,
    /// Google (TPU).
    Google,
}

impl Vendor {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
            Self::Intel => "intel",
            Self::Aws => "aws",
            Self::Google => "google",
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Vendor {
    type Err = CatalogueError;

    fn from_str(text: &str) -> Result<Self, CatalogueError> {
        [
            Self::Nvidia,
            Self::Amd,
            Self::Intel,
            Self::Aws,
            Self::Google,
        ]
        .into_iter()
        .find(|v| v.as_str() == text)
        .ok_or_else(|| CatalogueError::Form(format!("`{text}` is not a vendor")))
    }
}

/// How GPUs of one machine reach each other: the closed list for [`GpuModel::interconnect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interconnect {
    /// PCI Express 3.
    Pcie3,
    /// PCI Express 4.
    Pcie4,
    /// PCI Express 5.
    Pcie5,
    /// NVIDIA NVLink 1 (Pascal).
    Nvlink1,
    /// NVIDIA NVLink 2 (Volta, Turing).
    Nvlink2,
    /// NVIDIA NVLink 3 (Ampere).
    Nvlink3,
    /// NVIDIA NVLink 4 (Hopper).
    Nvlink4,
    /// NVIDIA NVLink 5 (Blackwell).
    Nvlink5,
    /// AMD Infinity Fabric.
    InfinityFabric,
    /// RDMA over Ethernet ports of the accelerator (Intel Gaudi).
    Roce,
    /// AWS NeuronLink.
    Neuronlink,
    /// Google's inter-chip interconnect (TPU).
    Ici,
}

impl Interconnect {
    /// Every link, in the order of the list.
    pub const ALL: [Self; 12] = [
        Self::Pcie3,
        Self::Pcie4,
        Self::Pcie5,
        Self::Nvlink1,
        Self::Nvlink2,
        Self::Nvlink3,
        Self::Nvlink4,
        Self::Nvlink5,
        Self::InfinityFabric,
        Self::Roce,
        Self::Neuronlink,
        Self::Ici,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pcie3 => "pcie3",
            Self::Pcie4 => "pcie4",
            Self::Pcie5 => "pcie5",
            Self::Nvlink1 => "nvlink1",
            Self::Nvlink2 => "nvlink2",
            Self::Nvlink3 => "nvlink3",
            Self::Nvlink4 => "nvlink4",
            Self::Nvlink5 => "nvlink5",
            Self::InfinityFabric => "infinity-fabric",
            Self::Roce => "roce",
            Self::Neuronlink => "neuronlink",
            Self::Ici => "ici",
        }
    }
}

impl fmt::Display for Interconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Interconnect {
    type Err = CatalogueError;

    fn from_str(text: &str) -> Result<Self, CatalogueError> {
        Self::ALL
            .into_iter()
            .find(|link| link.as_str() == text)
            .ok_or_else(|| CatalogueError::Form(format!("`{text}` is not an interconnect")))
    }
}

/// A slice that a model can be cut into (NVIDIA Multi-Instance GPU).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// NVIDIA's name, e.g. `1g.10gb`.
    pub name: String,
    /// How many fit on one GPU.
    pub max_instances: u32,
    /// Memory of one, MiB, about as `nvidia-smi mig -lgip` lists it (drivers differ a little).
    pub memory_mib: u32,
}

/// A model of GPU or accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Canonical name: lower-case words and digits joined by `-`.
    pub slug: String,
    /// For people.
    pub name: String,
    /// Who makes it.
    pub vendor: Vendor,
    /// Vendor's architecture name.
    pub architecture: String,
    /// Nominal memory of one, MiB; drivers tell up to 15 % less (ECC, reserved).
    pub memory_mib: u32,
    /// Memory bandwidth, GB/s.
    pub memory_bandwidth_gbps: u32,
    /// Dense FP16 tensor rate with FP32 accumulate, GFLOPS; `None` if not published or not supported.
    pub fp16_gflops: Option<u64>,
    /// Dense BF16 tensor rate, GFLOPS.
    pub bf16_gflops: Option<u64>,
    /// Dense FP8 tensor rate with FP32 accumulate, GFLOPS.
    pub fp8_gflops: Option<u64>,
    /// The most that one GPU draws, W.
    pub power_watts: u32,
    /// Fastest link to its peers that the model can have, the name of an [`Interconnect`].
    pub interconnect: String,
    /// How it can be cut.
    #[serde(default)]
    pub mig_profiles: Vec<MigProfile>,
    /// Other names that lead to it.
    pub aliases: Vec<String>,
    /// Where the figures are from: the vendor's document and where it is found.
    pub source: String,
}

/// Why a catalogue is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// Not the expected form.
    #[error("the GPU catalogue cannot be read: {0}")]
    Form(String),
    /// One name is given twice, or has no letter or digit.
    #[error("the name `{0}` leads to two GPU models or to none")]
    Ambiguous(String),
    /// A figure is out of any sensible range.
    #[error("the figures of `{0}` are not plausible")]
    Implausible(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<GpuModel>,
}

/// All models, found by slug or alias.
#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Vec<GpuModel>,
    names: BTreeMap<String, usize>,
}

/// What of a name counts: letters and digits, in lower case.
fn normal(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .take(NAME_MAX)
        .collect()
}

fn is_slug(text: &str) -> bool {
    let word = |w: &str| {
        !w.is_empty()
            && w.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.len() <= NAME_MAX && text.split('-').all(word)
}

/// Ranges wide enough for ten years of hardware, narrow enough to catch a slip of the unit.
fn is_plausible(model: &GpuModel) -> bool {
    let rates = [model.fp16_gflops, model.bf16_gflops, model.fp8_gflops];
    let told = [&model.name, &model.architecture, &model.source];
    let cut = |p: &MigProfile| {
        let all = p.memory_mib.checked_mul(p.max_instances);
        !p.name.is_empty()
            && (1..=16).contains(&p.max_instances)
            && p.memory_mib >= 1_024
            && all.is_some_and(|mib| mib <= model.memory_mib)
    };
    is_slug(&model.slug)
        && told.iter().all(|text| !text.trim().is_empty())
        && (1_024..=4_194_304).contains(&model.memory_mib)
        && (10..=100_000).contains(&model.memory_bandwidth_gbps)
        && (10..=20_000).contains(&model.power_watts)
        && rates
            .into_iter()
            .flatten()
            .all(|g| (1_000..=1_000_000_000).contains(&g))
        && model.mig_profiles.iter().all(cut)
}

impl Catalogue {
    /// The catalogue that this build contains.
    pub fn embedded() -> Result<Self, CatalogueError> {
        Self::parse(EMBEDDED)
    }

    /// Reads a catalogue (TOML), and checks names and figures.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        let file: File = toml::from_str(text).map_err(|e| CatalogueError::Form(e.to_string()))?;
        let mut models = file.model;
        models.sort_by(|a, b| a.slug.cmp(&b.slug));
        let mut names = BTreeMap::new();
        for (place, model) in models.iter().enumerate() {
            if !is_plausible(model) {
                return Err(CatalogueError::Implausible(model.slug.clone()));
            }
            model.interconnect.parse::<Interconnect>()?;
            for name in std::iter::once(&model.slug).chain(&model.aliases) {
                let key = normal(name);
                if key.is_empty() || names.insert(key, place).is_some() {
                    return Err(CatalogueError::Ambiguous(name.clone()));
                }
            }
        }
        Ok(Self { models, names })
    }

    /// Every model, in order of slug.
    pub fn models(&self) -> &[GpuModel] {
        &self.models
    }

    /// The model of a slug or alias; case and punctuation do not matter.
    pub fn find(&self, name: &str) -> Option<&GpuModel> {
        self.models.get(*self.names.get(&normal(name))?)
    }

    /// The slugs of the `most` models whose names are nearest to `name`, nearest first.
    pub fn near(&self, name: &str, most: usize) -> Vec<&str> {
        let wanted = normal(name);
        let mut best: BTreeMap<usize, usize> = BTreeMap::new();
        for (known, place) in &self.names {
            let contained = known.contains(&wanted) && wanted.len() > 2;
            let far = if contained {
                0
            } else {
                distance(&wanted, known)
            };
            best.entry(*place)
                .and_modify(|d| *d = (*d).min(far))
                .or_insert(far);
        }
        let mut ranked: Vec<(usize, usize)> = best.into_iter().map(|(p, d)| (d, p)).collect();
        ranked.sort_unstable();
        ranked
            .into_iter()
            .take(most)
            .filter_map(|(_, place)| self.models.get(place).map(|m| m.slug.as_str()))
            .collect()
    }
}

/// Levenshtein distance (V. Levenshtein, 1966), row by row.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i.saturating_add(1);
        let mut next = vec![left];
        for (y, above) in b.bytes().zip(row.iter().skip(1)) {
            let change = diagonal.saturating_add(usize::from(x != y));
            left = change
                .min(above.saturating_add(1))
                .min(left.saturating_add(1));
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// A GPU's UUID as its vendor's driver tells it, e.g. `GPU-8f6c…`; compared as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuUuid(String);

/// The text is not 1 to 96 letters, digits and `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a GPU UUID has 1 to 96 letters, digits and dashes")]
pub struct GpuUuidError;

impl GpuUuid {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GpuUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for GpuUuid {
    type Err = GpuUuidError;

    fn from_str(text: &str) -> Result<Self, GpuUuidError> {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let fits = (1..=96).contains(&text.len());
        if plain && fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(GpuUuidError)
        }
    }
}

#[cfg(test)]
mod tests;
