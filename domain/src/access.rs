//! Who may do what: one pure decision table.
//!
//! Invariant: tenancy first. What belongs to another party is invisible (404), whatever the role;
//! what is visible but not allowed is forbidden (403).

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::audit::ActorRef;
use crate::id::{PartyId, UserId};
use crate::party::{Role, StaffRole};

/// What an API key is limited to. A person has all scopes of the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// See own leases and quotes.
    LeasesRead,
    /// Quote, book, stop, end.
    LeasesWrite,
    /// See wallet, transactions, earnings, statements.
    MoneyRead,
    /// Top up.
    MoneyWrite,
    /// See own machines and offers.
    MachinesRead,
    /// Enrol machines, list offers.
    MachinesWrite,
    /// See and make API keys.
    KeysWrite,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 7] = [
        Self::LeasesRead,
        Self::LeasesWrite,
        Self::MoneyRead,
        Self::MoneyWrite,
        Self::MachinesRead,
        Self::MachinesWrite,
        Self::KeysWrite,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeasesRead => "leases:read",
            Self::LeasesWrite => "leases:write",
            Self::MoneyRead => "money:read",
            Self::MoneyWrite => "money:write",
            Self::MachinesRead => "machines:read",
            Self::MachinesWrite => "machines:write",
            Self::KeysWrite => "keys:write",
        }
    }

    /// The scopes that a role has.
    pub const fn of(role: Role) -> &'static [Self] {
        match role {
            Role::Owner | Role::Admin => &Self::ALL,
            Role::Billing => &[Self::LeasesRead, Self::MoneyRead, Self::MoneyWrite],
            Role::Member => &[
                Self::LeasesRead,
                Self::LeasesWrite,
                Self::MoneyRead,
                Self::MachinesRead,
                Self::MachinesWrite,
            ],
            Role::Viewer => &[Self::LeasesRead, Self::MoneyRead, Self::MachinesRead],
        }
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

/// Who asks, and on behalf of which party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Who, for the audit log.
    pub who: ActorRef,
    /// The person; for a key, its maker.
    pub user: UserId,
    /// The party acted for.
    pub party: PartyId,
    /// The role in that party.
    pub role: Role,
    /// What the credential is limited to.
    pub scopes: BTreeSet<Scope>,
    /// The role for the operator, if any.
    pub staff: Option<StaffRole>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Say 403.
    Forbid,
    /// Say 404: the object does not exist for this actor.
    Hide,
}

/// May `actor` use `scope` on an object of `owner`?
///
/// `owner` is `None` for what belongs to nobody yet (creating in the actor's own party).
pub fn decide(actor: &Actor, scope: Scope, owner: Option<PartyId>) -> Decision {
    if owner.is_some_and(|party| party != actor.party) {
        return Decision::Hide;
    }
    let allowed = Scope::of(actor.role).contains(&scope) && actor.scopes.contains(&scope);
    if allowed {
        Decision::Allow
    } else {
        Decision::Forbid
    }
}

/// May `actor` read what only the operator's people see?
pub fn decide_staff(actor: &Actor, wanted: &[StaffRole]) -> Decision {
    match actor.staff {
        Some(role) if wanted.contains(&role) => Decision::Allow,
        Some(_) => Decision::Forbid,
        None => Decision::Hide,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn actor(role: Role, scopes: &[Scope]) -> Actor {
        Actor {
            who: ActorRef::User(UserId::from_uuid(Uuid::from_u128(1))),
            user: UserId::from_uuid(Uuid::from_u128(1)),
            party: PartyId::from_uuid(Uuid::from_u128(2)),
            role,
            scopes: scopes.iter().copied().collect(),
            staff: None,
        }
    }

    #[test]
    fn foreign_objects_are_hidden_from_every_role() {
        let other = PartyId::from_uuid(Uuid::from_u128(3));
        for role in Role::ALL {
            for scope in Scope::ALL {
                assert_eq!(
                    decide(&actor(role, &Scope::ALL), scope, Some(other)),
                    Decision::Hide
                );
            }
        }
    }

    #[test]
    fn a_key_never_has_more_than_its_role_and_its_scopes() {
        for role in Role::ALL {
            for scope in Scope::ALL {
                let full = decide(&actor(role, &Scope::ALL), scope, None) == Decision::Allow;
                assert_eq!(full, Scope::of(role).contains(&scope));
                assert_eq!(decide(&actor(role, &[]), scope, None), Decision::Forbid);
            }
        }
    }

    #[test]
    fn staff_pages_are_hidden_from_everybody_else() {
        let renter = actor(Role::Owner, &Scope::ALL);
        assert_eq!(decide_staff(&renter, &StaffRole::ALL), Decision::Hide);
        let auditor = Actor {
            staff: Some(StaffRole::Auditor),
            ..renter
        };
        assert_eq!(
            decide_staff(&auditor, &[StaffRole::Auditor]),
            Decision::Allow
        );
        assert_eq!(
            decide_staff(&auditor, &[StaffRole::Moderator]),
            Decision::Forbid
        );
    }

    #[test]
    fn names_round_trip() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
    }
}
