//! What only the operator's people may do.

use domain::access::{Decision, decide_staff};
use domain::audit::ActorRef;
use domain::id::UserId;
use domain::party::StaffRole;
use domain::refusal::Code;

use crate::context::Caller;
use crate::error::Error;

/// Who may move money.
pub(crate) const MOVES_MONEY: [StaffRole; 2] = [StaffRole::Operator, StaffRole::Finance];

/// Refuses everybody but these; to those who are not the operator's people it does not exist.
pub(crate) fn only(caller: &Caller, wanted: &[StaffRole]) -> Result<(), Error> {
    match decide_staff(&caller.actor, wanted) {
        Decision::Allow => Ok(()),
        Decision::Hide => Err(Error::not_found("page")),
        Decision::Forbid => Err(Error::refused(
            Code::Forbidden,
            "Your role for the operator does not allow this.",
        )),
    }
}

/// The person who acts: money is moved by people, with their name.
pub(crate) fn person(caller: &Caller, wanted: &[StaffRole]) -> Result<UserId, Error> {
    only(caller, wanted)?;
    match caller.actor.who {
        ActorRef::User(id) => Ok(id),
        ActorRef::ApiKey(_) | ActorRef::Machine(_) | ActorRef::Market => Err(Error::refused(
            Code::Forbidden,
            "Log in as a person: a key moves no money of others.",
        )),
    }
}

/// A reason of some length, without blanks around it.
pub(crate) fn reason(text: &str) -> Result<String, Error> {
    let text = text.trim();
    if !(3..=500).contains(&text.chars().count()) || text.contains(char::is_control) {
        return Err(Error::field(
            "/reason",
            "malformed",
            "Say why, in 3 to 500 characters of one line.",
        ));
    }
    Ok(text.to_owned())
}
