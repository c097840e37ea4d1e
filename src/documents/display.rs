//! Formats numbers for people (`1,234,567`, `45.2 MB`, `1.24 s`), parses sizes and ages, and
//! escapes text for terminals.
//!
//! ```
//! use tadoc_documents::display::{bytes, parse_size, plural};
//!
//! assert_eq!(plural(1_234, "document"), "1,234 documents");
//! assert_eq!(parse_size("64MiB").map(bytes), Ok("67.1 MB".to_owned()));
//! ```

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use arrow::temporal_conversions::timestamp_us_to_datetime;
use tadoc::format::path_text;

/// Escapes control characters, which a terminal would obey.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    Cow::Owned(escaped)
}

/// Returns a path as documents have it, without control characters.
pub fn path(path: &Path) -> String {
    plain(&path_text(path.as_os_str().as_encoded_bytes())).into_owned()
}

/// Formats a count with a comma between groups of three digits.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 document`, `2 documents`, `0 documents`.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Formats a number of bytes in decimal units.
pub fn bytes(len_bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if len_bytes < 1000 {
        return plural(len_bytes, "byte");
    }
    let mut value = len_bytes as f64 / 1000.0;
    let mut unit_idx = 0;
    while value >= 999.95 && unit_idx + 1 < UNITS.len() {
        value /= 1000.0;
        unit_idx += 1;
    }
    format!("{value:.1} {}", UNITS[unit_idx])
}

/// Formats a rate in decimal megabytes per second.
pub fn rate(len_bytes: u64, elapsed: Duration) -> String {
    let rate_mb_per_s = len_bytes as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    format!("{rate_mb_per_s:.1} MB/s")
}

/// Formats a duration in seconds or milliseconds, with three digits.
pub fn seconds(elapsed: Duration) -> String {
    let secs = elapsed.as_secs_f64();
    match secs {
        s if s < 0.01 => format!("{:.2} ms", secs * 1e3),
        s if s < 0.1 => format!("{:.1} ms", secs * 1e3),
        s if s < 1.0 => format!("{:.0} ms", secs * 1e3),
        s if s < 10.0 => format!("{secs:.2} s"),
        _ => format!("{secs:.1} s"),
    }
}

/// Formats `part` of `whole` in percent.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    }
}

/// Formats a time in UTC, given in microseconds since 1970.
pub fn time(time_us: u64) -> String {
    let time = i64::try_from(time_us).ok().and_then(timestamp_us_to_datetime);
    time.map_or_else(|| time_us.to_string(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Parses an age: `90s`, `30m`, `12h`, `7d`, or `0`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let refuse = || "expected an age such as 90s, 30m, 12h or 7d, or 0".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(refuse()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(refuse)
}

/// Parses a size, such as `4096`, `64MiB` or `1.5 GB`.
///
/// Units are binary (KiB, MiB, GiB, TiB; also K, M, G, T) or decimal (kB, MB, GB, TB), in any case.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("`{unit}` is no unit; write a size such as 64MiB or 2GB")),
    };
    let value: f64 =
        number.parse().map_err(|_| format!("`{text}` is no size; write a number and a unit, such as 64MiB"))?;
    let len_bytes = value * factor as f64;
    if len_bytes >= 1.0 && len_bytes < u64::MAX as f64 {
        Ok(len_bytes as u64)
    } else {
        Err(format!("`{text}` is out of range; a size is at least one byte"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ages() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(1_234_567_890_123_456), "2009-02-13 23:31:30");
        let ages = ["0", "90s", "2m", "3h", "1d"].map(|age| parse_age(age).unwrap().as_secs());
        assert_eq!(ages, [0, 90, 120, 10_800, 86_400]);
        for wrong in ["", "7", "d", "1w", "-1s", "99999999999999999999s", "9999999999999999999d"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\tb\u{1b}[31mc\n\u{9b}é"), r"a\tb\u{1b}[31mc\n\u{9b}é");
        assert_eq!(plain("é \u{1f469}"), "é \u{1f469}");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(45_230_000), "45.2 MB");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(0, 0), "-");
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("128MiB"), Ok(128 << 20));
        assert_eq!(parse_size("1.5 kb"), Ok(1500));
        assert_eq!(parse_size("7"), Ok(7));
        for bad in ["", "MiB", "-1", "1 XB", "0", "1e400"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
