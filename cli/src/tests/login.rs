//! Log-in: the password's way, the stored key, the pinned statement key.

use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::documents::{KEY, me};
use super::stub::{Reply, Stub, environment, folder, gpumarket, refusal, reply};
use crate::Environment;

const PIN: &str = "aa11";

fn script(statement_key: &str) -> Vec<Reply> {
    let key = json!({
        "id": KEY, "name": "gpumarket on host", "prefix": "gm_live_3fk2", "scopes": [],
        "created_at": "2026-12-01T10:00:00Z",
    });
    let session = json!({
        "access_token": "jwt", "token_type": "Bearer", "expires_in_seconds": 900,
        "me": me(statement_key),
    });
    vec![
        reply(200, session.to_string()),
        reply(
            201,
            json!({"key": key, "secret": "gm_live_3fk2secret"}).to_string(),
        ),
        reply(200, me(statement_key).to_string()),
    ]
}

fn at_home(url: &str, config: &Path) -> Environment {
    let mut home = environment(Some(url));
    home.api_key = None;
    home.config = Some(config.to_path_buf());
    home.input = Box::new(Cursor::new(b"correct horse battery\n".to_vec()));
    home
}

fn config_path(name: &str) -> PathBuf {
    folder(name).join("deep").join("config.toml")
}

const LOGIN: [&str; 4] = ["login", "--email", "ada@example.org", "--password-stdin"];

#[tokio::test]
async fn a_login_stores_a_key_and_pins_the_statement_key() {
    let stub = Stub::play(script(PIN)).await;
    let path = config_path("login");
    let done = gpumarket(at_home(&stub.url, &path), &LOGIN).await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.out.contains("secret") && !done.err.contains("secret"));
    let asked = stub.asked();
    assert_eq!(
        stub.lines(),
        ["POST /v1/auth/login", "POST /v1/api-keys", "GET /v1/me"]
    );
    assert_eq!(asked[0].json()["password"], "correct horse battery");
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(asked[1].header("authorization"), Some("Bearer jwt"));
    assert_eq!(
        asked[2].header("authorization"),
        Some("Bearer gm_live_3fk2secret")
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("[profiles.default]") && text.contains(PIN),
        "{text}"
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "no draft stays behind");
}

#[tokio::test]
async fn another_statement_key_is_told_and_not_taken() {
    let path = config_path("pin");
    let stub = Stub::play([script(PIN), script("bb22"), script("bb22")].concat()).await;
    gpumarket(at_home(&stub.url, &path), &LOGIN).await;
    let done = gpumarket(at_home(&stub.url, &path), &LOGIN).await;
    assert_eq!(done.code, 0);
    assert!(done.err.contains("not the pinned one"), "{}", done.err);
    assert!(std::fs::read_to_string(&path).unwrap().contains(PIN));
    let trusting = [&LOGIN[..], &["--trust-new-key"]].concat();
    let done = gpumarket(at_home(&stub.url, &path), &trusting).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(std::fs::read_to_string(&path).unwrap().contains("bb22"));
}

#[tokio::test]
async fn what_is_not_ours_in_the_file_stays() {
    let path = folder("foreign").join("config.toml");
    let before = "editor = \"vi\"\n[profiles.lab]\nserver = \"http://lab\"\ncolour = 1\n";
    std::fs::write(&path, before).unwrap();
    let stub = Stub::play(script(PIN)).await;
    let arguments = [&["--profile", "new"], &LOGIN[..]].concat();
    let done = gpumarket(at_home(&stub.url, &path), &arguments).await;
    assert_eq!(done.code, 0, "{}", done.err);
    let text = std::fs::read_to_string(&path).unwrap();
    for kept in [
        "editor = \"vi\"",
        "[profiles.lab]",
        "colour = 1",
        "[profiles.new]",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[tokio::test]
async fn with_json_the_answer_is_who_one_is() {
    let stub = Stub::play(script(PIN)).await;
    let arguments = [&["--json"], &LOGIN[..]].concat();
    let done = gpumarket(at_home(&stub.url, &config_path("json")), &arguments).await;
    assert_eq!(done.json(), me(PIN));
}

#[tokio::test]
async fn a_password_is_never_an_argument_and_must_come_from_somewhere() {
    let path = config_path("password");
    let done = gpumarket(at_home("http://127.0.0.1:1", &path), &LOGIN[..3]).await;
    assert_eq!(done.code, 2);
    assert!(done.err.contains("--password-stdin or GPUMARKET_PASSWORD"));
    let stub = Stub::play(script(PIN)).await;
    let mut home = at_home(&stub.url, &path);
    home.password = Some("from a variable".to_owned());
    assert_eq!(gpumarket(home, &LOGIN[..3]).await.code, 0);
    assert_eq!(stub.asked()[0].json()["password"], "from a variable");
}

#[tokio::test]
async fn registering_logs_in() {
    let stub = Stub::play(script(PIN)).await;
    let path = config_path("register");
    let done = gpumarket(
        at_home(&stub.url, &path),
        &[
            "register",
            "--email",
            "a@b.c",
            "--name",
            "Ada & Co",
            "--password-stdin",
        ],
    )
    .await;
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(stub.asked()[0].json()["party_name"], "Ada & Co");
    assert!(path.exists());
}

#[tokio::test]
async fn a_logout_revokes_the_key_and_forgets_it() {
    let stub = Stub::play(
        [
            script(PIN),
            vec![reply(200, me(PIN).to_string()), reply(200, "{}")],
            script(PIN),
            vec![refusal(401, "unauthenticated", "Revoked already.")],
        ]
        .concat(),
    )
    .await;
    let path = config_path("logout");
    for requests in [5, 9] {
        gpumarket(at_home(&stub.url, &path), &LOGIN).await;
        let done = gpumarket(at_home(&stub.url, &path), &["logout"]).await;
        assert_eq!(done.code, 0, "{}", done.err);
        assert_eq!(stub.asked().len(), requests);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("gm_live") && text.contains(PIN), "{text}");
    }
    assert_eq!(stub.lines()[4], format!("DELETE /v1/api-keys/{KEY}"));
    let done = gpumarket(at_home(&stub.url, &path), &["logout"]).await;
    assert_eq!(done.code, 1);
}
