//! The GPU model catalogue: canonical names, figures with their sources, and the aliases by which
//! drivers, clouds and other markets call a model.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

const EMBEDDED: &str = include_str!("../data/gpu-models.toml");

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

/// A slice that a model can be cut into (NVIDIA Multi-Instance GPU).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfile {
    /// NVIDIA's name, e.g. `1g.10gb`.
    pub name: String,
    /// How many fit on one GPU.
    pub max_instances: u32,
    /// Memory of one, MiB.
    pub memory_mib: u32,
}

/// A model of GPU or accelerator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Canonical name: lower-case words joined by `-`.
    pub slug: String,
    /// For people.
    pub name: String,
    /// Who makes it.
    pub vendor: Vendor,
    /// Vendor's architecture name.
    pub architecture: String,
    /// Memory of one, MiB.
    pub memory_mib: u32,
    /// Memory bandwidth, GB/s.
    pub memory_bandwidth_gbps: u32,
    /// Dense FP16 tensor rate, GFLOPS; `None` if not published or not supported.
    pub fp16_gflops: Option<u64>,
    /// Dense BF16 tensor rate, GFLOPS.
    pub bf16_gflops: Option<u64>,
    /// Dense FP8 tensor rate, GFLOPS.
    pub fp8_gflops: Option<u64>,
    /// Board power, W.
    pub power_watts: u32,
    /// Fastest link to its peers, e.g. `nvlink4`, `pcie4`.
    pub interconnect: String,
    /// How it can be cut.
    #[serde(default)]
    pub mig_profiles: Vec<MigProfile>,
    /// Other names that lead to it.
    pub aliases: Vec<String>,
    /// Where the figures are from.
    pub source: String,
}

/// Why a catalogue is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// Not the expected form.
    #[error("the GPU catalogue cannot be read: {0}")]
    Form(String),
    /// One name leads to two models.
    #[error("the name `{0}` leads to two GPU models")]
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

fn normal(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
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
            let memory_fits = (1_024..=4_194_304).contains(&model.memory_mib);
            let power_fits = (1..=20_000).contains(&model.power_watts);
            if !memory_fits || !power_fits || model.source.is_empty() {
                return Err(CatalogueError::Implausible(model.slug.clone()));
            }
            for name in std::iter::once(&model.slug).chain(&model.aliases) {
                if names.insert(normal(name), place).is_some() {
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

    /// The slugs of the `most` models whose names are nearest to `name`.
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
