//! Finds timestamps in the common forms of logs.
//!
//! ```text
//! <34>[ 2024-05-06 07:08:09,123 PM +0200 up       INFO: 2024-05-06 …   level=info ts=2024-05-06T…
//! └front┘└─date──┘ └───time───┘└────┘└───┘ └ text  └prefix┘
//!                  separator   half  zone, and a year if the date has none
//! ```
//!
//! [`DIGIT_FORMS`] and [`LETTER_FORMS`] are the forms, each with examples. A stamp is read whole: its date, its time,
//! parts of a second, the half of the day, the zone, and a year behind the time. If something follows that may be one
//! more part and is not understood, the stamp is [unclear](Unclear), and no time is found. A date alone means midnight
//! only where no time follows in the line.
//!
//! Stamps stand at the start of a line, behind what [`front`](behind_front) and [`prefixed`] take; that of the common
//! log format stands behind any `[`. One with a year and a time may stand behind up to three other fields, such as the
//! names of a host and of a thread. The forms are those of ISO 8601 and RFC 3339, of RFC 3164 and 5424 (syslog), of RFC
//! 5322 (mail) and HTTP, of `asctime`, `date` and git, and those of programs that the examples name. `05/06/2024` is in
//! May or in June: other lines of the input may tell it, and with AM or PM behind its time it is in May, as Americans
//! write it. Time is linear in the bytes that are looked at.

mod numbered_days;
mod programs;

use chrono::{Datelike, NaiveDate, NaiveTime};
use memchr::{memchr_iter, memmem};

use self::numbered_days::{day_alone_in_numbers, ordinal_date, week_date, year_last};
use self::programs::{
    audit, chromium, hadoop, health_app, klog, labelled_epoch, logcat, mysql, node_state, proxifier, snort,
};
use super::behind::{
    YEARS, among_texts, check_end, day_alone, fraction, has_text, has_word_and_year, is_decimal_comma, year_behind,
};
use super::scan::{DayTime, Scan};
use super::told_by_lines::{Short, Shown};
use super::zones::{self, Unclear, Zone};

/// A time as a text states it.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// Microseconds since 1970 in UTC.
    Instant(i64),
    /// A time of clocks and calendars.
    Shown(Shown),
    /// A time whose date is three numbers in an order that other lines tell.
    Short(Short),
}

/// A stamp that was read, or that is not understood as a whole.
pub type Stamp<'a> = Result<Found<'a>, Unclear>;

/// A moment, the bytes behind its stamp, and the name of its form.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    moment: Moment,
    rest: Scan<'a>,
    form: &'static str,
}

impl<'a> Found<'a> {
    fn new(moment: Moment, rest: Scan<'a>) -> Self {
        Self { moment, rest, form: "" }
    }
}

/// Reads a stamp of one form. Returns none for another text.
type Form = for<'a> fn(Scan<'a>) -> Option<Stamp<'a>>;

/// Forms that begin with a digit, with a name.
const DIGIT_FORMS: [(&str, Form); 13] = [
    // 20171223-22:15:29:606|Step_LSC
    ("health app", health_app),
    // 2024-05-06T07:08:09Z   2024/5/6 7:08:09   2024 May  6 07:08:09   2024-05-06
    // 2024-127T07:08:09Z   2024-W19-1T07:08:09Z
    ("year first", year_first),
    // 20240506T070809Z   20240506 07:08:09   20240506070809   2024127T070809Z
    ("digits of a date", without_separators),
    // 06/May/2024:07:08:09   06 May 2024 07:08:09   06-May-2024 07:08:09
    ("day first", day_first),
    // 1714979289   1714979289.123   1714979289123   1714979289123456   1714979289123456789
    ("epoch", epoch),
    // 0506/070809.123456:ERROR:x.cc(1)]
    ("chromium", chromium),
    // 240506 070809 148 INFO dfs   24/05/06 07:08:09 INFO Executor
    ("hadoop", hadoop),
    // 240506  7:08:09 [Note] ready
    ("mysql", mysql),
    // 05/06/2024-07:08:09.123456  [**] [1:1000:1]
    ("snort", snort),
    // 06.05.2024 07:08:09   05/06/2024 7:08:09 AM   13/06/2024 07:08:09   06.05.24 07:08:09
    ("year last", year_last),
    // 03-17 16:13:38.811  1702  2395 D WindowManager
    ("logcat", logcat),
    // 10.30 16:49:06] chrome.exe - proxy:5070
    ("proxifier", proxifier),
    // 134681 node-246 unix.hw state_change.unavailable 1077804742 1 Component
    ("state of a node", node_state),
];
/// Forms that begin with a letter, with a name.
const LETTER_FORMS: [(&str, Form); 3] = [
    // May  6 07:08:09   May  6 07:08:09 CEST   May  6 2024 07:08:09   May 6, 2024 7:08:09 AM
    ("month first", month_first),
    // Mon May  6 07:08:09 2024 +0200   Mon, 06 May 2024 07:08:09 GMT   Mon 2024-05-06 07:08:09
    // Monday, 06-May-24 07:08:09 GMT
    ("weekday first", weekday_first),
    // I0506 07:08:09.123456   12 main.go:10]
    ("glog", klog),
];

