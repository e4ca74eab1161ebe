//! The `Idempotency-Key` header.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use app::OnceKey;
use std::future::{Ready, ready};

use super::fault::Fault;

/// The key as sent, if any: 1 to 200 printable ASCII characters.
#[derive(Clone, Debug)]
pub struct IdempotencyKey(Option<String>);

impl FromRequest for IdempotencyKey {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let Some(header) = request.headers().get("idempotency-key") else {
            return ready(Ok(Self(None)));
        };
        let text = header.to_str().unwrap_or("").trim();
        let plain = text.bytes().all(|b| b.is_ascii_graphic());
        if text.is_empty() || text.len() > 200 || !plain {
            return ready(Err(Fault::field(
                "header/Idempotency-Key",
                "malformed",
                "Must be 1 to 200 printable ASCII characters without blanks.",
            )));
        }
        ready(Ok(Self(Some(text.to_owned()))))
    }
}

impl IdempotencyKey {
    /// The key for a route and a request.
    pub fn on(self, route: &'static str, fingerprint: [u8; 32]) -> Option<OnceKey> {
        self.0.map(|key| OnceKey {
            route,
            key,
            fingerprint,
        })
    }
}
