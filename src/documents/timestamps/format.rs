//! Reads timestamps in a form of strftime, which the user states.
//!
//! The form stands at the start of a line. If it ends with a part of a date or time, what stands behind it is
//! read as in [`forms`](super::forms): parts of a second, the half of the day and the zone, each unless the
//! form has it. If one more part of a stamp follows there, such as the time behind a form of days, there is no
//! time. The name of several zones (`CST`) is left out, so that `--timezone` can say which one is meant.

use std::str;

use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems, parse_and_remainder};
use chrono::{Datelike, NaiveTime, TimeDelta, Timelike};

use super::behind::{among_texts, check_end, day_alone, fraction, has_text, has_word_and_year, year_behind};
use super::forms::Moment;
use super::scan::{DayTime, Scan};
use super::told_by_lines::Shown;
use super::zones::{self, Unclear, Zone};

/// First number of `%s` that is not read, in the year 5138: it is one of milliseconds.
const MAX_SECONDS: u64 = 100_000_000_000;

/// A form of strftime.
#[derive(Debug, Clone, PartialEq)]
pub struct Format(Vec<Part>);

/// A part of a form of strftime.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Item(Item<'static>),
    /// `%f`: digits behind the point of a second. chrono reads a number of nanoseconds.
    Fraction,
    /// `%Z`: the name of a zone. chrono skips it.
    ZoneName,
}

impl Part {
    fn new(item: Item<'static>) -> Self {
        match item {
            Item::Numeric(Numeric::Nanosecond, _) => Self::Fraction,
            Item::Fixed(Fixed::TimezoneName) => Self::ZoneName,
            item => Self::Item(item),
        }
    }

    /// Reads the part at the start of `text`, and returns the rest.
    fn read<'t>(&self, text: &'t str, parsed: &mut Parsed) -> Option<&'t str> {
        let mut scan = Scan(text.as_bytes());
        match self {
            Self::Item(item) => {
                return parse_and_remainder(parsed, text, std::iter::once(item)).ok();
            }
            Self::Fraction => {
                let nanos = scan.fraction_digits()?;
                parsed.set_nanosecond(nanos.into()).ok()?;
            }
            Self::ZoneName => {
                let offset = zones::zone_name(&mut scan)?;
                parsed.set_offset(offset.into()).ok()?;
            }
        }
        text.get(text.len() - scan.0.len()..)
    }

    /// Returns true if parts of a second may stand behind it.
    fn has_fraction_behind(&self) -> bool {
        matches!(self, Self::Item(Item::Numeric(Numeric::Second | Numeric::Timestamp, _)))
    }

    /// Returns true if it is text.
    fn is_text(&self) -> bool {
        use Item::{Literal, OwnedLiteral, OwnedSpace, Space};
        matches!(self, Self::Item(Literal(_) | OwnedLiteral(_) | Space(_) | OwnedSpace(_)))
    }
}

impl Format {
    /// Reads a form, such as `%d.%m.%Y %H:%M:%S`. Returns none if it has specifiers that do not exist.
    pub fn new(text: &str) -> Option<Self> {
        let items = StrftimeItems::new(text).parse_to_owned().ok()?;
        Some(Self(items.into_iter().map(Part::new).collect()))
    }

    /// Returns the time at the start of `line`.
    #[cfg(test)]
    pub fn find(&self, line: &[u8]) -> Option<Moment> {
        self.find_among(line, &mut false)
    }

    /// Returns the time at the start of `line`, among the lines of an input as
    /// [`forms::find_named`](super::forms::find_named).
    pub fn find_among(&self, line: &[u8], has_texts: &mut bool) -> Option<Moment> {
        let line = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        among_texts(line.as_bytes(), has_texts, |line| self.stamp(line))
    }

    /// Returns the time at the start of `line`, and true if text stands behind it.
    fn stamp(&self, line: &[u8]) -> Option<Result<(Moment, bool), Unclear>> {
        let mut text = str::from_utf8(line).ok()?;
        let mut parsed = Parsed::new();
        for part in &self.0 {
            text = part.read(text, &mut parsed)?;
        }
        let mut scan = Scan(text.as_bytes());
        match self.behind(&mut scan, &parsed) {
            Ok(behind) => Some(Ok((moment(&parsed, behind)?, has_text(scan)))),
            Err(unclear) => Some(Err(unclear)),
        }
    }