/// Words for the level of a record, in capitals.
const LEVELS: [&[u8]; 18] = [
    b"TRACE",
    b"DEBUG",
    b"INFO",
    b"INFORMATION",
    b"NOTICE",
    b"WARN",
    b"WARNING",
    b"ERROR",
    b"ERR",
    b"FATAL",
    b"CRITICAL",
    b"CRIT",
    b"ALERT",
    b"EMERG",
    b"SEVERE",
    b"FINE",
    b"FINER",
    b"FINEST",
];
/// First words of the logs of load balancers of AWS.
const SCHEMES: [&[u8]; 7] = [b"http", b"https", b"h2", b"ws", b"wss", b"grpc", b"grpcs"];
/// Names of the time in records of `name=value`.
const TIME_KEYS: [&[u8]; 10] =
    [b"time", b"ts", b"t", b"timestamp", b"@timestamp", b"_time", b"datetime", b"date", b"asctime", b"eventtime"];
/// Largest number of pairs of `name=value` before the time.
const MAX_PAIRS: usize = 8;
/// Label of TAI64 of the year 1970, as programs count that know no leap seconds.
const TAI64_EPOCH: i64 = (1 << 62) + 10;
/// Largest number of fields before a stamp with a year and a time, and of the bytes of each.
const MAX_FIELDS: usize = 3;
const MAX_FIELD_BYTES: usize = 64;
/// Length of a line above which the rest may be missing, and of a stamp that is cut there.
const CUT_BYTES: usize = 4 << 10;
const MAX_STAMP_BYTES: usize = 128;

/// Returns the time of [`find_named`].
#[cfg(test)]
pub fn find(line: &[u8]) -> Option<Moment> {
    find_named(line, &mut false).map(|(moment, _)| moment)
}

/// Returns the time that `line` begins with, or that stands in it in the common log format, and the name of its form.
/// `has_texts` is true if a line of the same input has text behind its stamp, so that a number is text, too; it is set
/// by such a line.
pub fn find_named(line: &[u8], has_texts: &mut bool) -> Option<(Moment, &'static str)> {
    among_texts(line, has_texts, |line| {
        let start = behind_front(line);
        let stamp = stamp(start).or_else(|| audit(start)).or_else(|| prefixed(start)).or_else(|| common_log(line));
        let stamp = stamp.or_else(|| labelled_epoch(start)).or_else(|| behind_fields(start))?;
        Some(stamp.map(|Found { moment, rest, form }| ((moment, form), has_text(rest))))
    })
}

/// Returns the time that is the whole `text`.
pub fn find_whole(text: &[u8]) -> Option<Moment> {
    let front = behind_front(text);
    let Found { moment, mut rest, .. } = stamp(front).or_else(|| day_alone_in_numbers(Scan(front)))?.ok()?;
    if let Moment::Shown(Shown { zone: Some(stated), .. }) = moment {
        // A zone is sometimes written twice, as an offset and as a name: `+0200 CEST`, `GMT+0200 (…)`.
        if let Ok(Some(again)) = zones::zone(&mut rest)
            && matches!((stated, again), (Zone::Offset(one), Zone::Offset(other)) if one != other)
        {
            return None;
        }
        if let Some(comment) = rest.0.strip_prefix(b" (")
            && comment.ends_with(b")")
            && !comment.iter().any(u8::is_ascii_digit)
        {
            rest.0 = b"";
        }
    }
    // The clock of a process in Go.
    let is_go = rest.0.starts_with(b" m=+") || rest.0.starts_with(b" m=-");
    let is_end = |byte: &u8| b"])>}\"'. \t".contains(byte);
    (is_go || rest.0.iter().all(is_end)).then_some(moment)
}

