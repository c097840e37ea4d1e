//! Timestamps of documents: the user column `ts`.
//!
//! ```text
//! line ─▶ forms, or a form of strftime ─▶ Moment ─┐
//! line of JSON ─▶ field with a name of times ─────┼─▶ Clock ─▶ ts: microseconds, UTC
//! field of a row ─▶ text, number, date or time ───┘
//! ```
//!
//! A time is read whole or not at all. One without a zone is one of the clocks in `--timezone`. Of a time that occurs
//! twice there, when clocks are set back, the first is meant. A time that does not occur counts by the clocks of the
//! day before. A time without a year lies in `--year`, or at most a day after the input was last changed: a member of
//! an archive has its own time of that, and so has a stream of gzip. In lines it goes back by a year where they do
//! ([`LineTime`]). They also tell the order of dates such as `17/06/09` or `13/06/2024` ([`told_by_lines`]), and so do
//! the rows of a column of the latter.

mod behind;
mod format;
mod forms;
mod json_fields;
mod scan;
mod told_by_lines;
mod zones;

use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use chrono::{
    DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeDelta, TimeZone, Utc,
};
use regex::bytes::Regex;

use self::format::Format;
use self::forms::Moment;
pub use self::json_fields::{first_name, is_name};
use self::scan::Digits;
pub use self::scan::from_seconds;
pub use self::told_by_lines::{LineTime, MAX_HELD};
use self::told_by_lines::{Orders, Short, Shown};
use self::zones::Zone;
pub use self::zones::named_minutes as zone_minutes;
use crate::documents::Documents;
use crate::failure::{Failure, Outcome};
use crate::inputs::{Input, Source};

/// Name of the column with the timestamps.
pub const COLUMN: &str = "ts";
/// Place of `--timestamp` that is looked for.
pub const AUTO: &str = "auto";

/// Microseconds since 1970 of times that a number may mean in a column that is only known by its name: from 2001 to
/// 2286.
const COUNTED: std::ops::Range<i64> = 1_000_000_000_000_000..10_000_000_000_000_000;

/// Number of years before the last one in which a 29 February is looked for.
const LEAP_YEARS: i32 = 8;

/// Place and meaning of the timestamps of documents.
#[derive(Debug, Clone)]
pub struct Timestamps {
    place: Place,
    /// Form of the texts of fields and of what an expression finds, if it is stated.
    format: Option<Format>,
    zone: Tz,
    year: Option<i32>,
}

/// Place of a timestamp.
#[derive(Debug, Clone)]
enum Place {
    /// The start of a line, in one of many forms, or a field of the JSON object that is the line.
    Line,
    /// The start of a line of the kernel.
    Kernel,
    /// The start of a line, in a form of strftime.
    Format(Format),
    /// The group `ts` of an expression that is searched for in a line, or its first group, or all that it finds.
    Expression(Regex),
    /// A field of the JSON object that is the line.
    LineField(String),
    /// A column of the rows.
    Column(String),
}

impl Timestamps {
    /// Reads `place`, the argument of `--timestamp`, for inputs that become `documents`.
    ///
    /// # Errors
    /// `place` does not fit `documents`, or there is no such zone. The text names the option.
    pub fn new(place: &str, documents: &Documents, zone: &str, year: Option<i32>) -> Outcome<Self> {
        let zone_failure = |error: ArrowError| {
            Failure::usage(format!(
                "--timezone {zone}: expected an offset such as +02:00, or a name such as Europe/Berlin \
                 ({error})"
            ))
        };
        let zone = zone.parse().map_err(zone_failure)?;
        Ok(Self { place: Place::new(place, documents)?, format: None, zone, year })
    }

    /// Reads `format`, the argument of `--timestamp-format`: the form of strftime of the texts at the place.
    ///
    /// # Errors
    /// The place has a form of its own, or the form has specifiers that do not exist.
    pub fn with_format(mut self, format: &str) -> Outcome<Self> {
        if matches!(self.place, Place::Line | Place::Kernel | Place::Format(_)) {
            return Err(Failure::usage(format!(
                "--timestamp-format {format}: it goes with re:REGEX, jsonl:FIELD and fields of rows; at the start of \
                 lines write --timestamp '{format}'"
            )));
        }
        let refused = || {
            let expected = "expected specifiers of strftime, such as '%d.%m.%Y %H:%M:%S'";
            Failure::usage(format!("--timestamp-format {format}: {expected}"))
        };
        self.format = Some(Format::new(format).filter(|_| format.contains('%')).ok_or_else(refused)?);
        Ok(self)
    }

