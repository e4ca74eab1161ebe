//! Budgets, what counts against them, and the alerts that were given.

use billing::budget::{BudgetAction, BudgetPeriod, BudgetScope, BudgetTerms};
use diesel::QueryableByName;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::clock::Timestamp;
use domain::id::{BudgetId, LeaseId, PartyId, UserId};
use domain::money::{Currency, Micros};
use serde_json::Value;
use uuid::Uuid;

use crate::convert::{currency, from_pg, parsed, to_pg};
use crate::db::{Ro, Tx};
use crate::error::Error;
use crate::page::{Page, Paged};
use crate::schema::{budget, budget_alert, lease, membership};

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRecord {
    /// Its id.
    pub id: BudgetId,
    /// Whose it is.
    pub party: PartyId,
    /// What it allows.
    pub terms: BudgetTerms,
    /// Of the limit.
    pub currency: Currency,
    /// Counts up with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// An alert that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertRecord {
    /// The threshold.
    pub percent: u16,
    /// The period's beginning.
    pub period_from: Timestamp,
    /// What was spent then.
    pub spent: Micros,
    /// When.
    pub at: Timestamp,
}

/// That 100 % were reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedRecord {
    /// Of the budget.
    pub version: i64,
    /// The period's beginning.
    pub period_from: Timestamp,
    /// What was spent then.
    pub spent: Micros,
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = budget, treat_none_as_null = true)]
struct Row {
    id: Uuid,
    party_id: Uuid,
    scope: String,
    member_id: Option<Uuid>,
    label: Option<String>,
    lease_id: Option<Uuid>,
    period: String,
    ledger: i32,
    amount: i64,
    alerts: Value,
    action: String,
    version: i64,
    created_at: PgTimestamp,
    updated_at: PgTimestamp,
}

/// The columns that name the subject: member, label, lease.
fn subject(scope: &BudgetScope) -> (Option<Uuid>, Option<String>, Option<Uuid>) {
    match scope {
        BudgetScope::Party => (None, None, None),
        BudgetScope::Member(user) => (Some(user.uuid()), None, None),
        BudgetScope::Label(label) => (None, Some(label.clone()), None),
        BudgetScope::Lease(id) => (None, None, Some(id.uuid())),
    }
}

impl Row {
    fn of(b: &BudgetRecord) -> Self {
        let (member_id, label, lease_id) = subject(&b.terms.scope);
        Self {
            id: b.id.uuid(),
            party_id: b.party.uuid(),
            scope: b.terms.scope.as_str().to_owned(),
            member_id,
            label,
            lease_id,
            period: b.terms.period.as_str().to_owned(),
            ledger: b.currency.ledger(),
            amount: b.terms.limit.get(),
            alerts: Value::from(b.terms.alerts.clone()),
            action: b.terms.action.as_str().to_owned(),
            version: b.version,
            created_at: to_pg(b.created_at),
            updated_at: to_pg(b.updated_at),
        }
    }

    fn record(self) -> Result<BudgetRecord, Error> {
        let scope = match (
            self.scope.as_str(),
            self.member_id,
            self.label,
            self.lease_id,
        ) {
            ("party", None, None, None) => Some(BudgetScope::Party),
            ("member", Some(user), None, None) => {
                Some(BudgetScope::Member(UserId::from_uuid(user)))
            }
            ("label", None, Some(label), None) => Some(BudgetScope::Label(label)),
            ("lease", None, None, Some(id)) => Some(BudgetScope::Lease(LeaseId::from_uuid(id))),
            _ => None,
        };
        Ok(BudgetRecord {
            id: BudgetId::from_uuid(self.id),
            party: PartyId::from_uuid(self.party_id),
            terms: BudgetTerms {
                scope: parsed("budget scope", scope)?,
                period: parsed("budget period", BudgetPeriod::parse(&self.period))?,
                limit: Micros::new(self.amount),
                alerts: parsed("budget alerts", serde_json::from_value(self.alerts).ok())?,
                action: parsed("budget action", BudgetAction::parse(&self.action))?,
            },
            currency: currency(self.ledger)?,
            version: self.version,
            created_at: from_pg(self.created_at),
            updated_at: from_pg(self.updated_at),
        })
    }
}

