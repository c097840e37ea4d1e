//! Values of fields that are numbers: the digits of a date, or a count from 1970.
//!
//! ```text
//! 20240506          20240506.0              the day
//! 202405060708      20240506070809.123      the time, with parts of its second
//! 20240532          20240506.5              nothing: a year, and no date behind it
//! 1714979289        1714979289.123          a count from 1970
//! ```
//!
//! A number counts from 1970 unless it has as many digits as a date has and begins with a year.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::scan::{DayTime, Scan};

/// Years of numbers whose digits are those of a date.
const WRITTEN_YEARS: std::ops::Range<i64> = 1970..2200;

/// The meaning of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// Microseconds since 1970.
    Counted(i64),
    /// A date or time of clocks, whose digits these are.
    Written(NaiveDateTime),
}

impl Digits {
    /// Returns the meaning of a whole number.
    pub fn from_integer(number: i64) -> Option<Self> {
        if begins_with_year(number) {
            return written(number, 0).map(Self::Written);
        }
        from_integer(number).map(Self::Counted)
    }

    /// Returns the meaning of a number with a fraction.
    pub fn from_float(number: f64) -> Option<Self> {
        // Larger ones become the largest integer, which begins with no year.
        if begins_with_year(number as i64) {
            let text = number.to_string();
            let (whole, nanos) = whole_and_nanos(&text)?;
            return written(whole, nanos).map(Self::Written);
        }
        from_seconds(number).map(Self::Counted)
    }

    /// Returns the meaning of a number with a fraction or an exponent. `text` is its digits.
    pub fn from_decimal(text: &str, number: f64) -> Option<Self> {
        match whole_and_nanos(text) {
            // A float has not all of these digits.
            Some((whole, nanos)) if begins_with_year(whole) => written(whole, nanos).map(Self::Written),
            _ => Self::from_float(number),
        }
    }
}

/// Returns the digits before the point of `text`, and those behind it as nanoseconds. Returns none if there
/// are others.
fn whole_and_nanos(text: &str) -> Option<(i64, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut scan = Scan(fraction.as_bytes());
    let nanos = scan.fraction_digits().unwrap_or_default();
    scan.0.is_empty().then_some((whole.parse().ok()?, nanos))
}

/// Returns true if `number` has as many digits as a date has, and the first ones are a year.
fn begins_with_year(number: i64) -> bool {
    let year = match number {
        10_000_000..100_000_000 => number / 10_000,
        100_000_000_000..1_000_000_000_000 => number / 100_000_000,
        10_000_000_000_000..100_000_000_000_000 => number / 10_000_000_000,
        10_000_000_000_000_000..100_000_000_000_000_000 => number / 10_000_000_000_000,
        _ => return false,
    };
    WRITTEN_YEARS.contains(&year)
}

/// Returns the time whose digits `number` has, as in 20240506070809, also with milliseconds behind them,
/// without seconds, or the day alone. `nanos` is its fraction: parts of a second or of a millisecond. Days
/// and minutes have none.
fn written(number: i64, nanos: u32) -> Option<NaiveDateTime> {
    let part = |number: i64| u32::try_from(number % 100).ok();
    let (seconds, nanos) = match number {
        0..100_000_000 if nanos == 0 => return written_day(number).map(|day| day.and_time(NaiveTime::MIN)),
        100_000_000_000..1_000_000_000_000 if nanos == 0 => (number * 100, 0),
        10_000_000_000_000..100_000_000_000_000 => (number, nanos),
        10_000_000_000_000_000..100_000_000_000_000_000 => {
            let millis = u32::try_from(number % 1000).ok()?;
            (number / 1000, millis * 1_000_000 + nanos / 1000)
        }
        _ => return None,
    };
    let day = written_day(seconds / 1_000_000)?;
    let (hour, minute, second) = (part(seconds / 10_000)?, part(seconds / 100)?, part(seconds)?);
    let time = DayTime { hour, minute, second, nanos, has_seconds: true }.time()?;
    Some(day.and_time(time))
}

/// Returns the day whose year, month and day are the digits of `number`, if there is one.
fn written_day(number: i64) -> Option<NaiveDate> {
    let part = |number: i64| u32::try_from(number % 100).ok();
    let year = i32::try_from(number / 10_000).ok()?;
    NaiveDate::from_ymd_opt(year, part(number / 100)?, part(number)?)
}

