//! The cursor of a search: where the part before ended, what the market knew when the first part was
//! made, and for which search. Opaque to clients; a forged one finds a strange part, nothing else.

use domain::clock::Timestamp;
use domain::id::OfferId;
use matching::book::Seen;
use matching::plan::After;
use matching::request::SORT_MAX;
use matching::score::Rank;
use store::book::KEPT;
use uuid::Uuid;
use web_openapi::offer::SearchOffers;

use crate::http::fault::Fault;

/// Where a search goes on.
#[derive(Debug)]
pub(super) struct Cursor {
    /// For the engine.
    pub(super) after: After,
    /// When the first part was made.
    begun: Timestamp,
}

/// The search without what may differ from part to part.
fn mark(search: &SearchOffers) -> Result<String, Fault> {
    let bare = SearchOffers {
        cursor: None,
        limit: None,
        facets: None,
        ..search.clone()
    };
    let text = serde_json::to_vec(&bare)
        .map_err(|_never| Fault::internal("a search cannot be rendered"))?;
    Ok(blake3::hash(&text).to_hex().chars().take(16).collect())
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join("_")
}

fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split('_')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok())
        .collect()
}

impl Cursor {
    /// The text of a cursor. The time of the first part stays that of the cursor before.
    pub(super) fn text(
        after: &After,
        search: &SearchOffers,
        as_of: Timestamp,
    ) -> Result<String, Fault> {
        let mark = mark(search)?;
        let before = search.cursor.as_deref().and_then(|text| parse(text, &mark));
        let begun = before.map_or(as_of, |cursor| cursor.begun);
        let rank = after.rank;
        Ok(format!(
            "s1{mark}.{}.{}.{}.{}.{}.{}.{}",
            begun.micros(),
            joined(&rank.keys),
            u8::from(rank.split),
            rank.free,
            after.offer.uuid().simple(),
            after.seen.end,
            joined(&after.seen.open),
        ))
    }

    /// Reads a cursor of this search.
    pub(super) fn read(text: &str, search: &SearchOffers, now: Timestamp) -> Result<Self, Fault> {
        let fault = |code, text: &str| Fault::field("/cursor", code, text);
        let cursor = parse(text, &mark(search)?).ok_or_else(|| {
            fault(
                "malformed",
                "Use `next_cursor` as it was given, with the rest of the search unchanged.",
            )
        })?;
        if now.since(cursor.begun) > KEPT {
            return Err(fault(
                "out_of_range",
                "The cursor is older than an hour: search again without it.",
            ));
        }
        Ok(cursor)
    }
}

fn parse(text: &str, mark: &str) -> Option<Cursor> {
    let rest = text.strip_prefix("s1")?.strip_prefix(mark)?;
    let rest = rest.strip_prefix('.')?;
    let parts: Vec<&str> = rest.split('.').collect();
    let [begun, keys, split, free, offer, end, open] = parts.try_into().ok()?;
    let keys: [i128; SORT_MAX] = numbers(keys)?.try_into().ok()?;
    let split = match split {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let mut open: Vec<u64> = numbers(open)?;
    open.sort_unstable();
    Some(Cursor {
        after: After {
            rank: Rank {
                keys,
                split,
                free: free.parse().ok()?,
            },
            offer: OfferId::from_uuid(Uuid::try_parse(offer).ok()?),
            seen: Seen {
                end: end.parse().ok()?,
                open,
            },
        },
        begun: Timestamp::from_micros(begun.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after() -> After {
        After {
            rank: Rank {
                keys: [-3, i128::MAX, 0, 7, 0],
                split: true,
                free: 5,
            },
            offer: OfferId::from_uuid(Uuid::from_u128(77)),
            seen: Seen {
                end: 900,
                open: vec![880, 890],
            },
        }
    }

    #[test]
    fn a_cursor_belongs_to_its_search_for_an_hour() {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let search = SearchOffers::default();
        let text = Cursor::text(&after(), &search, at(5)).unwrap();
        let read = Cursor::read(&text, &search, at(3_605)).unwrap();
        assert_eq!((read.after, read.begun), (after(), at(5)));
        // The limit may change, and time counts from the first part.
        let next = SearchOffers {
            limit: Some(7),
            cursor: Some(text.clone()),
            ..search.clone()
        };
        let second = Cursor::text(&after(), &next, at(3_000)).unwrap();
        assert_eq!(second, text);
        assert!(Cursor::read(&text, &next, at(3_606)).is_err());
        let other = SearchOffers {
            gpu_count: Some(2),
            ..search.clone()
        };
        assert!(Cursor::read(&text, &other, at(5)).is_err());
        let changed = text.replace(".1.5.", ".2.5.");
        for bad in [
            "",
            "s1",
            &text.to_uppercase(),
            &format!("{text}x"),
            &changed,
            &text.replace('.', ""),
        ] {
            assert!(Cursor::read(bad, &search, at(5)).is_err(), "{bad}");
        }
    }
}
