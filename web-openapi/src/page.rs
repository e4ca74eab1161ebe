//! Lists: one shape everywhere. Each list has a concrete page type, since generators need names.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The most rows of one page.
pub const MAX_LIMIT: u32 = 200;
/// The rows of a page unless asked otherwise.
pub const DEFAULT_LIMIT: u32 = 50;

/// Which page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// Rows wanted.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before; opaque.
    #[param(max_length = 200)]
    pub cursor: Option<String>,
}

/// Declares a concrete page type.
macro_rules! page {
    ($(#[$doc:meta])* $name:ident of $row:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        pub struct $name {
            /// The rows, newest first unless said otherwise.
            pub data: Vec<$row>,
            /// Is there another page?
            pub has_more: bool,
            /// Cursor of the next page; absent on the last one.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub next_cursor: Option<String>,
        }
    };
}
pub(crate) use page;
