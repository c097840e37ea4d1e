//! The time in the header `Date` of a message.
//!
//! ```text
//! Mon, 06 May 2024 09:08:09 +0200 (CEST)    RFC 5322; a comment says nothing
//! Tue, 6 May 24 7:08 EST                    a wrong day of the week, two digits of a year, no seconds
//! Mon, 06-May-2024 07:08:09 GMT             HTTP and older mail
//! Mon May  6 07:08:09 2024                  asctime, with a zone in front of or behind the year or without
//! lun, 6 May 2024 09.08.09 "GMT"            a day of the week in any language, points, a zone in quotes
//! 2024-05-06T07:08:09Z                      RFC 3339, also with a blank or without a zone
//! ```
//!
//! Sources: RFC 5322 3.3 and 4.3, and what mailers wrote before. The parser of mail-parser takes dates that do not
//! exist and none without a zone, and that of chrono none with a wrong day of the week, so the parts are told
//! apart here, and chrono checks them. A time without a zone is in UTC, as Python's `email` has it. A date with a
//! part that means nothing has no time.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Timelike};

use crate::timestamps::zone_minutes as zone_name;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const LONG_MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const LONG_DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// Names of zones that RFC 822 gives one meaning, or mail does, in small letters, with minutes. Other names are
/// those of [logs](zone_name).
const ZONES: [(&str, i32); 5] = [("ast", -240), ("adt", -180), ("cst", -360), ("bst", 60), ("hdt", -540)];
/// Longest date that is looked at.
const MAX_BYTES: usize = 1 << 10;

/// Returns microseconds since 1970.
pub fn micros(value: &str) -> Option<i64> {
    if value.len() > MAX_BYTES {
        return None;
    }
    let text = without_comments(value)?;
    if let Ok(time) = DateTime::parse_from_rfc3339(text.trim()) {
        return Some(time.timestamp_micros());
    }
    let mut parts = Parts::default();
    let text = without_foreign_weekday(text.trim());
    let mut words = text.split(|sign: char| sign == ',' || sign.is_ascii_whitespace());
    words.try_for_each(|word| parts.take(unquoted(word)))?;
    parts.micros()
}

/// Leaves out the word in front of a comma at the start, which names the day of the week in any language.
fn without_foreign_weekday(text: &str) -> &str {
    let Some((word, rest)) = text.split_once(',') else { return text };
    let letters = word.trim_end().trim_end_matches('.');
    let is_name = letters.chars().count() > 1 && letters.chars().all(char::is_alphabetic);
    let small = letters.to_ascii_lowercase();
    let is_other = month_of(&small).is_some() || zone_minutes(&small).is_some();
    // In English it may stand once.
    let is_english = DAYS.contains(&&*small) || LONG_DAYS.contains(&&*small);
    if is_name && !is_other && !is_english { rest } else { text }
}

/// Returns a word without the quotation marks around it.
fn unquoted(word: &str) -> &str {
    let inner = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    inner.or_else(|| word.strip_prefix('\'')?.strip_suffix('\'')).unwrap_or(word)
}

/// Leaves out comments in parentheses, which may lie in each other.
fn without_comments(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut depth = 0_u32;
    let mut is_escaped = false;
    for sign in value.chars() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if depth > 0 => is_escaped = true,
            '(' => depth += 1,
            ')' if depth > 0 => {
                depth -= 1;
                text.push(' ');
            }
            sign if depth == 0 => text.push(sign),
            _ => {}
        }
    }
    // A comment that is cut was the end.
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The parts of a date so far, each of which may stand there once.
#[derive(Default)]
struct Parts {
    has_weekday: bool,
    day: Option<u32>,
    month: Option<u32>,
    year: Option<i32>,
    time: Option<(NaiveTime, bool)>,
    is_afternoon: Option<bool>,
    /// A time with points, which may be a date.
    dotted: Option<NaiveTime>,
    zone_minutes: Option<i32>,
    /// True if the last zone is a name of UTC.
    is_utc: bool,
}

