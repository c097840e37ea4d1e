//! Stamps of programs that no standard describes, each known by what stands beside it.
//!
//! ```text
//! 0506/070809.123456:ERROR:x.cc(1)]                     Chromium
//! 240506 070809 148 INFO dfs   24/05/06 07:08:09 INFO   Hadoop, Spark
//! 03-17 16:13:38.811  1702  2395 D WindowManager        Android
//! 10.30 16:49:06] chrome.exe - proxy:5070               Proxifier
//! 20171223-22:15:29:606|Step_LSC                        a health app
//! 134681 node-246 unix.hw state 1077804742 1 text       a cluster
//! - 1117838570 2005.06.03 R02-M1                        supercomputers
//! type=LOGIN msg=audit(1714979289.123:24287): pid=1     the audit daemon of Linux
//! 240506  7:08:09 [Note] ready                          MySQL up to 5.6
//! I0506 07:08:09.123456   12 main.go:10]                glog, klog
//! 05/06/2024-07:08:09.123456  [**] [1:1000:1]           Snort, Suricata
//! ```

use chrono::{DateTime, NaiveDate};
use memchr::memmem;

use super::numbered_days::{ANY_DAY, with_numbers};
use super::{Date, Found, MAX_FIELD_BYTES, MAX_STAMP_BYTES, Stamp, behind_level, century, epoch, instant, rest_of};
use crate::timestamps::scan::{DayTime, Scan};
use crate::timestamps::told_by_lines::Style;
use crate::timestamps::zones::Unclear;

/// Reads the stamp of Chromium, month and day before `/`.
pub(super) fn chromium(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let month = scan.digits(2)?;
    let day = scan.digits(2)?;
    scan.one_of(b"/")?;
    let time = scan.compact_time()?;
    let is_meant = scan.peek() == Some(b'.') && scan.has_digit_at(1);
    let date = Date::without_any_year(month, day);
    is_meant.then(|| rest_of(scan, date, time, false))
}

/// Reads the stamp of Hadoop, which is known by the number of a thread and a level behind it, or that of
/// Spark, whose parts have signs between them and a level behind them. Other programs write such lines with
/// the day or the month first.
pub(super) fn hadoop(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let first = scan.digits(2)?;
    let has_signs = scan.one_of(b"/").is_some();
    let second = scan.digits(2)?;
    if has_signs {
        scan.one_of(b"/")?;
    }
    let third = scan.digits(2)?;
    scan.one_of(b" ")?;
    let time = if has_signs { scan.day_time()? } else { scan.compact_time()? };
    let behind = scan;
    scan.one_of(b" ")?;
    if !has_signs {
        scan.number()?;
        scan.one_of(b" ")?;
    }
    behind_level(scan.0)?;
    let stamp = rest_of(behind, ANY_DAY, time, false);
    Some(with_numbers(stamp, Style::Program, [first, second, third]))
}

/// Reads the stamp of Android's log: month and day, a time with milliseconds, and the numbers of process and thread
/// before a letter for the level, or the letter, a slash and a name.
pub(super) fn logcat(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    const LEVELS: &[u8] = b"VDIWEFAS";
    let month = scan.digits(2)?;
    scan.one_of(b"-")?;
    let day = scan.digits(2)?;
    scan.one_of(b" ")?;
    let time = scan.day_time().filter(|time| time.has_seconds)?;
    let mut behind = scan;
    behind.one_of(b".")?;
    behind.digits(3)?;
    behind.one_of(b" ")?;
    behind.blanks();
    if behind.number().is_some() {
        for _ in 0..2 {
            behind.blanks();
            behind.number();
        }
        behind.blanks();
        behind.one_of(LEVELS)?;
        behind.one_of(b" ")?;
    } else {
        behind.one_of(LEVELS)?;
        behind.one_of(b"/")?;
    }
    Some(rest_of(scan, Date::without_any_year(month, day), time, false))
}

/// Reads the stamp of Proxifier, month and day first, which is known by a bracket behind it and a dash behind the name
/// of a program.
pub(super) fn proxifier(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let month = scan.digits(2)?;
    scan.one_of(b".")?;
    let day = scan.digits(2)?;
    scan.one_of(b" ")?;
    let time = scan.day_time().filter(|time| time.has_seconds)?;
    let name = scan.0.strip_prefix(b"] ")?;
    memmem::find(name.get(..MAX_FIELD_BYTES).unwrap_or(name), b" - ")?;
    Some(rest_of(scan, Date::without_any_year(month, day), time, false))
}

/// Reads the stamp of a phone's health app: the digits of a date, hours, minutes, seconds and milliseconds of one digit
/// or more each, and a bar.
pub(super) fn health_app(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    if scan.num_digits() != 8 {
        return None;
    }
    let date = Date::new(scan.digits(4)?, scan.digits(2)?, scan.digits(2)?);
    let mut parts = [0; 3];
    for (part, before) in parts.iter_mut().zip([b"-", b":", b":"]) {
        scan.one_of(before)?;
        *part = scan.one_or_two_digits()?;
    }
    scan.one_of(b":")?;
    let len = scan.num_digits();
    let millis = scan.digits(len).filter(|_| (1..=3).contains(&len))?;
    let behind = scan;
    scan.one_of(b"|")?;
    let [hour, minute, second] = parts;
    let time = DayTime { hour, minute, second, nanos: millis * 1_000_000, has_seconds: true };
    let moment = time.time().and_then(|time| date.at(Some(time), None));
    Some(moment.map(|moment| Found::new(moment, behind)).ok_or(Unclear::Part))
}

