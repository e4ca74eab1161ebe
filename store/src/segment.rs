//! Price segments of meters: written once, when a price begins to hold.

use std::collections::BTreeMap;

use billing::segment::Segment;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types as sql;
use diesel_async::RunQueryDsl;
use domain::id::{LeaseId, MeterId};
use domain::money::{Micros, Period, Rate};
use uuid::Uuid;

use crate::bulk::bulk;
use crate::convert::{from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{meter, meter_segment};

#[derive(Queryable, Selectable)]
#[diesel(table_name = meter_segment)]
struct Row {
    meter_id: Uuid,
    no: i64,
    from_at: PgTimestamp,
    price: i64,
}

/// Segments by meter, in order; what is proven in them is not stored, since it is settled before.
pub type Segments = BTreeMap<MeterId, Vec<Segment>>;

fn by_meter(rows: Vec<(Row, i64)>) -> Result<Segments, Error> {
    let mut all = Segments::new();
    for (row, per_ms) in rows {
        let segment = Segment {
            no: row.no,
            from: from_pg(row.from_at),
            rate: Rate {
                price: Micros::new(row.price),
                per: parsed("period", Period::from_millis(per_ms))?,
            },
            unsettled_ms: 0,
        };
        let meter = MeterId::from_uuid(row.meter_id);
        all.entry(meter).or_default().push(segment);
    }
    Ok(all)
}

/// Writes new prices of meters. The meters are saved in the same transaction.
pub async fn insert(tx: &mut Tx, records: &[(MeterId, Segment)]) -> Result<(), Error> {
    bulk!(tx, "meter_segment", records, {
        meter_id: sql::Uuid = |(meter, _)| meter.uuid(),
        no: sql::BigInt = |(_, record)| record.no,
        from_at: sql::Timestamptz = |(_, record)| to_pg(record.from),
        price: sql::BigInt = |(_, record)| record.rate.price.get(),
    });
    Ok(())
}

/// All prices of the meters of these leases, from their first on.
pub async fn of_leases(ro: &mut Ro, leases: &[LeaseId]) -> Result<Segments, Error> {
    let ids: Vec<Uuid> = leases.iter().map(|l| l.uuid()).collect();
    let query = meter_segment::table
        .inner_join(meter::table)
        .filter(meter::lease_id.eq_any(ids))
        .order((meter_segment::meter_id, meter_segment::no))
        .select((Row::as_select(), meter::per_ms));
    by_meter(query.load(ro.sql()?).await?)
}

/// The prices of these meters that are still to come.
pub(crate) async fn ahead_of(ro: &mut Ro, meters: &[Uuid]) -> Result<Segments, Error> {
    let query = meter_segment::table
        .inner_join(meter::table)
        .filter(meter::id.eq_any(meters))
        .filter(meter_segment::no.gt(meter::segment))
        .order((meter_segment::meter_id, meter_segment::no))
        .select((Row::as_select(), meter::per_ms));
    by_meter(query.load(ro.sql()?).await?)
}
