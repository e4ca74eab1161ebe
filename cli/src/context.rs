//! What a command works with: the client, the profile, the clock.

use std::time::Duration;

use web_openapi::time;

use crate::client::{Client, normal_server};
use crate::command::Globals;
use crate::config::{Config, DEFAULT_PROFILE, DEFAULT_SERVER, Profile};
use crate::environment::Environment;
use crate::fault::{Fault, Local};
use crate::text::View;

/// What a command works with.
pub(crate) struct Context {
    /// The market.
    pub(crate) client: Client,
    /// The configuration file.
    pub(crate) config: Config,
    /// Name of the profile.
    pub(crate) profile_name: String,
    /// The profile.
    pub(crate) profile: Profile,
    /// The outside.
    pub(crate) environment: Environment,
    /// The key is from `GPUMARKET_API_KEY`, not from the profile.
    pub(crate) is_key_from_environment: bool,
}

impl Context {
    /// Finds server and credentials. `makes_profile`: a named profile need not exist yet.
    pub(crate) fn new(
        globals: Globals,
        environment: Environment,
        makes_profile: bool,
    ) -> Result<Self, Fault> {
        let config = Config::load(environment.config.clone())?;
        let profile_name = globals
            .profile
            .or_else(|| environment.profile.clone())
            .unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let profile = if makes_profile {
            config.profile(&profile_name)?.unwrap_or_default()
        } else {
            config.existing(&profile_name)?
        };
        let own = profile.server.as_deref().unwrap_or(DEFAULT_SERVER);
        let asked = globals.server.or_else(|| environment.server.clone());
        let server = normal_server(asked.as_deref().unwrap_or(own))?;
        // A key belongs to one market: it must not be shown to another.
        let is_own = normal_server(own).is_ok_and(|own| own == server);
        let stored = profile.api_key.clone().filter(|_key| is_own);
        let is_key_from_environment = environment.api_key.is_some();
        let key = environment.api_key.clone().or(stored);
        let client = Client::new(server, key, environment.patience)?;
        Ok(Self {
            client,
            config,
            profile_name,
            profile,
            environment,
            is_key_from_environment,
        })
    }

    /// The present, and the zone that times are shown in.
    pub(crate) fn view(&self) -> View {
        View {
            zone: self.environment.zone.clone(),
            now: (self.environment.now)(),
        }
    }

    /// The instant after `wait` from now, as the API wants it.
    pub(crate) fn in_future(&self, wait: Duration) -> Result<String, Fault> {
        let at = (self.environment.now)().checked_add(wait);
        let at = at.map_err(|_far| Local::new("usage", "The duration is too long."))?;
        let at = domain::clock::Timestamp::from_micros(at.as_microsecond());
        Ok(time::to_text(at))
    }

    /// Are we at the profile's own market?
    pub(crate) fn is_own_market(&self) -> bool {
        let own = self.profile.server.as_deref().unwrap_or(DEFAULT_SERVER);
        normal_server(own).is_ok_and(|own| own == self.client.server())
    }
}
