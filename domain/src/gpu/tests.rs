//! The catalogue against the names that clouds and markets really use.

use super::*;

/// Rows whose memory differs from the model's on purpose: one name, several sizes, or one GPU's part.
const OTHER_SIZE: [(&str, &str); 9] = [
    ("aws", "a100"),
    ("aws", "l4"),
    ("aws", "v100"),
    ("vast", "A100"),
    ("vast", "H100"),
    ("vast", "RTX3060"),
    ("vast", "RTX4070"),
    ("vast", "RTX4060"),
    ("azure", "A100"),
];

#[test]
fn it_has_the_models_that_matter() {
    let catalogue = Catalogue::embedded().unwrap();
    assert!(catalogue.models().len() >= 60);
    for vendor in [
        Vendor::Nvidia,
        Vendor::Amd,
        Vendor::Intel,
        Vendor::Aws,
        Vendor::Google,
    ] {
        assert!(
            catalogue.models().iter().any(|m| m.vendor == vendor),
            "{vendor:?}"
        );
    }
    let h100 = catalogue.find("NVIDIA H100 80GB HBM3").unwrap();
    assert_eq!(h100.slug, "h100-sxm-80gb");
    assert_eq!(h100.mig_profiles.len(), 6);
}

#[test]
fn every_name_in_the_price_lists_leads_to_a_model_of_that_size() {
    let catalogue = Catalogue::embedded().unwrap();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/data/catalog-gpu-names.csv"
    );
    let text = std::fs::read_to_string(path).unwrap();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let model = catalogue
            .find(cells[1])
            .unwrap_or_else(|| panic!("unknown: {line}"));
        let Ok(mib) = cells[2].parse::<u32>() else {
            continue;
        };
        if OTHER_SIZE.contains(&(cells[0], cells[1])) {
            continue;
        }
        // ECC and decimal gigabytes make up to seven percent.
        let off = mib.abs_diff(model.memory_mib);
        assert!(
            off * 100 <= model.memory_mib * 7,
            "{line}: {} has {}",
            model.slug,
            model.memory_mib
        );
    }
}

#[test]
fn near_names_help_after_a_typing_error() {
    let catalogue = Catalogue::embedded().unwrap();
    assert!(catalogue.find("h1000").is_none());
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
    assert!(catalogue.near("", 3).len() == 3);
}

#[test]
fn faults_are_named() {
    let one = |slug: &str, alias: &str, mib: u32| {
        format!(
            "[[model]]\nslug=\"{slug}\"\nname=\"n\"\nvendor=\"amd\"\narchitecture=\"a\"\nmemory_mib={mib}\n\
             memory_bandwidth_gbps=1\npower_watts=1\ninterconnect=\"pcie4\"\naliases=[\"{alias}\"]\nsource=\"s\"\n"
        )
    };
    let twice = format!("{}{}", one("a", "X 1", 8192), one("b", "x-1", 8192));
    assert!(matches!(
        Catalogue::parse(&twice),
        Err(CatalogueError::Ambiguous(_))
    ));
    assert!(matches!(
        Catalogue::parse(&one("a", "x", 1)),
        Err(CatalogueError::Implausible(_))
    ));
    assert!(matches!(
        Catalogue::parse("x = 1"),
        Err(CatalogueError::Form(_))
    ));
}

#[test]
fn uuids_are_plain_text() {
    assert!("GPU-8f6c1a2b-0000".parse::<GpuUuid>().is_ok());
    for bad in ["", "a b", "a/b", "ü", &"x".repeat(97)] {
        assert!(bad.parse::<GpuUuid>().is_err(), "{bad:?}");
    }
}
