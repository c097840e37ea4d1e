//! Finds the time of a line that is an object of JSON, in the field that loggers have for it.
//!
//! ```text
//! {"level":30,"time":1714979289123,"pid":1}             {"date":"2024-05-06","time":"07:08:09"}
//! {"@timestamp":"2024-05-06T07:08:09Z"}                 {"t":{"$date":"2024-05-06T07:08:09.123Z"}}
//! {"instant":{"epochSecond":1714979289,"nanoOfSecond":123000000}}
//! ```
//!
//! Of the names in [`NAMES`], which are read in any case, the first one counts whose value is a time. A number counts
//! from 1970, between 2001 and 2286, in the unit that its size tells, so that a duration is none. A date without a time
//! has the one in `time`, or is midnight where there is no such field. A zone that the time does not state may stand in
//! a field of its own. Fields of objects within the object are not looked at. Time is linear in the bytes of the line.

use std::fmt;

use serde::Deserializer;
use serde::de::{Deserialize, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::forms::{Moment, find_whole};
use super::scan::Digits;
use super::told_by_lines::{Short, Shown};
use crate::charset::MARK;
use crate::json_mend::mend;

/// Names of fields with a time, in lower case, the most certain first.
const NAMES: [&str; 27] = [
    "@timestamp",
    "timestamp",
    "time",
    "ts",
    "_time",
    "@t",
    "datetime",
    "date_time",
    "eventtime",
    "event_time",
    "log_time",
    "logtime",
    "instant",
    "timemillis",
    "time_iso8601",
    "time_local",
    "timegenerated",
    "stagetimestamp",
    "receivetimestamp",
    "__realtime_timestamp",
    "_source_realtime_timestamp",
    "created_at",
    "createdat",
    "created_utc",
    "asctime",
    "date",
    "t",
];
/// Place in [`NAMES`] of the name that may have the time of a date.
const TIME: usize = 2;
/// Names of fields with a zone.
const ZONES: [&str; 3] = ["timezone", "tz", "zone"];

/// Returns the place of `name` in [`NAMES`].
fn place(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true if fields of this name have times.
pub fn is_name(name: &str) -> bool {
    place(name).is_some()
}

/// Returns the one of `names` that has the time most certainly, if any has.
pub fn first_name<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.filter(|name| is_name(name)).min_by_key(|name| place(name))
}

/// Returns the time of `line`. Returns `Some(None)` if it is an object with a name of times and none is understood, and
/// none if it is something else.
pub fn find(line: &[u8]) -> Option<Option<Moment>> {
    let line = line.strip_prefix(MARK).unwrap_or(line).trim_ascii_start();
    if !line.starts_with(b"{") {
        return None;
    }
    let fields = Fields::read(line).or_else(|| Fields::read(&mend(line).0))?;
    fields.times.iter().any(Option::is_some).then(|| fields.moment())
}

/// Returns the value at `path` in `line`, an object: a field, or one of the objects in it, as in `a.b`.
pub fn value_at(line: &[u8], path: &str) -> Option<Value> {
    let object = serde_json::from_slice(line).or_else(|_| serde_json::from_slice(&mend(line).0));
    let (mut value, mut path): (Value, &str) = (object.ok()?, path);
    loop {
        if let Some(found) = value.get_mut(path) {
            return Some(found.take());
        }
        let (first, below) = path.split_once('.')?;
        (value, path) = (value.get_mut(first)?.take(), below);
    }
}

/// The fields of an object that have to do with its time.
#[derive(Debug)]
struct Fields {
    /// Values of [`NAMES`].
    times: [Option<Value>; NAMES.len()],
    zone: Option<String>,
}

impl Fields {
    /// Reads the object that `line` begins with.
    fn read(line: &[u8]) -> Option<Self> {
        Self::deserialize(&mut serde_json::Deserializer::from_slice(line)).ok()
    }

    fn moment(&self) -> Option<Moment> {
        let moment = self.times.iter().flatten().find_map(moment)?;
        let moment = if has_time(&moment) { moment } else { self.with_time(moment)? };
        match &self.zone {
            Some(zone) if !has_zone(&moment) => {
                let text = self.text_of_time()?;
                find_whole(format!("{text} {zone}").as_bytes())
            }
            _ => Some(moment),
        }
    }

    /// Returns the first text that is a time.
    fn text_of_time(&self) -> Option<&str> {
        self.times.iter().flatten().find(|value| moment(value).is_some())?.as_str()
    }

    /// Returns `midnight` with the time of the day in another field.
    fn with_time(&self, midnight: Moment) -> Option<Moment> {
        match self.times.get(TIME)? {
            Some(Value::String(time)) => {
                let text = format!("{} {time}", self.text_of_time()?);
                find_whole(text.as_bytes()).filter(has_time)
            }
            Some(_) => None,
            None => Some(midnight),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields { times: [const { None }; NAMES.len()], zone: None };
        while let Some(name) = map.next_key()? {
            match name {
                Name::Time(place) => {
                    let value = map.next_value()?;
                    if let Some(field) = fields.times.get_mut(place) {
                        *field = Some(value);
                    }
                }
                Name::Zone => fields.zone = map.next_value::<Value>()?.as_str().map(str::to_owned),
                Name::Other => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(fields)
    }
}

/// Meaning of the name of a field.
enum Name {
    /// A place in [`NAMES`].
    Time(usize),
    Zone,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        if let Some(place) = place(name) {
            return Ok(Name::Time(place));
        }
        let is_zone = ZONES.iter().any(|known| known.eq_ignore_ascii_case(name));
        Ok(if is_zone { Name::Zone } else { Name::Other })
    }
}

/// Returns the time of a value.
fn moment(value: &Value) -> Option<Moment> {
    match value {
        Value::String(text) => find_whole(text.trim().as_bytes()),
        Value::Number(number) => counted(number).map(Moment::Instant),
        Value::Object(fields) => {
            let field = |names: [&str; 2]| names.iter().find_map(|name| fields.get(*name));
            if let Some(value) = field(["$date", "$numberLong"]) {
                return moment(value);
            }
            // Counts of log4j and of protocol buffers.
            let seconds = field(["epochSecond", "seconds"])?;
            let nanos = field(["nanoOfSecond", "nanos"]).map_or(Some(0), Value::as_i64)?;
            let micros = counted(seconds.as_number()?)?;
            (0..1_000_000_000).contains(&nanos).then(|| Moment::Instant(micros + nanos / 1000))
        }
        _ => None,
    }
}

/// Returns the microseconds of a number that counts from 1970, if it lies between 2001 and 2286.
fn counted(number: &serde_json::Number) -> Option<i64> {
    let size = number.as_f64()?;
    if ![1e9, 1e12, 1e15, 1e18].iter().any(|unit| (*unit..10.0 * unit).contains(&size)) {
        return None;
    }
    let digits = number.as_i64().map_or_else(|| Digits::from_float(size), Digits::from_integer);
    match digits? {
        Digits::Counted(micros) => Some(micros),
        Digits::Written(_) => None,
    }
}

/// Returns true unless `moment` is a date alone.
fn has_time(moment: &Moment) -> bool {
    !matches!(moment, Moment::Shown(Shown { time: None, .. }) | Moment::Short(Short { time: None, .. }))
}

fn has_zone(moment: &Moment) -> bool {
    !matches!(moment, Moment::Shown(Shown { zone: None, .. }) | Moment::Short(Short { zone: None, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        match find(line.as_bytes()) {
            None => "no field".to_owned(),
            Some(None) => "none".to_owned(),
            Some(Some(Moment::Instant(micros))) => micros.to_string(),
            Some(Some(Moment::Shown(Shown { year, month, day, time, zone }))) => {
                let year = year.map_or(String::new(), |year| format!("{year}-"));
                let time = time.map_or(String::new(), |time| format!(" {time}"));
                let zone = zone.map_or(String::new(), |zone| format!(" {zone:?}"));
                format!("{year}{month}-{day}{time}{zone}")
            }
            Some(Some(Moment::Short(short))) => format!("{:?} {:?}", short.numbers, short.style),
        }
    }

    /// Any bytes give a time or none.
    #[test]
    fn cut_lines_are_read_without_fault() {
        let line = "{\"a\":[{\"\u{e9}\":\"\\ud83d\"}],\"ts\":1e999,\"t\":{\"seconds\":9e9,\"nanos\":-1},\"date\":\"31.12.9999\",\
                    \"time\":\"24:00:00\",\"tz\":\"CEST\"}";
        for len in 0..=line.len() {
            for start in 0..len.min(20) {
                let _ = (find(&line.as_bytes()[start..len]), value_at(&line.as_bytes()[start..len], "t.seconds"));
            }
        }
    }

    #[test]
    fn fields_of_objects_have_a_path() {
        let line = br#"{"a":{"b":{"c":1},"d.e":2},"a.b":3,"loss":NaN}"#;
        for (path, expected) in
            [("a.b", Some("3")), ("a.d.e", Some("2")), ("a.x", None), ("loss", Some("null")), ("", None), (".", None)]
        {
            let found = value_at(line, path).map(|value| value.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        assert_eq!(value_at(b"[1]", "a"), None);
        assert_eq!(value_at(b"no", "a"), None);
    }

    #[test]
    fn loggers_have_names_for_the_time() {
        let time = "2024-5-6 07:08:09 Offset(0)";
        let millis = "1714979289123000";
        for (line, expected) in [
            (r#"{"level":"info","time":"2024-05-06T07:08:09Z"}"#, time),
            (r#"{"@timestamp":"2024-05-06T07:08:09Z","time":"soon"}"#, time),
            (r#"{"log":"x\n","stream":"stdout","time":"2024-05-06T07:08:09Z"}"#, time),
            (r#" {"EventTime" : "2024-05-06T07:08:09Z" }"#, time),
            ("\u{feff}{\"Timestamp\":\"2024-05-06T07:08:09Z\"}", time),
            (r#"{"level":30,"time":1714979289123,"pid":1}"#, millis),
            (r#"{"ts":1714979289.123,"msg":"x"}"#, millis),
            (r#"{"ts":1.714979289123e9}"#, millis),
            (r#"{"ts":1714979289123000}"#, millis),
            (r#"{"ts":1714979289123000999}"#, millis),
            (r#"{"ts":"1714979289.123"}"#, millis),
            (r#"{"__REALTIME_TIMESTAMP":"1714979289123000"}"#, millis),
            (r#"{"t":{"$date":"2024-05-06T07:08:09Z"},"s":"I"}"#, time),
            (r#"{"t":{"$date":{"$numberLong":"1714979289123"}}}"#, millis),
            (r#"{"instant":{"epochSecond":1714979289,"nanoOfSecond":123000000}}"#, millis),
            (r#"{"time_local":"06/May/2024:07:08:09 +0000"}"#, time),
            (r#"{"created_at":"Mon May 06 07:08:09 +0000 2024"}"#, time),
            // The names count, not their order in the line.
            (r#"{"date":"2024-05-07","t":1,"timestamp":"2024-05-06T07:08:09Z"}"#, time),
            (r#"{"time":0.25,"ts":1714979289.123}"#, millis),
            (r#"{"date":"2024-05-06","time":"07:08:09Z"}"#, time),
            (r#"{"date":"2024-05-06","time":"07:08:09","tz":"UTC"}"#, "none"),
            (r#"{"time":"2024-05-06 07:08:09","timezone":"UTC"}"#, time),
            (r#"{"time":"2024-05-06 07:08:09","timezone":"Mars"}"#, "none"),
            (r#"{"date":"2024-05-06","time":"late"}"#, "none"),
            (r#"{"date":"2024-05-06","time":5}"#, "none"),
            (r#"{"date":"2024-05-06"}"#, "2024-5-6"),
            (r#"{"date":"06.05.2024"}"#, "[6, 5, 2024] Points"),
            // Rows that the standard does not allow.
            (r#"{"loss":NaN,"time":"2024-05-06T07:08:09Z"}"#, time),
            (r#"{"a":"\ud83d","time":"2024-05-06T07:08:09Z"},"#, time),
            (r#"{"time":"2024-05-06T07:08:09Z"}{"time":"2025-05-06T07:08:09Z"}"#, time),
            // Durations, counters and others.
            (r#"{"time":12}"#, "none"),
            (r#"{"time":-1714979289}"#, "none"),
            (r#"{"t":99999999999}"#, "none"),
            (r#"{"ts":null}"#, "none"),
            (r#"{"ts":[1714979289]}"#, "none"),
            (r#"{"ts":{"seconds":1714979289,"nanos":"x"}}"#, "none"),
            (r#"{"ts":{"seconds":1714979289,"nanos":9223372036854775807}}"#, "none"),
            (r#"{"msg":"2024-05-06T07:08:09Z"}"#, "no field"),
            (r#"{"a":{"time":"2024-05-06T07:08:09Z"}}"#, "no field"),
            (r#"{"time":"2024-05-06T07:08:09Z""#, "no field"),
            ("{", "no field"),
            ("[1]", "no field"),
            ("2024-05-06", "no field"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }
}
