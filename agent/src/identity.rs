//! Who this machine is: its Ed25519 key, the market it enrolled with and its id there.
//!
//! Invariant: the private key never leaves the state directory; a signature binds the server's
//! nonce and the machine's id.

use ed25519_dalek::{Signer, SigningKey};
use serde::{Deserialize, Serialize};
use web_openapi::agent::challenge_bytes;

use crate::state_dir::{StateDir, StateError};

const KEY_FILE: &str = "key";
const IDENTITY_FILE: &str = "identity.json";

/// Where and as what the machine is enrolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Address of the market.
    pub server: String,
    /// `mch_…`
    pub machine_id: String,
}

/// The machine's key.
#[derive(Clone)]
pub struct MachineKey(SigningKey);

impl std::fmt::Debug for MachineKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MachineKey(public {})", self.public_hex())
    }
}

impl MachineKey {
    /// The key in the state directory; made at the first call.
    pub fn load_or_make(dir: &StateDir) -> Result<Self, StateError> {
        if let Some(key) = Self::load(dir)? {
            return Ok(key);
        }
        let seed = random_seed().map_err(|source| StateError::Io {
            path: dir.path().join(KEY_FILE),
            source,
        })?;
        dir.write(KEY_FILE, &hex::encode(seed))?;
        Ok(Self::from_seed(seed))
    }

    /// The key in the state directory, if there is one.
    pub fn load(dir: &StateDir) -> Result<Option<Self>, StateError> {
        let Some(text) = dir.read(KEY_FILE)? else {
            return Ok(None);
        };
        let mut seed = [0_u8; 32];
        let form = |e: hex::FromHexError| StateError::Form {
            path: dir.path().join(KEY_FILE),
            why: format!("expected 64 hex digits ({e})"),
        };
        hex::decode_to_slice(text.trim(), &mut seed).map_err(form)?;
        Ok(Some(Self::from_seed(seed)))
    }

    /// The key of a seed.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// The public key.
    pub fn public_bytes(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// The public key in hex: 64 digits.
    pub fn public_hex(&self) -> String {
        hex::encode(self.public_bytes())
    }

    /// The answer to a challenge, in hex.
    pub fn answer(&self, nonce: &str, machine_id: &str) -> String {
        hex::encode(self.0.sign(&challenge_bytes(nonce, machine_id)).to_bytes())
    }
}

/// The identity in the state directory, if the machine is enrolled.
pub fn load(dir: &StateDir) -> Result<Option<Identity>, StateError> {
    dir.read_json(IDENTITY_FILE)
}

/// Keeps the identity; it is durable when this returns.
pub fn save(dir: &StateDir, identity: &Identity) -> Result<(), StateError> {
    dir.write_json(IDENTITY_FILE, identity)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the agent is where its key is made"
)]
fn random_seed() -> std::io::Result<[u8; 32]> {
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signature, VerifyingKey};

    use super::*;

    #[test]
    fn the_key_stays_the_same_and_signs_the_challenge() {
        let path = std::env::temp_dir().join(format!("gm-identity-{}", std::process::id()));
        let dir = StateDir::open(&path).unwrap();
        let key = MachineKey::load_or_make(&dir).unwrap();
        assert_eq!(
            MachineKey::load_or_make(&dir).unwrap().public_hex(),
            key.public_hex()
        );
        let signature: [u8; 64] = hex::decode(key.answer("n", "mch_x"))
            .unwrap()
            .try_into()
            .unwrap();
        let public = VerifyingKey::from_bytes(&key.public_bytes()).unwrap();
        let signature = Signature::from_bytes(&signature);
        assert!(
            public
                .verify_strict(&challenge_bytes("n", "mch_x"), &signature)
                .is_ok()
        );
        assert!(
            public
                .verify_strict(&challenge_bytes("n", "mch_y"), &signature)
                .is_err()
        );
        dir.write("key", "not hex").unwrap();
        assert!(MachineKey::load(&dir).is_err());
        std::fs::remove_dir_all(path).unwrap();
    }
}
