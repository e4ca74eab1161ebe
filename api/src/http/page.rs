//! Pages: a limit and an opaque cursor.

use actix_web::HttpResponse;
use actix_web::http::header::LINK;
use serde::Serialize;
use store::page::Page;
use uuid::Uuid;
use web_openapi::page::{DEFAULT_LIMIT, MAX_LIMIT, PageQuery};

use super::fault::Fault;

/// Reads the page that is asked for.
pub fn page(list: &str, query: &PageQuery) -> Result<Page, Fault> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Fault::field(
            "query/limit",
            "out_of_range",
            format!("Must be 1 to {MAX_LIMIT}."),
        ));
    }
    let read = |text| decode(list, text);
    let after = query.cursor.as_deref().map(read).transpose()?;
    Ok(Page { limit, after })
}

/// The list that a cursor belongs to.
fn mark(list: &str) -> String {
    blake3::hash(list.as_bytes())
        .to_hex()
        .chars()
        .take(8)
        .collect()
}

/// The opaque text of a cursor.
pub fn encode(list: &str, id: Uuid) -> String {
    format!("c1{}{}", mark(list), id.simple())
}

fn decode(list: &str, text: &str) -> Result<Uuid, Fault> {
    text.strip_prefix("c1")
        .and_then(|rest| rest.strip_prefix(&mark(list)))
        .and_then(|body| Uuid::try_parse(body).ok())
        .ok_or_else(|| {
            Fault::field(
                "query/cursor",
                "malformed",
                "Use `next_cursor` of this list as it was given.",
            )
        })
}

/// A page as JSON, with a `Link` to the next one.
pub fn reply<T: Serialize>(
    body: &T,
    (path, query): (&str, &PageQuery),
    next: Option<&str>,
) -> HttpResponse {
    let mut reply = HttpResponse::Ok();
    if let Some(cursor) = next {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        let joint = if path.contains('?') { '&' } else { '?' };
        reply.insert_header((
            LINK,
            format!("<{path}{joint}limit={limit}&cursor={cursor}>; rel=\"next\""),
        ));
    }
    reply.json(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_others_are_refused() {
        let id = Uuid::from_u128(77);
        let query = |cursor: &str| PageQuery {
            limit: None,
            cursor: Some(cursor.to_owned()),
        };
        let cursor = encode("leases", id);
        assert_eq!(page("leases", &query(&cursor)).unwrap().after, Some(id));
        let other = encode("offers", id);
        for bad in [
            "",
            "c1",
            "c1zz",
            "77",
            &other,
            &cursor.to_uppercase(),
            &format!("{cursor}0"),
        ] {
            assert!(page("leases", &query(bad)).is_err(), "{bad}");
        }
        for limit in [0, 201] {
            assert!(
                page(
                    "leases",
                    &PageQuery {
                        limit: Some(limit),
                        cursor: None
                    }
                )
                .is_err()
            );
        }
    }
}