impl Parts {
    /// Takes a word. Returns none if it means nothing.
    fn take(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        let lower = lower.strip_suffix('.').unwrap_or(&lower);
        if lower.is_empty() {
            return Some(());
        }
        if let Some(zone) = zone_minutes(lower) {
            // A zone is sometimes written twice, as an offset and as a name.
            // An offset behind a name of UTC counts from it: `GMT +0200`.
            let known = self.zone_minutes.replace(zone).unwrap_or(zone);
            let is_from_utc = self.is_utc && lower.starts_with(['+', '-']);
            self.is_utc = matches!(lower, "utc" | "gmt" | "ut");
            return (known == zone || is_from_utc).then_some(());
        }
        if let Some(([year, month, day], time)) = iso_date(lower) {
            set(&mut self.year, year)?;
            set(&mut self.month, u32::try_from(month).ok()?)?;
            set(&mut self.day, u32::try_from(day).ok()?)?;
            return self.take(time);
        }
        if lower.matches('.').count() == 2 {
            let (time, is_leap_second) = time_of_day(&lower.replace('.', ":"))?;
            return if is_leap_second { None } else { set(&mut self.dotted, time) };
        }
        if lower.contains(':') {
            // In front of a word it is no offset behind a time.
            if let Some(at) = lower.find(['+', '-']).filter(|&at| at > 0) {
                let (time, offset) = lower.split_at_checked(at)?;
                self.take(time)?;
                return self.take(offset);
            }
            return set(&mut self.time, time_of_day(lower)?);
        }
        if let [day, month, year] = lower.split('-').collect::<Vec<_>>()[..] {
            self.take_number(day)?;
            set(&mut self.month, month_of(month)?)?;
            return self.take_number(year);
        }
        if let Some(month) = month_of(lower) {
            return set(&mut self.month, month);
        }
        if DAYS.contains(&lower) || LONG_DAYS.contains(&lower) {
            return (!std::mem::replace(&mut self.has_weekday, true)).then_some(());
        }
        match lower {
            "am" => set(&mut self.is_afternoon, false),
            "pm" => set(&mut self.is_afternoon, true),
            _ => self.take_number(lower),
        }
    }

    /// Takes the number of a day or of a year. A number of one or two digits is a day if there is none yet.
    fn take_number(&mut self, digits: &str) -> Option<()> {
        let number = number(digits)?;
        match digits.len() {
            1 | 2 if self.day.is_none() => set(&mut self.day, u32::try_from(number).ok()?),
            2 if number < 50 => set(&mut self.year, 2000 + number),
            2 | 3 => set(&mut self.year, 1900 + number),
            4 if number > 0 => set(&mut self.year, number),
            _ => None,
        }
    }

    fn micros(self) -> Option<i64> {
        let date = NaiveDate::from_ymd_opt(self.year?, self.month?, self.day?)?;
        // Behind a whole date, points stand in a time.
        let (mut time, is_leap_second) = match (self.time, self.dotted) {
            (Some(time), None) => time,
            (None, Some(time)) => (time, false),
            _ => return None,
        };
        if let Some(is_afternoon) = self.is_afternoon {
            let hour = time.hour();
            if !(1..=12).contains(&hour) {
                return None;
            }
            let hour = hour % 12 + if is_afternoon { 12 } else { 0 };
            time = time.with_hour(hour)?;
        }
        let local = date.and_time(time) + TimeDelta::seconds(i64::from(is_leap_second));
        let zone = TimeDelta::minutes(i64::from(self.zone_minutes.unwrap_or(0)));
        Some((local - zone).and_utc().timestamp_micros())
    }
}

/// Sets a part that was not there.
fn set<T>(part: &mut Option<T>, value: T) -> Option<()> {
    if part.is_some() {
        return None;
    }
    *part = Some(value);
    Some(())
}

