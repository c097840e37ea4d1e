//! Reads the words of stamps (numbers, names, times of the day, offsets), and values of fields that are numbers.
//!
//! ```text
//! 20240506          20240506.0              the day
//! 202405060708      20240506070809.123      the time, with parts of its second
//! 20240532          20240506.5              nothing: a year, and no date behind it
//! 1714979289        1714979289.123          a count from 1970
//! ```
//!
//! A number counts from 1970 unless it has as many digits as a date has and begins with a year. A reader of
//! words that fails leaves the bytes as they were. Time is linear in the bytes that are looked at.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

/// Marks of the halves of a day, in lower case, and true for the second half.
const HALVES: [(&str, bool); 6] =
    [("上午", false), ("下午", true), ("午前", false), ("午後", true), ("오전", false), ("오후", true)];
/// Words for parts of a day in other languages. A time with one of them is not understood.
const DAY_PARTS: [&str; 16] = [
    "nachm",
    "vorm",
    "nachmittags",
    "vormittags",
    "morgens",
    "abends",
    "nachts",
    "μμ",
    "πμ",
    "μ.μ",
    "π.μ",
    "凌晨",
    "早上",
    "中午",
    "晚上",
    "正午",
];
/// Signs that are a minus or a plus besides those of ASCII, and true for a minus.
const SIGNS: [(&str, bool); 8] = [
    ("\u{2212}", true),
    ("\u{2010}", true),
    ("\u{2011}", true),
    ("\u{2012}", true),
    ("\u{2013}", true),
    ("\u{fe63}", true),
    ("\u{ff0d}", true),
    ("\u{ff0b}", false),
];
/// Largest number of digits behind the point of a second that count.
const MAX_FRACTION: usize = 9;

/// The bytes that are not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a>(pub &'a [u8]);

/// A time of the day as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayTime {
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
    /// True if it has seconds.
    pub has_seconds: bool,
}

impl DayTime {
    /// Returns the time. A leap second is the second before it, and one.
    pub fn time(&self) -> Option<NaiveTime> {
        let Self { hour, minute, second, nanos, .. } = *self;
        if second == 60 {
            return NaiveTime::from_hms_nano_opt(hour, minute, 59, nanos + 1_000_000_000);
        }
        NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)
    }

    /// Returns true for 24:00, which ISO 8601 has for the end of a day.
    pub fn is_end_of_day(&self) -> bool {
        (self.hour, self.minute, self.second, self.nanos) == (24, 0, 0, 0)
    }

    /// Returns the time in a half of the day, the second one if `is_second`.
    pub fn in_half(self, is_second: bool) -> Option<Self> {
        if !(1..=12).contains(&self.hour) {
            return None;
        }
        let hour = self.hour % 12 + if is_second { 12 } else { 0 };
        Some(Self { hour, ..self })
    }
}

impl<'a> Scan<'a> {
    /// Returns the first byte.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns true if the byte at `place` is a digit.
    pub fn has_digit_at(&self, place: usize) -> bool {
        self.0.get(place).is_some_and(u8::is_ascii_digit)
    }

