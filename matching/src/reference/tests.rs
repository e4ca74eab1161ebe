//! Each known fault, on rows that stand so in a real list or differ from one by the fault alone.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use domain::gpu::Catalogue;
use proptest::prelude::*;

use super::*;

mod names;

const HEAD: usize = 12;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().unwrap());

/// Rows of a list, without quotes in fields.
fn rows(text: &str) -> Vec<ListRow> {
    let row = |(line, text): (usize, &str)| {
        let f: Vec<String> = text.split(',').map(str::to_owned).collect();
        assert_eq!(f.len(), HEAD, "{text}");
        let [
            cloud,
            instance_type,
            gpu,
            gpu_count,
            vram_mib_each,
            vcpus,
            memory_gib,
            price_usd_h,
            spot_usd_h,
            region,
            zone,
            commit,
        ] = f.try_into().unwrap();
        ListRow {
            line: u32::try_from(line).unwrap() + 2,
            cloud,
            instance_type,
            gpu,
            gpu_count,
            vram_mib_each,
            vcpus,
            memory_gib,
            price_usd_h,
            spot_usd_h,
            region,
            zone,
            commit,
        }
    };
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .enumerate()
        .map(row)
        .collect()
}

fn read_all(text: &str) -> PriceList {
    normalise(&CATALOGUE, &rows(text))
}

fn faults(list: &PriceList) -> Vec<(u32, Fault)> {
    list.notes.iter().map(|n| (n.line, n.fault)).collect()
}

/// The only row as (model, price of a GPU-hour), with its faults.
fn one(text: &str) -> (String, String, Vec<Fault>) {
    let list = read_all(text);
    assert_eq!(list.prices.len(), 1, "{list:?}");
    let price = &list.prices[0];
    let usd = price
        .gpu_hour()
        .map_or_else(|| "-".to_owned(), |p| p.to_string());
    (
        price.model.clone(),
        usd,
        list.notes.iter().map(|n| n.fault).collect(),
    )
}

#[test]
fn a_good_row_says_nothing() {
    let list = read_all(
        "nebius,gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,81920,128,1600,23.60,10.00,eu-north1,,0082b0435f",
    );
    assert_eq!(list.notes, []);
    let price = &list.prices[0];
    assert_eq!((price.model.as_str(), price.gpus), ("h100-sxm-80gb", 8));
    assert_eq!(price.hour, Some(Micros::new(23_600_000)));
    assert_eq!(price.gpu_hour(), Some(Micros::new(2_950_000)));
    assert_eq!(price.spot_gpu_hour(), Some(Micros::new(1_250_000)));
    assert_eq!(
        (price.vcpus, price.ram_mib, price.memory_mib),
        (Some(128), Some(1_638_400), Some(81_920))
    );
}

#[test]
fn memory_in_gb_is_put_right() {
    let (model, _, faults) =
        one("hyperbolic,1x-H100-75-722,H100,1,80,75,722,1.29,,default,,0082b0435f");
    assert_eq!(
        (model.as_str(), faults.as_slice()),
        ("h100-sxm-80gb", [Fault::MemoryUnit].as_slice())
    );
}

#[test]
fn memory_of_all_and_of_one_is_put_right() {
    let row =
        |mib: u32| format!("aws,p5.48xlarge,h100,8,{mib},192,2048.0,55.04,,us-east-1,,1d927085dd");
    for (mib, fault) in [(655_360, Fault::MemoryOfAll), (10_240, Fault::MemoryOfOne)] {
        let list = read_all(&row(mib));
        assert_eq!(faults(&list), [(2, fault)], "{mib}");
        assert_eq!(list.prices[0].memory_mib, Some(81_920));
    }
    // The name tells the size, so half of it is the memory of one over two.
    let two = read_all("vast,x,A100-80GB,2,40960,32,64.0,1.87,,US,,62ff0a987e");
    assert_eq!(faults(&two), [(2, Fault::MemoryOfOne)]);
    assert_eq!(read_all(&row(5_000)).notes[0].fault, Fault::MemoryUnclear);
}

