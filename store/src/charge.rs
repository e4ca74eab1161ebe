//! Charges: append-only, ranges apart by constraint.

use billing::account::AccountId;
use billing::charge::{Charge, ChargeAccounts, Settlement};
use billing::rating::Due;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{ChargeId, HoldId, LeaseId, MeterId, PartyId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::{charge, lease};

#[derive(Queryable, Selectable)]
#[diesel(table_name = charge)]
struct Row {
    id: Uuid,
    meter_id: Uuid,
    lease_id: Uuid,
    hold_id: Uuid,
    seq: i64,
    segment: i64,
    from_at: PgTimestamp,
    to_at: PgTimestamp,
    billable_ms: i64,
    gross: i64,
    fee: i64,
    tax: i64,
    wallet: i64,
    earned: i64,
    fee_account: i64,
    tax_account: i64,
    at: PgTimestamp,
}

impl Row {
    fn record(self) -> Charge {
        let due = Due {
            gross: Micros::new(self.gross),
            fee: Micros::new(self.fee),
            tax: Micros::new(self.tax),
        };
        Charge {
            id: ChargeId::from_uuid(self.id),
            settlement: Settlement {
                meter: MeterId::from_uuid(self.meter_id),
                lease: LeaseId::from_uuid(self.lease_id),
                seq: self.seq,
                segment: self.segment,
                from: from_pg(self.from_at),
                to: from_pg(self.to_at),
                billable_ms: self.billable_ms,
                due,
            },
            hold: HoldId::from_uuid(self.hold_id),
            accounts: ChargeAccounts {
                wallet: AccountId(self.wallet),
                earned: AccountId(self.earned),
                fee: AccountId(self.fee_account),
                tax: AccountId(self.tax_account),
            },
            at: from_pg(self.at),
        }
    }
}

/// Books a charge: it is written at the end of the transaction.
pub fn insert(tx: &mut Tx, record: &Charge, currency: Currency) {
    tx.journal().charges.push((*record, currency));
}

/// The charges of a lease, by meter and number.
pub async fn of_lease(ro: &mut Ro, lease: LeaseId) -> Result<Vec<Charge>, Error> {
    let query = charge::table
        .filter(charge::lease_id.eq(lease.uuid()))
        .order((charge::meter_id, charge::seq))
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    Ok(rows.into_iter().map(Row::record).collect())
}

/// The charges of the batches after the first number up to the second.
pub(crate) async fn of_batches(
    ro: &mut Ro,
    (after, up_to): (i64, i64),
) -> Result<Vec<(i64, Charge, Currency)>, Error> {
    let query = charge::table
        .filter(charge::batch.gt(after).and(charge::batch.le(up_to)))
        .select((
            charge::batch.assume_not_null(),
            charge::ledger,
            Row::as_select(),
        ));
    let rows: Vec<(i64, i32, Row)> = query.load(ro.sql()?).await?;
    rows.into_iter()
        .map(|(batch, ledger, row)| Ok((batch, row.record(), currency(ledger)?)))
        .collect()
}

/// Which charges of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Earned {
    /// The provider.
    pub provider: PartyId,
    /// Booked from here on.
    pub from: Timestamp,
    /// And before this.
    pub to: Timestamp,
    /// Only this lease.
    pub lease: Option<LeaseId>,
    /// In this currency.
    pub currency: Currency,
}

/// The charges that were booked for a provider's machines, by lease, meter and number; `most` at the
/// most.
pub async fn earned(ro: &mut Ro, which: Earned, most: i64) -> Result<Vec<Charge>, Error> {
    let mut own = lease::table
        .filter(lease::provider_id.eq(which.provider.uuid()))
        .select(lease::id)
        .into_boxed();
    if let Some(only) = which.lease {
        own = own.filter(lease::id.eq(only.uuid()));
    }
    let query = charge::table
        .filter(charge::lease_id.eq_any(own))
        .filter(charge::ledger.eq(which.currency.ledger()))
        .filter(
            charge::at
                .ge(to_pg(which.from))
                .and(charge::at.lt(to_pg(which.to))),
        )
        .order((charge::lease_id, charge::meter_id, charge::seq))
        .limit(most)
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    Ok(rows.into_iter().map(Row::record).collect())
}

/// What meters had charged before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningRecord {
    /// The meter.
    pub meter: MeterId,
    /// Charges.
    pub seq: i64,
    /// Their gross.
    pub gross: Micros,
    /// What they left of a micro-unit, times the period in ms.
    pub rem_num: i64,
}

/// What these meters had charged when `before` came; nothing for a meter without charges.
pub async fn openings(
    ro: &mut Ro,
    meters: &[MeterId],
    before: Timestamp,
) -> Result<Vec<OpeningRecord>, Error> {
    use diesel::sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid};
    #[derive(QueryableByName)]
    struct Opening {
        #[diesel(sql_type = SqlUuid)]
        meter_id: Uuid,
        #[diesel(sql_type = BigInt)]
        seq: i64,
        #[diesel(sql_type = BigInt)]
        gross: i64,
        #[diesel(sql_type = BigInt)]
        rem_num: i64,
    }
    let ids: Vec<Uuid> = meters.iter().map(|m| m.uuid()).collect();
    let rows: Vec<Opening> = diesel::sql_query(
        "SELECT c.meter_id, max(c.seq) AS seq, sum(c.gross)::bigint AS gross, \
                (sum(s.price::numeric * c.billable_ms) % max(m.per_ms))::bigint AS rem_num \
           FROM charge c JOIN meter m ON m.id = c.meter_id \
           JOIN meter_segment s ON s.meter_id = c.meter_id AND s.no = c.segment \
          WHERE c.meter_id = ANY($1) AND c.at < $2 GROUP BY c.meter_id",
    )
    .bind::<Array<SqlUuid>, _>(ids)
    .bind::<Timestamptz, _>(to_pg(before))
    .load(ro.sql()?)
    .await?;
    let opening = |row: Opening| OpeningRecord {
        meter: MeterId::from_uuid(row.meter_id),
        seq: row.seq,
        gross: Micros::new(row.gross),
        rem_num: row.rem_num,
    };
    Ok(rows.into_iter().map(opening).collect())
}

/// Gross and fee of everything ever charged for the provider's machines.
pub async fn sums_of_provider(ro: &mut Ro, party: PartyId) -> Result<Due, Error> {
    use crate::schema::account;
    use diesel::sql_types::BigInt;
    #[derive(QueryableByName)]
    struct Sums {
        #[diesel(sql_type = BigInt)]
        gross: i64,
        #[diesel(sql_type = BigInt)]
        fee: i64,
        #[diesel(sql_type = BigInt)]
        tax: i64,
    }
    let accounts: Vec<i64> = account::table
        .filter(account::owner.eq(party.uuid()))
        .select(account::id)
        .load(ro.sql()?)
        .await?;
    let sums: Sums = diesel::sql_query(
        "SELECT coalesce(sum(gross), 0)::bigint AS gross, coalesce(sum(fee), 0)::bigint AS fee, \
         coalesce(sum(tax), 0)::bigint AS tax FROM charge WHERE earned = ANY($1)",
    )
    .bind::<diesel::sql_types::Array<BigInt>, _>(accounts)
    .get_result(ro.sql()?)
    .await?;
    Ok(Due {
        gross: Micros::new(sums.gross),
        fee: Micros::new(sums.fee),
        tax: Micros::new(sums.tax),
    })
}
