//! Decimals as lists write them, read exactly.

/// A number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// In millionths, rounded half up.
    pub(super) micros: i64,
    /// Were there digits beyond the millionths?
    pub(super) cut: bool,
}

impl Decimal {
    /// Is it a whole number?
    pub(super) const fn is_whole(self) -> bool {
        self.micros.rem_euclid(1_000_000) == 0 && !self.cut
    }

    /// The whole part.
    pub(super) const fn whole(self) -> i64 {
        self.micros.div_euclid(1_000_000)
    }
}

/// Most digits on each side of the point.
const DIGITS: usize = 30;
const PLACES: usize = 6;

/// Reads `digits[.digits]`; no sign, no exponent, no blanks. `None` if it is something else or does
/// not fit.
pub(super) fn read(text: &str) -> Option<Decimal> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |t: &str| (1..=DIGITS).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let part = part.trim_end_matches('0');
    let cut = part.len() > PLACES;
    let (kept, rest) = part.split_at_checked(PLACES).unwrap_or((part, ""));
    let up = rest.bytes().next().is_some_and(|digit| digit >= b'5');
    let size: i64 = format!("{whole}{kept:0<6}").parse().ok()?;
    Some(Decimal {
        micros: size.checked_add(i64::from(up))?,
        cut,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms() {
        let micros = |text: &str| read(text).map(|d| (d.micros, d.cut));
        assert_eq!(micros("8.0"), Some((8_000_000, false)));
        assert_eq!(micros("0.00"), Some((0, false)));
        assert_eq!(micros("3.8700000000000001"), Some((3_870_000, true)));
        assert_eq!(micros("0.1380999999"), Some((138_100, true)));
        assert_eq!(micros("1.230000000"), Some((1_230_000, false)));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            " 1",
            "1,0",
            "NaN",
            "9223372036855",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest! {
        /// Against whole numbers of 10^-12.
        #[test]
        fn rounds_as_whole_numbers_do(whole in 0i64..1_000_000, part in 0i128..1_000_000_000_000) {
            let read = read(&format!("{whole}.{part:012}")).unwrap();
            let exact = i128::from(whole) * 1_000_000_000_000 + part;
            prop_assert_eq!(i128::from(read.micros), (exact + 500_000) / 1_000_000);
            prop_assert_eq!(read.cut, exact % 1_000_000 != 0);
        }
    }
}
