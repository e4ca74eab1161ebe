//! Bytes on disk for each row, heap and each index apart.

use tokio_postgres::Client;

use crate::cluster::Cluster;
use crate::report::Report;

/// Charges that are written for the figure.
const CHARGES: i64 = 100_000;

/// As a lease of a day writes them: six an hour for each meter, ids in time order.
const WRITE: &str = "
INSERT INTO charge (id, meter_id, lease_id, hold_id, seq, from_at, to_at, billable_ms, ledger, gross, fee, tax,
                    wallet, earned, fee_account, tax_account, at, batch, segment)
SELECT (lpad(to_hex(n), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid,
       md5('m' || m)::uuid, md5('l' || m / 2)::uuid, md5('h' || m / 2)::uuid, seq,
       to_timestamp(1790000000 + seq * 600), to_timestamp(1790000600 + seq * 600), 600000, 840,
       350000, 17500, 0, 1 + m % 1000, 2000 + m % 100, 1, 2, to_timestamp(1790000600 + seq * 600), n / 1000, 1
  FROM (SELECT row_number() OVER (ORDER BY seq, m) AS n, seq, m
          FROM generate_series(1, 144) seq, generate_series(1, $1::bigint / 144) m) all_of_them";

const SIZES: &str = "
SELECT i.relname::text, pg_relation_size(i.oid) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
 WHERE x.indrelid = $1::text::regclass
UNION ALL SELECT 'heap', pg_relation_size($1::text::regclass)";

async fn tell(sql: &Client, table: &str, report: &mut Report) {
    let count: i64 = sql
        .query_one(&format!("SELECT count(*) FROM {table}"), &[])
        .await
        .unwrap()
        .get(0);
    let mut total = 0.0;
    for row in sql.query(SIZES, &[&table]).await.unwrap() {
        let (part, bytes): (String, i64) = (row.get(0), row.get(1));
        let each =
            f64::from(u32::try_from(bytes).unwrap()) / f64::from(u32::try_from(count).unwrap());
        total += each;
        report.figure(format!("disk of a {table}: {part}"), each, "bytes");
    }
    report.figure(format!("disk of a {table}: all"), total, "bytes");
}

/// Of the transfers that were just written.
pub async fn of_transfers(sql: &Client, report: &mut Report) {
    tell(sql, "transfer", report).await;
}

/// Of charges.
pub async fn measure(cluster: &Cluster, report: &mut Report) {
    println!("  disk: writing {CHARGES} charges");
    let (_, sql) = cluster.market("charges").await;
    // Leases, holds and meters behind them are not what is measured.
    sql.batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    sql.execute(WRITE, &[&CHARGES]).await.unwrap();
    tell(&sql, "charge", report).await;
}
