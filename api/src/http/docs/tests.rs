//! The document: complete, whole numbers only, and every reference leads somewhere.

use serde_json::Value;

/// Every operation of the document, with its path and method.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| -> Vec<(String, String)> {
        let methods = item.as_object().unwrap().keys();
        methods.map(|m| (path.clone(), m.clone())).collect()
    };
    let all: Vec<(String, String)> = paths.iter().flat_map(of).collect();
    all.into_iter()
        .map(|(path, method)| {
            let operation = &document["paths"][&path][&method];
            (path, method, operation)
        })
        .collect()
}

fn numbers_are_whole(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("type").is_none_or(|t| t != "number")
                && fields.values().all(numbers_are_whole)
        }
        Value::Array(items) => items.iter().all(numbers_are_whole),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[test]
fn the_document_is_complete() {
    let document: Value = serde_json::from_str(&super::openapi().to_json().unwrap()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
    assert!(numbers_are_whole(&document));
    let mut names = std::collections::BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let what = format!("{method} {path}");
        for (status, reply) in operation["responses"].as_object().unwrap() {
            assert!(
                !reply["description"].as_str().unwrap_or("").is_empty(),
                "{what}: {status}"
            );
        }
        assert!(names.insert(operation["operationId"].to_string()), "{what}");
        assert!(
            operation["summary"].is_string() && operation["tags"][0].is_string(),
            "{what}"
        );
        for status in [
            "400", "401", "403", "404", "409", "422", "429", "500", "503",
        ] {
            let reply = &operation["responses"][status];
            assert!(reply["description"].is_string(), "{what}: {status}");
            let content = &reply["content"];
            assert!(
                content["application/problem+json"].is_object(),
                "{what}: {status}"
            );
        }
        let parameters = operation["parameters"].as_array();
        let has = |name: &str| parameters.is_some_and(|p| p.iter().any(|p| p["name"] == name));
        for part in path
            .split('/')
            .filter_map(|p| p.strip_prefix('{')?.strip_suffix('}'))
        {
            assert!(has(part), "{what}: {part}");
        }
        let repeatable = ["/v1/auth/login", "/v1/offers/search", "/v1/agent/enroll"];
        if method == "post" && !repeatable.contains(&path.as_str()) {
            assert!(has("Idempotency-Key"), "{what}");
        }
    }
    assert!(names.len() >= 35);
    // Every reference leads somewhere.
    let text = document.to_string();
    for name in text.split("#/components/schemas/").skip(1) {
        let name = name.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
}
