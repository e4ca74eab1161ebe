//! From a seller's words to a model: the name, what the instance's name adds, and the memory.

use domain::gpu::{Catalogue, GpuModel};

use super::{Fault, ListRow, Told, decimal, malformed};

/// Azure's sizes whose card is not what the name alone stands for (Azure's documents of these
/// sizes): part of the instance type, the name in the list, the model.
const AZURE: [(&str, &str, &str); 4] = [
    ("ads_A100_v4", "A100-80GB", "a100-pcie-80gb"),
    ("ads_H100_v5", "H100", "h100-nvl-94gb"),
    ("adis_H100_v5", "H100", "h100-nvl-94gb"),
    ("s_v3", "V100", "v100-pcie-16gb"),
];

/// Azure's sizes with a part of an MI25, listed as a whole one.
const MI25_PARTS: [&str; 3] = [
    "Standard_NV4as_v4",
    "Standard_NV8as_v4",
    "Standard_NV16as_v4",
];

/// Is it known that a row listed with a whole GPU has a part of one?
pub(super) fn part(row: &ListRow) -> bool {
    row.cloud == "azure" && MI25_PARTS.contains(&row.instance_type.as_str())
}

/// The model of a row, and the memory of one GPU.
pub(super) fn resolve(
    catalogue: &Catalogue,
    row: &ListRow,
    gpus: u16,
    told: &mut Vec<Told>,
) -> Result<(String, Option<u32>), Told> {
    let named = catalogue.find(&row.gpu);
    let exact = by_instance(catalogue, row);
    let base = exact.or(named).ok_or_else(|| {
        let near = catalogue.near(&row.gpu, 2).join(", ");
        let text = format!("no GPU model is called `{}` (near: {near})", row.gpu);
        (Fault::UnknownModel, text)
    })?;
    let memory = memory(row)?;
    let candidates = variants(catalogue, base, row);
    let (model, fit) = match memory {
        None => (candidates.first().copied().unwrap_or(base), None),
        Some(mib) => {
            let (model, fit) = fitting(&candidates, mib, u64::from(gpus)).ok_or_else(|| {
                let text = format!("{mib} MiB is no memory of `{}`, in no unit", row.gpu);
                (Fault::MemoryUnclear, text)
            })?;
            (model, Some(fit))
        }
    };
    if let Some((Some((fault, what)), mib)) = fit {
        let listed = &row.vram_mib_each;
        told.push((fault, format!("memory {listed} {what}: read as {mib} MiB")));
    }
    if named.is_none_or(|n| n.slug != model.slug) {
        let text = format!(
            "`{}` in `{}` with {} MiB is {}",
            row.gpu, row.instance_type, row.vram_mib_each, model.slug
        );
        told.push((Fault::ModelRefined, text));
    }
    let mib = fit.and_then(|(_, mib)| u32::try_from(mib).ok());
    Ok((model.slug.clone(), mib))
}

fn memory(row: &ListRow) -> Result<Option<u64>, Told> {
    if row.vram_mib_each.is_empty() {
        return Ok(None);
    }
    let read = decimal::read(&row.vram_mib_each);
    let read = read.ok_or_else(|| malformed("vram_mib_each", &row.vram_mib_each))?;
    Ok(u64::try_from(read.whole()).ok().filter(|mib| *mib > 0))
}

/// The model that the instance's name tells, if it does.
fn by_instance<'a>(catalogue: &'a Catalogue, row: &ListRow) -> Option<&'a GpuModel> {
    let instance = row.instance_type.as_str();
    if row.cloud == "azure" && instance.starts_with("Standard_NC") {
        let known = AZURE
            .iter()
            .find(|(end, gpu, _)| instance.ends_with(end) && row.gpu == *gpu);
        return known.and_then(|(_, _, slug)| catalogue.find(slug));
    }
    // `4x-RTX_4060_Ti-32-65536`: marketplaces write count, name, cores and memory.
    let words: Vec<&str> = instance.split('-').collect();
    match words.as_slice() {
        [count, name, cores, mib]
            if count.ends_with('x') && [cores, mib].iter().all(|w| w.parse::<u64>().is_ok()) =>
        {
            catalogue.find(name)
        }
        _ => None,
    }
}

/// How a GPU is built in.
const FORMS: [&str; 5] = ["sxm", "sxm2", "sxm4", "pcie", "nvl"];

/// The name of a family: the slug without form and size.
fn family(slug: &str) -> String {
    let detail = |word: &&str| {
        let size = word
            .strip_suffix("gb")
            .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        !size && !FORMS.contains(word)
    };
    slug.split('-').filter(detail).collect::<Vec<_>>().join("-")
}

/// Does a name tell a size, as in `A100-80GB`?
fn tells_size(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        let digits = word.trim_end_matches("gb").trim_end_matches('g');
        digits.len() < word.len()
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The word for how the GPU is built in, if the slug has one.
fn form(slug: &str) -> Option<&str> {
    slug.split('-').find(|word| FORMS.contains(word))
}

/// What the row may mean, the likeliest first: the family of `base` in the form that the instance's
/// name tells, of the size that the GPU's name tells.
fn variants<'a>(catalogue: &'a Catalogue, base: &'a GpuModel, row: &ListRow) -> Vec<&'a GpuModel> {
    let kin = family(&base.slug);
    let sized = tells_size(&row.gpu);
    let mut all: Vec<&GpuModel> = catalogue
        .models()
        .iter()
        .filter(|m| family(&m.slug) == kin && (!sized || m.memory_mib == base.memory_mib))
        .collect();
    // First the one that the name stands for, then those of its form.
    all.sort_by_key(|m| (m.slug != base.slug, form(&m.slug) != form(&base.slug)));
    let instance = row.instance_type.to_ascii_lowercase().replace("nvlink", "");
    let told = ["pcie", "nvl", "sxm"]
        .into_iter()
        .find(|form| instance.contains(form));
    if let Some(told) = told {
        let fitting = |m: &GpuModel| m.slug.contains(&format!("-{told}"));
        if all.iter().any(|m| fitting(m)) {
            all.retain(|m| fitting(m));
        }
    }
    all
}

/// Drivers tell up to 15 % less than the nominal size; lists round up or count in powers of ten.
const PER_CENT: u64 = 15;

/// What had to be changed of a memory, and the memory of one GPU in MiB.
type Fit = (Option<(Fault, &'static str)>, u64);

/// The first model that the memory fits as it stands, or else after the least change of its unit.
fn fitting<'a>(candidates: &[&'a GpuModel], listed: u64, gpus: u64) -> Option<(&'a GpuModel, Fit)> {
    let readings = [
        (None, Some(listed)),
        (
            Some((Fault::MemoryUnit, "is in GB")),
            listed.checked_mul(1_024),
        ),
        (
            Some((Fault::MemoryOfAll, "is that of all GPUs")),
            listed.checked_div(gpus),
        ),
        (
            Some((Fault::MemoryOfOne, "is one GPU's, spread over all")),
            listed.checked_mul(gpus),
        ),
    ];
    readings.into_iter().find_map(|(fault, mib)| {
        let mib = mib?;
        let nearest = |m: &&&GpuModel| mib.abs_diff(u64::from(m.memory_mib));
        let apart = |m: &&&GpuModel| {
            let nominal = u64::from(m.memory_mib);
            nearest(m).saturating_mul(100) <= nominal.saturating_mul(PER_CENT)
        };
        let best = candidates.iter().filter(apart).min_by_key(nearest)?;
        Some((*best, (fault, mib)))
    })
}
