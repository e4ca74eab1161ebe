//! Rate limits: for each caller, in separate buckets for reads, creation, clean-up and log-in, so
//! that a terminate passes while creation is throttled.
//!
//! Headers after the IETF draft `draft-ietf-httpapi-ratelimit-headers`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use domain::clock::Span;
use domain::id::PartyId;
use domain::refusal::Code;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::auth::bearer;
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

/// Credentials remembered as good; forgetting one costs its next request the peer's bucket.
const REMEMBERED: usize = 100_000;

/// All buckets.
pub struct Limits {
    buckets: [(&'static str, u32, u32, Bucket); 4],
    proven: Mutex<BTreeMap<[u8; 32], PartyId>>,
}

/// Who asks, as far as that is known before authentication.
#[derive(Clone, Debug)]
pub struct Guest {
    credential: Option<[u8; 32]>,
    peer: String,
}

impl Guest {
    /// Of a request's credential and address.
    pub fn of(request: &ServiceRequest) -> Self {
        let peer = request.peer_addr().map(|a| network(a.ip()));
        Self {
            credential: bearer(request.headers())
                .map(|text| *blake3::hash(text.as_bytes()).as_bytes()),
            peer: peer.unwrap_or_default(),
        }
    }
}

/// The address; of IPv6 the /64, since one household has as many addresses as it likes.
fn network(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
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
            proven: Mutex::default(),
        }
    }

    /// Takes one request out of its bucket.
    pub fn check(&self, request: &ServiceRequest, guest: &Guest) -> Verdict {
        let wanted = bucket_of(request.method(), request.path());
        let Some(wanted) = wanted else {
            return Verdict::free();
        };
        let found = self.buckets.iter().find(|(name, ..)| *name == wanted);
        let Some((name, rate, burst, bucket)) = found else {
            return Verdict::free();
        };
        let rule = Some((*name, *rate, *burst));
        match bucket.check_key(&self.key_of(request.path(), guest)) {
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

    /// The party of a credential that was good the last time, else the peer's address: whoever
    /// tries one bad key after another stays in one bucket.
    fn key_of(&self, path: &str, guest: &Guest) -> String {
        let known = guest
            .credential
            .filter(|_| !path.starts_with("/v1/auth/"))
            .and_then(|hash| self.proven().get(&hash).copied());
        known.map_or_else(|| guest.peer.clone(), |party| party.to_string())
    }

    /// Remembers that the credential is this party's.
    pub fn learn(&self, guest: &Guest, party: PartyId) {
        let Some(hash) = guest.credential else {
            return;
        };
        let mut proven = self.proven();
        if proven.len() >= REMEMBERED {
            proven.clear();
        }
        proven.insert(hash, party);
    }

    /// Forgets a credential that is not good any more.
    pub fn forget(&self, guest: &Guest) {
        if let Some(hash) = guest.credential {
            self.proven().remove(&hash);
        }
    }

    fn proven(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], PartyId>> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn ask(limits: &Limits, request: TestRequest) -> Verdict {
        let request = request.to_srv_request();
        limits.check(&request, &Guest::of(&request))
    }

    #[test]
    fn creation_is_throttled_while_clean_up_passes() {
        let limits = Limits::new(1);
        let create = || ask(&limits, TestRequest::post().uri("/v1/leases")).refusal();
        let refused = (0..200).filter_map(|_| create()).count();
        assert!(refused > 100, "{refused}");
        let stop = ask(&limits, TestRequest::post().uri("/v1/leases/lse_x/actions"));
        assert!(stop.refusal().is_none());
    }

    #[test]
    fn the_headers_tell_rule_and_rest() {
        let limits = Limits::new(1);
        let mut headers = HeaderMap::new();
        ask(&limits, TestRequest::get().uri("/v1/me")).stamp(&mut headers);
        assert_eq!(
            headers.get("ratelimit-policy").unwrap(),
            "\"read\";q=200;w=4"
        );
        assert_eq!(headers.get("ratelimit").unwrap(), "\"read\";r=199;t=0");
    }

    #[test]
    fn bad_keys_share_the_bucket_of_their_peer_and_a_good_one_has_its_own() {
        let limits = Limits::new(1);
        let with = |key: &str| {
            TestRequest::get()
                .uri("/v1/me")
                .peer_addr("192.0.2.1:1000".parse().unwrap())
                .insert_header(("authorization", format!("Bearer {key}")))
        };
        let refused = (0..1_000).filter(|n| {
            let verdict = ask(&limits, with(&format!("gm_live_{n}")));
            verdict.refusal().is_some()
        });
        assert!(refused.count() > 500);
        let good = Guest::of(&with("gm_live_good").to_srv_request());
        assert!(ask(&limits, with("gm_live_good")).refusal().is_some());
        limits.learn(&good, PartyId::from_uuid(uuid::Uuid::from_u128(1)));
        assert!(ask(&limits, with("gm_live_good")).refusal().is_none());
        limits.forget(&good);
        assert!(ask(&limits, with("gm_live_good")).refusal().is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_peer() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