/// Returns the time behind `[`, which the kernel's log counts in seconds from the start of the machine.
pub fn dmesg(line: &[u8]) -> Option<Moment> {
    let mut scan = Scan(behind_front(line));
    let seconds = scan.number()?;
    scan.one_of(b".")?;
    let nanos = scan.fraction_digits().filter(|_| scan.0.starts_with(b"]"))?;
    instant(seconds, nanos)
}

fn stamp(text: &[u8]) -> Option<Stamp<'_>> {
    let forms: &[(&str, Form)] = match text.first()? {
        b'@' => &[("TAI64N", tai64n)],
        byte if byte.is_ascii_digit() => &DIGIT_FORMS,
        byte if byte.is_ascii_alphabetic() => &LETTER_FORMS,
        _ => return None,
    };
    let named = |&(form, read): &(&'static str, Form)| {
        let stamp = read(Scan(text))?;
        Some(stamp.map(|found| Found { form, ..found }))
    };
    forms.iter().find_map(named)
}

/// Returns the bytes behind blanks, colours, a priority of syslog, and brackets or a quotation mark.
fn behind_front(line: &[u8]) -> &[u8] {
    if line.first().is_some_and(u8::is_ascii_alphanumeric) {
        return line;
    }
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let mut scan = Scan(behind_colours(text));
    scan = priority(scan).unwrap_or(scan);
    if let Some(rest) = scan.0.strip_prefix(b"####<") {
        return rest;
    }
    if let [b'[' | b'"' | b'(' | b'<' | b'\'', rest @ ..] = scan.0 {
        scan = Scan(rest);
    }
    behind_colours(scan.0)
}

/// Returns the bytes behind blanks and sequences of terminals for colours.
fn behind_colours(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii_start();
    while let Some(rest) = text.strip_prefix(b"\x1b[") {
        let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
        let len = rest.iter().take_while(is_number).count();
        let Some([b'm', rest @ ..]) = rest.get(len..) else { break };
        text = rest.trim_ascii_start();
    }
    text
}

/// Reads `<34>` or `<34>1 `.
fn priority(mut scan: Scan<'_>) -> Option<Scan<'_>> {
    scan.one_of(b"<")?;
    scan.number()?;
    scan.one_of(b">")?;
    // A version stands before a time of ISO 8601, and `<34>6 May 2024` has none.
    let mut behind = scan;
    let is_version = behind.digits(1).is_some() && behind.one_of(b" ").is_some();
    Some(if is_version && behind.has_digit_at(0) { behind } else { scan })
}

/// Reads the stamp behind what some programs write before it.
fn prefixed(text: &[u8]) -> Option<Stamp<'_>> {
    let rest = match text.first()? {
        b'*' => text.get(1..),
        byte if byte.is_ascii_digit() => Some(behind_role(text)?),
        _ => behind_level(text).or_else(|| behind_scheme(text)),
    };
    let Some(rest) = rest else { return behind_key(text).and_then(stamp).map(with_field_zone) };
    // Numbers and dates alone are text here.
    match stamp(rest)? {
        Ok(Found { moment: Moment::Instant(_) | Moment::Shown(Shown { time: None, .. }), .. }) => None,
        stamp => Some(stamp),
    }
}

