//! Days of a week and of a year, as ISO 8601 has them, and the times behind them.
//!
//! ```text
//! 2024-W19-1T07:08:09Z   2024W191T070809        Monday of week 19, which has the fourth of its days in 2024
//! 2024-127T07:08:09Z     2024127T070809         day 127
//! ```
//!
//! They are read only before `T` and a time: three digits behind a year may also be a number of anything else.

use chrono::{NaiveDate, Weekday};

use super::{Date, Stamp, rest_of};
use crate::timestamps::scan::Scan;

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
