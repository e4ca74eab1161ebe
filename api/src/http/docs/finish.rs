//! What the macros leave open in the document: descriptions, one problem schema by reference,
//! and the credential's scheme.

use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr, Response};
use web_openapi::problem::MEDIA_TYPE;

/// Completes the document.
pub(super) fn finish(document: &mut OpenApi) {
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description =
        Some("An access token from POST /v1/auth/login, or an API key (`gm_live_…`).".to_owned());
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
        ];
        operations.into_iter().flatten().for_each(complete);
    }
}

fn complete(operation: &mut Operation) {
    for (status, reply) in &mut operation.responses.responses {
        if let RefOr::T(reply) = reply {
            describe(status, reply);
        }
    }
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            explain(parameter);
        }
    }
}

fn describe(status: &str, reply: &mut Response) {
    if reply.description.is_empty() {
        let text = match status {
            "201" => "It was made.",
            "101" => "The connection is a WebSocket now.",
            _ => "As asked.",
        };
        text.clone_into(&mut reply.description);
    }
    // Inlined in each of some 450 replies it would be most of the document.
    if let Some(RefOr::T(content)) = reply.content.get_mut(MEDIA_TYPE) {
        content.schema = Some(RefOr::Ref(Ref::from_schema_name("Problem")));
    }
}

fn explain(parameter: &mut Parameter) {
    let text = match parameter.name.as_str() {
        "Idempotency-Key" => {
            "1 to 200 printable characters of your choice: the same request with the same key is \
             done once and answered the same again."
        }
        "If-Match" => "The `ETag` that was read: refuse (412) if the object has changed since.",
        "id" => "The object's id.",
        "name" => "Slug or alias.",
        _ => return,
    };
    parameter.description.get_or_insert_with(|| text.to_owned());
}
