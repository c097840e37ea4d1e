//! Writes known moments in many forms, and compares what is read with them: the same moment or none.
//!
//! ```text
//! moment ─▶ date × separator × time × fraction × half × zone × year ─▶ text ─▶ find ─▶ moment, or none
//! ```
//!
//! Most of these forms are those of logs, and others are like them but are not known to the reader. What no
//! reader can tell apart is left out: digits behind a comma where commas separate cells.

use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};
use testkit::random::Random;

use super::format::Format;
use super::forms::{Moment, find};
use super::zones::Zone;

const NUM_TEXTS: usize = 60_000;

/// Forms of dates, and true for those with a year.
const DATES: [(&str, bool); 26] = [
    ("%Y-%m-%d", true),
    ("%Y-%m-%d", true),
    ("%Y/%m/%d", true),
    ("%Y.%m.%d", true),
    ("%Y%m%d", true),
    ("%d %b %Y", true),
    ("%d/%b/%Y", true),
    ("%d-%b-%Y", true),
    ("%b %e", false),
    ("%b %d", false),
    ("%b %e %Y", true),
    ("%b %e, %Y", true),
    ("%B %-d, %Y", true),
    ("%a %b %e", false),
    ("%a, %d %b %Y", true),
    ("%A, %B %-d, %Y", true),
    ("%a %Y-%m-%d", true),
    ("%Y %b %e", true),
    ("%d %b", false),
    // These are not read, as their parts may mean others.
    ("%m/%d/%Y", true),
    ("%d.%m.%Y", true),
    ("%d %b %y", true),
    ("%y%m%d", true),
    ("%Y-%j", true),
    ("%G-W%V-%u", true),
    ("%m-%d", false),
];
const SEPARATORS: [&str; 22] = [
    " ", " ", "T", "t", "  ", "\t", "_", "-", "|", ",", ", ", ";", ":", "@", "/", " at ", " - ", " on ", "][", "\",\"",
    " Mon ", "--",
];
/// Forms of times: with the hours of a day, or of its halves.
const TIMES: [&str; 6] = ["%H:%M:%S", "%H:%M:%S", "%-H:%M:%S", "%H.%M.%S", "%H%M%S", "%H:%M"];
const HALF_TIMES: [&str; 3] = ["%I:%M:%S", "%-I:%M:%S", "%I:%M"];
const HALVES: [(&str, &str); 4] = [(" AM", " PM"), ("am", "pm"), (" a.m.", " p.m."), ("上午", "下午")];
/// Zones, with their minutes; none for those that no reader can know.
const ZONES: [(&str, Option<i32>); 20] = [
    ("Z", Some(0)),
    (" UTC", Some(0)),
    (" GMT", Some(0)),
    ("+02:00", Some(120)),
    ("+0200", Some(120)),
    (" -0330", Some(-210)),
    ("-07", Some(-420)),
    (" +02", Some(120)),
    (" +5:30", Some(330)),
    (" UTC+2", Some(120)),
    (" GMT-0700 (PDT)", Some(-420)),
    (" CEST", Some(120)),
    (" (EST)", Some(-300)),
    ("|UTC|", Some(0)),
    (" CST", None),
    (" IST", None),
    ("\u{2212}02:30", Some(-150)),
    (" EST5EDT", None),
    (" +02:00:00", Some(120)),
    ("[Etc/GMT-3]", Some(180)),
];
const FRONTS: [&str; 12] =
    ["", "", "", "", "[", " ", "<34>", "<34>1 ", "\u{1b}[32m", "INFO: ", "time=\"", "ERROR:root:"];
const ENDS: [&str; 18] = [
    "",
    " up",
    " host app[1]: x",
    " 10.0.0.1 GET /",
    " [12] LOG",
    ",up",
    ",200,GET",
    "\t45\t1",
    "|200|",
    ": x",
    "]",
    "\" x",
    " 12 files",
    " -1 x",
    " - 80",
    " INFO",
    " 404 -",
    " app-1.example.org x",
];

/// A text, and what it says.
#[derive(Debug)]
struct Written {
    text: String,
    has_year: bool,
    time: NaiveDateTime,
    zone: Option<i32>,
    /// False if the zone cannot be known.
    is_known: bool,
}

fn moment(random: &mut Random) -> NaiveDateTime {
    let day = NaiveDate::from_yo_opt(1971 + random.below(200) as i32, 1 + random.below(365) as u32);
    let second = random.below(60) as u32;
    day.unwrap().and_hms_opt(random.below(24) as u32, random.below(60) as u32, second).unwrap()
}

