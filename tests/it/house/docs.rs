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
    use domain::lease::{GpuTime, LeaseState};
    let mut rows = String::from(
        "| state | GPU time billed | storage billed | holds GPUs | leaves at the latest after |\n|---|---|---|---|---|\n",
    );
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let if_kept = |now: &str, kept: &str| {
        if now == kept {
            now.to_owned()
        } else {
            format!("{now}; {kept} if kept")
        }
    };
    let time = |state: LeaseState, kept: bool| match state.billed(kept).compute {
        GpuTime::Free => "no",
        GpuTime::Kept => "price of keeping",
        GpuTime::Used => "price of use",
    };
    for state in LeaseState::ALL {
        let limit = state
            .limit()
            .map_or_else(|| "-".to_owned(), |span| format!("{span} without progress"));
        let storage = |kept| yes(state.billed(kept).storage);
        let holds = |kept| yes(state.holds_gpus(kept));
        rows.push_str(&format!(
            "| `{state}` | {} | {} | {} | {limit} |\n",
            if_kept(time(state, false), time(state, true)),
            if_kept(storage(false), storage(true)),
            if_kept(holds(false), holds(true)),
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
