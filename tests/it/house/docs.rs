//! Documents that repeat what the code knows are compared with it.

use domain::refusal::Code;

use super::{expect_none, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn every_code_is_documented() {
    let text = read("docs/errors.md");
    let faults: Vec<String> = Code::ALL
        .iter()
        .filter(|code| !text.contains(&format!("| `{}` |", code.as_str())))
        .map(|code| code.as_str().to_owned())
        .collect();
    expect_none("codes missing in docs/errors.md", &faults);
}

#[test]
fn the_readme_s_commands_exist() {
    let readme = read("README.md");
    let makefile = read("Makefile");
    let faults: Vec<String> = readme
        .split('`')
        .filter_map(|code| code.strip_prefix("make "))
        .filter_map(|rest| rest.split_whitespace().next())
        .filter(|target| {
            !makefile
                .lines()
                .any(|l| l.starts_with(&format!("{target}:")))
        })
        .map(str::to_owned)
        .collect();
    expect_none("README names make targets that do not exist", &faults);
}

/// The table state × what is billed, as `docs/lease-states.md` must show it.
pub fn lease_states() -> String {
    use domain::lease::LeaseState;
    let mut rows = String::from(
        "| state | compute billed | storage billed | holds GPUs | leaves at the latest after |\n|---|---|---|---|---|\n",
    );
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    for state in LeaseState::ALL {
        let billed = state.billed();
        let limit = state
            .limit()
            .map_or_else(|| "-".to_owned(), |span| format!("{span} without progress"));
        rows.push_str(&format!(
            "| `{state}` | {} | {} | {} | {limit} |\n",
            yes(billed.compute),
            yes(billed.storage),
            yes(state.holds_gpus()),
        ));
    }
    rows
}

#[test]
fn the_table_of_lease_states_is_the_code_s() {
    let text = read("docs/lease-states.md");
    let table = lease_states();
    assert!(
        text.contains(&table),
        "docs/lease-states.md must contain:\n{table}"
    );
}