/// Returns the microseconds of a number of seconds, milliseconds, microseconds or nanoseconds since
/// 1970. The size of the number tells the unit: seconds up to the year 5138, and so on.
fn from_integer(number: i64) -> Option<i64> {
    match number.unsigned_abs() {
        0..100_000_000_000 => number.checked_mul(1_000_000),
        100_000_000_000..100_000_000_000_000 => number.checked_mul(1000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(number),
        _ => Some(number.div_euclid(1000)),
    }
}

/// Returns the microseconds of a number of seconds with a fraction, or of a larger number in a smaller
/// unit.
pub fn from_seconds(number: f64) -> Option<i64> {
    let micros = match number.abs() {
        0.0..1e11 => number * 1e6,
        1e11..1e14 => number * 1e3,
        1e14..1e17 => number,
        _ => return None,
    };
    Some(micros.round() as i64)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    /// Returns the time of a value as the text of a field.
    fn shown(text: &str) -> Option<String> {
        let digits = match text.parse() {
            Ok(integer) => Digits::from_integer(integer),
            Err(_) => Digits::from_decimal(text, text.parse().unwrap()),
        };
        let time = match digits? {
            Digits::Counted(micros) => DateTime::from_timestamp_micros(micros)?.naive_utc(),
            Digits::Written(time) => time,
        };
        Some(time.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
    }

    #[test]
    fn dates_in_digits_have_a_fraction_or_none() {
        for (text, expected) in [
            ("20240506", "2024-05-06T00:00:00"),
            ("20240506.0", "2024-05-06T00:00:00"),
            ("20240506.", "2024-05-06T00:00:00"),
            ("20240506.000000000000", "2024-05-06T00:00:00"),
            ("2.0240506e7", "2024-05-06T00:00:00"),
            ("202405060708", "2024-05-06T07:08:00"),
            ("202405060708.0", "2024-05-06T07:08:00"),
            ("20240506070809", "2024-05-06T07:08:09"),
            ("20240506070809.0", "2024-05-06T07:08:09"),
            ("20240506070809.5", "2024-05-06T07:08:09.500"),
            ("20240506070809.123", "2024-05-06T07:08:09.123"),
            ("20240506070809.123456", "2024-05-06T07:08:09.123456"),
            ("20240506070809123", "2024-05-06T07:08:09.123"),
            ("20240506070809123.0", "2024-05-06T07:08:09.123"),
            ("20240506070809123.4", "2024-05-06T07:08:09.123400"),
            ("20161231235960", "2016-12-31T23:59:60"),
            // Counts from 1970.
            ("1714979289", "2024-05-06T07:08:09"),
            ("1714979289.0", "2024-05-06T07:08:09"),
            ("1714979289.123", "2024-05-06T07:08:09.123"),
            ("1714979289123", "2024-05-06T07:08:09.123"),
            ("1714979289123.5", "2024-05-06T07:08:09.123500"),
            ("1714979289123456", "2024-05-06T07:08:09.123456"),
            ("1714979289123456789", "2024-05-06T07:08:09.123456"),
            ("12345678", "1970-05-23T21:21:18"),
            ("12345678.5", "1970-05-23T21:21:18.500"),
            ("99999999.5", "1973-03-03T09:46:39.500"),
            ("123456789012", "1973-11-29T21:33:09.012"),
            ("-20240506", "1969-05-11T17:38:14"),
            ("0", "1970-01-01T00:00:00"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_year_without_a_date_is_no_number_of_seconds() {
        for text in [
            "20240532",
            "20240532.0",
            "20241301",
            "20240506.5",
            "202405060860",
            "202405060708.5",
            "20240506250809",
            "20240506250809.5",
            "20240532070809123",
            "20240532070809123.0",
            "NaN",
            "inf",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    /// A float has not all digits of a time with its parts of a second.
    #[test]
    fn floats_are_dates_as_far_as_they_go() {
        let written = |text: &str| Some(Digits::Written(text.parse().unwrap()));
        assert_eq!(Digits::from_float(20_240_506.0), written("2024-05-06T00:00:00"));
        assert_eq!(Digits::from_float(20_240_506_070_809.5), written("2024-05-06T07:08:09.5"));
        let millis: f64 = "20240506070809.123".parse().unwrap();
        assert_eq!(Digits::from_float(millis), written("2024-05-06T07:08:09.12"));
        assert_eq!(Digits::from_float(20_240_532.0), None);
        assert_eq!(Digits::from_float(1_714_979_289.5), Some(Digits::Counted(1_714_979_289_500_000)));
    }
}
