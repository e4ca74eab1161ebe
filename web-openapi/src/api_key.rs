//! API keys.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A new key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateApiKey {
    /// For people.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// What it may do; absent = all that the maker's role may.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// When it ends; absent = never.
    #[serde(default)]
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
}

/// A key as shown later: never the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// `key_…`
    pub id: String,
    /// For people.
    pub name: String,
    /// The findable beginning of the secret.
    #[schema(example = "gm_live_3fk2")]
    pub prefix: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
    /// When it was last used, to about a minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub last_used_at: Option<String>,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(format = "date-time")]
    pub revoked_at: Option<String>,
}

/// A key at birth: the only time that the secret is shown.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedApiKey {
    /// The key.
    pub key: ApiKey,
    /// `gm_live_…`: store it now.
    pub secret: String,
}

impl std::fmt::Debug for CreatedApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CreatedApiKey({:?})", self.key)
    }
}

crate::page::page! {
    /// A page of keys.
    ApiKeyPage of ApiKey
}
