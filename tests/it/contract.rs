//! The document that is committed is the one that the server gives.

use crate::house::root;

#[test]
fn the_committed_document_is_the_server_s() {
    let committed = std::fs::read_to_string(root().join("web-openapi/openapi.json")).unwrap();
    let now = api::openapi().to_pretty_json().unwrap();
    assert!(
        committed.trim() == now.trim(),
        "web-openapi/openapi.json is old: run `gpumarket-server openapi > web-openapi/openapi.json`"
    );
}

#[test]
fn every_operation_says_what_it_may_answer() {
    let document: serde_json::Value =
        serde_json::from_str(&api::openapi().to_json().unwrap()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let replies = operation["responses"].as_object().unwrap();
            assert!(
                replies.keys().any(|s| s.starts_with('2') || s == "101"),
                "{method} {path}"
            );
            for status in ["401", "404", "422", "429", "500", "503"] {
                assert!(
                    replies.contains_key(status),
                    "{method} {path} lacks {status}"
                );
            }
            assert!(
                operation["operationId"].is_string() && operation["tags"].is_array(),
                "{method} {path}"
            );
        }
    }
}
