//! Many rows in one statement: a column is one array. The text does not depend on their number, so
//! its plan is kept, and a value costs no parameter of its own.

/// Inserts `rows` into a table; each column with its SQL type and how its value is taken of a row.
macro_rules! bulk {
    ($tx:expr, $table:literal, $rows:expr, { $($column:ident: $sql:ty = $value:expr),+ $(,)? }) => {{
        let rows = $rows;
        let columns = [$(stringify!($column)),+];
        let places: Vec<String> = (1..=columns.len()).map(|n| format!("${n}")).collect();
        let query = diesel::sql_query(format!(
            "INSERT INTO {} ({}) SELECT * FROM unnest({})",
            $table,
            columns.join(", "),
            places.join(", "),
        ));
        $(let query = query.bind::<diesel::sql_types::Array<$sql>, _>($crate::bulk::column(rows, $value));)+
        diesel_async::RunQueryDsl::execute($crate::prepared::prepared(query), $tx.sql()?).await?
    }};
}

pub(crate) use bulk;

/// One value of each row.
pub(crate) fn column<R, V>(rows: &[R], value: impl Fn(&R) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
