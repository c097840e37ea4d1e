//! Finds timestamps in the common forms of logs.
//!
//! ```text
//! 2024-05-06T07:08:09.123Z   2024/05/06 07:08:09   2024-05-06 07:08:09,123 +0200   2024-05-06
//! 20240506T070809Z
//! May  6 07:08:09   Mon May  6 07:08:09 2024   May  6 2024 07:08:09
//! 1714979289   1714979289.123   1714979289123                        seconds or ms since 1970
//! 127.0.0.1 - ann [06/May/2024:07:08:09 +0200] "GET / HTTP/1.1"      anywhere in a line
//! [   12.345678] usb 1-1: new device                                 only if asked for
//! ```
//!
//! All but the last two stand at the start, behind blanks, a priority of syslog (`<34>` or `<34>1 `)
//! and a bracket or quotation mark. The forms are those of ISO 8601 and RFC 3339, of RFC 3164 and 5424
//! (syslog), of `asctime`, and of the common log format of Apache. Time is linear in the bytes that are
//! looked at.

use chrono::{FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use memchr::memchr_iter;

/// Names of months in logs.
const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// Names of days in logs.
const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
/// Names of zones, with their offsets in minutes: those of RFC 822 and others that mean one zone. `CST`,
/// `IST` and `BST` mean several, so they are left out.
const ZONES: [(&[u8], i32); 29] = [
    (b"Z", 0),
    (b"z", 0),
    (b"UTC", 0),
    (b"GMT", 0),
    (b"WET", 0),
    (b"WEST", 60),
    (b"CET", 60),
    (b"CEST", 120),
    (b"MET", 60),
    (b"MEST", 120),
    (b"EET", 120),
    (b"EEST", 180),
    (b"MSK", 180),
    (b"JST", 540),
    (b"KST", 540),
    (b"AEST", 600),
    (b"AEDT", 660),
    (b"NZST", 720),
    (b"NZDT", 780),
    (b"EST", -300),
    (b"EDT", -240),
    (b"CDT", -300),
    (b"MST", -420),
    (b"MDT", -360),
    (b"PST", -480),
    (b"PDT", -420),
    (b"AKST", -540),
    (b"AKDT", -480),
    (b"HST", -600),
];
/// The minus of typography, which ISO 8601 prefers.
const MINUS: &str = "\u{2212}";
/// Largest number of digits behind the point of a second.
const MAX_FRACTION: usize = 9;

/// A time as a text states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Microseconds since 1970 in UTC.
    Instant(i64),
    /// A time of a clock whose zone is not stated.
    Local(NaiveDateTime),
    /// A time of a clock whose year and zone are not stated.
    Yearless {
        /// Month, from 1.
        month: u32,
        /// Day of the month, from 1.
        day: u32,
        /// Time of the day.
        time: NaiveTime,
    },
}

/// Returns the time that `line` begins with, or that stands in it in the common log format.
pub fn find(line: &[u8]) -> Option<Moment> {
    let start = behind_front(line);
    iso(start)
        .or_else(|| basic_iso(start))
        .or_else(|| syslog(start))
        .or_else(|| epoch(start))
        .or_else(|| common_log(line))
}

/// Returns the time behind `[`, which the kernel's log counts in seconds from the start of the machine.
pub fn dmesg(line: &[u8]) -> Option<Moment> {
    let mut scan = Scan(behind_front(line));
    let seconds = scan.number()?;
    let nanos = scan.fraction().filter(|_| scan.0.starts_with(b"]"))?;
    instant(seconds, nanos)
}

/// Reads the digits of a part of a second at the start of `text`. Returns nanoseconds, and the rest.
pub fn fraction(text: &str) -> Option<(u32, &str)> {
    let mut scan = Scan(text.as_bytes());
    let nanos = scan.fraction_digits()?;
    Some((nanos, behind(text, scan)))
}

/// Reads the name of a zone at the start of `text`. Returns its offset in seconds, and the rest.
pub fn zone_name(text: &str) -> Option<(i32, &str)> {
    let mut scan = Scan(text.as_bytes());
    let offset = scan.zone_name()?;
    Some((offset, behind(text, scan)))
}

