//! What the command reads, and what it says of what it cannot read.

use std::fs;
use std::path::PathBuf;

use super::*;

struct Files(PathBuf);

impl Files {
    fn create(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("gpumarket-replay-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\nb,8000,1024,2,T4\na,8000,1024,1,G2\n";
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1,1,500,\np1,1000,1,2,1000,T4|A10\np2,1000,1,0,0,\n";

#[test]
fn seeds_are_numbers_lists_and_ranges() {
    assert_eq!(seeds("42").unwrap().0, [42]);
    assert_eq!(seeds("1..3,7").unwrap().0, [1, 2, 3, 7]);
    for bad in ["", "x", "3..1", "1..99999999"] {
        assert!(seeds(bad).is_err(), "{bad}");
    }
}

#[test]
fn nodes_are_in_the_order_of_their_names_and_models_are_told_apart() {
    let files = Files::create("good");
    let trace = Trace::read(&files.write("n.csv", NODES), &files.write("p.csv", PODS)).unwrap();
    assert_eq!(
        (trace.node_name(0), trace.node_name(1)),
        ("a".to_owned(), "b".to_owned())
    );
    assert_eq!(trace.capacity_milli(), 3_000);
    let fits = |node: usize, pod: usize| trace.nodes[node].fits(&trace.pods[pod]);
    assert!(fits(0, 0) && fits(1, 0) && fits(0, 2) && fits(1, 2));
    assert!(!fits(0, 1) && fits(1, 1));
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let files = Files::create("bad");
    let nodes = files.write("n.csv", NODES);
    let read = |pods: &str| Trace::read(&nodes, &files.write("p.csv", pods)).unwrap_err();
    let head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    for (row, said) in [
        ("p,1,1,2,500\n", "p.csv:2: 2 GPUs of 500 thousandths"),
        ("p,1,1,1,0\n", "p.csv:2: 1 GPUs of 0"),
        ("p,1,1,1,1001\n", "p.csv:2: 1 GPUs of 1001"),
        ("p,1,1,17,1000\n", "p.csv:2: 17 GPUs"),
        ("p,1,1,1,1000\np,x,1,1,1000\n", "line: 3"),
        ("p,-1,1,1,1000\n", "line: 2"),
        ("", "there are no rows"),
    ] {
        let fault = read(&format!("{head}{row}"));
        assert!(fault.contains(said), "{row}: {fault}");
    }
    let missing = Trace::read(&files.0.join("none.csv"), &nodes).unwrap_err();
    assert!(missing.contains("none.csv"), "{missing}");
    let order = files.write("order", "0\n3\n");
    assert!(
        trace::order(&order, 3)
            .unwrap_err()
            .contains("order:2: there are only 3")
    );
    assert!(
        trace::order(&files.write("order", "0\nx\n"), 3)
            .unwrap_err()
            .contains("order:2")
    );
    for bad in ["0\n0\n", "0\n", "1\n2\n", "0\n4294967296\n"] {
        assert!(
            trace::ranks(&files.write("ranks", bad), 2).is_err(),
            "{bad}"
        );
    }
    assert_eq!(
        trace::ranks(&files.write("ranks", "1\n0\n"), 2).unwrap(),
        [1, 0]
    );
}
