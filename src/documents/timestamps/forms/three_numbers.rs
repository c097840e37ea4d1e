//! Dates of three numbers, the last of which is the year.
//!
//! ```text
//! 06.05.2024 07:08:09   6.5.2024 7:08   13/06/2024 07:08:09   05/06/2024 7:08:09 AM   06.05.24 07:08:09
//! ```
//!
//! Other lines tell the order of day and month ([`told_by_lines`](crate::timestamps::told_by_lines)).

use super::{Date, Found, Moment, Stamp, separator, with_time};
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
