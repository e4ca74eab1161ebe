//! The audit line: who did what to which object, why, and when.

use crate::clock::Timestamp;
use crate::id::{ApiKeyId, AuditId, MachineId, PartyId, UserId};

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorRef {
    /// A person, logged in.
    User(UserId),
    /// A program with an API key.
    ApiKey(ApiKeyId),
    /// A machine's agent.
    Machine(MachineId),
    /// The market itself: a reconciler.
    Market,
}

impl ActorRef {
    /// The kind as stored.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::ApiKey(_) => "api_key",
            Self::Machine(_) => "machine",
            Self::Market => "market",
        }
    }

    /// The id as shown; `market` for the market itself.
    pub fn id(self) -> String {
        match self {
            Self::User(id) => id.to_string(),
            Self::ApiKey(id) => id.to_string(),
            Self::Machine(id) => id.to_string(),
            Self::Market => "market".to_owned(),
        }
    }
}

/// One line of the audit log. It commits with the effect that it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: Timestamp,
    /// The party it belongs to, if any.
    pub party: Option<PartyId>,
    /// Who.
    pub actor: ActorRef,
    /// What: `noun.verb`, e.g. `lease.stop`.
    pub action: &'static str,
    /// To which object, by its public id.
    pub object: String,
    /// Why; never empty.
    pub reason: String,
    /// The HTTP request, if there was one.
    pub request_id: Option<String>,
}