#[test]
fn prices_multiplied_twice_or_never_are_put_right() {
    let single =
        "nebius,gpu-h100-sxm_1gpu-16vcpu-200gb,H100,1,81920,16,200,2.95,1.25,eu-north1,,0082b0435f";
    let eight = |price: &str, spot: &str| {
        let row = format!(
            "nebius,gpu-h100-sxm_8gpu-128vcpu-1600gb,H100,8,81920,128,1600,{price},{spot},eu-north1,,0082b0435f"
        );
        let list = read_all(&format!("{single}\n{row}"));
        let (price, spot) = (
            list.prices[1].hour.unwrap(),
            list.prices[1].spot_hour.unwrap(),
        );
        (price.to_string(), spot.to_string(), faults(&list))
    };
    let right = ("23.600000".to_owned(), "10.000000".to_owned());
    let (price, spot, none) = eight("23.60", "10.00");
    assert_eq!(
        ((price, spot), none.as_slice()),
        (right.clone(), [].as_slice())
    );
    let (price, spot, twice) = eight("188.80", "80.00");
    assert_eq!(
        ((price, spot), twice),
        (right.clone(), vec![(3, Fault::CountSquared)])
    );
    let (price, _, never) = eight("2.95", "2.00");
    assert_eq!((price, never), (right.0, vec![(3, Fault::PriceOfOne)]));
}

#[test]
fn zero_means_unknown() {
    let (_, usd, seen) =
        one("vast,1x-RTX_5090-32-65536,RTX5090,1,32607,32,64.0,0.44,0.00,South Korea,,62ff0a987e");
    assert_eq!(
        (usd.as_str(), seen.as_slice()),
        ("0.440000", [Fault::PriceUnknown].as_slice())
    );
    // Sold as interruptible only.
    let list = read_all("verda,2B200.60V,B200,2,184320,60,368,,3.423,FIN-03,,000c1d0bf2");
    assert_eq!(
        (list.prices[0].hour, list.prices[0].spot_gpu_hour()),
        (None, Some(Micros::new(1_711_500)))
    );
    let none = read_all("vast,1x-RTX_5090-32-65536,RTX5090,1,32607,32,64.0,0.00,,KR,,62ff0a987e");
    assert_eq!(
        faults(&none),
        [(2, Fault::PriceUnknown), (2, Fault::NoPrice)]
    );
}

#[test]
fn float_tails_are_cut() {
    let list = read_all(
        "hyperbolic,3x-H100-224-2165,H100,3,81559,224,2165,3.8700000000000001,,default,,0082b0435f",
    );
    assert_eq!(faults(&list), [(2, Fault::FloatTail)]);
    assert_eq!(list.prices[0].hour, Some(Micros::new(3_870_000)));
    // A whole count may have a point.
    assert_eq!(
        one("lambda,gpu_8x_v100_n,V100,8.0,16384,88.0,448.0,6.32,,me-west-1,,62ff0a987e").2,
        []
    );
}

#[test]
fn accelerators_alone_are_marked() {
    let list = read_all("gcp,,A100,1,40960,,,2.93391,1.4341,us-central1,us-central1-a,62ff0a987e");
    assert_eq!(faults(&list), [(2, Fault::AcceleratorOnly)]);
    assert!(list.prices[0].accelerator_only());
    let odd =
        read_all("gcp,,A100-80GB,1,81920,,,1.8462,1.964,us-central1,us-central1-a,62ff0a987e");
    assert_eq!(odd.prices[0].spot_hour, None);
    assert_eq!(odd.notes[1].fault, Fault::SpotAbovePrice);
}

