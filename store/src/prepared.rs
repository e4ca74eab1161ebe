//! Statements in SQL whose plan the connection keeps.
//!
//! diesel prepares a statement of raw SQL again each time, since its text might differ with its
//! values. Ours are constants, so each is prepared once for a connection: a round trip less.

use diesel::RunQueryDsl;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::Untyped;

/// A statement whose text is always the same, with its values.
pub(crate) struct Prepared<Q>(Q);

/// Wraps a statement of a constant text.
pub(crate) const fn prepared<Q>(query: Q) -> Prepared<Q> {
    Prepared(query)
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<Q> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, _backend: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}

impl<Q> QueryId for Prepared<Q> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q> Query for Prepared<Q> {
    type SqlType = Untyped;
}

impl<Q, C> RunQueryDsl<C> for Prepared<Q> {}
