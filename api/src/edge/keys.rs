//! The market's key: one Ed25519 key that signs statements, quotes and access tokens, and a secret
//! from which once-shown secrets are derived. Both live in the state folder, readable by us only.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use app::context::Signer as MarketSigner;
use billing::statement::{EarningsBody, StatementBody, StatementFault};
use domain::clock::Timestamp;
use domain::id::UserId;
use ed25519_dalek::{Signer, SigningKey};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

/// Seconds that an access token is good for.
pub const TOKEN_SECONDS: u32 = 3 * 60 * 60;
const AUDIENCE: &str = "gpumarket";

/// The market's key material; cannot be printed.
#[derive(Clone)]
pub struct Keys {
    signing: SigningKey,
    secret: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.key_id())
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    aud: String,
    iat: i64,
    exp: i64,
}

/// Fresh random bytes.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where the server's secrets are made"
)]
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| format!("no randomness: {e}"))?;
    Ok(bytes)
}

fn load_or_make(path: &Path) -> Result<[u8; 32], String> {
    let fault = |e: std::io::Error| format!("{}: {e}", path.display());
    if let Ok(text) = fs::read_to_string(path) {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes)
            .map_err(|e| format!("{} is damaged: {e}", path.display()))?;
        return Ok(bytes);
    }
    let bytes: [u8; 32] = random()?;
    // Whole or not at all: another process may start at the same time.
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(fault)?;
    file.write_all(hex::encode(bytes).as_bytes())
        .map_err(fault)?;
    file.sync_all().map_err(fault)?;
    let linked = fs::hard_link(&fresh, path);
    fs::remove_file(&fresh).map_err(fault)?;
    match linked {
        Ok(()) => Ok(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => load_or_make(path),
        Err(e) => Err(fault(e)),
    }
}

impl Keys {
    /// Loads the keys of a state folder, making them the first time.
    pub fn load(folder: &Path) -> Result<Self, String> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| format!("{}: {e}", folder.display()))?;
        let signing = SigningKey::from_bytes(&load_or_make(&folder.join("market.key"))?);
        let secret = load_or_make(&folder.join("derive.key"))?;
        Ok(Self { signing, secret })
    }

    /// The public key, hex.
    pub fn public_hex(&self) -> String {
        hex::encode(self.signing.verifying_key().to_bytes())
    }

    /// `kid` of access tokens.
    pub fn key_id(&self) -> String {
        blake3::hash(&self.signing.verifying_key().to_bytes())
            .to_hex()
            .chars()
            .take(16)
            .collect()
    }

    /// 32 bytes that follow from the secret and `what`, and tell nothing of it.
    pub fn derive(&self, what: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.secret, what).as_bytes()
    }

    /// An access token for a user.
    pub fn token(&self, user: UserId, now: Timestamp) -> Result<String, String> {
        let iat = now.micros().div_euclid(1_000_000);
        let claims = Claims {
            sub: user.to_string(),
            aud: AUDIENCE.to_owned(),
            iat,
            exp: iat.saturating_add(i64::from(TOKEN_SECONDS)),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key_id());
        // PKCS #8 v1 of an Ed25519 seed (RFC 8410, section 7): a fixed prefix and the seed.
        let mut der = hex::decode("302e020100300506032b657004220420").unwrap_or_default();
        der.extend_from_slice(&self.signing.to_bytes());
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_der(&der))
            .map_err(|e| format!("a token could not be made: {e}"))
    }

    /// The user of a valid access token.
    pub fn user_of(&self, token: &str, now: Timestamp) -> Option<UserId> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        // Expiry is checked below, by the injected clock.
        validation.validate_exp = false;
        let public = self.signing.verifying_key().to_bytes();
        let key = DecodingKey::from_ed_der(&public);
        let claims: Claims = jsonwebtoken::decode(token, &key, &validation).ok()?.claims;
        let now = now.micros().div_euclid(1_000_000);
        if claims.exp <= now {
            None
        } else {
            claims.sub.parse().ok()
        }
    }

    /// The key set that others verify tokens with (RFC 7517).
    pub fn jwks(&self) -> serde_json::Value {
        let x = base64url(&self.signing.verifying_key().to_bytes());
        serde_json::json!({"keys": [{
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": self.key_id(), "x": x,
        }]})
    }
}

/// Base64 for URLs without padding (RFC 4648, section 5).
fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    let (mut buffer, mut bits) = (0u32, 0u32);
    let mut push = |six: u32| {
        let digit = usize::try_from(six & 63)
            .ok()
            .and_then(|place| DIGITS.get(place));
        out.push(char::from(digit.copied().unwrap_or(b'A')));
    };
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 6 {
            bits -= 6;
            push(buffer >> bits);
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        push(buffer << (6 - bits));
    }
    out
}

impl MarketSigner for Keys {
    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.signing.sign(bytes).to_bytes()
    }

    fn public_key(&self) -> [u8; 32] {
        self.signing.verifying_key().to_bytes()
    }

    fn sign_earnings(&self, body: EarningsBody) -> Result<Vec<u8>, StatementFault> {
        billing::statement::sign(body, &self.signing)
    }

    fn sign_statement(&self, body: StatementBody) -> Result<Vec<u8>, StatementFault> {
        billing::statement::sign(body, &self.signing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let provider = &jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
        let _installed_before = provider.install_default();
        Keys {
            signing: SigningKey::from_bytes(&[1; 32]),
            secret: [2; 32],
        }
    }

    #[test]
    fn tokens_name_their_user_until_they_expire() {
        let user = UserId::from_uuid(uuid::Uuid::from_u128(5));
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        let token = keys().token(user, now).unwrap();
        assert_eq!(keys().user_of(&token, now), Some(user));
        let later = now.plus(domain::clock::Span::from_secs(i64::from(TOKEN_SECONDS)));
        assert_eq!(keys().user_of(&token, later), None);
        let other = Keys {
            signing: SigningKey::from_bytes(&[3; 32]),
            secret: [2; 32],
        };
        assert_eq!(other.user_of(&token, now), None);
        assert_eq!(keys().user_of("a.b.c", now), None);
    }

    #[test]
    fn base64url_as_in_the_standard() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(plain.as_bytes()), coded);
        }
    }
}