/// Adds the zone that a later field of a record states, such as ` tz="+0200"`.
fn with_field_zone(stamp: Stamp<'_>) -> Stamp<'_> {
    let mut found = stamp?;
    if let Moment::Shown(Shown { zone, .. }) | Moment::Short(Short { zone, .. }) = &mut found.moment
        && zone.is_none()
    {
        let keys: [&[u8]; 3] = [b" tz=", b" timezone=", b" zone="];
        let place = |key: &&[u8]| memmem::find(found.rest.0, key).map(|at| at + key.len());
        if let Some(at) = keys.iter().find_map(place) {
            let value = found.rest.0.get(at..).unwrap_or_default();
            *zone = Some(zones::labelled(&mut Scan(value))?);
        }
    }
    Ok(found)
}

/// Returns the bytes behind the level of a record, such as `INFO: `, `WARN] [` or `ERROR:root:`.
fn behind_level(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, rest) = text.split_at(len);
    if !(3..=11).contains(&len) {
        return None;
    }
    LEVELS.iter().find(|level| level.eq_ignore_ascii_case(word))?;
    if let [b':', rest @ ..] = rest {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._".contains(byte);
        let name_len = rest.iter().take_while(is_name).count();
        if let Some([b':', rest @ ..]) = rest.get(name_len..) {
            return Some(rest);
        }
    }
    let is_between = |byte: &&u8| b" \t:]|)>,-[(\"".contains(byte);
    let gap = rest.iter().take_while(is_between).count();
    rest.get(gap..).filter(|_| gap > 0)
}

/// Returns the bytes behind the scheme of a request.
fn behind_scheme(text: &[u8]) -> Option<&[u8]> {
    let space = text.iter().take(8).position(|byte| *byte == b' ')?;
    let (word, rest) = text.split_at(space);
    SCHEMES.contains(&word).then(|| rest.get(1..))?
}

/// Returns the bytes behind the number and the role of a process of Redis: `12:M `.
fn behind_role(text: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan(text);
    scan.number()?;
    scan.one_of(b":")?;
    scan.one_of(b"CMSX")?;
    scan.one_of(b" ")?;
    Some(scan.0)
}

/// Returns the value of the time in a record of `name=value`.
fn behind_key(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    for _ in 0..MAX_PAIRS {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"@_.-".contains(byte);
        let len = rest.iter().take_while(is_name).count();
        let (name, value) = rest.split_at_checked(len).filter(|_| len > 0)?;
        let value = value.strip_prefix(b"=")?;
        let quoted = value.strip_prefix(b"\"");
        if TIME_KEYS.contains(&name) {
            return Some(quoted.unwrap_or(value));
        }
        let value = quoted.unwrap_or(value);
        let end = if quoted.is_some() { b'"' } else { b' ' };
        let end = memchr::memchr(end, value)?;
        rest = value.get(end + 1..)?.trim_ascii_start();
    }
    None
}

/// A date as it stands.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: Option<u32>,
    month: u32,
    day: u32,
    /// True if a year may stand behind the time.
    has_year_behind: bool,
    /// True if a day of the week stands before it.
    has_weekday: bool,
}

impl Date {
    const fn new(year: u32, month: u32, day: u32) -> Self {
        Self { year: Some(year), month, day, has_year_behind: false, has_weekday: false }
    }

    /// Returns the day of a calendar.
    fn from_day(day: NaiveDate) -> Option<Self> {
        Some(Self::new(u32::try_from(day.year()).ok()?, day.month(), day.day()))
    }

    /// Returns the next day. Returns none without a year.
    fn next(&self) -> Option<Self> {
        let year = i32::try_from(self.year?).ok()?;
        let next = NaiveDate::from_ymd_opt(year, self.month, self.day)?.succ_opt()?;
        Some(Self { has_year_behind: self.has_year_behind, has_weekday: self.has_weekday, ..Self::from_day(next)? })
    }

    /// Returns a date without a year. It may stand behind the time.
    fn without_year(month: u32, day: u32) -> Self {
        Self { year: None, month, day, has_year_behind: true, has_weekday: false }
    }

    /// Returns a date without a year, nor behind the time.
    fn without_any_year(month: u32, day: u32) -> Self {
        Self { has_year_behind: false, ..Self::without_year(month, day) }
    }

    /// Returns the moment at `time` of the day. Returns none if there is no such day.
    fn at(&self, time: Option<NaiveTime>, zone: Option<Zone>) -> Option<Moment> {
        let Self { year, month, day, .. } = *self;
        let year = year.map(i32::try_from).transpose().ok()?;
        // A leap year has every day.
        NaiveDate::from_ymd_opt(year.unwrap_or(2000), month, day)?;
        Some(Moment::Shown(Shown { year, month, day, time, zone }))
    }
}

