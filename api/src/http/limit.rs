//! Rate limits: for each caller, in separate buckets for reads, creation, clean-up and log-in, so
//! that a terminate passes while creation is throttled.
//!
//! Headers after the IETF draft `draft-ietf-httpapi-ratelimit-headers`.

use std::num::NonZeroU32;

use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use domain::clock::Span;
use domain::refusal::Code;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::fault::Fault;

type Bucket =
    RateLimiter<String, HashMapStateStore<String>, DefaultClock, StateInformationMiddleware>;

/// Requests per second and burst of each bucket.
const RULES: [(&str, u32, u32); 4] = [
    ("read", 50, 200),
    ("create", 20, 60),
    ("clean-up", 50, 200),
    ("log-in", 1, 20),
];

/// All buckets.
pub struct Limits {
    buckets: [(&'static str, u32, u32, Bucket); 4],
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Limits")
    }
}

/// What a bucket says to a request.
#[derive(Clone, Debug)]
pub struct Verdict {
    rule: Option<(&'static str, u32, u32)>,
    remaining: u32,
    wait: Option<Span>,
}

impl Limits {
    /// Buckets with every rule multiplied by `factor`.
    pub fn new(factor: u32) -> Self {
        let bucket = |(name, rate, burst): (&'static str, u32, u32)| {
            let whole =
                |n: u32| NonZeroU32::new(n.saturating_mul(factor)).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(whole(rate)).allow_burst(whole(burst));
            let bucket = RateLimiter::hashmap(quota).with_middleware();
            (name, whole(rate).get(), whole(burst).get(), bucket)
        };
        Self {
            buckets: RULES.map(bucket),
        }
    }

    /// Takes one request out of its bucket.
    pub fn check(&self, request: &ServiceRequest) -> Verdict {
        let wanted = bucket_of(request.method(), request.path());
        let Some(wanted) = wanted else {
            return Verdict::free();
        };
        let found = self.buckets.iter().find(|(name, ..)| *name == wanted);
        let Some((name, rate, burst, bucket)) = found else {
            return Verdict::free();
        };
        let rule = Some((*name, *rate, *burst));
        match bucket.check_key(&caller(request)) {
            Ok(state) => Verdict {
                rule,
                remaining: state.remaining_burst_capacity(),
                wait: None,
            },
            Err(refused) => {
                let wait = refused.wait_time_from(DefaultClock::default().now());
                let micros = i64::try_from(wait.as_micros()).unwrap_or(1_000_000);
                Verdict {
                    rule,
                    remaining: 0,
                    wait: Some(Span::from_micros(micros)),
                }
            }
        }
    }

    /// Forgets callers that were not seen for long.
    pub fn forget_idle(&self) {
        for (_, _, _, bucket) in &self.buckets {
            bucket.retain_recent();
        }
    }
}

fn bucket_of(method: &Method, path: &str) -> Option<&'static str> {
    if !path.starts_with("/v1/") || path == "/v1/agent/connect" {
        return None;
    }
    if path.starts_with("/v1/auth/") && *method == Method::POST {
        return Some("log-in");
    }
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS];
    if reads.contains(method) || path == "/v1/offers/search" {
        return Some("read");
    }
    let ends = *method == Method::DELETE || path.ends_with("/actions");
    Some(if ends { "clean-up" } else { "create" })
}

/// The credential's hash, or the peer's address. Before authentication on purpose: a bad key must
/// not be tried without limit either.
fn caller(request: &ServiceRequest) -> String {
    let peer = || {
        request
            .peer_addr()
            .map_or_else(String::new, |a| a.ip().to_string())
    };
    if request.path().starts_with("/v1/auth/") {
        return peer();
    }
    match request.headers().get(AUTHORIZATION) {
        Some(header) => blake3::hash(header.as_bytes())
            .to_hex()
            .chars()
            .take(16)
            .collect(),
        None => peer(),
    }
}

impl Verdict {
    /// No limit.
    pub const fn free() -> Self {
        Self {
            rule: None,
            remaining: 0,
            wait: None,
        }
    }

    /// 429, if the bucket is empty.
    pub fn refusal(&self) -> Option<Fault> {
        let wait = self.wait?;
        let (name, rate, _) = self.rule?;
        let text = format!("The limit for `{name}` is {rate} requests per second.");
        Some(Fault::new(Code::Throttled, text).retry_after(wait))
    }

    /// Tells the rule and what is left of it.
    pub fn stamp(&self, headers: &mut HeaderMap) {
        let Some((name, rate, burst)) = self.rule else {
            return;
        };
        let refill = burst.div_ceil(rate.max(1)).max(1);
        let wait = self.wait.map_or(0, |w| w.secs().saturating_add(1));
        let lines = [
            (
                "ratelimit-policy",
                format!("\"{name}\";q={burst};w={refill}"),
            ),
            (
                "ratelimit",
                format!("\"{name}\";r={};t={wait}", self.remaining),
            ),
        ];
        for (header, text) in lines {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(HeaderName::from_static(header), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn creation_is_throttled_while_clean_up_passes() {
        let limits = Limits::new(1);
        let post = |path: &str| TestRequest::post().uri(path).to_srv_request();
        let create = || limits.check(&post("/v1/leases")).refusal();
        let refused = (0..200).filter_map(|_| create()).count();
        assert!(refused > 100, "{refused}");
        assert!(
            limits
                .check(&post("/v1/leases/lse_x/actions"))
                .refusal()
                .is_none()
        );
    }

    #[test]
    fn the_headers_tell_rule_and_rest() {
        let limits = Limits::new(1);
        let mut headers = HeaderMap::new();
        limits
            .check(&TestRequest::get().uri("/v1/me").to_srv_request())
            .stamp(&mut headers);
        assert_eq!(
            headers.get("ratelimit-policy").unwrap(),
            "\"read\";q=200;w=4"
        );
        assert_eq!(headers.get("ratelimit").unwrap(), "\"read\";r=199;t=0");
    }
}
