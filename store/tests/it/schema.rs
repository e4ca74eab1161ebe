//! `src/schema.rs` is what the database has, and migrations are what a build expects.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diesel::sql_types::{Bool, Text};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::gpu::Catalogue;
use store::error::Constraint;

use crate::database::Database;

#[derive(diesel::QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    relation: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Bool)]
    nullable: bool,
    #[diesel(sql_type = Bool)]
    key: bool,
}

const COLUMNS: &str = "
SELECT c.relname AS relation, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS kind,
       NOT a.attnotnull AS nullable, coalesce(a.attnum = ANY(p.conkey), false) AS key
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_constraint p ON p.conrelid = c.oid AND p.contype = 'p'
 WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
   AND c.relname <> '__diesel_schema_migrations'
 ORDER BY c.relname, a.attnum";

fn diesel_type(kind: &str) -> &str {
    match kind {
        "uuid" => "Uuid",
        "text" => "Text",
        "text[]" => "Array<Text>",
        "timestamp with time zone" => "Timestamptz",
        "bigint" => "BigInt",
        "integer" => "Integer",
        "smallint" => "SmallInt",
        "boolean" => "Bool",
        "bytea" => "Bytea",
        "json" => "Json",
        "jsonb" => "Jsonb",
        other => panic!("no diesel type for {other}"),
    }
}

/// The tables as `diesel::table!` writes them.
fn written(columns: &[Column]) -> String {
    let mut tables: BTreeMap<&str, Vec<&Column>> = BTreeMap::new();
    for column in columns {
        tables.entry(&column.relation).or_default().push(column);
    }
    let mut text = String::new();
    for (table, columns) in tables {
        let key: Vec<&str> = columns
            .iter()
            .filter(|c| c.key)
            .map(|c| c.name.as_str())
            .collect();
        write!(text, "{table} ({}) {{ ", key.join(", ")).unwrap();
        for column in columns {
            let kind = diesel_type(&column.kind);
            let kind = if column.nullable {
                format!("Nullable<{kind}>")
            } else {
                kind.to_owned()
            };
            write!(text, "{} -> {kind}, ", column.name).unwrap();
        }
        text.push_str("} ");
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_file_is_what_the_database_has() {
    let base = Database::fresh().await;
    let mut sql = AsyncPgConnection::establish(&base.url).await.unwrap();
    let columns: Vec<Column> = diesel::sql_query(COLUMNS).load(&mut sql).await.unwrap();
    let file = include_str!("../../src/schema.rs");
    let tables: Vec<String> = file
        .split("diesel::table! {")
        .skip(1)
        .map(|t| {
            let (body, _rest) = t.split_once("\n}\n").unwrap();
            body.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(tables.join(" "), written(&columns).trim());
}

#[derive(diesel::QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn names(base: &Database, query: &str) -> Vec<String> {
    let mut sql = AsyncPgConnection::establish(&base.url).await.unwrap();
    let rows: Vec<Name> = diesel::sql_query(query).load(&mut sql).await.unwrap();
    rows.into_iter().map(|r| r.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_named_constraint_is_in_the_database() {
    let base = Database::fresh().await;
    let all = names(
        &base,
        "SELECT conname::text AS name FROM pg_constraint UNION SELECT relname::text FROM pg_class WHERE relkind = 'i'",
    )
    .await;
    for (name, _meaning) in Constraint::NAMED {
        assert!(all.iter().any(|n| n == name), "{name} is not there");
    }
}

/// A foreign key without an index makes each delete and each join read the whole table.
#[tokio::test(flavor = "multi_thread")]
async fn every_foreign_key_has_an_index() {
    let base = Database::fresh().await;
    let bare = names(
        &base,
        "SELECT conrelid::regclass::text || '.' || conname AS name FROM pg_constraint f
          WHERE contype = 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i
            WHERE i.indrelid = f.conrelid AND (i.indkey::smallint[])[0:array_length(f.conkey, 1) - 1] @> f.conkey)",
    )
    .await;
    assert_eq!(bare, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn migrating_works_from_nothing_twice_and_from_two_processes_at_once() {
    let base = Database::bare().await;
    assert!(!base.db.migrated().await.unwrap());
    let catalogue = Catalogue::embedded().unwrap();
    let (a, b) = tokio::join!(base.db.migrate(&catalogue), base.db.migrate(&catalogue));
    let applied = a.unwrap().len() + b.unwrap().len();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    assert_eq!(applied, std::fs::read_dir(folder).unwrap().count());
    assert!(base.db.migrated().await.unwrap());
    assert_eq!(
        base.db.migrate(&catalogue).await.unwrap(),
        Vec::<String>::new()
    );
    base.db.ping().await.unwrap();
    let models = names(&base, "SELECT slug AS name FROM gpu_model").await;
    assert_eq!(models.len(), catalogue.models().len());
}

/// A start-up whose database takes few connections must not lock itself, and others, out.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_one_connection_migrates_or_leaves_no_lock_behind() {
    let base = Database::bare().await;
    let catalogue = Catalogue::embedded().unwrap();
    let small = store::Db::connect(&base.url, 1).unwrap();
    let first = small.migrate(&catalogue).await;
    let locks = names(
        &base,
        "SELECT objid::text AS name FROM pg_locks WHERE locktype = 'advisory'
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .await;
    assert_eq!(locks, Vec::<String>::new(), "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_down_leaves_nothing() {
    let base = Database::fresh().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");
    let mut steps: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|step| step.unwrap().path().join("down.sql"))
        .collect();
    steps.sort();
    for down in steps.iter().rev() {
        base.run(&[&std::fs::read_to_string(down).unwrap()]).await;
    }
    let left = names(
        &base,
        "SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
            AND relkind IN ('r', 'S', 'v') AND relname <> '__diesel_schema_migrations'",
    )
    .await;
    assert_eq!(left, Vec::<String>::new());
}