/// Reads `2024-05-06`, also with `/` or `.`, `2024-May-06` or `2024 May  6`, the day of a week or a year of ISO 8601,
/// and the time, if there is one.
fn year_first(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let year = scan.digits(4)?;
    let separator = scan.one_of(b"-/. ")?;
    if separator == b'-' && scan.peek() == Some(b'W') {
        return week_date(scan, year, true);
    }
    if separator == b'-' && scan.num_digits() == 3 {
        return ordinal_date(scan, year);
    }
    if scan.peek()?.is_ascii_alphabetic() {
        let month = scan.month()?;
        scan.one_of(&[separator])?;
        scan.blanks();
        let day = scan.one_or_two_digits()?;
        return with_time(scan, Date::new(year, month, day));
    }
    if separator == b' ' {
        return None;
    }
    let start = scan.0.len();
    let month = scan.one_or_two_digits()?;
    scan.one_of(&[separator])?;
    let day = scan.one_or_two_digits()?;
    let date = Date::new(year, month, day);
    // `2024.5.6` may be a version.
    if start - scan.0.len() < "05-06".len() {
        return with_time(scan, date);
    }
    let midnight = date.at(None, None)?;
    let alone = || day_alone(scan).map(|()| Found::new(midnight, scan));
    Some(with_time(scan, date).unwrap_or_else(alone))
}

/// Reads `20240506T070809`, `20240506 07:08:09` or `20240506070809`, and the days of a week or a year of ISO 8601 in
/// this form.
fn without_separators(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let num_digits = scan.num_digits();
    if matches!(num_digits, 4 | 7) {
        let year = scan.digits(4).filter(|year| YEARS.contains(year))?;
        return if num_digits == 4 { week_date(scan, year, false) } else { ordinal_date(scan, year) };
    }
    if !matches!(num_digits, 8 | 14) {
        return None;
    }
    let year = scan.digits(4)?;
    let month = scan.digits(2)?;
    let day = scan.digits(2)?;
    let date = Date::new(year, month, day);
    if !YEARS.contains(&year) {
        return None;
    }
    if num_digits == 8 {
        scan.one_of(b"Tt _-")?;
        scan.blanks();
    }
    let time = scan.day_time().or_else(|| scan.compact_time())?;
    Some(rest_of(scan, date, time, false))
}

