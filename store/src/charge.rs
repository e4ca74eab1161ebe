//! Charges: append-only, ranges apart by constraint.

use billing::account::AccountId;
use billing::charge::{Charge, ChargeAccounts, Settlement};
use billing::rating::Due;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use domain::id::{ChargeId, HoldId, LeaseId, MeterId, PartyId};
use domain::money::{Currency, Micros};
use uuid::Uuid;

use crate::convert::{currency, from_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::schema::charge;

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
