//! Dates of numbers alone: of three numbers, the last of which is the year, and days of a week and of a year as ISO
//! 8601 has them.
//!
//! ```text
//! 06.05.2024 07:08:09   6.5.2024 7:08   13/06/2024 07:08:09   05/06/2024 7:08:09 AM   06.05.24 07:08:09
//! 2024-W19-1T07:08:09Z   2024W191T070809        Monday of week 19, which has the fourth of its days in 2024
//! 2024-127T07:08:09Z     2024127T070809         day 127
//! ```
//!
//! Other lines tell the order of day and month ([`told_by_lines`](crate::timestamps::told_by_lines)). Days of a week
//! and of a year are read only before `T` and a time: three digits behind a year may also be a number of anything else.

use chrono::{NaiveDate, Weekday};

use super::{Date, Found, Moment, Stamp, rest_of, separator, with_time};
use crate::timestamps::behind::{YEARS, day_alone, fraction};
use crate::timestamps::scan::Scan;
use crate::timestamps::told_by_lines::{Short, Shown, Style};
use crate::timestamps::zones::Unclear;

/// Day of a stamp whose date is three numbers in an order that is not known.
pub(super) const ANY_DAY: Date = Date::new(2000, 1, 1);

/// Reads `06.05.2024 07:08:09`, also with `/` or `-` and with two digits of the year. The day or the month is first,
/// which other lines tell.
pub(super) fn year_last(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let (numbers, sign) = three_numbers(&mut scan)?;
    let stamp = with_time(scan, ANY_DAY)?;
    let has_half = has_half(scan);
    let style = match sign {
        _ if numbers[2] < 100 => Style::Digits,
        b'.' if !has_half => Style::Points,
        b'/' if has_half => Style::Halves,
        _ => Style::Signs,
    };
    Some(with_numbers(stamp, style, numbers))
}

/// Reads a date of three numbers, the last of which is the year, without a time.
pub(super) fn day_alone_in_numbers(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let (numbers, sign) = three_numbers(&mut scan)?;
    let style = match sign {
        _ if numbers[2] < 100 => Style::Digits,
        b'.' => Style::Points,
        _ => Style::Signs,
    };
    let moment = Moment::Short(Short { style, numbers, time: None, zone: None });
    Some(day_alone(scan).map(|()| Found::new(moment, scan)))
}

/// Reads three numbers with a sign between them, the last of two or four digits. Returns them and the sign.
fn three_numbers(scan: &mut Scan<'_>) -> Option<([u32; 3], u8)> {
    let first = scan.one_or_two_digits()?;
    let sign = scan.one_of(b"./-")?;
    let second = scan.one_or_two_digits()?;
    scan.one_of(&[sign])?;
    let len = scan.num_digits();
    let year = scan.digits(len)?;
    // In `06-25-10:18:53` these are the hours.
    let is_year = len == 2 && !matches!(scan.peek(), Some(b':')) || len == 4 && YEARS.contains(&year);
    is_year.then_some(([first, second, year], sign))
}

/// Returns true if a time with AM or PM follows.
fn has_half(mut scan: Scan<'_>) -> bool {
    let is_cell = separator(&mut scan) == Some(b',');
    scan.day_time().is_some() && fraction(&mut scan, is_cell).is_ok() && scan.half().is_some()
}

/// Returns the stamp with a date of three numbers in place of [`ANY_DAY`].
pub(super) fn with_numbers(stamp: Stamp<'_>, style: Style, numbers: [u32; 3]) -> Stamp<'_> {
    let found = stamp?;
    match found.moment {
        Moment::Shown(Shown { day, time, zone, .. }) if day == ANY_DAY.day => {
            Ok(Found { moment: Moment::Short(Short { style, numbers, time, zone }), ..found })
        }
        // The end of a day is the start of another one.
        _ => Err(Unclear::Part),
    }
}

/// Reads the week and the day of the week behind the year of `2024-W19-1` or `2024W191`, and the time.
pub(super) fn week_date(mut scan: Scan<'_>, year: u32, has_signs: bool) -> Option<Stamp<'_>> {
    scan.one_of(b"W")?;
    let week = scan.digits(2)?;
    if has_signs {
        scan.one_of(b"-")?;
    }
    let weekday = u8::try_from(scan.digits(1)?.checked_sub(1)?).ok()?;
    let weekday = Weekday::try_from(weekday).ok()?;
    let day = NaiveDate::from_isoywd_opt(i32::try_from(year).ok()?, week, weekday)?;
    with_iso_time(scan, Date::from_day(day)?)
}

/// Reads the day of the year behind the year of `2024-127` or `2024127`, and the time.
pub(super) fn ordinal_date(mut scan: Scan<'_>, year: u32) -> Option<Stamp<'_>> {
    let ordinal = scan.digits(3)?;
    let day = NaiveDate::from_yo_opt(i32::try_from(year).ok()?, ordinal)?;
    with_iso_time(scan, Date::from_day(day)?)
}

/// Reads a time behind `T`, also without separators.
fn with_iso_time(mut scan: Scan<'_>, date: Date) -> Option<Stamp<'_>> {
    scan.one_of(b"Tt")?;
    let time = scan.day_time().or_else(|| scan.compact_time())?;
    Some(rest_of(scan, date, time, false))
}
