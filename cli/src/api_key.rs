//! API keys: list, make, revoke.

use std::time::Duration;

use comfy_table::Table;
use domain::id::ApiKeyId;
use web_openapi::api_key::{ApiKey, ApiKeyPage, CreateApiKey, CreatedApiKey};

use crate::command::Page;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, grid};
use crate::text::View;

/// Lists keys.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/api-keys", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: ApiKeyPage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No API keys. Make one: gpumarket key create --name NAME");
    }
    output.table(&table(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

fn table(keys: &[ApiKey], view: &View) -> Table {
    let rows = keys.iter().map(|key| {
        let state = match (&key.revoked_at, &key.expires_at) {
            (Some(at), _) => format!("revoked {}", view.time(at)),
            (None, Some(at)) => format!("ends {}", view.time(at)),
            (None, None) => "valid".to_owned(),
        };
        let used = key.last_used_at.as_deref();
        vec![
            key.id.clone(),
            key.name.clone(),
            format!("{}…", key.prefix),
            state,
            used.map_or_else(|| "never".to_owned(), |at| view.time(at)),
            key.scopes.join(" "),
        ]
    });
    let heading = ["KEY", "NAME", "SECRET", "STATE", "LAST USED", "SCOPES"];
    grid(&heading, rows.collect())
}

/// Makes a key; the only time that its secret is shown.
pub(crate) async fn create(
    cx: &Context,
    output: &mut Output<'_>,
    name: String,
    scopes: Vec<String>,
    expires_after: Option<Duration>,
) -> Result<(), Fault> {
    let expires_at = expires_after.map(|wait| cx.in_future(wait)).transpose()?;
    let request = CreateApiKey {
        name,
        scopes: Some(scopes).filter(|s| !s.is_empty()),
        expires_at,
    };
    let answer = cx.client.post("/v1/api-keys", &request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let made: CreatedApiKey = answer.read()?;
    output.say(&format!("Made {} ({}).", made.key.id, made.key.name))?;
    output.say(&format!(
        "Its secret is shown only now:\n\n  {}\n",
        made.secret
    ))?;
    output.say("Use it: GPUMARKET_API_KEY=…")
}

/// Revokes a key.
pub(crate) async fn revoke(
    cx: &Context,
    output: &mut Output<'_>,
    key: ApiKeyId,
) -> Result<(), Fault> {
    let answer = cx.client.delete(&format!("/v1/api-keys/{key}")).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    output.say(&format!("Revoked {key}."))
}