/// Reads the seconds since 1970 behind a number and the names of a node, a component and a state, and before a flag.
pub(super) fn node_state(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    scan.number()?;
    scan.one_of(b" ")?;
    for _ in 0..3 {
        let len = scan.0.iter().take(MAX_FIELD_BYTES).position(|byte| *byte == b' ').filter(|len| *len > 0)?;
        scan.0 = scan.0.get(len + 1..)?;
    }
    let stamp = epoch(scan).filter(|_| scan.num_digits() == 10)?;
    let mut behind = stamp.as_ref().ok()?.rest;
    behind.one_of(b" ")?;
    behind.one_of(b"-");
    behind.one_of(b"01")?;
    behind.one_of(b" ")?;
    Some(stamp)
}

/// Reads the seconds since 1970 behind the label of an alert or a dash, and before the same day: the logs of
/// supercomputers.
pub(super) fn labelled_epoch(text: &[u8]) -> Option<Stamp<'_>> {
    let label = text.iter().take(MAX_FIELD_BYTES).position(|byte| *byte == b' ').filter(|len| *len > 0)?;
    let mut scan = Scan(text.get(label + 1..)?);
    let seconds = { scan }.number()?;
    let stamp = epoch(scan).filter(|_| scan.num_digits() == 10)?;
    scan = stamp.as_ref().ok()?.rest;
    scan.one_of(b" ")?;
    let year = scan.digits(4)?;
    scan.one_of(b".")?;
    let month = scan.digits(2)?;
    scan.one_of(b".")?;
    let day = scan.digits(2)?;
    scan.one_of(b" ")?;
    let stated = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let counted = DateTime::from_timestamp(seconds, 0)?.date_naive();
    let is_same = (stated - counted).num_days().abs() <= 1;
    is_same.then_some(stamp.map(|found| Found { form: "epoch and day", ..found }))
}

/// Reads the stamp of the audit daemon of Linux: seconds since 1970, with parts, and the number of an event.
pub(super) fn audit(text: &[u8]) -> Option<Stamp<'_>> {
    const BEFORE: &[u8] = b" msg=audit(";
    if !text.starts_with(b"type=") && !text.starts_with(b"node=") {
        return None;
    }
    let start = text.get(..MAX_STAMP_BYTES).unwrap_or(text);
    let at = memmem::find(start, BEFORE)?;
    let mut scan = Scan(text.get(at + BEFORE.len()..)?);
    let seconds = scan.number()?;
    scan.one_of(b".")?;
    let nanos = scan.fraction_digits()?;
    scan.one_of(b":")?;
    scan.number()?;
    scan.one_of(b")")?;
    Some(Ok(Found { form: "audit", ..Found::new(instant(seconds, nanos)?, scan) }))
}

/// Reads the stamp of MySQL up to 5.6: two digits each for year, month and day, a time, and a level in brackets or the
/// name of a part. An hour of one digit has a second blank before it.
pub(super) fn mysql(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    const BEHIND: [&[u8]; 5] = [b"[Note]", b"[Warning]", b"[ERROR]", b"InnoDB:", b"mysqld"];
    let numbers = [scan.digits(2)?, scan.digits(2)?, scan.digits(2)?];
    scan.one_of(b" ")?;
    scan.blanks();
    let time = scan.day_time().filter(|time| time.has_seconds)?;
    let mut behind = scan;
    behind.blanks();
    BEHIND.iter().find(|name| behind.0.starts_with(name))?;
    let stamp = rest_of(scan, ANY_DAY, time, false);
    Some(with_numbers(stamp, Style::Program, numbers))
}

/// Reads the stamp of glog and klog: a letter for the level, month and day, also with the year before them.
pub(super) fn klog(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    scan.one_of(b"IWEFD")?;
    let year = match scan.num_digits() {
        4 => None,
        8 => Some(scan.digits(4)?),
        _ => return None,
    };
    let month = scan.digits(2)?;
    let day = scan.digits(2)?;
    scan.one_of(b" ")?;
    let time = scan.day_time().filter(|time| time.has_seconds)?;
    let is_meant = scan.peek() == Some(b'.') && scan.has_digit_at(1);
    let date = Date { year, ..Date::without_any_year(month, day) };
    is_meant.then(|| rest_of(scan, date, time, false))
}

/// Reads the stamp of the alerts of Snort and Suricata, month and day first, also with a year, which is known by the
/// mark behind it.
pub(super) fn snort(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let month = scan.digits(2)?;
    scan.one_of(b"/")?;
    let day = scan.digits(2)?;
    let mut date = Date::without_any_year(month, day);
    if scan.one_of(b"/").is_some() {
        let len = scan.num_digits();
        let year = scan.digits(len).filter(|_| matches!(len, 2 | 4))?;
        date.year = Some(if len == 2 { century(year) } else { year });
    }
    scan.one_of(b"-")?;
    let time = scan.day_time().filter(|time| time.has_seconds)?;
    let mut behind = scan;
    behind.one_of(b".")?;
    behind.fraction_digits()?;
    behind.blanks();
    behind.text(b"[**]")?;
    Some(rest_of(scan, date, time, false))
}
