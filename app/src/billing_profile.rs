//! Who a party is on invoices, and with that, which tax its quotes have.

use domain::access::Scope;
use domain::refusal::Code;
use store::billing_profile::ProfileRecord;
use store::db::{Ro, Tx};

use crate::context::{Audited, Caller, Cx};
use crate::error::Error;

/// Most lines of an address, and characters of a line or name.
const ADDRESS_LINES: usize = 6;
const LINE_LENGTH: usize = 120;

/// What is to change; the outer `None`: stays as it is.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    /// Legal name.
    pub legal_name: Option<String>,
    /// Postal address, line by line.
    pub address: Option<Vec<String>>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<Option<String>>,
    /// VAT or other tax number.
    pub vat_id: Option<Option<String>>,
}

/// The caller's party as documents show it.
pub async fn get(cx: &Cx, caller: &Caller) -> Result<ProfileRecord, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| Ok(store::billing_profile::get(ro, party).await?))
        .await?
        .ok_or_else(|| Error::not_found("party"))
}

fn line(pointer: &str, text: &str) -> Result<String, Error> {
    let text = text.trim();
    let fits = (1..=LINE_LENGTH).contains(&text.chars().count());
    if !fits || text.contains(char::is_control) {
        let told = format!("Must be 1 to {LINE_LENGTH} printable characters.");
        return Err(Error::field(pointer, "malformed", told));
    }
    Ok(text.to_owned())
}

fn vat_id(text: &str) -> Result<String, Error> {
    let plain = text.trim().to_uppercase();
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b' ');
    if !(4..=32).contains(&plain.len()) || !plain.bytes().all(known) {
        let told = "Must be 4 to 32 letters, digits, blanks, `-`, `.` or `/`.";
        return Err(Error::field("/vat_id", "malformed", told));
    }
    Ok(plain)
}

fn merge(before: &ProfileRecord, change: ProfileChange) -> Result<ProfileRecord, Error> {
    let mut after = before.clone();
    let identity = &mut after.identity;
    if let Some(name) = change.legal_name {
        identity.name = line("/legal_name", &name)?;
    }
    if let Some(address) = change.address {
        if address.len() > ADDRESS_LINES {
            let told = format!("At most {ADDRESS_LINES} lines.");
            return Err(Error::field("/address", "out_of_range", told));
        }
        let lines = address.iter().map(|text| line("/address", text));
        identity.address = lines.collect::<Result<_, _>>()?;
    }
    if let Some(country) = change.country {
        if country
            .as_ref()
            .is_some_and(|c| !billing::tax_rule::is_country(c))
        {
            let told = "Must be two capital letters (ISO 3166-1).";
            return Err(Error::field("/country", "malformed", told));
        }
        identity.country = country;
    }
    if let Some(id) = change.vat_id {
        identity.vat_id = id.as_deref().map(vat_id).transpose()?;
    }
    Ok(after)
}

/// Changes it. Quotes from now on have the tax of what it says then; issued documents stay.
pub async fn change(
    cx: &Cx,
    caller: &Caller,
    change: ProfileChange,
    if_version: Option<i64>,
) -> Result<ProfileRecord, Error> {
    caller.may(Scope::MoneyWrite, None)?;
    let (now, party, change) = (cx.now(), caller.actor.party, &change);
    cx.db
        .write::<_, Error, _>(async |tx: &mut Tx| {
            store::invoice::lock_party(tx, party).await?;
            let before = store::billing_profile::get(tx, party)
                .await?
                .ok_or_else(|| Error::not_found("party"))?;
            if if_version.is_some_and(|v| v != before.version) {
                return Err(Error::refused(
                    Code::StaleVersion,
                    format!("The profile is at version {} now.", before.version),
                ));
            }
            let mut after = merge(&before, change.clone())?;
            if after == before {
                return Ok(before);
            }
            after.version = before.version.saturating_add(1);
            after.updated_at = now;
            store::billing_profile::save(tx, &after).await?;
            let what = Audited {
                action: "billing_profile.change",
                object: party.to_string(),
                reason: "by request",
            };
            store::audit::insert(tx, &cx.audit(caller, now, what)).await?;
            Ok(after)
        })
        .await
}