/// Returns the rest of `text`, of which ASCII characters were read.
fn behind<'t>(text: &'t str, scan: Scan<'_>) -> &'t str {
    text.get(text.len() - scan.0.len()..).unwrap_or_default()
}

/// Returns the bytes behind blanks, a priority of syslog, and a bracket or quotation mark.
fn behind_front(line: &[u8]) -> &[u8] {
    let mut scan = Scan(line.trim_ascii_start());
    let priority = Scan(scan.0).priority();
    scan = priority.unwrap_or(scan);
    if let [b'[' | b'"' | b'(', rest @ ..] = scan.0 {
        scan = Scan(rest.trim_ascii_start());
    }
    scan.0
}

fn iso(text: &[u8]) -> Option<Moment> {
    let mut scan = Scan(text);
    let year = scan.digits(4)?;
    let separator = scan.one_of(b"-/")?;
    let month = scan.digits(2)?;
    scan.one_of(&[separator])?;
    let day = scan.digits(2)?;
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    let mut behind = scan;
    let time = behind.one_of(b"Tt ").and_then(|_| behind.time());
    match time {
        Some(time) => Some(behind.zoned(date.and_time(time))),
        None => scan.is_at_word_end().then(|| Moment::Local(date.and_time(NaiveTime::MIN))),
    }
}

/// Returns a time without separators, with its `T` and its seconds.
fn basic_iso(text: &[u8]) -> Option<Moment> {
    let mut scan = Scan(text);
    let (year, month, day) = (scan.digits(4)?, scan.digits(2)?, scan.digits(2)?);
    scan.one_of(b"Tt")?;
    let (hour, minute, second) = (scan.digits(2)?, scan.digits(2)?, scan.digits(2)?);
    let nanos = scan.fraction().unwrap_or(0);
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    let moment = scan.zoned(date.and_time(time_of(hour, minute, second, nanos)?));
    scan.is_at_word_end().then_some(moment)
}

fn syslog(text: &[u8]) -> Option<Moment> {
    let mut scan = Scan(text);
    let has_weekday = scan.name(&DAYS).is_some();
    if has_weekday {
        scan.one_of(b",");
        scan.one_of(b" ")?;
    }
    let month = scan.name(&MONTHS)? as u32 + 1;
    scan.one_of(b" ")?;
    scan.one_of(b" ");
    let day = scan.digits(2).or_else(|| scan.digits(1))?;
    scan.one_of(b" ")?;
    let mut behind = scan;
    let year_before = behind.digits(4).filter(|_| behind.one_of(b" ").is_some());
    if year_before.is_some() {
        scan = behind;
    }
    let time = scan.time()?;
    // `date` writes `Mon May  6 07:08:09 CEST 2024`.
    let mut behind = scan;
    let offset = behind.one_of(b" ").and_then(|_| behind.zone_name()).filter(|_| has_weekday);
    if offset.is_some() {
        scan = behind;
    }
    let year_behind = || {
        scan.one_of(b" ")?;
        scan.digits(4).filter(|_| scan.is_at_word_end())
    };
    match year_before.or_else(|| has_weekday.then(year_behind).flatten()) {
        Some(year) => {
            let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
            Some(at_offset(date.and_time(time), offset))
        }
        None => Some(Moment::Yearless { month, day, time }),
    }
}

/// Returns a time in seconds with 10 digits, or in milliseconds with 13: from 2001 to 2286.
fn epoch(text: &[u8]) -> Option<Moment> {
    let mut scan = Scan(text);
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if text.starts_with(b"0") || !matches!(len, 10 | 13) {
        return None;
    }
    let number = scan.number()?;
    let moment = match len {
        10 => {
            let nanos = scan.fraction().unwrap_or(0);
            instant(number, nanos)
        }
        _ => Some(Moment::Instant(number.checked_mul(1000)?)),
    };
    moment.filter(|_| scan.is_at_word_end() && !scan.0.starts_with(b"."))
}

