//! Times and spans for people.

use std::time::Duration;

use harness_proto::error::Problem;

/// `3s ago`, `in 5m`; the text itself when it is no time, nothing when it is empty.
pub(crate) fn ago(text: &str, now: jiff::Timestamp) -> String {
    let Ok(at) = text.parse::<jiff::Timestamp>() else {
        return text.to_owned();
    };
    let seconds = now.as_second() - at.as_second();
    if seconds >= 0 { format!("{} ago", length(seconds)) } else { format!("in {}", length(-seconds)) }
}

fn length(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Reads `60s`, `8h`, `90m`, `2d`, `500ms`, `1h30m`, `0s`, or plain seconds.
pub(crate) fn span(text: &str) -> Result<Duration, Problem> {
    let wrong =
        || Problem::new("USAGE", format!("`{text}` is no duration")).why("durations are 0s, 60s, 90m, 8h, 1h30m, 2d");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u32 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            "d" => Duration::from_secs(86_400),
            _ => return Err(wrong()),
        };
        total = unit.checked_mul(number).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = &rest[letters..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, seconds) in [("0s", 0), ("60s", 60), ("1h30m", 5_400), ("2d", 172_800), ("7", 7)] {
            assert_eq!(span(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        for bad in ["", "s", "5x", "1h30", "-1s", "99999999999d"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_relative() {
        let now: jiff::Timestamp = "2026-11-30T19:00:00Z".parse().unwrap();
        assert_eq!(ago("2026-11-30T18:59:57+00:00", now), "3s ago");
        assert_eq!(ago("2026-11-30T20:30:00+00:00", now), "in 1h30m");
        assert_eq!(ago("soon", now), "soon");
    }
}
