//! Every route of the API in one place, the document made of them, and what answers elsewhere.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::web::{Data, ServiceConfig, get};
use actix_web::{App, FromRequest, HttpRequest, HttpResponse, ResponseError};
use domain::refusal::Code;
use serde::de::DeserializeOwned;
use utoipa::{IntoResponses, OpenApi};
use utoipa_actix_web::AppExt;
use utoipa_actix_web::service_config::ServiceConfig as DocumentedConfig;
use utoipa_swagger_ui::{Config as Viewer, SwaggerUi};
use web_openapi::problem::{FieldError, Problem};

mod finish;

use super::fault::Fault;
use super::{
    adjustment, agent, api_key, budget, credit, event, gpu, invoice, lease, ledger, machine, offer,
    payout, prove, quote, session, statement, usage, wallet,
};

/// What every operation may answer instead.
#[derive(Debug, IntoResponses)]
pub enum Problems {
    /// The request cannot be read.
    #[response(status = 400, content_type = "application/problem+json")]
    Malformed(#[to_schema] Problem),
    /// Credentials are missing or not valid.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(#[to_schema] Problem),
    /// The wallet cannot cover this.
    #[response(status = 402, content_type = "application/problem+json")]
    Unpaid(#[to_schema] Problem),
    /// Role or scope does not allow it.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// No such object, or not yours.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] Problem),
    /// It does not fit the present state.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// The object changed since it was read.
    #[response(status = 412, content_type = "application/problem+json")]
    Stale(#[to_schema] Problem),
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] Problem),
    /// The media type is not accepted.
    #[response(status = 415, content_type = "application/problem+json")]
    Unsupported(#[to_schema] Problem),
    /// A field is unknown, missing or not valid, or a rule refuses it.
    #[response(status = 422, content_type = "application/problem+json")]
    Unprocessable(#[to_schema] Problem),
    /// Too many requests.
    #[response(status = 429, content_type = "application/problem+json")]
    Throttled(#[to_schema] Problem),
    /// A fault of the service.
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(#[to_schema] Problem),
    /// Try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "gpumarket",
        description = "A GPU marketplace that settles in ordinary money. Errors are problem documents (RFC 9457); \
        money is a decimal string with its currency; times are RFC 3339 in UTC."
    ),
    components(schemas(Problem, FieldError)),
    tags(
        (name = "auth", description = "Registration, log-in, and who one is."),
        (name = "api-keys", description = "Keys for programs."),
        (name = "gpu-models", description = "The catalogue of GPU models."),
        (name = "offers", description = "What providers ask, and the search over it."),
        (name = "quotes", description = "Firm prices."),
        (name = "leases", description = "Rented GPUs."),
        (name = "wallet", description = "A renter's money."),
        (name = "usage", description = "What was charged or earned, summed."),
        (name = "invoices", description = "Invoices and credit notes."),
        (name = "budgets", description = "Limits on what may be spent."),
        (name = "earnings", description = "A provider's money."),
        (name = "machines", description = "A provider's machines."),
        (name = "agent", description = "What the agent on a machine calls."),
        (name = "admin", description = "For the operator's people."),
    )
)]
struct Head;

/// Every documented route.
pub fn routes(config: &mut DocumentedConfig<'_>) {
    config
        .service(session::register)
        .service(session::login)
        .service(session::get_jwks)
        .service(session::get_me)
        .service(api_key::create_api_key)
        .service(api_key::list_api_keys)
        .service(api_key::revoke_api_key)
        .service(gpu::list_gpu_models)
        .service(gpu::get_gpu_model)
        .service(offer::search::search_offers)
        .service(offer::create_offer)
        .service(offer::list_offers)
        .service(offer::get_offer)
        .service(offer::change_offer)
        .service(offer::withdraw_offer)
        .service(quote::create_quote)
        .service(quote::get_quote)
        .service(lease::book_lease)
        .service(lease::list_leases)
        .service(lease::get_lease)
        .service(lease::act_on_lease)
        .service(lease::list_lease_events)
        .service(lease::read_lease_logs)
        .service(lease::get_lease_statement)
        .service(statement::get_earnings_statement)
        .service(wallet::get_wallet)
        .service(wallet::create_top_up)
        .service(wallet::list_transactions)
        .service(event::list_events)
        .service(ledger::list_ledger_days)
        .service(wallet::get_earnings)
        .service(usage::get_usage)
        .service(usage::get_usage_focus)
        .service(invoice::create_invoice)
        .service(invoice::list_invoices)
        .service(invoice::get_invoice)
        .service(invoice::get_invoice_pdf)
        .service(invoice::get_invoice_csv)
        .service(invoice::get_billing_profile)
        .service(invoice::change_billing_profile)
        .service(budget::create_budget)
        .service(budget::list_budgets)
        .service(budget::get_budget)
        .service(budget::change_budget)
        .service(budget::remove_budget)
        .service(machine::create_enrollment_token)
        .service(machine::list_machines)
        .service(machine::get_machine)
        .service(machine::act_on_machine)
        .service(agent::enroll_machine)
        .service(agent::connect_agent)
        .service(prove::prove_ledger)
        .service(invoice::create_credit_note)
        .service(payout::create_payout)
        .service(payout::list_payouts)
        .service(payout::get_payout)
        .service(credit::grant_credit)
        .service(credit::list_credits)
        .service(adjustment::propose_adjustment)
        .service(adjustment::list_adjustments)
        .service(adjustment::get_adjustment)
        .service(adjustment::decide_adjustment);
}

/// The document, made from the real handlers.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let (_, mut document) = App::new()
        .into_utoipa_app()
        .openapi(Head::openapi())
        .configure(routes)
        .split_for_parts();
    finish::finish(&mut document);
    document
}

/// Mounts `/openapi.json`, `/docs` and `/docs/errors`.
pub fn mount(config: &mut ServiceConfig) {
    let document = openapi();
    config
        .app_data(Data::new(document.clone()))
        .route("/openapi.json", get().to(the_document))
        .route("/docs", get().to(to_docs))
        .route("/docs/errors", get().to(errors))
        .service(
            SwaggerUi::new("/docs/{_:.*}")
                .url("/docs/openapi.json", document)
                // The viewer's default asks a host outside to validate the document.
                .config(Viewer::new(["/docs/openapi.json"]).validator_url("none")),
        );
}

async fn the_document(document: Data<utoipa::openapi::OpenApi>) -> HttpResponse {
    HttpResponse::Ok().json(document.get_ref())
}

async fn to_docs() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header(("location", "/docs/"))
        .finish()
}

/// The list of codes, as a page.
async fn errors() -> HttpResponse {
    let row = |code: &Code| {
        let status = web_openapi::problem::status_of(*code);
        format!(
            "<tr id=\"{0}\"><td><code>{0}</code><td>{status}<td>{1}</tr>",
            code.as_str(),
            code.title()
        )
    };
    let rows: String = Code::ALL.iter().map(row).collect();
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Problem codes</title>\
         <h1>Problem codes</h1><table><tr><th>code<th>status<th>meaning</tr>{rows}</table></html>"
    );
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .body(page)
}