fn common_log(line: &[u8]) -> Option<Moment> {
    memchr_iter(b'[', line).find_map(|at| {
        let mut scan = Scan(line.get(at + 1..)?);
        let day = scan.digits(2)?;
        scan.one_of(b"/")?;
        let month = scan.name(&MONTHS)? as u32 + 1;
        scan.one_of(b"/")?;
        let year = scan.digits(4)?;
        scan.one_of(b":")?;
        let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
        let time = scan.time()?;
        Some(scan.zoned(date.and_time(time)))
    })
}

/// Returns the time of a day. A leap second is the second before it, and one.
fn time_of(hour: u32, minute: u32, second: u32, nanos: u32) -> Option<NaiveTime> {
    match second {
        60 => NaiveTime::from_hms_nano_opt(hour, minute, 59, nanos + 1_000_000_000),
        _ => NaiveTime::from_hms_nano_opt(hour, minute, second, nanos),
    }
}

/// Returns the moment at which clocks of an offset in seconds show `local`.
fn at_offset(local: NaiveDateTime, offset: Option<i32>) -> Moment {
    let offset = offset.and_then(FixedOffset::east_opt);
    match offset.and_then(|offset| offset.from_local_datetime(&local).single()) {
        Some(instant) => Moment::Instant(instant.timestamp_micros()),
        None => Moment::Local(local),
    }
}

fn instant(seconds: i64, nanos: u32) -> Option<Moment> {
    let micros = seconds.checked_mul(1_000_000)?.checked_add(i64::from(nanos / 1000))?;
    Some(Moment::Instant(micros))
}

