//! Pages by id: stable while rows come in.

use uuid::Uuid;

/// Which page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows wanted, 1–200.
    pub limit: u32,
    /// The last id of the page before.
    pub after: Option<Uuid>,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Paged<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The last id, if there are more rows.
    pub next: Option<Uuid>,
}

impl Page {
    /// One row more than wanted, to see whether there are more.
    pub(crate) fn fetch(self) -> i64 {
        i64::from(self.limit).saturating_add(1)
    }

    /// Cuts the extra row off.
    pub(crate) fn cut<T>(self, mut rows: Vec<T>, id: impl Fn(&T) -> Uuid) -> Paged<T> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(id) } else { None };
        Paged { rows, next }
    }
}