/// Returns year, month and day of `2024-05-06`, and the time behind them: `2024-05-06t07:08`.
fn iso_date(word: &str) -> Option<([i32; 3], &str)> {
    let (date, time) = word.split_at_checked(10)?;
    let time = if time.is_empty() { time } else { time.strip_prefix('t')? };
    let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else { return None };
    let is_iso = year.len() == 4 && month.len() == 2;
    let numbers = [number(year)?, number(month)?, number(day)?];
    is_iso.then_some((numbers, time))
}

fn month_of(word: &str) -> Option<u32> {
    let is_named = |names: &[&str; 12]| names.iter().position(|name| *name == word);
    let idx = is_named(&MONTHS).or_else(|| is_named(&LONG_MONTHS));
    let idx = idx.or_else(|| (word == "sept").then_some(8))?;
    u32::try_from(idx + 1).ok()
}

/// Returns the number that at most four digits mean.
fn number(digits: &str) -> Option<i32> {
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if are_digits && digits.len() <= 4 { digits.parse().ok() } else { None }
}

/// Returns the time of `h:mm`, `hh:mm:ss` or `hh:mm:ss.fraction`, and true for a leap second, which counts as the
/// second before.
fn time_of_day(word: &str) -> Option<(NaiveTime, bool)> {
    let mut parts = word.split(':');
    let hour = parts.next()?;
    let minute = parts.next()?;
    let (second, fraction) = match parts.next() {
        Some(second) => second.split_once('.').unwrap_or((second, "0")),
        None => ("00", "0"),
    };
    let two_digits = |digits: &str| if digits.len() <= 2 { number(digits) } else { None };
    let is_fraction = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if parts.next().is_some() || hour.len() > 2 || !is_fraction {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    let hour = u32::try_from(number(hour)?).ok()?;
    let minute = u32::try_from(two_digits(minute)?).ok()?;
    let second = u32::try_from(two_digits(second)?).ok()?;
    let is_leap_second = second == 60;
    let second = if is_leap_second { 59 } else { second };
    Some((NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)?, is_leap_second))
}

