//! Secrets that are shown once: API keys and enrolment tokens.
//!
//! With an idempotency key the secret is derived from it, so that a repeat of the request shows the
//! identical secret although nobody stored it; without one it is random.

use app::Caller;

use super::keys::{Keys, random};

/// Prefix of API keys.
pub const API_KEY: &str = "gm_live_";
/// Prefix of enrolment tokens.
pub const ENROLLMENT: &str = "enr_";

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn digits(mut bytes: [u8; 32]) -> String {
    // 43 digits hold 256 bits; repeated division by 62.
    let mut out = String::new();
    for _digit in 0..43 {
        let mut rest = 0u32;
        for byte in &mut bytes {
            let value = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(0);
            rest = value % 62;
        }
        let place = usize::try_from(rest).unwrap_or(0);
        out.push(char::from(DIGITS.get(place).copied().unwrap_or(b'0')));
    }
    out
}

/// Makes a secret with this prefix.
pub fn make(
    keys: &Keys,
    prefix: &str,
    caller: &Caller,
    once: Option<&app::OnceKey>,
) -> Result<String, String> {
    let bytes = match once {
        None => random()?,
        Some(key) => {
            let scope = format!(
                "{prefix}\n{}\n{}\n{}",
                caller.actor.party, key.route, key.key
            );
            keys.derive(scope.as_bytes())
        }
    };
    Ok(format!("{prefix}{}", digits(bytes)))
}

/// What is stored of a secret: it has 256 bits, so a fast hash is enough.
pub fn hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_a_number_in_base_62() {
        assert_eq!(digits([0; 32]), "0".repeat(43));
        let mut one = [0; 32];
        one[31] = 61;
        assert_eq!(digits(one), format!("z{}", "0".repeat(42)));
        assert_ne!(digits([255; 32]), digits([254; 32]));
    }
}
