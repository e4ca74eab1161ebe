//! Exit codes, messages and signals.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};
use web_openapi::agent::Probe;

const PATIENCE: Duration = Duration::from_secs(30);

#[expect(
    clippy::disallowed_methods,
    reason = "where the test's engine is, is told by the environment"
)]
fn engine() -> String {
    std::env::var("GPUMARKET_TEST_ENGINE").unwrap_or_else(|_| {
        panic!("GPUMARKET_TEST_ENGINE is not set; run `make test`, which starts an engine")
    })
}

fn agent(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpumarket-agent"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn ended(arguments: &[&str]) -> Output {
    timeout(PATIENCE, agent(arguments).output())
        .await
        .unwrap()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("gm-binary-{}-{name}", std::process::id()));
    drop(std::fs::remove_dir_all(&path));
    path
}

/// Answers every request alike, and gives the bodies that it got.
async fn fake_http(status: &str, body: &str) -> (String, tokio::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = tokio::sync::mpsc::channel(8);
    let kind = "application/problem+json";
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4_096];
            let mut size = 0;
            while !String::from_utf8_lossy(&request[..size]).ends_with('}') {
                match stream.read(&mut request[size..]).await.unwrap() {
                    0 => break,
                    more => size += more,
                }
            }
            let text = String::from_utf8_lossy(&request[..size]).into_owned();
            stream.write_all(answer.as_bytes()).await.unwrap();
            if tell.send(text).await.is_err() {
                return;
            }
        }
    });
    (address, told)
}

/// Waits until the agent logs a line with this.
async fn logged(child: &mut Child, what: &str) {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let wait = async {
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(what) {
                return;
            }
            all.push(line);
        }
        panic!("ended without `{what}`: {all:#?}");
    };
    timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("never logged `{what}`"));
}

#[tokio::test]
async fn a_machine_without_driver_is_told_what_to_do() {
    let output = ended(&["probe"]).await;
    if output.status.success() {
        // There are GPUs here.
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = stderr(&output);
    assert!(
        text.contains("--simulate PROFILE") && text.contains("Install the driver"),
        "{text}"
    );
}

#[tokio::test]
async fn a_simulated_probe_is_json_and_says_so() {
    let (at, profile) = (engine(), "8xh100-sxm");
    let output = ended(&["probe", "--json", "--simulate", profile, "--engine", &at]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let probe: Probe = serde_json::from_slice(&output.stdout).unwrap();
    assert!(probe.simulated && probe.gpus.len() == 8);
    assert!(probe.engine.starts_with("Podman ") || probe.engine.starts_with("Docker "));
    let text = ended(&["probe", "--simulate", profile]).await;
    assert!(String::from_utf8_lossy(&text.stdout).contains("(SIMULATED)"));
}

#[tokio::test]
async fn a_machine_that_is_not_enrolled_does_not_run() {
    let (state, at) = (fresh("unknown"), engine());
    let state = state.to_str().unwrap();
    let run = [
        "run",
        "--state",
        state,
        "--simulate",
        "1xrtx-4090",
        "--engine",
        &at,
    ];
    let output = ended(&run).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("not enrolled"),
        "{}",
        stderr(&output)
    );
    std::fs::remove_dir_all(state).unwrap();
}

#[tokio::test]
async fn without_an_engine_no_token_is_spent() {
    let state = fresh("no-engine");
    let (server, mut told) = fake_http("201 Created", "{}").await;
    let output = ended(&[
        "join",
        "--server",
        &server,
        "--token",
        "enr_x",
        "--state",
        state.to_str().unwrap(),
        "--simulate",
        "1xrtx-4090",
        "--engine",
        "unix:///nowhere/engine.sock",
    ])
    .await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("/nowhere/engine.sock"),
        "{}",
        stderr(&output)
    );
    assert!(told.try_recv().is_err());
    std::fs::remove_dir_all(state).unwrap();
}

#[tokio::test]
async fn a_refused_token_is_explained_in_the_markets_words() {
    let (state, at) = (fresh("refused"), engine());
    let problem = r#"{"type":"/docs/errors#enrollment_spent","title":"t","status":409,"detail":"This token was used.","code":"enrollment_spent","request_id":"r","suggestion":"Make another one."}"#;
    let (server, mut told) = fake_http("409 Conflict", problem).await;
    let state = state.to_str().unwrap();
    let join = [
        "join", "--server", &server, "--token", "enr_x", "--state", state,
    ];
    let how = ["--simulate", "1xrtx-4090", "--engine", &at];
    let output = ended(&[&join[..], &how[..]].concat()).await;
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(
        text.contains("This token was used. Make another one."),
        "{text}"
    );
    let request = told.recv().await.unwrap();
    assert!(request.starts_with("POST /v1/agent/enroll ") && request.contains("enr_x"));
    assert!(told.try_recv().is_err(), "a refusal is not tried again");
    std::fs::remove_dir_all(state).unwrap();
}

#[tokio::test]
async fn it_enrols_once_locks_its_state_and_ends_on_a_signal_at_once() {
    let (state, at) = (fresh("joined"), engine());
    let made = r#"{"machine_id":"mch_made","machine_name":"n"}"#;
    let (server, mut told) = fake_http("201 Created", made).await;
    let state = state.to_str().unwrap();
    let join = [
        "join", "--server", &server, "--token", "enr_x", "--state", state,
    ];
    let how = ["--simulate", "1xrtx-4090", "--engine", &at];
    let all = [&join[..], &how[..]].concat();
    let mut child = agent(&all).spawn().unwrap();
    logged(&mut child, "dialling again").await;
    // A second agent on the same state.
    let second = ended(&all).await;
    assert_eq!(second.status.code(), Some(1));
    assert!(
        stderr(&second).contains("another agent uses"),
        "{}",
        stderr(&second)
    );

    let id = i32::try_from(child.id().unwrap()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    let asked = Instant::now();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );

    // The identity is there: no second enrolment, also without a token.
    let enrolled = told.recv().await.unwrap();
    assert!(enrolled.starts_with("POST /v1/agent/enroll "));
    let run = [&["run", "--state", state][..], &how[..]].concat();
    let mut child = agent(&run).spawn().unwrap();
    logged(&mut child, "dialling again").await;
    child.kill().await.unwrap();
    while let Ok(request) = told.try_recv() {
        assert!(!request.contains("/v1/agent/enroll"), "enrolled twice");
    }
    std::fs::remove_dir_all(state).unwrap();
}
