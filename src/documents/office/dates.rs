//! Dates and times of the cells of workbooks, which are numbers with a format.
//!
//! ```text
//! styles.xml   numFmt 164 "yyyy-mm-dd hh:mm"   cellXfs: xf 0, xf 14, xf 164
//! cell         s="2" v 45418.29732638889  ─▶  style 2  ─▶  format 164 has days and times  ─▶  2024-05-06 07:08:09
//! ```
//!
//! A number counts days since 30 December 1899, or since 1904 where the workbook says so. Excel has a 29 February 1900,
//! as Lotus had: days before it count from one day later, and day 60 does not exist. Dates are written in the form of
//! ISO 8601 whatever their format is, with a time if they have one or if their format has. Numbers below 1 are times of
//! a day. Formats of durations (`[h]:mm`) and numbers that are no date stay as they are.
//!
//! Source: ECMA-376, part 1: 18.8.30 (numbers of formats), 18.8.31 (codes), 18.17.4 (dates).

use std::collections::HashMap;
use std::io::{Read, Seek};

use chrono::{NaiveDate, NaiveTime, TimeDelta};

use super::text::{Text, Token};
use super::{Fault, Package};

/// Days of the first date that is not written, 1 January 10000.
const END: f64 = 2_958_466.0;
/// Days from 30 December 1899 to 1 January 1904.
const DAYS_TO_1904: f64 = 1462.0;
/// The day that does not exist, 29 February 1900.
const NO_DAY: i64 = 60;
const MILLIS_OF_DAY: i64 = 24 * 60 * 60 * 1000;

/// The parts of a date that a format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    has_day: bool,
    has_time: bool,
}

impl Form {
    /// Returns the form of a format that every program knows by its number. Those from 27 depend on the language.
    fn from_number(number: u32) -> Option<Self> {
        let (has_day, has_time) = match number {
            14..=17 | 27..=31 | 34..=36 | 50..=58 => (true, false),
            18..=21 | 32 | 33 | 45 | 47 => (false, true),
            22 => (true, true),
            _ => return None,
        };
        Some(Self { has_day, has_time })
    }

    /// Returns the form of a code such as `yyyy-mm-dd hh:mm`, if it is one of dates or times.
    fn from_code(code: &str) -> Option<Self> {
        let mut has_day = false;
        let mut has_month = false;
        let mut has_time = false;
        let mut characters = code.chars();
        while let Some(character) = characters.next() {
            match character.to_ascii_lowercase() {
                // Positive numbers have the first one of several.
                ';' => break,
                '"' => _ = characters.find(|character| *character == '"'),
                // The next character stands for itself, or for its width.
                '\\' | '_' | '*' => _ = characters.next(),
                '[' => {
                    let inside: String = characters.by_ref().take_while(|character| *character != ']').collect();
                    if !inside.is_empty() && inside.chars().all(|character| "hHmMsS".contains(character)) {
                        return None;
                    }
                }
                'y' | 'd' => has_day = true,
                'm' => has_month = true,
                'h' | 's' => has_time = true,
                '0' | '#' | '?' if !has_time && !has_day && !has_month => return None,
                _ => {}
            }
        }
        // A month beside a time is a minute.
        let has_day = has_day || has_month && !has_time;
        (has_day || has_time).then_some(Self { has_day, has_time })
    }

    /// Returns the text of `number`, if it is a date or time.
    fn text(self, number: f64, is_1904: bool) -> Option<String> {
        let days = if is_1904 { number + DAYS_TO_1904 } else { number };
        if !(0.0..END).contains(&days) || number < 0.0 {
            return None;
        }
        // Floats have less than a microsecond.
        let millis = (days * MILLIS_OF_DAY as f64).round() as i64;
        let day = millis / MILLIS_OF_DAY;
        let time = millis % MILLIS_OF_DAY;
        let text_of_time = || {
            let time = NaiveTime::MIN + TimeDelta::milliseconds(time);
            time.format("%H:%M:%S%.f").to_string()
        };
        if number < 1.0 && (self.has_time || !is_1904) {
            return self.has_time.then(text_of_time);
        }
        if day == NO_DAY {
            return None;
        }
        let before = i64::from(day < NO_DAY);
        let date = NaiveDate::from_ymd_opt(1899, 12, 30)? + TimeDelta::days(day + before);
        let has_time = self.has_time || time > 0;
        Some(if has_time { format!("{date} {}", text_of_time()) } else { date.to_string() })
    }
}

/// The formats of the cells of a workbook that are dates, by the number of their style.
#[derive(Debug, Default)]
pub struct Dates {
    styles: Vec<Option<Form>>,
    is_1904: bool,
}