/// Routes beside the document.
const PLAIN: [&str; 6] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/docs",
    "/docs/errors",
    "/openapi.json",
];

/// The methods of the route that a request names, as in `Allow`; `None` if there is no such route.
pub fn methods_of(request: &HttpRequest) -> Option<String> {
    if PLAIN.contains(&request.path()) {
        return Some("GET, HEAD, OPTIONS".to_owned());
    }
    let document = request.app_data::<Data<utoipa::openapi::OpenApi>>()?;
    let matches = |template: &str| {
        let (a, b) = (template.split('/'), request.path().split('/'));
        a.clone().count() == b.clone().count()
            && a.zip(b)
                .all(|(t, p)| t == p || (t.starts_with('{') && !p.is_empty()))
    };
    // An exact path first: `/v1/machines/enrollment-tokens` is no machine.
    let paths = &document.paths.paths;
    let found = paths
        .get(request.path())
        .or_else(|| paths.iter().find(|(t, _)| matches(t)).map(|(_, item)| item))?;
    let methods = [
        ("GET, HEAD", found.get.is_some()),
        ("POST", found.post.is_some()),
        ("PATCH", found.patch.is_some()),
        ("DELETE", found.delete.is_some()),
        ("OPTIONS", true),
    ];
    let allowed: Vec<&str> = methods
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect();
    Some(allowed.join(", "))
}

/// 404, or 405 if the path has other methods.
pub async fn no_route(request: HttpRequest) -> HttpResponse {
    match methods_of(&request) {
        Some(methods) => Fault::not_allowed(methods).error_response(),
        None => Fault::new(Code::NoRoute, "There is no such route. See /docs.").error_response(),
    }
}

/// Ids in paths and bodies.
#[derive(Clone, Copy, Debug)]
pub struct Id;

impl Id {
    /// The id in a path: a malformed one cannot exist.
    pub fn parse<T: FromStr>(text: &str) -> Result<T, Fault> {
        text.parse().map_err(|_bad| {
            Fault::new(
                Code::NotFound,
                "There is no such object: the id is not one of this kind.",
            )
        })
    }

    /// The id in a field of a body.
    pub fn field<T: FromStr>(pointer: &str, text: &str) -> Result<T, Fault>
    where
        T::Err: std::fmt::Display,
    {
        text.parse()
            .map_err(|e: T::Err| Fault::field(pointer, "malformed", e.to_string()))
    }
}

/// A query string, read strictly: 422 and not 400 when a parameter is unknown or wrong.
#[derive(Clone, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned + 'static> FromRequest for Query<T> {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(read(request.query_string()).map(Self))
    }
}

/// Reads a query string; a fault names the parameter.
pub(super) fn read<T: DeserializeOwned>(query: &str) -> Result<T, Fault> {
    use actix_web::web::Query;
    let error = match Query::<T>::from_query(query) {
        Ok(value) => return Ok(value.into_inner()),
        Err(error) => error.to_string(),
    };
    let text = error.trim_start_matches("Query deserialize error: ");
    let code = if text.starts_with("unknown field") {
        "unknown_field"
    } else {
        "malformed"
    };
    // The parser does not always name the parameter; every one is optional, so the one that fails
    // alone is at fault.
    let alone = |pair: &&str| Query::<T>::from_query(pair).is_err();
    let pair = query.split('&').find(alone).unwrap_or("?");
    let name = pair.split('=').next().unwrap_or("?");
    Err(Fault::field(&format!("query/{name}"), code, text))
}

#[cfg(test)]
mod tests;
