//! Registration, log-in, and who one is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A new user with a party of its own.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Log-in name.
    #[schema(example = "ada@example.org", format = "email", max_length = 254)]
    pub email: String,
    /// 12 to 200 characters.
    #[schema(min_length = 12, max_length = 200, format = "password")]
    pub password: String,
    /// Name of the party (organisation).
    #[schema(example = "Analytical Engines", min_length = 1, max_length = 100)]
    pub party_name: String,
}

/// Log-in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Log-in name.
    #[schema(format = "email", max_length = 254)]
    pub email: String,
    /// The password.
    #[schema(format = "password", max_length = 200)]
    pub password: String,
}

impl std::fmt::Debug for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Register({})", self.email)
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.email)
    }
}

/// A short-lived access token.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// JWT (EdDSA) for `Authorization: Bearer`.
    pub access_token: String,
    /// Always `Bearer`.
    pub token_type: String,
    /// Seconds until it is over.
    pub expires_in_seconds: u32,
    /// Who one is.
    pub me: Me,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.me)
    }
}

/// Who one is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The user; absent for an API key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_id: Option<String>,
    /// The API key; absent for a person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub api_key_id: Option<String>,
    /// The party acted for.
    pub party_id: String,
    /// Its name.
    pub party_name: String,
    /// `owner`, `admin`, `billing`, `member` or `viewer`.
    pub role: String,
    /// What this credential may do.
    pub scopes: Vec<String>,
    /// `operator`, `moderator`, `finance` or `auditor`, if the operator's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub staff_role: Option<String>,
    /// The market's statement key (Ed25519, hex): pin it to verify bills offline.
    pub statement_key: String,
}