/// The bytes that are not read yet.
#[derive(Clone, Copy)]
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    /// Reads one of `bytes`.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// Reads exactly `len` digits, without looking at the byte behind them.
    fn digits(&mut self, len: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(len)?;
        let number = digits.iter().try_fold(0u32, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })?;
        self.0 = rest;
        Some(number)
    }

    /// Reads all digits, at least one.
    fn number(&mut self) -> Option<i64> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(len)?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        self.0 = rest;
        Some(number)
    }

    /// Reads a point or comma and digits, and returns them as nanoseconds.
    fn fraction(&mut self) -> Option<u32> {
        let mut scan = *self;
        scan.one_of(b".,")?;
        let nanos = scan.fraction_digits()?;
        *self = scan;
        Some(nanos)
    }

    /// Reads the digits behind a point, and returns them as nanoseconds. Further digits are left out.
    fn fraction_digits(&mut self) -> Option<u32> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(len).filter(|_| len > 0)?;
        let digits = digits.iter().chain(std::iter::repeat(&b'0')).take(MAX_FRACTION);
        self.0 = rest;
        Some(digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    /// Reads one of `names` and returns its place.
    fn name(&mut self, names: &[&[u8]]) -> Option<usize> {
        let place = names.iter().position(|name| self.0.starts_with(name))?;
        self.0 = self.0.get(3..)?;
        Some(place)
    }

    /// Reads `<34>` or `<34>1 `.
    fn priority(mut self) -> Option<Self> {
        self.one_of(b"<")?;
        self.number()?;
        self.one_of(b">")?;
        let mut behind = self;
        match (behind.number(), behind.one_of(b" ")) {
            (Some(1..=9), Some(_)) => Some(behind),
            _ => Some(self),
        }
    }

    /// Reads `hh:mm`, seconds, and parts of a second.
    fn time(&mut self) -> Option<NaiveTime> {
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        let (mut second, mut nanos) = (0, 0);
        let mut behind = *self;
        if behind.one_of(b":").is_some() {
            second = behind.digits(2)?;
            nanos = behind.fraction().unwrap_or(0);
            *self = behind;
        }
        let is_end = !self.0.first().is_some_and(u8::is_ascii_digit);
        time_of(hour, minute, second, nanos).filter(|_| is_end)
    }

    /// Reads the zone behind `local`, if there is one.
    fn zoned(&mut self, local: NaiveDateTime) -> Moment {
        at_offset(local, self.zone())
    }

    /// Reads a zone, directly or behind a blank, and returns its offset in seconds.
    fn zone(&mut self) -> Option<i32> {
        let mut scan = *self;
        let is_apart = scan.one_of(b" ").is_some();
        if let Some(offset) = scan.zone_name() {
            *self = scan;
            // `UTC+02:00`, too.
            return self.offset(false).or(Some(offset));
        }
        let offset = scan.offset(is_apart)?;
        *self = scan;
        Some(offset)
    }

    /// Reads the name of a zone, and returns its offset in seconds.
    fn zone_name(&mut self) -> Option<i32> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (name, rest) = self.0.split_at_checked(len)?;
        let (_, minutes) = ZONES.iter().find(|(zone, _)| *zone == name)?;
        Scan(rest).is_at_word_end().then(|| {
            self.0 = rest;
            minutes * 60
        })
    }

    /// Reads `+02:00`, `+0200` or, unless it stands apart, `+02`. Returns seconds.
    fn offset(&mut self, is_apart: bool) -> Option<i32> {
        let mut scan = *self;
        let sign = match scan.0.strip_prefix(MINUS.as_bytes()) {
            Some(rest) => {
                scan.0 = rest;
                b'-'
            }
            None => scan.one_of(b"+-")?,
        };
        let hours = scan.digits(2)?;
        let has_colon = scan.one_of(b":").is_some();
        let minutes = match scan.digits(2) {
            None if has_colon || is_apart => return None,
            minutes => minutes.unwrap_or(0),
        };
        if hours > 23 || minutes > 59 || !scan.is_at_word_end() {
            return None;
        }
        *self = scan;
        let seconds = (hours * 3600 + minutes * 60) as i32;
        Some(if sign == b'-' { -seconds } else { seconds })
    }

    fn is_at_word_end(&self) -> bool {
        !self.0.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    /// Formats a moment: with `Z` if it is an instant.
    fn shown(line: &str) -> String {
        match find(line.as_bytes()) {
            Some(Moment::Instant(micros)) => {
                let time = DateTime::from_timestamp_micros(micros).unwrap();
                time.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string()
            }
            Some(Moment::Local(time)) => time.format("%Y-%m-%dT%H:%M:%S%.f").to_string(),
            Some(Moment::Yearless { month, day, time }) => {
                format!("{month}-{day} {}", time.format("%H:%M:%S%.f"))
            }
            None => "none".to_owned(),
        }
    }

    #[test]
    fn forms_of_logs_are_found() {
        for (line, expected) in [
            ("2024-05-06T07:08:09Z x", "2024-05-06T07:08:09Z"),
            ("2024-05-06T07:08:09.123456789z", "2024-05-06T07:08:09.123456Z"),
            ("2024-05-06T07:08:09+02:00 x", "2024-05-06T05:08:09Z"),
            ("2024-05-06 07:08:09,5 -0130", "2024-05-06T08:38:09.500Z"),
            ("2024-05-06 07:08:09 UTC [1] LOG", "2024-05-06T07:08:09Z"),
            ("2024-05-06 07:08:09-03 x", "2024-05-06T10:08:09Z"),
            ("2024-05-06 07:08:09 EST x", "2024-05-06T12:08:09Z"),
            ("2024-05-06 07:08:09.5 CEST [1] LOG", "2024-05-06T05:08:09.500Z"),
            ("2024-05-06T07:08:09\u{2212}02:30", "2024-05-06T09:38:09Z"),
            ("2024-05-06 07:08:09 UTC+02:00", "2024-05-06T05:08:09Z"),
            ("2024-05-06 07:08:09 GMT-5", "2024-05-06T07:08:09Z"),
            ("2024-05-06 07:08:09 CST", "2024-05-06T07:08:09"),
            ("2024-05-06 07:08:09 ESTABLISHED", "2024-05-06T07:08:09"),
            ("Mon May  6 07:08:09 CEST 2024", "2024-05-06T05:08:09Z"),
            ("Mon May  6 07:08:09 EST x", "5-6 07:08:09"),
            ("2024/05/06 07:08:09 [error]", "2024-05-06T07:08:09"),
            ("[2016-12-20 00:00:36,888] INFO", "2016-12-20T00:00:36.888"),
            ("  (2024-05-06 07:08)", "2024-05-06T07:08:00"),
            ("2024-05-06 report", "2024-05-06T00:00:00"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("20240506T070809Z x", "2024-05-06T07:08:09Z"),
            ("20240506T070809.5+0200", "2024-05-06T05:08:09.500Z"),
            ("[20240506t070809] x", "2024-05-06T07:08:09"),
            ("20161231T235960Z", "2017-01-01T00:00:00Z"),
            ("<34>1 2003-10-11T22:14:15.003Z host", "2003-10-11T22:14:15.003Z"),
            ("<34>Oct  1 22:14:15 host su: x", "10-1 22:14:15"),
            ("Jan 26 00:00:05 host sshd[1]: x", "1-26 00:00:05"),
            ("Jan 26 00:00:05 2024 is a host", "1-26 00:00:05"),
            ("[Wed Jan 29 00:00:02 2024] [core:notice]", "2024-01-29T00:00:02"),
            ("May  6 2024 07:08:09: %ASA-6", "2024-05-06T07:08:09"),
            ("1714979289 x", "2024-05-06T07:08:09Z"),
            ("1714979289.25\t12", "2024-05-06T07:08:09.250Z"),
            ("1714979289123,x", "2024-05-06T07:08:09.123Z"),
            ("h - ann [10/Oct/2000:13:55:36 -0700] \"GET", "2000-10-10T20:55:36Z"),
            ("::1 [x] [10/Oct/2000:13:55:36]", "2000-10-10T13:55:36"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn other_texts_have_no_time() {
        for line in [
            "",
            "[",
            "at java.lang.Thread",
            "2024-13-01 00:00:00",
            "2024-05-06x",
            "2024-05/06",
            "20240506",
            "20240506T0708",
            "20240506T070809x",
            "20241306T070809Z",
            "20240506T256161Z",
            "20240506T070809123Z",
            "12345678901",
            "0123456789",
            "1714979289.1.2",
            "1714979289abc",
            "Jan 26",
            "January 26 00:00:05",
            "[10/Oct/2000]",
            "[   12.345678] usb",
            "\u{661}\u{662}",
        ] {
            assert_eq!(shown(line), "none", "{line}");
        }
    }

    #[test]
    fn impossible_zones_are_no_zones() {
        assert_eq!(shown("2024-05-06T07:08:09+99:00"), "2024-05-06T07:08:09");
        assert_eq!(shown("2024-05-06 07:08:09 +02"), "2024-05-06T07:08:09");
        assert_eq!(shown("2024-05-06 07:08:09 Zebra"), "2024-05-06T07:08:09");
    }

    #[test]
    fn the_clock_of_the_kernel_starts_at_zero() {
        assert_eq!(dmesg(b"[   12.345678] usb"), Some(Moment::Instant(12_345_678)));
        assert_eq!(dmesg(b"<6>[    0.000000] Linux"), Some(Moment::Instant(0)));
        assert_eq!(dmesg(b"[   12.345678 usb"), None);
        assert_eq!(dmesg(b"2024-05-06"), None);
    }

    /// Any bytes give a time or none, also when they are cut anywhere.
    #[test]
    fn cut_lines_are_read_without_fault() {
        let lines = [
            "<34>1 2003-10-11T22:14:15.003+02:00 host",
            "[Wed Jan 29 00:00:02.123 2024] x",
            "h [10/Oct/2000:13:55:36 -0700] x",
            "99999999999999999999999999 [99/Oct/9999:99:99:99",
        ];
        for line in lines {
            for len in 0..=line.len() {
                let _ = (find(&line.as_bytes()[..len]), dmesg(&line.as_bytes()[..len]));
            }
        }
    }
}
