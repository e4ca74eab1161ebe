//! Wrong usage, problems as people see them, profiles.

use super::documents::{LEASE, OFFER, QUOTE};
use super::stub::{Stub, environment, folder, gpumarket, refusal, reply};

#[tokio::test]
async fn wrong_usage_is_2_in_both_forms() {
    for arguments in [
        vec!["fly"],
        vec![],
        vec!["offer"],
        vec!["show", "lse_nonsense"],
        vec!["show", OFFER],
        vec!["search", "--hours", "0.001"],
        vec!["top-up", "-5"],
        vec!["book", "--image", "i", "--offer", OFFER, "--max-price", "2"],
        vec!["book", "--image", "i", "--quote", QUOTE, "--count", "2"],
        vec!["book", "--image", "i", "--end-after", "soon"],
        vec!["offer", "set", OFFER],
        vec!["--server", "ftp://x", "wallet"],
        vec!["--server", "http://user:secret@x", "wallet"],
    ] {
        let done = gpumarket(environment(None), &arguments).await;
        assert_eq!(
            (done.code, done.out.as_str()),
            (2, ""),
            "{arguments:?}: {}",
            done.err
        );
        assert!(done.err.contains("error: "), "{arguments:?}: {}", done.err);
        let json = [&["--json"], arguments.as_slice()].concat();
        let done = gpumarket(environment(None), &json).await;
        assert_eq!((done.code, done.err.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(done.json()["error"]["code"], "usage");
        let detail = done.json()["error"]["detail"].to_string();
        assert!(
            !detail.contains("--help") && !detail.contains("Usage"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn help_and_version_are_answers() {
    for arguments in [vec!["--help"], vec!["--version"], vec!["book", "--help"]] {
        let done = gpumarket(environment(None), &arguments).await;
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(done.out.contains("gpumarket"));
    }
}

#[tokio::test]
async fn a_problem_is_told_with_fields_suggestion_and_request() {
    let problem = serde_json::json!({
        "type": "/docs/errors#invalid_field", "title": "A field", "status": 422,
        "detail": "One field is not valid.", "code": "invalid_field", "request_id": "rqs_9",
        "errors": [{"pointer": "/gpu_count", "code": "out_of_range", "detail": "at most 8"}],
        "suggestion": "Ask for 8.", "extension": [1, 2],
    });
    let stub = Stub::play(vec![
        reply(422, problem.to_string()),
        reply(422, problem.to_string()),
    ])
    .await;
    let done = gpumarket(environment(Some(&stub.url)), &["search"]).await;
    assert_eq!(done.code, 1);
    assert_eq!(
        done.err,
        "error: One field is not valid.\n  /gpu_count: at most 8\n  try: Ask for 8.\n  \
         invalid_field · request rqs_9\n"
    );
    let done = gpumarket(environment(Some(&stub.url)), &["search", "--json"]).await;
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    assert_eq!(done.json(), serde_json::json!({ "error": problem }));
}

#[tokio::test]
async fn what_mends_it_is_named() {
    for (status, code, command) in [
        (401, "unauthenticated", "gpumarket login"),
        (402, "insufficient_funds", "gpumarket top-up"),
    ] {
        let stub = Stub::play(vec![refusal(status, code, "No.")]).await;
        let done = gpumarket(environment(Some(&stub.url)), &["stop", LEASE]).await;
        assert!(done.err.contains(command), "{}", done.err);
    }
}

#[tokio::test]
async fn an_unknown_profile_is_an_error_that_lists_the_known_ones() {
    let path = folder("profiles").join("config.toml");
    std::fs::write(&path, "[profiles.lab]\nserver = \"http://127.0.0.1:1\"\n").unwrap();
    let mut environment = environment(None);
    environment.config = Some(path);
    let done = gpumarket(environment, &["--profile", "prod", "wallet"]).await;
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("No profile `prod`") && done.err.contains("it has: lab"),
        "{}",
        done.err
    );
}

#[tokio::test]
async fn a_broken_configuration_is_named() {
    let path = folder("broken").join("config.toml");
    std::fs::write(&path, "[profiles.default]\nserver = 5\n").unwrap();
    let mut environment = environment(None);
    environment.config = Some(path);
    let done = gpumarket(environment, &["wallet"]).await;
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("config.toml: profile `default`"),
        "{}",
        done.err
    );
}

#[tokio::test]
async fn a_key_is_never_shown_to_another_market() {
    let stub = Stub::play(vec![
        refusal(401, "unauthenticated", "No key."),
        refusal(401, "unauthenticated", "No key."),
    ])
    .await;
    let path = folder("markets").join("config.toml");
    let own = "[profiles.default]\nserver = \"http://127.0.0.1:1\"\napi_key = \"gm_live_own\"\n";
    std::fs::write(&path, own).unwrap();
    let here = || {
        let mut here = environment(None);
        here.api_key = None;
        here.config = Some(path.clone());
        here
    };
    gpumarket(here(), &["--server", &stub.url, "wallet"]).await;
    assert_eq!(stub.asked()[0].header("authorization"), None);
    std::fs::write(&path, own.replace("http://127.0.0.1:1", &stub.url)).unwrap();
    let slashed = format!("{}/", stub.url);
    let done = gpumarket(here(), &["--server", &slashed, "wallet"]).await;
    assert_eq!(
        stub.asked()[1].header("authorization"),
        Some("Bearer gm_live_own")
    );
    assert!(
        done.err.contains("warning: others can read"),
        "{}",
        done.err
    );
}
