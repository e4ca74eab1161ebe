//! Times on the wire: RFC 3339 in UTC with microseconds, e.g. `2026-12-01T10:00:00.000000Z`.

use domain::clock::Timestamp;

/// Renders an instant; what RFC 3339 cannot show is cut to its range.
pub fn to_text(at: Timestamp) -> String {
    let micros = at.micros().clamp(0, Timestamp::MAX.micros());
    jiff::Timestamp::from_microsecond(micros)
        .map_or_else(|_never| String::new(), |t| format!("{t:.6}"))
}

/// Reads RFC 3339 with any offset; `None` when it is not that.
pub fn from_text(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_micros(at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_to_the_microsecond() {
        for micros in [0, 1, 1_796_119_200_123_456, Timestamp::MAX.micros()] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(from_text(&to_text(at)), Some(at));
            assert!(to_text(at).ends_with('Z'));
        }
        assert_eq!(
            to_text(Timestamp::from_micros(0)),
            "1970-01-01T00:00:00.000000Z"
        );
        assert_eq!(from_text("yesterday"), None);
    }
}
