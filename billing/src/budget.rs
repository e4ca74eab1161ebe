//! Budgets: a limit on what a party, a member, a label or a lease may cost; alert, then stop.

use domain::clock::Timestamp;
use domain::id::{LeaseId, UserId};
use domain::money::Micros;

use crate::month::Month;

/// Whose cost counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    /// The whole party's.
    Party,
    /// Of the leases that a user booked, by key or by hand.
    Member(UserId),
    /// Of the leases with this label.
    Label(String),
    /// Of one lease.
    Lease(LeaseId),
}

/// Over which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetPeriod {
    /// Each calendar month in UTC anew.
    Month,
    /// For ever.
    Total,
}

/// What happens at 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetAction {
    /// Somebody is told.
    Alert,
    /// Running leases are stopped (disks stay), and bookings and resumes are refused.
    Stop,
}

/// What a budget allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetTerms {
    /// Whose cost counts.
    pub scope: BudgetScope,
    /// Over which time.
    pub period: BudgetPeriod,
    /// The most, tax included.
    pub limit: Micros,
    /// Percentages of the limit at which somebody is told, rising.
    pub alerts: Vec<u16>,
    /// What happens at 100 %.
    pub action: BudgetAction,
}

/// A lease as budgets see it.
#[derive(Clone, Copy, Debug)]
pub struct Spender<'a> {
    /// The lease; `None`: one that is only asked for.
    pub lease: Option<LeaseId>,
    /// Who booked it.
    pub member: Option<UserId>,
    /// Its label.
    pub label: Option<&'a str>,
}

impl BudgetScope {
    /// The kind, on the wire and in the database.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Party => "party",
            Self::Member(_) => "member",
            Self::Label(_) => "label",
            Self::Lease(_) => "lease",
        }
    }

    /// Does a lease count?
    pub fn covers(&self, spender: Spender<'_>) -> bool {
        match self {
            Self::Party => true,
            Self::Member(user) => spender.member == Some(*user),
            Self::Label(label) => spender.label == Some(label.as_str()),
            Self::Lease(id) => spender.lease == Some(*id),
        }
    }
}

impl BudgetPeriod {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Total => "total",
        }
    }

    /// The period of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Month, Self::Total]
            .into_iter()
            .find(|p| p.as_str() == text)
    }

    /// Since when cost counts, at `now`.
    pub fn start(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Month => Month::of(now).period().from,
            Self::Total => Timestamp::from_micros(0),
        }
    }
}

impl BudgetAction {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Stop => "stop",
        }
    }

    /// The action of a name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Alert, Self::Stop]
            .into_iter()
            .find(|a| a.as_str() == text)
    }
}

impl BudgetTerms {
    /// Has `spent` reached `percent` of the limit?
    pub fn reached(&self, spent: Micros, percent: u16) -> bool {
        let have = i128::from(spent.get()).saturating_mul(100);
        have >= i128::from(self.limit.get()).saturating_mul(i128::from(percent))
    }

    /// The alerts that `spent` has reached, and always the one at 100 %.
    pub fn due_alerts(&self, spent: Micros) -> Vec<u16> {
        let mut due: Vec<u16> = self
            .alerts
            .iter()
            .copied()
            .chain([100])
            .filter(|percent| self.reached(spent, *percent))
            .collect();
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Must leases stop, and bookings be refused?
    pub fn forbids(&self, spent: Micros) -> bool {
        self.action == BudgetAction::Stop && self.reached(spent, 100)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn terms(action: BudgetAction) -> BudgetTerms {
        BudgetTerms {
            scope: BudgetScope::Party,
            period: BudgetPeriod::Month,
            limit: Micros::new(1_000_001),
            alerts: vec![50, 80],
            action,
        }
    }

    #[test]
    fn alerts_come_exactly_when_their_share_is_reached() {
        let terms = terms(BudgetAction::Stop);
        assert_eq!(terms.due_alerts(Micros::new(500_000)), Vec::<u16>::new());
        assert_eq!(terms.due_alerts(Micros::new(500_001)), vec![50]);
        assert_eq!(terms.due_alerts(Micros::new(1_000_000)), vec![50, 80]);
        assert_eq!(terms.due_alerts(Micros::new(1_000_001)), vec![50, 80, 100]);
        assert!(!terms.forbids(Micros::new(1_000_000)));
        assert!(terms.forbids(Micros::new(1_000_001)));
    }

    #[test]
    fn an_alerting_budget_forbids_nothing() {
        assert!(!terms(BudgetAction::Alert).forbids(Micros::new(i64::MAX)));
    }

    #[test]
    fn scopes_cover_what_they_name() {
        let user = UserId::from_uuid(Uuid::from_u128(1));
        let lease = LeaseId::from_uuid(Uuid::from_u128(2));
        let spender = Spender {
            lease: Some(lease),
            member: Some(user),
            label: Some("train"),
        };
        let nobody = Spender {
            lease: None,
            member: None,
            label: None,
        };
        for scope in [
            BudgetScope::Member(user),
            BudgetScope::Label("train".to_owned()),
            BudgetScope::Lease(lease),
        ] {
            assert!(scope.covers(spender) && !scope.covers(nobody), "{scope:?}");
        }
        assert!(BudgetScope::Party.covers(nobody));
    }

    #[test]
    fn a_monthly_budget_starts_anew_at_midnight_utc() {
        let turn = "2026-12".parse::<Month>().unwrap().period().from;
        let before = turn.minus(domain::clock::Span::from_micros(1));
        assert_eq!(BudgetPeriod::Month.start(turn), turn);
        assert!(BudgetPeriod::Month.start(before) < before);
    }
}
