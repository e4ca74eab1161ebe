//! The openb trace of `tests/data/openb`: nodes and requests, as rows and as the pool takes them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use matching::pool::state::{Models, Shape, State};

/// A row of a CSV file by its columns.
pub type Row = BTreeMap<String, String>;

/// The folder.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/openb")
}

/// The rows of a CSV file, packed or not.
pub fn rows(path: &Path) -> Vec<Row> {
    let file = File::open(path).unwrap();
    let file: Box<dyn Read> = if path.extension().is_some_and(|e| e == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut reader = csv::Reader::from_reader(file);
    reader.deserialize().map(Result::unwrap).collect()
}

/// A number in a row.
pub fn number(row: &Row, column: &str) -> i64 {
    row[column].parse().unwrap()
}

fn small<N: TryFrom<i64, Error: std::fmt::Debug>>(row: &Row, column: &str) -> N {
    number(row, column).try_into().unwrap()
}

/// The nodes, empty, all of one model.
pub fn nodes() -> Vec<State> {
    rows(&data().join("nodes.csv.gz"))
        .iter()
        .map(|row| {
            let room = (small(row, "cpu_milli"), small(row, "memory_mib"));
            State::empty(room, small(row, "gpu"), 0)
        })
        .collect()
}

/// The requests of a list that names no models.
pub fn pods(trace: &str) -> Vec<Shape> {
    rows(&data().join(format!("pods/{trace}.csv.gz")))
        .iter()
        .map(|row| Shape {
            cpu_milli: small(row, "cpu_milli"),
            memory_mib: small(row, "memory_mib"),
            gpus: small(row, "num_gpu"),
            gpu_milli: small(row, "gpu_milli"),
            models: Models::ANY,
        })
        .collect()
}