    /// Reads one of `bytes`.
    pub fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// Reads `text`.
    pub fn text(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Reads blanks of any width and tabs, and returns the number of their bytes.
    pub fn blanks(&mut self) -> usize {
        let mut len = 0;
        loop {
            len += match self.0.get(len..).unwrap_or_default() {
                [b' ' | b'\t', ..] => 1,
                [0xc2, 0xa0, ..] => 2,
                [0xe2, 0x80, 0x80..=0x8a | 0xaf, ..] | [0xe2, 0x81, 0x9f, ..] | [0xe3, 0x80, 0x80, ..] => 3,
                _ => break,
            };
        }
        self.0 = self.0.get(len..).unwrap_or_default();
        len
    }

    /// Returns the first character, if it is not of ASCII and the text has it whole.
    pub fn wide_char(&self) -> Option<char> {
        self.peek().filter(|byte| !byte.is_ascii())?;
        let start = self.0.get(..4).unwrap_or(self.0);
        start.utf8_chunks().next()?.valid().chars().next()
    }

    /// Reads exactly `len` digits, without looking at the byte behind them.
    pub fn digits(&mut self, len: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(len)?;
        let mut number = 0u32;
        for byte in digits {
            if !byte.is_ascii_digit() {
                return None;
            }
            number = number.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
        }
        self.0 = rest;
        Some(number)
    }

    /// Returns the number of digits at the start.
    pub fn num_digits(&self) -> usize {
        self.0.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// Reads one digit or two, behind which no digit stands.
    pub fn one_or_two_digits(&mut self) -> Option<u32> {
        let len = self.num_digits();
        if len > 2 {
            return None;
        }
        self.digits(len.max(1))
    }

    /// Reads all digits, at least one.
    pub fn number(&mut self) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(self.num_digits())?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        self.0 = rest;
        Some(number)
    }

    /// Reads the digits behind a point, and returns them as nanoseconds. Further digits are left out.
    pub fn fraction_digits(&mut self) -> Option<u32> {
        let len = self.num_digits();
        let (digits, rest) = self.0.split_at_checked(len).filter(|_| len > 0)?;
        let digits = digits.iter().chain(std::iter::repeat(&b'0')).take(MAX_FRACTION);
        self.0 = rest;
        Some(digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    /// Reads the name of a month, its first three letters or the whole, and returns its number from 1.
    pub fn month(&mut self) -> Option<u32> {
        let (month, rest): (u32, &[u8]) = match &self.three_letters()? {
            b"jan" => (1, b"uary"),
            b"feb" => (2, b"ruary"),
            b"mar" => (3, b"ch"),
            b"apr" => (4, b"il"),
            b"may" => (5, b""),
            b"jun" => (6, b"e"),
            b"jul" => (7, b"y"),
            b"aug" => (8, b"ust"),
            b"sep" => (9, b"tember"),
            b"oct" => (10, b"ober"),
            b"nov" => (11, b"ember"),
            b"dec" => (12, b"ember"),
            _ => return None,
        };
        self.name_behind(rest).map(|()| month)
    }

    /// Reads the name of a day of the week, its first three letters or the whole.
    pub fn weekday(&mut self) -> Option<()> {
        let rest: &[u8] = match &self.three_letters()? {
            b"mon" | b"fri" | b"sun" => b"day",
            b"tue" => b"sday",
            b"wed" => b"nesday",
            b"thu" => b"rsday",
            b"sat" => b"urday",
            _ => return None,
        };
        self.name_behind(rest)
    }

    /// Returns the first three letters in lower case, without reading them.
    fn three_letters(&self) -> Option<[u8; 3]> {
        let letters: &[u8; 3] = self.0.first_chunk()?;
        Some(letters.map(|letter| letter.to_ascii_lowercase()))
    }

    /// Reads three letters, and `rest` in any case, if it is there.
    fn name_behind(&mut self, rest: &[u8]) -> Option<()> {
        let behind = self.0.get(3..)?;
        let is_whole = behind.get(..rest.len()).is_some_and(|text| text.eq_ignore_ascii_case(rest));
        let behind = if is_whole { behind.get(rest.len()..)? } else { behind };
        if behind.first().is_some_and(u8::is_ascii_alphabetic) {
            return None;
        }
        self.0 = behind;
        Some(())
    }

    /// Reads `h:mm` or `hh:mm` with or without seconds, or `hh.mm.ss`. Parts of a second are left.
    pub fn day_time(&mut self) -> Option<DayTime> {
        let mut scan = *self;
        let num_digits = scan.num_digits();
        let hour = scan.one_or_two_digits()?;
        let (minute, second, has_seconds) = if scan.one_of(b":").is_some() {
            let minute = scan.digits(2)?;
            if scan.peek() == Some(b':') && scan.has_digit_at(1) {
                scan.one_of(b":");
                (minute, scan.digits(2)?, true)
            } else {
                (minute, 0, false)
            }
        } else {
            scan.one_of(b".").filter(|_| num_digits == 2)?;
            let minute = scan.digits(2)?;
            scan.one_of(b".")?;
            (minute, scan.digits(2)?, true)
        };
        *self = scan;
        Some(DayTime { hour, minute, second, nanos: 0, has_seconds })
    }

    /// Reads `hhmmss`. Parts of a second are left.
    pub fn compact_time(&mut self) -> Option<DayTime> {
        let mut scan = *self;
        let hour = scan.digits(2)?;
        let minute = scan.digits(2)?;
        let second = scan.digits(2)?;
        *self = scan;
        Some(DayTime { hour, minute, second, nanos: 0, has_seconds: true })
    }

    /// Reads a mark of a half of the day, directly or behind blanks. Returns true for the second half.
    pub fn half(&mut self) -> Option<bool> {
        let mut scan = *self;
        scan.blanks();
        // Nearly every text has something else here.
        if !matches!(scan.peek()?, b'a' | b'A' | b'p' | b'P' | 0x80..) {
            return None;
        }
        if let Some(letter) = scan.one_of(b"aApP") {
            // `p.m.`, `p. m.` and `PMZ`, too.
            if scan.one_of(b".").is_some() {
                scan.blanks();
            }
            scan.one_of(b"mM")?;
            let is_word = scan.is_at_word_end() || scan.peek() == Some(b'Z');
            if !is_word || scan.wide_char().is_some_and(char::is_alphanumeric) {
                return None;
            }
            scan.one_of(b".");
            *self = scan;
            return Some(letter.eq_ignore_ascii_case(&b'p'));
        }
        let (mark, is_second) = HALVES.iter().find(|(mark, _)| scan.0.starts_with(mark.as_bytes()))?;
        scan.0 = scan.0.get(mark.len()..)?;
        *self = scan;
        Some(*is_second)
    }

    /// Returns true if a word for a part of the day follows that is not read, such as `nachm.`.
    pub fn is_at_day_part(&self) -> bool {
        let mut scan = *self;
        scan.blanks();
        // Nearly every text has something else here.
        if !matches!(scan.peek(), Some(b'n' | b'v' | b'm' | b'a' | 0x80..)) {
            return false;
        }
        let is_here =
            |word: &&str| scan.0.strip_prefix(word.as_bytes()).is_some_and(|rest| Scan(rest).is_at_word_end());
        DAY_PARTS.iter().any(is_here)
    }

    /// Reads a sign. Returns true for a minus.
    pub fn sign(&mut self) -> Option<bool> {
        if let Some(sign) = self.one_of(b"+-") {
            return Some(sign == b'-');
        }
        self.peek().filter(|byte| !byte.is_ascii())?;
        let (sign, is_minus) = SIGNS.iter().find(|(sign, _)| self.0.starts_with(sign.as_bytes()))?;
        self.0 = self.0.get(sign.len()..)?;
        Some(*is_minus)
    }

    /// Returns true unless a letter, a digit or `_` follows.
    pub fn is_at_word_end(&self) -> bool {
        !self.0.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }
}

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
    let hour = part(seconds / 10_000)?;
    let minute = part(seconds / 100)?;
    let second = part(seconds)?;
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