impl Dates {
    /// Reads the styles `part`.
    ///
    /// # Errors
    /// The part is broken or exceeds a limit.
    pub fn read(
        package: &mut Package<'_, impl Read + Seek>,
        part: &str,
        is_1904: bool,
        held: &mut Text,
    ) -> Result<Self, Fault> {
        let mut dates = Self { styles: Vec::new(), is_1904 };
        let Some(mut xml) = package.open(part)? else { return Ok(dates) };
        let mut codes = HashMap::new();
        let mut is_in_cells = false;
        while let Some(token) = xml.next()? {
            match token {
                Token::Start(element) if element.name() == b"numFmt" => {
                    let number = element.attribute("numFmtId").and_then(|number| number.parse::<u32>().ok());
                    let Some((number, code)) = number.zip(element.attribute("formatCode")) else { continue };
                    held.hold(size_of::<(u32, Form)>() as u64)?;
                    codes.insert(number, Form::from_code(&code));
                }
                Token::Start(element) if element.name() == b"cellXfs" => is_in_cells = true,
                Token::Start(element) if element.name() == b"xf" && is_in_cells => {
                    let number = element.attribute("numFmtId").and_then(|number| number.parse().ok());
                    let form = |number: u32| codes.get(&number).copied().unwrap_or_else(|| Form::from_number(number));
                    held.hold(size_of::<Option<Form>>() as u64)?;
                    dates.styles.push(number.and_then(form));
                }
                Token::End(name) if name.name() == b"cellXfs" => is_in_cells = false,
                _ => {}
            }
        }
        Ok(dates)
    }

    /// Returns the form of the cells of `style`, the attribute of a cell, if they are dates.
    pub fn form(&self, style: Option<&str>) -> Option<Form> {
        let style = style.map_or(Some(0), |style| style.parse::<usize>().ok())?;
        self.styles.get(style).copied()?
    }

    /// Returns the text of `value`, a number in a cell of `form`, if it is a date or time.
    pub fn text(&self, form: Form, value: &str) -> Option<String> {
        form.text(value.parse().ok()?, self.is_1904)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Form = Form { has_day: true, has_time: false };
    const TIME: Form = Form { has_day: false, has_time: true };
    const BOTH: Form = Form { has_day: true, has_time: true };

    #[test]
    fn codes_tell_dates_from_numbers() {
        for (code, expected) in [
            ("yyyy-mm-dd", Some(DAY)),
            ("dd\\.mm\\.yy;@", Some(DAY)),
            ("[$-409]d\\-mmm\\-yy", Some(DAY)),
            ("mmmm", Some(DAY)),
            ("mm:ss", Some(TIME)),
            ("mm:ss.0", Some(TIME)),
            ("h:mm AM/PM", Some(TIME)),
            ("YYYY/MM/DD\\ HH:MM:SS", Some(BOTH)),
            ("yyyy\"年\"m\"月\"d\"日\"", Some(DAY)),
            ("General", None),
            ("0.00", None),
            ("#,##0.00\\ \"days\"", None),
            ("0.00E+00", None),
            ("[Red]0", None),
            ("[$€-de-DE]#,##0", None),
            ("0;[Red]\\-0;\"d\"", None),
            ("_-* #,##0_d", None),
            ("[h]:mm:ss", None),
            ("@", None),
            ("\"unclosed d", None),
            ("", None),
        ] {
            assert_eq!(Form::from_code(code), expected, "{code}");
        }
    }

    #[test]
    fn numbers_are_days_of_two_calendars() {
        for (form, number, is_1904, expected) in [
            (DAY, 45418.0, false, Some("2024-05-06")),
            (DAY, 45_418.297_326_388_89, false, Some("2024-05-06 07:08:09")),
            (BOTH, 45418.0, false, Some("2024-05-06 00:00:00")),
            (BOTH, 45_418.297_327_812_5, false, Some("2024-05-06 07:08:09.123")),
            (BOTH, 45_418.999_999_999_9, false, Some("2024-05-07 00:00:00")),
            (TIME, 0.297_326_388_89, false, Some("07:08:09")),
            (TIME, 0.0, false, Some("00:00:00")),
            (TIME, 1.5, false, Some("1900-01-01 12:00:00")),
            (DAY, 1.0, false, Some("1900-01-01")),
            (DAY, 59.0, false, Some("1900-02-28")),
            (DAY, 60.0, false, None),
            (DAY, 61.0, false, Some("1900-03-01")),
            (DAY, 2_958_465.0, false, Some("9999-12-31")),
            (DAY, 2_958_466.0, false, None),
            (DAY, 0.5, false, None),
            (DAY, -1.0, false, None),
            (DAY, f64::NAN, false, None),
            (DAY, f64::INFINITY, false, None),
            (DAY, 0.0, true, Some("1904-01-01")),
            (DAY, 43956.0, true, Some("2024-05-06")),
            (TIME, 0.5, true, Some("12:00:00")),
            (DAY, 2_957_004.0, true, None),
        ] {
            assert_eq!(form.text(number, is_1904).as_deref(), expected, "{form:?} {number} {is_1904}");
        }
    }

    /// Each millisecond of the calendar has the text that chrono writes for it.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let random = &mut testkit::random::Random(46);
        let first = NaiveDate::from_ymd_opt(1900, 3, 1).unwrap();
        for _ in 0..20_000 {
            let days = random.below(2_958_465 - 61);
            let millis = random.below(86_400_000);
            let time =
                first.and_time(NaiveTime::MIN) + TimeDelta::days(days as i64) + TimeDelta::milliseconds(millis as i64);
            let number = (days + 61) as f64 + millis as f64 / 86_400_000.0;
            let expected = time.format("%Y-%m-%d %H:%M:%S%.f").to_string();
            assert_eq!(BOTH.text(number, false), Some(expected), "{number}");
        }
    }
}
