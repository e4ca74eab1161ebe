//! Usage: what was charged or earned, summed or as a FOCUS file.

use billing::focus::{Account, FocusFault, Side, render};
use billing::month::Period;
use billing::rating::Due;
use domain::access::Scope;
use domain::clock::Span;
use domain::id::LeaseId;
use domain::money::Currency;
use domain::refusal::Code;
use store::db::Ro;
use store::usage::{GroupBy, UsageRow};
use uuid::Uuid;

use crate::context::{Caller, Cx};
use crate::error::Error;

/// The longest period of one answer.
const LONGEST: Span = Span::from_hours(24 * 400);
/// Most rows of a FOCUS file.
const FOCUS_ROWS: u32 = 200_000;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct UsageAsk {
    /// Cost or earnings.
    pub side: Side,
    /// Charges whose range ends in it.
    pub period: Period,
}

/// Sums.
#[derive(Clone, Debug)]
pub struct UsageView {
    /// At most as many as wanted.
    pub rows: Vec<UsageRow>,
    /// Are there more?
    pub has_more: bool,
    /// Of everything, also of what is not in `rows`.
    pub total: Due,
}

fn check(period: Period) -> Result<(), Error> {
    if period.from >= period.to {
        let told = "Must be after `from`.";
        return Err(Error::field("query/to", "out_of_range", told));
    }
    if period.to.since(period.from) > LONGEST {
        let told = "A period is at most 400 days.";
        return Err(Error::field("query/to", "out_of_range", told));
    }
    Ok(())
}

/// The public text of a row's key.
pub fn key_text(group: GroupBy, key: &str) -> String {
    match group {
        GroupBy::Lease => Uuid::try_parse(key).map_or_else(
            |_never| key.to_owned(),
            |id| LeaseId::from_uuid(id).to_string(),
        ),
        GroupBy::Day => key.parse().map_or_else(
            |_never| key.to_owned(),
            |micros| billing::month::date_text(domain::clock::Timestamp::from_micros(micros)),
        ),
        GroupBy::Label | GroupBy::Resource => key.to_owned(),
    }
}

/// Sums of the caller's charges by `group`.
pub async fn sums(
    cx: &Cx,
    caller: &Caller,
    ask: UsageAsk,
    (group, most): (GroupBy, u32),
) -> Result<UsageView, Error> {
    caller.may(Scope::MoneyRead, None)?;
    check(ask.period)?;
    let who = (caller.actor.party, ask.side);
    let one_more = most.saturating_add(1);
    let (mut rows, parts) = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let rows = store::usage::sums(ro, who, (ask.period, group), one_more).await?;
            let all = (ask.period, GroupBy::Resource);
            let parts = store::usage::sums(ro, who, all, u32::MAX).await?;
            Ok((rows, parts))
        })
        .await?;
    let mut total = Due::default();
    for part in parts {
        total = total.plus(part.due)?;
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let has_more = rows.len() > most;
    rows.truncate(most);
    Ok(UsageView {
        rows,
        has_more,
        total,
    })
}

/// The caller's charges as a FOCUS 1.2 file.
pub async fn focus(cx: &Cx, caller: &Caller, ask: UsageAsk) -> Result<Vec<u8>, Error> {
    caller.may(Scope::MoneyRead, None)?;
    check(ask.period)?;
    let party = caller.actor.party;
    let (days, profile) = cx
        .db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let one_more = FOCUS_ROWS.saturating_add(1);
            let days = store::usage::days(ro, (party, ask.side), ask.period, one_more).await?;
            Ok((days, store::billing_profile::get(ro, party).await?))
        })
        .await?;
    if days.len() > usize::try_from(FOCUS_ROWS).unwrap_or(usize::MAX) {
        return Err(Error::refused(
            Code::AmountOutOfRange,
            format!("The file would have more than {FOCUS_ROWS} rows."),
        )
        .suggesting("Ask for a shorter period."));
    }
    let account = Account {
        party,
        name: profile.map(|p| p.identity.name).unwrap_or_default(),
        operator: cx.policy.operator.name.clone(),
        currency: Currency::Usd,
        side: ask.side,
    };
    render(&account, &days).map_err(|fault| match fault {
        FocusFault::Money(cause) => cause.into(),
        FocusFault::Sheet(_) => Error::Fault("a table could not be written"),
    })
}