    /// Reads what stands behind the form.
    fn behind(&self, scan: &mut Scan<'_>, parsed: &Parsed) -> Result<Behind, Unclear> {
        let mut behind = Behind::default();
        let mut has_fraction = parsed.nanosecond().is_some();
        let has_time = parsed.hour_mod_12().is_some() || parsed.timestamp().is_some();
        let Some(last) = self.0.last().filter(|last| !last.is_text()) else {
            if has_time && !states_year(parsed) {
                behind.year = year_behind(scan, parsed.weekday().is_some())?;
            }
            return Ok(behind);
        };
        if !has_time {
            day_alone(*scan)?;
        }
        if last.has_fraction_behind() && parsed.nanosecond().is_none() {
            let is_cell = is_before_cell(*scan);
            let len_behind = scan.0.len();
            behind.nanos = fraction(scan, is_cell)?;
            has_fraction = has_fraction || scan.0.len() < len_behind;
        }
        let has_hour = matches!(last, Part::Fraction | Part::Item(Item::Numeric(..)));
        if has_hour && has_time {
            behind.half = scan.half();
        }
        let is_instant = parsed.offset().is_some() || parsed.timestamp().is_some();
        if !is_instant {
            behind.zone = known_zone(scan)?;
        }
        if has_time && !is_instant && !states_year(parsed) {
            behind.year = year_behind(scan, parsed.weekday().is_some())?;
            behind.zone = behind.zone.map_or_else(|| known_zone(scan), |zone| Ok(Some(zone)))?;
        }
        if has_time && !is_instant && behind.year.is_none() && !states_year(parsed) && has_word_and_year(*scan) {
            return Err(Unclear::Part);
        }
        let has_zone = is_instant || behind.zone.is_some();
        check_end(*scan, has_zone, has_fraction || !has_time, parsed.second().is_some())?;
        Ok(behind)
    }
}

/// Reads a zone. The name of several zones is none.
fn known_zone(scan: &mut Scan<'_>) -> Result<Option<Zone>, Unclear> {
    match zones::zone(scan) {
        Err(Unclear::ZoneName) => Ok(None),
        zone => zone,
    }
}

fn states_year(parsed: &Parsed) -> bool {
    parsed.year().is_some() || parsed.year_mod_100().is_some()
}

/// Returns true if digits between two commas follow, which are a cell.
fn is_before_cell(mut scan: Scan<'_>) -> bool {
    scan.one_of(b",").is_some() && scan.number().is_some() && scan.peek() == Some(b',')
}

/// Parts of a stamp that stand behind a form.
#[derive(Debug, Default)]
struct Behind {
    nanos: u32,
    /// True for the second half of the day.
    half: Option<bool>,
    zone: Option<Zone>,
    year: Option<u32>,
}

/// Returns the moment that a form and what stands behind it state. Returns none if they state none, or
/// contradict each other.
fn moment(parsed: &Parsed, behind: Behind) -> Option<Moment> {
    let mut parsed = parsed.clone();
    if let (None, None, Some(short)) = (parsed.year(), parsed.year_div_100(), parsed.year_mod_100()) {
        // Two digits from 69 are of the last century, as POSIX has it.
        parsed.set_year(i64::from(short) + if short < 69 { 2000 } else { 1900 }).ok()?;
    }
    if parsed.timestamp().is_some_and(|seconds| seconds.unsigned_abs() >= MAX_SECONDS) {
        return None;
    }
    if behind.nanos > 0 {
        parsed.set_nanosecond(behind.nanos.into()).ok()?;
    }
    if let Some(offset) = parsed.offset().or(parsed.timestamp().map(|_| 0)) {
        let utc = parsed.to_naive_datetime_with_offset(offset).ok()?;
        let utc = utc.checked_sub_signed(TimeDelta::seconds(offset.into()))?;
        return Some(Moment::Instant(utc.and_utc().timestamp_micros()));
    }
    if let Some(year) = behind.year {
        parsed.set_year(year.into()).ok()?;
    }
    let time = day_time(&mut parsed, behind.half)?;
    let zone = behind.zone;
    if let Ok(date) = parsed.to_naive_date() {
        let year = Some(date.year());
        let month = date.month();
        let day = date.day();
        return Some(Moment::Shown(Shown { year, month, day, time, zone }));
    }
    let month = parsed.month()?;
    let day = parsed.day()?;
    (!states_year(&parsed)).then_some(Moment::Shown(Shown { year: None, month, day, time, zone }))
}

/// Returns the time of the day, or none within if the form has no part of it. Minutes that are not stated are 0.
fn day_time(parsed: &mut Parsed, half: Option<bool>) -> Option<Option<NaiveTime>> {
    let hour = (parsed.hour_div_12(), parsed.hour_mod_12());
    if hour == (None, None) && parsed.minute().is_none() && parsed.second().is_none() {
        return Some(None);
    }
    let mut half = half;
    if let (None, Some(is_second)) = (parsed.hour_div_12(), half) {
        parsed.set_ampm(is_second).ok()?;
        half = None;
    }
    if parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    let time = parsed.to_naive_time().ok()?;
    let Some(is_second) = half else { return Some(Some(time)) };
    let shown = DayTime {
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
        nanos: time.nanosecond(),
        has_seconds: true,
    };
    shown.in_half(is_second)?.time().map(Some)
}
