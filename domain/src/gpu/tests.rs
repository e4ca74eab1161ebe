//! The catalogue against the names that clouds and markets really use.

use std::collections::BTreeSet;

use super::*;

const DECIMAL: &str = "the cloud counts decimal gigabytes: 24 and 48 GB in MiB";
const ECC: &str = "the driver's figure: ECC takes a sixteenth of GDDR6";
const PART: &str = "a part of a GPU (AWS g6f, gr6f)";
const SIZES: &str = "one name for several sizes; the catalogue decides for the other";
const SUFFIX: &str = "the list drops Ti and SUPER: this one is another model";

/// Rows whose memory differs from the model's by more than 5 %, each with the reason.
const OTHER_SIZE: [(&str, &str, u32, &str); 16] = [
    ("aws", "a100", 81_920, SIZES),
    ("aws", "a10g", 22_888, DECIMAL),
    ("aws", "l4", 22_888, DECIMAL),
    ("aws", "l4", 11_444, PART),
    ("aws", "l4", 5_722, PART),
    ("aws", "l4", 2_861, PART),
    ("aws", "l40s", 45_776, DECIMAL),
    ("aws", "v100", 32_768, SIZES),
    ("lium", "L40", 46_080, ECC),
    ("lium", "L40S", 46_080, ECC),
    ("vast", "A100", 81_920, SIZES),
    ("vast", "H100", 95_830, SIZES),
    ("vast", "L40S", 46_068, ECC),
    ("vast", "RTX3060", 8_192, SIZES),
    ("vast", "RTX4060", 16_380, SUFFIX),
    ("vast", "RTX4070", 16_376, SUFFIX),
];

fn embedded() -> Catalogue {
    Catalogue::embedded().unwrap()
}

#[test]
fn it_has_the_models_that_matter() {
    let catalogue = embedded();
    assert!(catalogue.models().len() >= 65);
    assert!(catalogue.models().is_sorted_by(|a, b| a.slug < b.slug));
    for vendor in ["nvidia", "amd", "intel", "aws", "google"] {
        let vendor: Vendor = vendor.parse().unwrap();
        assert!(
            catalogue.models().iter().any(|m| m.vendor == vendor),
            "{vendor}"
        );
    }
    let h100 = catalogue.find("NVIDIA H100 80GB HBM3").unwrap();
    assert_eq!(h100.slug, "h100-sxm-80gb");
    assert_eq!(h100.mig_profiles.len(), 6);
    // Names that several models share, as decided at the head of the data.
    for (name, slug) in [
        ("A100", "a100-sxm4-40gb"),
        ("h100", "h100-sxm-80gb"),
        ("V100-32GB", "v100-sxm2-32gb"),
        ("RTX6000", "quadro-rtx-6000"),
        ("NVIDIA GeForce RTX 4060 Ti", "rtx-4060-ti-16gb"),
    ] {
        assert_eq!(catalogue.find(name).unwrap().slug, slug, "{name}");
    }
}

#[test]
fn every_slug_and_alias_leads_to_its_model() {
    let catalogue = embedded();
    for model in catalogue.models() {
        for name in std::iter::once(&model.slug).chain(&model.aliases) {
            for form in [
                name.clone(),
                name.to_uppercase(),
                name.replace(['-', ' '], "_"),
            ] {
                assert_eq!(catalogue.find(&form), Some(model), "{form}");
            }
        }
    }
    assert_eq!(catalogue.find(""), None);
    assert_eq!(catalogue.find("--"), None);
}

#[test]
fn figures_are_dense_and_of_one_unit() {
    for m in embedded().models() {
        // A sparse figure, or one of another unit, breaks these: twice the width, half the rate, at least.
        if let (Some(fp16), Some(bf16)) = (m.fp16_gflops, m.bf16_gflops) {
            assert!(bf16 <= fp16, "{}", m.slug);
        }
        if let (Some(half), Some(fp8)) = (m.bf16_gflops, m.fp8_gflops) {
            assert!(half <= fp8 && fp8 <= half * 4, "{}", m.slug);
        }
        // 8 TFLOPS per watt is more than any dense rate today.
        let most = m
            .fp8_gflops
            .or(m.bf16_gflops)
            .or(m.fp16_gflops)
            .unwrap_or(0);
        assert!(most <= u64::from(m.power_watts) * 8_000, "{}", m.slug);
        let mut names = BTreeSet::new();
        assert!(
            m.mig_profiles.iter().all(|p| names.insert(&p.name)),
            "{}",
            m.slug
        );
    }
}

#[test]
fn every_name_in_the_price_lists_leads_to_a_model_of_that_size() {
    let catalogue = embedded();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/data/catalog-gpu-names.csv"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut unused: BTreeSet<_> = OTHER_SIZE
        .iter()
        .map(|(c, g, mib, _)| (*c, *g, *mib))
        .collect();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let model = catalogue
            .find(cells[1])
            .unwrap_or_else(|| panic!("unknown: {line}"));
        let Ok(mib) = cells[2].parse::<u32>() else {
            assert_eq!(cells[2], "", "{line}");
            continue;
        };
        let fits = mib.abs_diff(model.memory_mib) * 100 <= model.memory_mib * 5;
        let excepted = unused.remove(&(cells[0], cells[1], mib));
        assert!(
            fits != excepted,
            "{line}: {} has {}",
            model.slug,
            model.memory_mib
        );
    }
    assert_eq!(unused, BTreeSet::new(), "exceptions that nothing needs");
}