/// Returns the minutes in front of UTC of `+hhmm`, `-hh:mm`, a name, or a name of UTC with an offset.
fn zone_minutes(word: &str) -> Option<i32> {
    if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == word) {
        return Some(*minutes);
    }
    if let Some(minutes) = zone_name(word.to_ascii_uppercase().as_bytes()) {
        return Some(minutes);
    }
    // The letters of military zones were used with both signs, so RFC 5322 reads them as UTC.
    if let [letter] = word.as_bytes() {
        return (letter.is_ascii_lowercase() && *letter != b'j').then_some(0);
    }
    let names = ["utc", "gmt", "ut"];
    let offset = names.iter().find_map(|name| word.strip_prefix(name)).unwrap_or(word);
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (number(hours)?, number(minutes)?),
        Some(_) => return None,
        None if digits.len() > 2 => (number(digits)? / 100, number(digits)? % 100),
        None => (number(digits)?, 0),
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-05-06T07:08:09Z
    const TIME: i64 = 1_714_979_289_000_000;

    #[test]
    fn every_form_has_one_time() {
        for date in [
            "Mon, 06 May 2024 09:08:09 +0200",
            "Mon, 6 May 2024 09:08:09 +0200 (CEST)",
            "6 May 2024 07:08:09 GMT",
            "Tue, 6 May 2024 07:08:09 +0000",
            "Mon, 6 May 2024 7:08:09 -0000",
            "Mon, 06 May 2024 07:08:09",
            "Mon, 06 May 2024 07:08:09 UTC",
            "Mon,06 May 2024 07:08:09 ut",
            "Mon May  6 07:08:09 2024",
            "Mon May  6 09:08:09 2024 +0200",
            "Mon May  6 09:08:09 CEST 2024",
            "Mon, 06-May-2024 07:08:09 GMT",
            "Monday, 06-May-24 07:08:09 GMT",
            "May 6, 2024 07:08:09 +0000",
            "Mon, 6 May 24 03:08:09 EDT",
            "6 may 124 07:08:09 Z",
            "Mon (day (of \\( week)), 6 May 2024 07:08:09 +0000 (UTC",
            "Mon, 6 May 2024 09:08:09 +02:00",
            "Mon, 6 May 2024 09:08:09 GMT+2",
            "Mon, 6 May 2024 07:08:09 +0000 GMT",
            "Mon, 6 May 2024 07:08:09 A",
            "6 May 2024 7:08:09 AM",
            "Mon, 06 May 2024 07:08:09.000 +0000",
            "2024-05-06T07:08:09Z",
            "2024-05-06 07:08:09",
            "2024-05-06 09:08:09 +0200",
            "2024-05-06T07:08:09",
            "2024-05-06T09:08:09+02:00",
            "Mon, 6 May 2024 09:08:09+0200",
            "Mon, 6 May 2024 7:8:9 GMT",
            "Mon, 6 May 2024 09:08:09 GMT +0200",
            "Mon, 6 May 2024 07.08.09 +0000",
            "07.08.09 6 May 2024",
            "Lun, 6 May 2024 07:08:09 +0000",
            "пн, 6 May 2024 07:08:09 +0000",
            "Mo., 6 May 2024 07:08:09 +0000",
            "Mon, 6 May 2024 07:08:09 \"GMT\"",
            "Mon, 6 May 2024 09:08:09 '+0200'",
            "Mon, 6 May 2024 08:08:09 BST",
            "Mon, 6 May 2024 17:08:09 AEST",
            "Mon, 6 May 2024 04:38:09 NDT",
        ] {
            assert_eq!(micros(date), Some(TIME), "{date}");
        }
        assert_eq!(micros("Mon, 6 May 24 07:08 EST"), Some(TIME + 17_991_000_000));
        assert_eq!(micros("31 Dec 1998 23:59:60 GMT"), micros("1 Jan 1999 00:00:00 GMT"));
        assert_eq!(micros("6 May 2024 12:08:09 pm"), Some(TIME + 5 * 3_600_000_000));
        assert_eq!(micros("1 Jan 1970 12:00:00 AM"), Some(0));
        assert_eq!(micros("31 Dec 69 23:59:59 +0000"), Some(-1_000_000));
    }

    #[test]
    fn what_is_not_read_whole_has_no_time() {
        for date in [
            "",
            "(only a comment)",
            "Mon, 6 May 2024",
            "07:08:09",
            "31 Feb 2024 07:08:09 GMT",
            "6 May 2024 24:08:09 GMT",
            "6 May 2024 07:61:09 GMT",
            "6 May 2024 07:08:009 GMT",
            "6 May 2024 07:08:09 Eastern Daylight Time",
            "6 May 2024 07:08:09 XYZT",
            "6 May 2024 07:08:09 IST",
            "6 May 2024 -:",
            "6 May 2024 07:08:09+-5x:06",
            "2024-05-06",
            "2024-13-06 07:08:09",
            "2024-05-06x07:08:09",
            "2024-05-06 2024-05-06 07:08:09",
            "07.08.09",
            "07.08.09 10:00:00",
            "6 May 2024 07:08:09 07.08.09",
            "6 May 2024 07.08.60",
            "6 May 2024 1.07.08.09",
            "Lun 6 May 2024 07:08:09",
            "Lun, Mar, 6 May 2024 07:08:09",
            "5x, 6 May 2024 07:08:09",
            "6 May 2024 07:08:09 \"GMT",
            "Mon, 6 Mai 2024 07:08:09",
            "6 May 2024 07:08:09 +2500",
            "6 May 2024 07:08:09 +0200 GMT",
            "6 May 2024 2024 07:08:09",
            "6 May May 2024 07:08:09",
            "6 May 0000 07:08:09",
            "6 May 12024 07:08:09",
            "6 May 2024 13:08:09 pm",
            "6 May 2024 07:08:09 and more",
            "6\u{a0}May 2024 07:08:09",
        ] {
            assert_eq!(micros(date), None, "{date}");
        }
        assert_eq!(micros(&"1 ".repeat(1 << 20)), None);
    }
}