/// Inserts a budget.
pub async fn insert(tx: &mut Tx, record: &BudgetRecord) -> Result<(), Error> {
    diesel::insert_into(budget::table)
        .values(Row::of(record))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Saves a budget as it is.
pub async fn save(tx: &mut Tx, record: &BudgetRecord) -> Result<(), Error> {
    diesel::update(budget::table.find(record.id.uuid()))
        .set(Row::of(record))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// Takes a budget out of force; its alerts stay on record.
pub async fn remove(tx: &mut Tx, id: BudgetId, now: Timestamp) -> Result<(), Error> {
    diesel::update(budget::table.find(id.uuid()))
        .set(budget::removed_at.eq(to_pg(now)))
        .execute(tx.sql()?)
        .await?;
    Ok(())
}

/// One budget of the party that is in force.
pub async fn get(ro: &mut Ro, of: PartyId, id: BudgetId) -> Result<Option<BudgetRecord>, Error> {
    let query = budget::table
        .filter(budget::id.eq(id.uuid()).and(budget::party_id.eq(of.uuid())))
        .filter(budget::removed_at.is_null())
        .select(Row::as_select());
    let row: Option<Row> = query.first(ro.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// Locks and gives one budget that is in force.
pub async fn get_for_update(tx: &mut Tx, id: BudgetId) -> Result<Option<BudgetRecord>, Error> {
    let query = budget::table
        .filter(budget::id.eq(id.uuid()))
        .filter(budget::removed_at.is_null())
        .select(Row::as_select())
        .for_update();
    let row: Option<Row> = query.first(tx.sql()?).await.optional()?;
    row.map(Row::record).transpose()
}

/// The party's budgets in force, newest first.
pub async fn list(ro: &mut Ro, of: PartyId, page: Page) -> Result<Paged<BudgetRecord>, Error> {
    let mut query = budget::table
        .filter(budget::party_id.eq(of.uuid()))
        .filter(budget::removed_at.is_null())
        .order(budget::id.desc())
        .limit(page.fetch())
        .select(Row::as_select())
        .into_boxed();
    if let Some(after) = page.after {
        query = query.filter(budget::id.lt(after));
    }
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    let records = rows.into_iter().map(Row::record);
    Ok(
        page.cut(records.collect::<Result<_, _>>()?, |b: &BudgetRecord| {
            b.id.uuid()
        }),
    )
}

/// The budgets of these parties that can stop leases, each with its alerts of 100 %, of whichever
/// version and period.
pub async fn stopping(
    ro: &mut Ro,
    of: &[PartyId],
) -> Result<Vec<(BudgetRecord, Vec<ReachedRecord>)>, Error> {
    let parties: Vec<Uuid> = of.iter().map(|p| p.uuid()).collect();
    let query = budget::table
        .filter(budget::party_id.eq_any(parties))
        .filter(budget::removed_at.is_null())
        .filter(budget::action.eq(BudgetAction::Stop.as_str()))
        .order(budget::id)
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = rows.iter().map(|r| r.id).collect();
    let reached: Vec<(Uuid, i64, PgTimestamp, i64)> = budget_alert::table
        .filter(budget_alert::budget_id.eq_any(ids))
        .filter(budget_alert::percent.eq(100))
        .select((
            budget_alert::budget_id,
            budget_alert::version,
            budget_alert::period_from,
            budget_alert::spent,
        ))
        .load(ro.sql()?)
        .await?;
    rows.into_iter()
        .map(|row| {
            let of_it = reached.iter().filter(|(id, ..)| *id == row.id);
            let of_it = of_it.map(|(_id, version, from, spent)| ReachedRecord {
                version: *version,
                period_from: from_pg(*from),
                spent: Micros::new(*spent),
            });
            let of_it = of_it.collect();
            Ok((row.record()?, of_it))
        })
        .collect()
}

/// How many budgets the party has in force.
pub async fn count(ro: &mut Ro, of: PartyId) -> Result<i64, Error> {
    Ok(budget::table
        .filter(budget::party_id.eq(of.uuid()))
        .filter(budget::removed_at.is_null())
        .count()
        .get_result(ro.sql()?)
        .await?)
}

/// Budgets in force of parties that have a live lease: nobody else's spending can grow.
pub async fn watched(ro: &mut Ro) -> Result<Vec<BudgetRecord>, Error> {
    let live = diesel::dsl::exists(
        lease::table
            .filter(lease::party_id.eq(budget::party_id))
            .filter(lease::state.ne_all(["ended", "failed"])),
    );
    let query = budget::table
        .filter(budget::removed_at.is_null())
        .filter(live)
        .order(budget::id)
        .select(Row::as_select());
    let rows: Vec<Row> = query.load(ro.sql()?).await?;
    rows.into_iter().map(Row::record).collect()
}

/// Which leases of the party `$1` count: scope `$2`, member `$3`, label `$4`, lease `$5`.
const COUNTS: &str = "l.party_id = $1 AND CASE $2
    WHEN 'party' THEN true
    WHEN 'member' THEN l.booked_by = $3
    WHEN 'label' THEN l.label = $4
    ELSE l.id = $5 END";

#[derive(QueryableByName)]
struct Sum {
    #[diesel(sql_type = BigInt)]
    sum: i64,
}

#[derive(QueryableByName)]
struct Live {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

/// What the leases that count were charged, tax included, in ranges that end after `since`.
pub async fn charged(ro: &mut Ro, of: &BudgetRecord, since: Timestamp) -> Result<Micros, Error> {
    let (member, label, lease) = subject(&of.terms.scope);
    let query = format!(
        "SELECT coalesce(sum(c.gross + c.tax), 0)::bigint AS sum
           FROM lease l JOIN charge c ON c.lease_id = l.id WHERE {COUNTS} AND c.to_at > $6"
    );
    let found: Sum = diesel::sql_query(query)
        .bind::<SqlUuid, _>(of.party.uuid())
        .bind::<Text, _>(of.terms.scope.as_str())
        .bind::<Nullable<SqlUuid>, _>(member)
        .bind::<Nullable<Text>, _>(label)
        .bind::<Nullable<SqlUuid>, _>(lease)
        .bind::<Timestamptz, _>(to_pg(since))
        .get_result(ro.sql()?)
        .await?;
    Ok(Micros::new(found.sum))
}

/// The live leases that count.
pub async fn live_leases(ro: &mut Ro, of: &BudgetRecord) -> Result<Vec<LeaseId>, Error> {
    let (member, label, lease) = subject(&of.terms.scope);
    let query = format!(
        "SELECT l.id FROM lease l WHERE {COUNTS} AND l.state NOT IN ('ended', 'failed') ORDER BY l.id"
    );
    let rows: Vec<Live> = diesel::sql_query(query)
        .bind::<SqlUuid, _>(of.party.uuid())
        .bind::<Text, _>(of.terms.scope.as_str())
        .bind::<Nullable<SqlUuid>, _>(member)
        .bind::<Nullable<Text>, _>(label)
        .bind::<Nullable<SqlUuid>, _>(lease)
        .load(ro.sql()?)
        .await?;
    Ok(rows.into_iter().map(|l| LeaseId::from_uuid(l.id)).collect())
}

/// Records an alert; `false` if it was given before.
pub async fn insert_alert(
    tx: &mut Tx,
    of: &BudgetRecord,
    alert: AlertRecord,
) -> Result<bool, Error> {
    let done = diesel::insert_into(budget_alert::table)
        .values((
            budget_alert::budget_id.eq(of.id.uuid()),
            budget_alert::version.eq(of.version),
            budget_alert::period_from.eq(to_pg(alert.period_from)),
            budget_alert::percent.eq(i32::from(alert.percent)),
            budget_alert::spent.eq(alert.spent.get()),
            budget_alert::amount.eq(of.terms.limit.get()),
            budget_alert::at.eq(to_pg(alert.at)),
        ))
        .on_conflict_do_nothing()
        .execute(tx.sql()?)
        .await?;
    Ok(done == 1)
}

/// The alerts that were given in the period that began at `period_from`, at the present version.
pub async fn alerts(
    ro: &mut Ro,
    of: &BudgetRecord,
    period_from: Timestamp,
) -> Result<Vec<AlertRecord>, Error> {
    let rows: Vec<(i32, i64, PgTimestamp)> = budget_alert::table
        .filter(budget_alert::budget_id.eq(of.id.uuid()))
        .filter(budget_alert::version.eq(of.version))
        .filter(budget_alert::period_from.eq(to_pg(period_from)))
        .order(budget_alert::percent)
        .select((budget_alert::percent, budget_alert::spent, budget_alert::at))
        .load(ro.sql()?)
        .await?;
    let record = |(percent, spent, at): (i32, i64, PgTimestamp)| {
        Ok(AlertRecord {
            percent: parsed("percent", u16::try_from(percent).ok())?,
            period_from,
            spent: Micros::new(spent),
            at: from_pg(at),
        })
    };
    rows.into_iter().map(record).collect()
}

/// Is the user a member of the party?
pub async fn is_member(ro: &mut Ro, of: PartyId, user: UserId) -> Result<bool, Error> {
    let found: Option<Uuid> = membership::table
        .find((user.uuid(), of.uuid()))
        .select(membership::user_id)
        .first(ro.sql()?)
        .await
        .optional()?;
    Ok(found.is_some())
}