fn written(random: &mut Random) -> Written {
    let mut time = moment(random);
    let &(date, has_year) = random.pick(&DATES);
    let separator = *random.pick(&SEPARATORS);
    // A number of two digits and a colon are hours.
    let is_short = !has_year || date.ends_with("%y");
    let separator = if is_short && separator == ":" { " " } else { separator };
    let has_half = random.one_in(4);
    let form = *random.pick(if has_half { &HALF_TIMES[..] } else { &TIMES[..] });
    let mut text = format!("{}{}", random.pick(&FRONTS), time.format(date));
    text += separator;
    text += &time.format(form).to_string();
    if !form.ends_with("%S") {
        time = time.with_second(0).unwrap();
    } else if random.one_in(2) {
        let digits = *random.pick(&[3, 3, 6, 6, 9, 1, 2]);
        let sign = *random.pick(if separator.contains(',') { &[".", ":"][..] } else { &[".", ",", ":"][..] });
        let nanos = 10u32.pow(9 - digits) * random.below(10usize.pow(digits)) as u32;
        text += &format!("{sign}{:0width$}", nanos / 10u32.pow(9 - digits), width = digits as usize);
        time = time.with_nanosecond(nanos).unwrap();
    }
    if has_half {
        let (first, second) = random.pick(&HALVES);
        text += if time.hour() < 12 { first } else { second };
    }
    let year = format!(" {}", time.year());
    let mut states_year = has_year;
    if !has_year && random.one_in(4) {
        text += &year;
        states_year = true;
    }
    let (mut zone, mut is_known) = (None, true);
    if random.one_in(2) {
        let (name, minutes) = random.pick(&ZONES);
        text += name;
        (zone, is_known) = (*minutes, minutes.is_some());
    }
    if !states_year && random.one_in(4) {
        text += &year;
        states_year = true;
    }
    text += *random.pick(&ENDS);
    Written { text, has_year: states_year, time, zone, is_known }
}

/// Returns what `moment` says: year, rest of the time, and minutes of the zone.
fn said(moment: Moment, year: i32) -> (Option<i32>, NaiveDateTime, Option<i32>) {
    let Moment::Shown(shown) = moment else { panic!("an instant is in no such form") };
    let date = NaiveDate::from_ymd_opt(shown.year.unwrap_or(year), shown.month, shown.day).unwrap();
    let time = date.and_time(shown.time.unwrap_or_default());
    let zone = shown.zone.map(|zone| match zone {
        Zone::Offset(seconds) => seconds / 60,
        Zone::Place(place) => {
            assert_eq!(place.to_string(), "Etc/GMT-3");
            180
        }
    });
    (shown.year, time, zone)
}

#[test]
fn a_time_is_read_whole_or_not_at_all() {
    let mut random = Random(43);
    let mut num_read = 0;
    for _ in 0..NUM_TEXTS {
        let written = written(&mut random);
        let year = written.time.year();
        let Some(moment) = find(written.text.as_bytes()) else { continue };
        num_read += 1;
        let expected = (written.has_year.then_some(year), written.time, written.zone);
        assert!(written.is_known && said(moment, year) == expected, "{written:?}\n{moment:?}");
    }
    assert!(num_read > NUM_TEXTS / 4, "{num_read}");
}

/// A form of strftime that ends before the stamp does drops no part of it.
#[test]
fn a_form_that_ends_early_drops_nothing() {
    let forms = [
        "%Y-%m-%d %H:%M:%S%.3f %z",
        "%Y-%m-%d %H:%M:%S.%3f +0200",
        "%d.%m.%Y %I:%M:%S %p",
        "%d.%m.%Y %I:%M:%S %p CEST",
        "%b %e %H:%M:%S %Y",
        "%b %e %H:%M:%S, %Y",
        "%a %b %e %H:%M:%S %Y +0200",
        "%Y%m%d%H%M%S",
        "%d/%b/%Y:%H:%M:%S +0200",
        "%H:%M:%S %d.%m.%Y",
    ];
    let mut random = Random(44);
    let mut num_read = 0;
    for number in 0..4_000 {
        let form = forms[number % forms.len()];
        let millis = if form.contains("%3f") || form.contains("%.3f") { random.below(1000) } else { 0 };
        let time = moment(&mut random).with_nanosecond(millis as u32 * 1_000_000).unwrap();
        let form = form.replace("%z", "+0200");
        let has_zone = form.contains("+0200") || form.contains("CEST");
        let zone = has_zone.then_some(120);
        let text = format!("{}{}", time.format(&form), random.pick(&["", " up", "] x", ",x"]));
        let cuts: Vec<usize> = form.match_indices(['%', ' ']).map(|(at, _)| at).collect();
        let cut = *random.pick(&cuts);
        let short = form[..cut].replace("%.3f", "").replace(".%3f", "");
        let Some(format) = Format::new(short.trim_end_matches(['-', '.', '/', ':', ' '])) else {
            continue;
        };
        let Some(moment) = format.find(text.as_bytes()) else { continue };
        num_read += 1;
        let expected = (Some(time.year()), time, zone);
        assert_eq!(said(moment, time.year()), expected, "{short}: {text}");
    }
    assert!(num_read > 400, "{num_read}");
}
