//! Do the statement of a lease and the earnings of its provider meet?

use std::path::Path;

use billing::statement::{Document, MeetFault, Met, meet};
use serde_json::{Value, json};

use crate::fault::{Fault, Local};
use crate::text::micros;

/// Two documents, and what comparing them found.
#[derive(Debug)]
pub(super) struct Meeting {
    lease: String,
    currency: String,
    earnings: String,
    found: Result<Met, &'static str>,
}

/// Compares every statement of a lease with every statement of earnings.
pub(super) fn all(documents: &[(&Path, Document)]) -> Result<Vec<Meeting>, Fault> {
    let mut meetings = Vec::new();
    for (bill_file, bill) in documents {
        let Document::Lease(bill) = bill else {
            continue;
        };
        for (file, earnings) in documents {
            let Document::Earnings(earnings) = earnings else {
                continue;
            };
            let found = match meet(bill, earnings) {
                Ok(met) => Ok(met),
                Err(MeetFault::Unrelated(why)) => Err(why),
                Err(fault) => return Err(differ((bill_file, file), &fault)),
            };
            let body = &bill.statement.body;
            meetings.push(Meeting {
                lease: body.lease.clone(),
                currency: body.currency.clone(),
                earnings: file.display().to_string(),
                found,
            });
        }
    }
    Ok(meetings)
}

fn differ((bill, earnings): (&Path, &Path), fault: &MeetFault) -> Fault {
    let (bill, earnings) = (bill.display(), earnings.display());
    Local::new(
        "statements_differ",
        format!("{bill} and {earnings} do not meet: {fault}."),
    )
    .suggest("the market signed both: keep both files and ask the operator".to_owned())
    .into()
}

impl Meeting {
    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        match &self.found {
            Ok(met) => json!({
                "lease": self.lease,
                "earnings": self.earnings,
                "meet": true,
                "charges": met.charges,
                "newer": met.newer,
                "total": met.total,
            }),
            Err(why) => json!({
                "lease": self.lease,
                "earnings": self.earnings,
                "meet": null,
                "not_compared": why,
            }),
        }
    }

    /// For people.
    pub(super) fn as_text(&self) -> String {
        let (lease, earnings) = (&self.lease, &self.earnings);
        match &self.found {
            Err(why) => format!("NOT COMPARED  {lease} and {earnings}: {why}"),
            Ok(met) if met.charges == 0 => {
                format!(
                    "MEET  {lease} has no charge in both statements; {earnings} is of another time"
                )
            }
            Ok(met) => {
                let amount = |of: i64| micros(of, &self.currency);
                format!(
                    "MEET  {lease} and {earnings}: {} charges are the same in both; \
                     renter pays {}, provider gets {}, fee {}, tax {}",
                    met.charges,
                    amount(met.total.renter_pays_micros),
                    amount(met.total.provider_gets_micros),
                    amount(met.total.fee_micros),
                    amount(met.total.tax_micros),
                )
            }
        }
    }
}