/// Reads `06/May/2024`, also with `-` or blanks, and the time. With blanks the year may be missing. Behind a day
/// of the week it may be `06-May-24`, the date of RFC 850.
fn day_first(scan: Scan<'_>) -> Option<Stamp<'_>> {
    day_and_month(scan, false)
}

/// Reads what [`day_first`] does, behind a day of the week if `has_weekday` is true.
fn day_and_month(mut scan: Scan<'_>, has_weekday: bool) -> Option<Stamp<'_>> {
    let day = scan.one_or_two_digits()?;
    let separator = scan.one_of(b"/- ")?;
    let month = scan.month()?;
    let mut behind = scan;
    behind.one_of(&[separator])?;
    let year = behind.digits(4).or_else(|| short_year(&mut behind).filter(|_| has_weekday && separator == b'-'));
    match year {
        Some(year) => with_time(behind, Date::new(year, month, day)),
        None if separator == b' ' => with_time(scan, Date { has_weekday, ..Date::without_year(month, day) }),
        None => None,
    }
}

/// Reads the two digits of a year from 1970 to 2069.
fn short_year(scan: &mut Scan<'_>) -> Option<u32> {
    if scan.num_digits() != 2 {
        return None;
    }
    scan.digits(2).map(century)
}

/// Returns the year from 1970 to 2069 whose last two digits are `year`.
fn century(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// Reads `May  6 07:08:09`, `May  6 2024 07:08:09` or `May 6, 2024 07:08:09`.
fn month_first(scan: Scan<'_>) -> Option<Stamp<'_>> {
    month_and_day(scan, false)
}

/// Reads what [`month_first`] does, behind a day of the week if `has_weekday` is true.
fn month_and_day(mut scan: Scan<'_>, has_weekday: bool) -> Option<Stamp<'_>> {
    let month = scan.month()?;
    scan.one_of(b".");
    if scan.blanks() == 0 {
        return None;
    }
    let day = scan.one_or_two_digits()?;
    let mut behind = scan;
    behind.one_of(b",");
    if behind.blanks() > 0
        && behind.num_digits() == 4
        && let Some(year) = behind.digits(4)
    {
        return with_time(behind, Date::new(year, month, day));
    }
    with_time(scan, Date { has_weekday, ..Date::without_year(month, day) })
}

/// Reads a day of the week, and a date in another form.
fn weekday_first(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    scan.weekday()?;
    scan.one_of(b".");
    scan.one_of(b",");
    if scan.blanks() == 0 {
        return None;
    }
    month_and_day(scan, true).or_else(|| day_and_month(scan, true)).or_else(|| year_first(scan))
}

/// Reads a time in seconds with 10 digits, or in milliseconds with 13, microseconds with 16 or nanoseconds with 19:
/// from 2001 to 2286.
fn epoch(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    let len = scan.num_digits();
    if scan.0.starts_with(b"0") || !matches!(len, 10 | 13 | 16 | 19) {
        return None;
    }
    let number = scan.number()?;
    let mut nanos = 0;
    if len == 10 && scan.peek() == Some(b'.') && scan.has_digit_at(1) {
        scan.one_of(b".")?;
        nanos = scan.fraction_digits()?;
    }
    let moment = match len {
        10 => instant(number, nanos)?,
        13 => milliseconds(number)?,
        16 => Moment::Instant(number),
        _ => Moment::Instant(number / 1000),
    };
    // A comma before the last digits may be the point of the seconds.
    let is_odd = match scan.peek() {
        Some(b'.') => true,
        Some(b'/' | b':' | b'+' | b'-' | b'\'') => scan.has_digit_at(1),
        _ => is_decimal_comma(scan),
    };
    if is_odd || !scan.is_at_word_end() {
        return None;
    }
    Some(Ok(Found::new(moment, scan)))
}

/// Reads a stamp with a year and a time behind a few fields: names of a host, a file or a container, a thread in
/// brackets.
fn behind_fields(text: &[u8]) -> Option<Stamp<'_>> {
    let mut rest = text;
    for _ in 0..MAX_FIELDS {
        rest = behind_field(rest)?;
        match stamp(behind_front(rest)) {
            Some(Ok(found)) if is_whole(found.moment) => return Some(Ok(found)),
            Some(Err(unclear)) => return Some(Err(unclear)),
            Some(Ok(_)) | None => {}
        }
    }
    None
}

/// Returns true if `moment` states a year and a time.
fn is_whole(moment: Moment) -> bool {
    matches!(moment, Moment::Short(_) | Moment::Shown(Shown { year: Some(_), time: Some(_), .. }))
}

/// Returns the bytes behind a field, which is in brackets or ends at a blank, and behind a bar or a dash.
fn behind_field(text: &[u8]) -> Option<&[u8]> {
    let end = if text.starts_with(b"[") { b']' } else { b' ' };
    let is_end = |byte: &u8| *byte == end || (*byte == b'\t' && end == b' ');
    let len = text.iter().take(MAX_FIELD_BYTES).position(is_end).filter(|len| *len > 0)?;
    let rest = text.get(len + 1..)?.trim_ascii_start();
    let behind_sign = rest.strip_prefix(b"| ").or_else(|| rest.strip_prefix(b"- ")).map(<[u8]>::trim_ascii_start);
    behind_sign.or(Some(rest)).filter(|rest| !rest.is_empty())
}

/// Reads the label of TAI64N, as `multilog` writes it: seconds and nanoseconds in hexadecimal digits, 10 seconds before
/// the clock of the machine.
fn tai64n(mut scan: Scan<'_>) -> Option<Stamp<'_>> {
    scan.one_of(b"@")?;
    let (digits, rest) = scan.0.split_at_checked(24)?;
    let number = |digits: &[u8]| u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let (seconds, nanos) = digits.split_at_checked(16).filter(|_| is_hex)?;
    let seconds = i64::try_from(number(seconds)?).ok()?.checked_sub(TAI64_EPOCH)?;
    let nanos = u32::try_from(number(nanos)?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    let rest = Scan(rest);
    let moment = instant(seconds, nanos)?;
    rest.is_at_word_end().then_some(Ok(Found::new(moment, rest)))
}

/// Reads `[06/May/2024:07:08:09 +0200]` anywhere in a line.
fn common_log(line: &[u8]) -> Option<Stamp<'_>> {
    // A stamp that is cut cannot be told from a whole one.
    let is_cut = line.len() >= CUT_BYTES;
    let end = if is_cut { line.len() - MAX_STAMP_BYTES } else { line.len() };
    let find = |at: usize| {
        let scan = Scan(line.get(at + 1..)?);
        // Most brackets have something else.
        let is_like = scan.has_digit_at(0) && scan.0.get(2) == Some(&b'/');
        is_like.then(|| day_first(scan))?
    };
    memchr_iter(b'[', line.get(..end)?).find_map(find)
}

/// Reads a time behind a date, and what stands behind it. Returns none if there is no time.
fn with_time(mut scan: Scan<'_>, date: Date) -> Option<Stamp<'_>> {
    let separator = separator(&mut scan)?;
    // The digits before a colon may be hours.
    if date.year.is_none() && !matches!(separator, b' ' | b',') {
        return None;
    }
    let time = scan.day_time()?;
    // `2024-05-06-07:00` may be a day with an offset.
    if separator == b'-' && !time.has_seconds {
        return Some(Err(Unclear::Part));
    }
    Some(rest_of(scan, date, time, separator == b','))
}

/// Reads what stands between a date and its time: blanks, and a sign or the word `at` among them. Returns the
/// sign, or a blank.
fn separator(scan: &mut Scan<'_>) -> Option<u8> {
    let num_blanks = scan.blanks();
    if num_blanks > 0 && (scan.text(b"at ").is_some() || scan.text(b"time=").is_some()) {
        scan.one_of(b"\"");
        scan.blanks();
        return Some(b' ');
    }
    let sign = scan.one_of(b"Tt_-|,;:@/");
    let is_apart = num_blanks + scan.blanks() > 0;
    match sign {
        None if !is_apart => None,
        Some(sign) if !is_apart || matches!(sign, b',' | b'-') => Some(sign),
        _ => Some(b' '),
    }
}

/// Reads what stands behind the hours, minutes and seconds of `time`, and returns the moment. `is_cell` is
/// true if a comma separates cells.
fn rest_of(mut scan: Scan<'_>, date: Date, time: DayTime, is_cell: bool) -> Stamp<'_> {
    let mut date = date;
    let mut time = time;
    let len_behind = scan.0.len();
    if time.has_seconds {
        time.nanos = fraction(&mut scan, is_cell)?;
    } else if !is_cell && is_decimal_comma(scan) {
        return Err(Unclear::Part);
    }
    let has_fraction = scan.0.len() < len_behind;
    if let Some(is_second) = scan.half() {
        time = time.in_half(is_second).ok_or(Unclear::Part)?;
    }
    let mut zone = zones::zone(&mut scan)?;
    if date.has_year_behind {
        date.year = year_behind(&mut scan, date.has_weekday)?;
        if zone.is_none() && date.year.is_some() {
            zone = zones::zone(&mut scan)?;
        }
        if date.year.is_none() && has_word_and_year(scan) {
            return Err(Unclear::Part);
        }
    }
    check_end(scan, zone.is_some(), has_fraction, time.has_seconds)?;
    if time.is_end_of_day() {
        date = date.next().ok_or(Unclear::Part)?;
        time.hour = 0;
    }
    let time = time.time().ok_or(Unclear::Part)?;
    let moment = date.at(Some(time), zone).ok_or(Unclear::Part)?;
    Ok(Found::new(moment, scan))
}

fn instant(seconds: i64, nanos: u32) -> Option<Moment> {
    let micros = seconds.checked_mul(1_000_000)?.checked_add(i64::from(nanos / 1000))?;
    Some(Moment::Instant(micros))
}

fn milliseconds(number: i64) -> Option<Moment> {
    number.checked_mul(1000).map(Moment::Instant)
}

#[cfg(test)]
mod tests;