    /// Returns the column of the rows that has the timestamps, if they are in rows.
    pub fn column(&self) -> Option<&str> {
        match &self.place {
            Place::Column(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if the whole of a line that begins with `first` is needed to find its timestamp.
    pub fn needs_whole_line(&self, first: u8) -> bool {
        match self.place {
            Place::LineField(_) => true,
            Place::Line => first == b'{',
            _ => false,
        }
    }
}

impl Place {
    fn new(place: &str, documents: &Documents) -> Outcome<Self> {
        let json_field = place.strip_prefix("jsonl:").filter(|field| !field.is_empty());
        let refused =
            |expected: &str| Failure::usage(format!("--timestamp {place} with --documents {documents}: {expected}"));
        match (documents, json_field) {
            (Documents::Files, _) => Err(refused("files have no timestamps; lines and rows do")),
            (Documents::Lines, Some(field)) => Ok(Self::LineField(field.to_owned())),
            (Documents::Lines, None) => match place {
                AUTO => Ok(Self::Line),
                "dmesg" => Ok(Self::Kernel),
                _ if let Some(expression) = place.strip_prefix("re:") => {
                    Regex::new(expression).map(Self::Expression).map_err(|error| refused(&error.to_string()))
                }
                _ if place.contains('%') => Format::new(place)
                    .map(Self::Format)
                    .ok_or_else(|| refused("expected specifiers of strftime, such as '%d.%m.%Y %H:%M:%S'")),
                _ => {
                    Err(refused("expected auto, dmesg, jsonl:FIELD, re:REGEX, or a format such as '%d.%m.%Y %H:%M:%S'"))
                }
            },
            (Documents::Jsonl(_), Some(field)) => Ok(Self::Column(field.to_owned())),
            _ => Ok(Self::Column(place.to_owned())),
        }
    }
}

/// Turns the timestamps of one input after the other into times.
#[derive(Debug)]
pub struct Clock {
    how: Timestamps,
    /// Last time that texts without a year can mean, by the clocks of the zone.
    latest: NaiveDateTime,
    /// Seconds since 1970 of the last change, as the stream of gzip that is read states it; 0 if it does not.
    packed: Rc<Cell<u32>>,
    /// True if text stands behind a stamp of the input.
    has_texts: bool,
    /// Orders of the dates of three numbers of the input, once lines tell them.
    orders: Orders,
    /// Forms of the lines, if they are asked for.
    explained: Option<Explained>,
    num_docs: u64,
    num_missing: u64,
}

impl Clock {
    /// Creates a clock for timestamps at the places of `how`.
    pub fn new(how: &Timestamps) -> Self {
        let packed = Rc::default();
        let latest = NaiveDateTime::MAX;
        let has_texts = false;
        let orders = Orders::default();
        let num_docs = 0;
        let num_missing = 0;
        Self { how: how.clone(), latest, packed, has_texts, orders, explained: None, num_docs, num_missing }
    }

    /// Creates a clock that also counts the forms of lines.
    pub fn explaining(how: &Timestamps) -> Self {
        Self { explained: Some(Explained::default()), ..Self::new(how) }
    }

    /// Returns a table of the forms of the lines, if the clock counts them.
    pub fn explanation(&self) -> Option<Vec<String>> {
        self.explained.as_ref().map(Explained::table)
    }

    /// Prepares for the timestamps of an input that was last changed at `changed`, or when `packed` states it.
    pub fn enter(&mut self, changed: SystemTime, packed: &Rc<Cell<u32>>) {
        self.latest = self.day_after(changed);
        self.packed = Rc::clone(packed);
        self.has_texts = false;
        self.orders = Orders::default();
    }

    /// Returns the time a day after `changed`, by the clocks of the zone.
    fn day_after(&self, changed: SystemTime) -> NaiveDateTime {
        let local = DateTime::<Utc>::from(changed).with_timezone(&self.how.zone).naive_local();
        local.checked_add_signed(TimeDelta::days(1)).unwrap_or(local)
    }

    /// Returns the places of timestamps.
    pub fn how(&self) -> &Timestamps {
        &self.how
    }

    /// Returns the time of a line, whose year may not be known before [`settled`](Self::settled), nor the
    /// order of its date.
    pub fn for_line(&mut self, line: &[u8]) -> LineTime {
        let (moment, form) = match &self.how.place {
            Place::Line => self.for_start(line).unzip(),
            Place::Kernel => (forms::dmesg(line), Some("dmesg")),
            Place::Format(format) => (format.find_among(line, &mut self.has_texts), Some("as stated")),
            Place::Expression(expression) => (self.for_match(expression, line), Some("as stated")),
            Place::LineField(field) => (self.for_json(line, field), Some("field")),
            Place::Column(_) => (None, None),
        };
        let time = match moment {
            Some(Moment::Shown(shown)) if shown.year.is_none() && self.how.year.is_none() => {
                LineTime::Yearless(shown, self.latest_known())
            }
            Some(Moment::Short(short)) => LineTime::Short(short, self.latest_known()),
            moment => LineTime::Known(moment.and_then(|moment| self.micros(moment))),
        };
        if self.explained.is_some() {
            let micros = moment.and_then(|moment| self.micros(moment));
            let explained = self.explained.get_or_insert_default();
            explained.add(form.filter(|_| micros.is_some()), line, micros);
        }
        time
    }

    /// Returns the times of successive lines in microseconds since 1970, with their years.
    pub fn settled(&mut self, times: &[LineTime]) -> Vec<Option<i64>> {
        let in_last_year = |shown: &Shown, limit| last_until(shown, limit);
        let micros = |shown: &Shown, local| self.in_zone(local, shown.zone);
        let mut orders = self.orders;
        orders.learn(times.iter().filter_map(LineTime::short), self.day_after(SystemTime::now()));
        let for_short = |short: &Short| self.micros(Moment::Shown(orders.shown(short)?));
        let settled = told_by_lines::settled(times, in_last_year, micros, for_short);
        self.orders = orders;
        let num_missing = settled.iter().filter(|micros| micros.is_none()).count();
        self.count(settled.len() as u64, num_missing as u64);
        settled
    }

    /// Returns the times of a column of rows. A row whose value is none has a null.
    ///
    /// # Errors
    /// The column has a type that cannot hold times.
    pub fn for_column(&mut self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let times = self.times(column)?;
        self.count(times.len() as u64, times.null_count() as u64);
        Ok(times)
    }

    /// Returns a message about documents without a timestamp, if there are any.
    pub fn warning(&self) -> Option<String> {
        let num_missing = self.num_missing;
        let num_docs = self.num_docs;
        (num_missing > 0)
            .then(|| format!("{num_missing} of {num_docs} documents have no timestamp; their {COLUMN} is NULL"))
    }

    fn count(&mut self, num_docs: u64, num_missing: u64) {
        self.num_docs += num_docs;
        self.num_missing += num_missing;
    }

    fn times(&mut self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        use DataType::{Date32, Date64, Float16, Float32, Float64, Null, Timestamp};
        match column.data_type() {
            Timestamp(_, Some(_)) | Null => cast(column, &data_type()),
            Timestamp(_, None) => {
                let locals = cast(column, &Timestamp(TimeUnit::Microsecond, None))?;
                let locals = locals.as_primitive::<TimestampMicrosecondType>();
                let time = |micros| DateTime::from_timestamp_micros(micros);
                Ok(array(locals.iter().map(|micros| self.for_local(time(micros?)?.naive_utc()))))
            }
            Date32 | Date64 => {
                let midnights = cast(column, &Timestamp(TimeUnit::Microsecond, None))?;
                self.times(&midnights)
            }
            Float16 | Float32 | Float64 => {
                let numbers = cast(column, &Float64)?;
                let numbers = numbers.as_primitive::<Float64Type>();
                Ok(array(numbers.iter().map(|number| self.for_digits(Digits::from_float(number?)))))
            }
            integer if integer.is_integer() => {
                let numbers = cast(column, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                Ok(array(numbers.iter().map(|number| self.for_digits(Digits::from_integer(number?)))))
            }
            _ => {
                let texts = cast(column, &DataType::LargeUtf8)?;
                let texts = texts.as_string::<i64>();
                let moments: Vec<Option<Moment>> = texts.iter().map(|text| self.for_text(text?)).collect();
                Ok(self.for_rows(&moments))
            }
        }
    }

    /// Returns the times of rows, which tell the order of dates with a whole year. Rows need not ascend, so they tell
    /// nothing of other dates of three numbers.
    fn for_rows(&mut self, moments: &[Option<Moment>]) -> ArrayRef {
        let latest = self.latest_known();
        let dates = moments.iter().filter_map(|moment| match moment {
            Some(Moment::Short(short)) if short.style.has_whole_year() => Some((*short, latest)),
            _ => None,
        });
        self.orders.learn(dates, latest);
        array(moments.iter().map(|moment| match (*moment)? {
            Moment::Short(short) => self.micros(Moment::Shown(self.orders.shown(&short)?)),
            moment => self.micros(moment),
        }))
    }

    /// Returns the time that a line states, and the name of its form.
    fn for_start(&mut self, line: &[u8]) -> Option<(Moment, &'static str)> {
        match json_fields::find(line) {
            Some(moment) => moment.map(|moment| (moment, "field of JSON")),
            None => forms::find_named(line, &mut self.has_texts),
        }
    }

    /// Returns the time of the group `ts` of `expression` in `line`, or of its first group, or of the whole match.
    fn for_match(&self, expression: &Regex, line: &[u8]) -> Option<Moment> {
        let found = expression.captures(line)?;
        let group = found.name("ts").or_else(|| found.get(1)).or_else(|| found.get(0))?;
        self.for_text(str::from_utf8(group.as_bytes()).ok()?)
    }

    fn for_json(&self, line: &[u8], field: &str) -> Option<Moment> {
        match json_fields::value_at(line, field)? {
            serde_json::Value::String(text) => self.for_text(&text),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(integer) => self.for_digits(Digits::from_integer(integer)).map(Moment::Instant),
                None => self.for_digits(Digits::from_float(number.as_f64()?)).map(Moment::Instant),
            },
            _ => None,
        }
    }

    /// Returns the time of a value that is a number or a timestamp.
    fn for_text(&self, text: &str) -> Option<Moment> {
        let text = text.trim();
        if let Some(format) = &self.how.format {
            return format.find_among(text.as_bytes(), &mut false);
        }
        let digits = match (text.parse(), text.parse()) {
            (Ok(integer), _) => Digits::from_integer(integer),
            (_, Ok(float)) => Digits::from_decimal(text, float),
            _ => return forms::find_whole(text.as_bytes()),
        };
        self.for_digits(digits).map(Moment::Instant)
    }

    /// Returns the time of a number.
    fn for_digits(&self, digits: Option<Digits>) -> Option<i64> {
        let is_guessed = self.how.column() == Some(AUTO);
        match digits? {
            Digits::Counted(micros) => Some(micros).filter(|micros| !is_guessed || COUNTED.contains(micros)),
            Digits::Written(local) => self.for_local(local),
        }
    }

    fn micros(&self, moment: Moment) -> Option<i64> {
        let shown = match moment {
            Moment::Instant(micros) => return Some(micros),
            Moment::Shown(shown) => shown,
            // A line alone.
            Moment::Short(short) => {
                let now = self.day_after(SystemTime::now());
                Orders::from_date((short, self.latest_known()), now).shown(&short)?
            }
        };
        match shown.year {
            Some(year) => self.in_zone(local(&shown, year)?, shown.zone),
            None => self.in_zone(self.with_year(&shown)?, shown.zone),
        }
    }

    /// Returns the time in `--year`, or in the last year in which it can be.
    fn with_year(&self, shown: &Shown) -> Option<NaiveDateTime> {
        match self.how.year {
            Some(year) => local(shown, year),
            None => last_until(shown, self.latest_known()),
        }
    }

    /// Returns the last time that texts without a year can mean, also by the stream of gzip.
    fn latest_known(&self) -> NaiveDateTime {
        match self.packed.get() {
            0 => self.latest,
            seconds => {
                let packed = UNIX_EPOCH + Duration::from_secs(seconds.into());
                self.day_after(packed).min(self.latest)
            }
        }
    }

    fn in_zone(&self, local: NaiveDateTime, zone: Option<Zone>) -> Option<i64> {
        match zone {
            Some(zone) => instant_in(zone, local),
            None => self.for_local(local),
        }
    }

    fn for_local(&self, time: NaiveDateTime) -> Option<i64> {
        first_instant(&self.how.zone, time)
    }
}

/// Returns the last time up to `latest` that can be meant.
fn last_until(shown: &Shown, latest: NaiveDateTime) -> Option<NaiveDateTime> {
    let years = (latest.year() - LEAP_YEARS..=latest.year()).rev();
    years.filter_map(|year| local(shown, year)).find(|time| *time <= latest)
}

/// Returns the time that is shown, in `year`.
fn local(shown: &Shown, year: i32) -> Option<NaiveDateTime> {
    let date = NaiveDate::from_ymd_opt(year, shown.month, shown.day)?;
    Some(date.and_time(shown.time.unwrap_or(NaiveTime::MIN)))
}

fn instant_in(zone: Zone, local: NaiveDateTime) -> Option<i64> {
    match zone {
        Zone::Offset(seconds) => first_instant(&FixedOffset::east_opt(seconds)?, local),
        Zone::Place(place) => first_instant(&place, local),
    }
}

/// Returns the first instant at which clocks of `zone` show `time`. A time that they leave out, as they are
/// put forward, counts by the clocks of the day before.
fn first_instant(zone: &impl TimeZone, time: NaiveDateTime) -> Option<i64> {
    let day = TimeDelta::days(1);
    let shown = |time: NaiveDateTime| zone.from_local_datetime(&time).earliest();
    let instant = shown(time).or_else(|| shown(time.checked_sub_signed(day)?)?.checked_add_signed(day))?;
    Some(instant.timestamp_micros())
}

/// Returns the microseconds since 1970 of a text that states its zone.
pub fn instant(text: &str) -> Option<i64> {
    match forms::find_whole(text.as_bytes())? {
        Moment::Instant(micros) => Some(micros),
        Moment::Shown(shown) => instant_in(shown.zone?, local(&shown, shown.year?)?),
        // Texts of headers have the year first, or the name of the month.
        Moment::Short(_) => None,
    }
}

/// Returns the type of the column with the timestamps.
pub fn data_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Returns the column with the timestamps.
pub fn field() -> Field {
    Field::new(COLUMN, data_type(), true)
}

/// Returns microseconds since 1970 as a column.
pub fn array(times: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let times: TimestampMicrosecondArray = times.collect();
    Arc::new(times.with_timezone("UTC"))
}

/// Returns the time at which `input` was last changed, or the present if that is unknown.
pub fn changed(input: &Input) -> SystemTime {
    let changed = match &input.source {
        _ if input.changed.is_some() => input.changed,
        Source::File(path) => fs::metadata(path).and_then(|metadata| metadata.modified()).ok(),
        Source::Stored(stored) => Some(stored.modified()),
        Source::Stdin | Source::Text { .. } | Source::Member(_) => None,
    };
    changed.unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests;

/// Number of characters of a line that an example shows.
const MAX_SHOWN_CHARS: usize = 60;

/// Counts of lines by the form of their time, in the order in which they appear.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    forms: Vec<FormLines>,
}

/// Lines of one form.
#[derive(Debug, Clone)]
struct FormLines {
    /// Name of the form; none for lines without a time.
    form: Option<String>,
    num_lines: u64,
    /// The first line, and its time.
    example: (String, Option<i64>),
}

impl Explained {
    /// Counts `line`, whose time has `form`.
    pub fn add(&mut self, form: Option<&str>, line: &[u8], micros: Option<i64>) {
        match self.forms.iter_mut().find(|known| known.form.as_deref() == form) {
            Some(known) => known.num_lines += 1,
            None => {
                let text = String::from_utf8_lossy(line);
                let shown: String = text.chars().take(MAX_SHOWN_CHARS).map(visible).collect();
                let form = form.map(str::to_owned);
                self.forms.push(FormLines { form, num_lines: 1, example: (shown, micros) });
            }
        }
    }

    /// Returns the table, the most frequent form first, in lines.
    pub fn table(&self) -> Vec<String> {
        let total: u64 = self.forms.iter().map(|form| form.num_lines).sum();
        let mut forms: Vec<&FormLines> = self.forms.iter().collect();
        forms.sort_by_key(|form| (form.form.is_none(), std::cmp::Reverse(form.num_lines)));
        let header = format!("{:<28} {:>12} {:>7}  example", "form", "lines", "share");
        let row = |form: &&FormLines| {
            let share = 100.0 * form.num_lines as f64 / total as f64;
            let (line, micros) = &form.example;
            let time = micros.and_then(DateTime::<Utc>::from_timestamp_micros);
            let time = time.map(|time| format!("  ->  {}", time.to_rfc3339_opts(SecondsFormat::AutoSi, true)));
            let name = form.form.as_deref().unwrap_or("no time");
            let num_lines = form.num_lines;
            format!("{name:<28} {num_lines:>12} {share:>5.1} %  {line}{}", time.unwrap_or_default())
        };
        std::iter::once(header).chain(forms.iter().map(row)).collect()
    }
}

/// Returns `c`, or a replacement of a character that terminals obey.
fn visible(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}