#[test]
fn near_names_help_after_a_typing_error() {
    let catalogue = embedded();
    assert_eq!(catalogue.find("h1000"), None);
    assert!(
        catalogue
            .near("h1000", 5)
            .iter()
            .any(|s| s.starts_with("h100"))
    );
    assert!(
        catalogue
            .near("rtx 409", 3)
            .iter()
            .any(|s| s.starts_with("rtx-4090"))
    );
    assert_eq!(catalogue.near("NVIDIA H200 NLV", 1), ["h200-nvl-141gb"]);
    assert_eq!(catalogue.near("", 3).len(), 3);
    assert_eq!(catalogue.near("a100", 0).len(), 0);
    assert_eq!(catalogue.near(&"x".repeat(1_000_000), 2).len(), 2);
    assert_eq!(catalogue.near("a", 10_000).len(), catalogue.models().len());
}

#[test]
fn distance_counts_single_changes() {
    for (a, b, far) in [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("h100", "h200", 1),
        ("a10", "a100", 1),
    ] {
        assert_eq!(distance(a, b), far, "{a} {b}");
        assert_eq!(distance(b, a), far, "{b} {a}");
    }
}

fn one(slug: &str, alias: &str, changes: &[(&str, &str)]) -> String {
    let mut text = format!(
        "[[model]]\nslug=\"{slug}\"\nname=\"n\"\nvendor=\"amd\"\narchitecture=\"a\"\nmemory_mib=8192\n\
         memory_bandwidth_gbps=100\nfp16_gflops=2000\npower_watts=100\ninterconnect=\"pcie4\"\n\
         aliases=[\"{alias}\"]\nsource=\"s\"\n"
    );
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

#[test]
fn a_good_catalogue_is_read() {
    let two = format!("{}{}", one("b-2", "Y", &[]), one("a-1", "X", &[]));
    let catalogue = Catalogue::parse(&two).unwrap();
    let slugs: Vec<&str> = catalogue.models().iter().map(|m| m.slug.as_str()).collect();
    assert_eq!(slugs, ["a-1", "b-2"]);
    assert_eq!(catalogue.find("y").unwrap().slug, "b-2");
}

#[test]
fn names_given_twice_or_empty_are_refused() {
    let ambiguous =
        |text: &str| matches!(Catalogue::parse(text), Err(CatalogueError::Ambiguous(_)));
    assert!(ambiguous(&format!(
        "{}{}",
        one("a", "X 1", &[]),
        one("b", "x-1", &[])
    )));
    assert!(ambiguous(&format!(
        "{}{}",
        one("a", "b", &[]),
        one("b", "x", &[])
    )));
    assert!(ambiguous(&one("a-1", "A1", &[])));
    assert!(ambiguous(&one("a", " - ", &[])));
}

#[test]
fn figures_out_of_range_are_refused() {
    let cut = |of: &str| format!("source=\"s\"\nmig_profiles=[{{name=\"1g\",{of}}}]");
    let cuts = [
        cut("max_instances=7,memory_mib=2048"),
        cut("max_instances=17,memory_mib=1024"),
        cut("max_instances=0,memory_mib=2048"),
        cut("max_instances=16,memory_mib=4294967295"),
    ];
    let cuts = cuts.iter().map(|text| ("source=\"s\"", text.as_str()));
    let plain = [
        ("memory_mib=8192", "memory_mib=1"),
        ("memory_mib=8192", "memory_mib=99999999"),
        ("gbps=100", "gbps=0"),
        ("gflops=2000", "gflops=125"),
        ("gflops=2000", "gflops=1000000000001"),
        ("power_watts=100", "power_watts=0"),
        ("source=\"s\"", "source=\" \""),
        ("name=\"n\"", "name=\"\""),
        ("slug=\"a\"", "slug=\"A\""),
        ("slug=\"a\"", "slug=\"a--b\""),
        ("slug=\"a\"", "slug=\"-a\""),
        ("slug=\"a\"", "slug=\"\""),
    ];
    for change in plain.into_iter().chain(cuts) {
        let refused = Catalogue::parse(&one("a", "x", &[change]));
        assert!(
            matches!(refused, Err(CatalogueError::Implausible(_))),
            "{change:?}"
        );
    }
}

#[test]
fn other_forms_are_refused() {
    let changes = [
        ("vendor=\"amd\"", "vendor=\"AMD\""),
        ("\"pcie4\"", "\"pcie\""),
        ("source=\"s\"", "source=\"s\"\ncolour=\"red\""),
        ("gflops=2000", "gflops=-2000"),
        ("power_watts=100\n", ""),
    ];
    for change in changes {
        let refused = Catalogue::parse(&one("a", "x", &[change]));
        assert!(
            matches!(refused, Err(CatalogueError::Form(_))),
            "{change:?}"
        );
    }
    for text in ["x = 1", "", "model = 3", "[[model]"] {
        assert!(
            matches!(Catalogue::parse(text), Err(CatalogueError::Form(_))),
            "{text}"
        );
    }
}

#[test]
fn links_have_one_name_each() {
    let mut names = BTreeSet::new();
    for link in Interconnect::ALL {
        assert_eq!(link.as_str().parse(), Ok(link));
        assert!(names.insert(link.to_string()));
    }
    assert!("nvlink9".parse::<Interconnect>().is_err());
}

#[test]
fn uuids_are_plain_text() {
    for good in ["GPU-8f6c1a2b-0000", "a", &"x".repeat(96)] {
        let uuid: GpuUuid = good.parse().unwrap();
        assert_eq!((uuid.as_str(), uuid.to_string()), (good, good.to_owned()));
    }
    for bad in ["", "a b", "a/b", "ü", &"x".repeat(97)] {
        assert!(bad.parse::<GpuUuid>().is_err(), "{bad:?}");
    }
}
