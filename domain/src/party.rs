//! Parties and the people in them.

use std::str::FromStr;

use thiserror::Error;

/// What a member may do in a party, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Everything, members and closing included.
    Owner,
    /// Everything but closing the party.
    Admin,
    /// Money only.
    Billing,
    /// Rents and lists.
    Member,
    /// Looks.
    Viewer,
}

/// What a person may do for the operator of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StaffRole {
    /// Runs the market.
    Operator,
    /// Handles cases, machines and parties.
    Moderator,
    /// Moves money with reasons.
    Finance,
    /// Reads everything.
    Auditor,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [
        Self::Owner,
        Self::Admin,
        Self::Billing,
        Self::Member,
        Self::Viewer,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Billing => "billing",
            Self::Member => "member",
            Self::Viewer => "viewer",
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

impl StaffRole {
    /// Every staff role.
    pub const ALL: [Self; 4] = [
        Self::Operator,
        Self::Moderator,
        Self::Finance,
        Self::Auditor,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Moderator => "moderator",
            Self::Finance => "finance",
            Self::Auditor => "auditor",
        }
    }
}

impl FromStr for StaffRole {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or(())
    }
}

/// Why a text is no acceptable e-mail address or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Not `local@domain`, too long, or with blanks or control characters.
    #[error("not an e-mail address")]
    Email,
    /// Empty, longer than 100 characters, or with control characters.
    #[error("must be 1 to 100 printable characters")]
    Name,
}

/// An e-mail address in lower case: the log-in name. Form only; confirmation proves the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Email(String);

impl Email {
    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Email {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let bad = |c: char| c.is_whitespace() || c.is_control();
        let (local, host) = text.split_once('@').ok_or(NameError::Email)?;
        let host_is_bad = host.contains('@') || host.split('.').any(str::is_empty);
        let sizes_fit = (1..=64).contains(&local.len()) && (1..=190).contains(&host.len());
        if !sizes_fit || host_is_bad || text.contains(bad) {
            return Err(NameError::Email);
        }
        Ok(Self(text.to_lowercase()))
    }
}

/// The name of a party, machine, key or offer as people see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DisplayName(String);

impl DisplayName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DisplayName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let trimmed = text.trim();
        let fits = (1..=100).contains(&trimmed.chars().count());
        if !fits || trimmed.contains(char::is_control) {
            return Err(NameError::Name);
        }
        Ok(Self(trimmed.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emails() {
        assert_eq!(
            "Ada@Example.org".parse::<Email>().unwrap().as_str(),
            "ada@example.org"
        );
        for bad in [
            "",
            "a",
            "@b.c",
            "a@",
            "a@b@c",
            "a b@c.d",
            "a@b..c",
            "a@.b",
            "a\u{0}@b.c",
        ] {
            assert!(bad.parse::<Email>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(
            "  rack 7 ".parse::<DisplayName>().unwrap().as_str(),
            "rack 7"
        );
        for bad in ["", "  ", "a\nb", &"x".repeat(101)] {
            assert!(bad.parse::<DisplayName>().is_err(), "{bad:?}");
        }
    }
}