#[test]
fn what_is_no_whole_gpu_is_left_out() {
    for (row, fault) in [
        (
            "aws,g6f.large,l4,0,2861,2,8.0,0.202,,us-east-1,,1",
            Fault::PartOfGpu,
        ),
        (
            "azure,Standard_NV6ads_A10_v5,A10,0.167,,6,55,0.454,0.08,eastus,,6",
            Fault::PartOfGpu,
        ),
        (
            "azure,Standard_NV4as_v4,MI25,1,,4,14,0.233,0.04,eastus,,6",
            Fault::PartOfGpu,
        ),
        (
            "gcp,,tpu-v4-1024,1,,,,1648.64,471.808,us-central2,us-central2-b,6",
            Fault::TpuSlice,
        ),
        (
            "vast,1x-H900-32-65536,H900,1,81559,32,64.0,1.80,,CA,,6",
            Fault::UnknownModel,
        ),
        (
            "nebius,x,H100,1,81920,16,200,2950,,eu-north1,,0",
            Fault::Implausible,
        ),
        (
            "nebius,x,H100,1,81920,16,200,0.000001,,eu-north1,,0",
            Fault::Implausible,
        ),
        (
            "nebius,x,H100,1,81920,16,200,-2.95,,eu-north1,,0",
            Fault::Malformed,
        ),
        (
            "nebius,x,H100,one,81920,16,200,2.95,,eu-north1,,0",
            Fault::Malformed,
        ),
        (
            "nebius,x,H100,65000,81920,16,200,2.95,,eu-north1,,0",
            Fault::Malformed,
        ),
        (
            "Nebius,x,H100,1,81920,16,200,2.95,,eu-north1,,0",
            Fault::Malformed,
        ),
        (
            "nebius,x,H100,1,81920,many,200,2.95,,eu-north1,,0",
            Fault::Malformed,
        ),
    ] {
        let list = read_all(row);
        assert_eq!(
            (list.prices.len(), faults(&list)),
            (0, vec![(2, fault)]),
            "{row}"
        );
    }
}

#[test]
fn the_same_thing_twice_counts_once() {
    let row = "lium,L40S_2x,L40S,2,46080,24,141,0.76,,US,,04a03aee12";
    let other = "lium,L40S_2x,L40S,2,46080,48,141,0.80,,US,,04a03aee12";
    let list = read_all(&format!("{row}\n{other}\n{row}"));
    assert_eq!(
        (list.prices.len(), faults(&list)),
        (2, vec![(4, Fault::Duplicate)])
    );
}

#[test]
fn faults_have_names_of_their_own() {
    let names: BTreeMap<&str, Fault> = Fault::ALL.iter().map(|f| (f.as_str(), *f)).collect();
    assert_eq!(names.len(), Fault::ALL.len());
}

proptest! {
    /// Whatever a row says: it is a price or has a rejecting note, never both, and nothing panics.
    #[test]
    fn every_row_is_accounted_for(
        cells in prop::collection::vec(("[A-Za-z0-9_.x -]{0,12}", "[0-9.]{0,6}", "[0-9]{0,7}", "[0-9.e-]{0,9}"), 0..20)
    ) {
        let rows: Vec<ListRow> = cells.into_iter().enumerate().map(|(line, (gpu, count, vram, price))| ListRow {
            line: u32::try_from(line).unwrap(),
            cloud: "c".to_owned(),
            instance_type: "i".to_owned(),
            gpu: if line % 2 == 0 { gpu } else { "H100".to_owned() },
            gpu_count: if line % 3 == 0 { count } else { "2".to_owned() },
            vram_mib_each: vram,
            price_usd_h: price,
            ..ListRow::default()
        }).collect();
        let list = normalise(&CATALOGUE, &rows);
        let rejected = list.notes.iter().filter(|n| n.fault.rejects()).count();
        prop_assert_eq!(list.prices.len() + rejected, rows.len());
        for price in &list.prices {
            prop_assert!(price.gpus >= 1);
            let least = price.gpu_hour().or(price.spot_gpu_hour()).unwrap();
            prop_assert!(least > Micros::ZERO);
        }
    }

    /// A list that is multiplied by the count once too often reads as the right one.
    #[test]
    fn squares_are_undone(one in 20_000i64..20_000_000, gpus in 2u16..=8) {
        let row = |gpus: u16, price: i64| ListRow {
            line: u32::from(gpus),
            cloud: "c".to_owned(),
            instance_type: format!("i{gpus}"),
            gpu: "H100".to_owned(),
            gpu_count: gpus.to_string(),
            price_usd_h: Micros::new(price).to_string(),
            ..ListRow::default()
        };
        let n = i64::from(gpus);
        for price in [one * n, one * n * n, one] {
            let list = normalise(&CATALOGUE, &[row(1, one), row(gpus, price)]);
            prop_assert_eq!(list.prices[1].hour, Some(Micros::new(one * n)));
        }
    }
}
