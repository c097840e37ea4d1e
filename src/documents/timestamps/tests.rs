//! Tests of timestamps: zones, years, forms of strftime, fields and columns; and an oracle that writes known
//! moments in many forms, and compares what is read with them: the same moment or none.
//!
//! ```text
//! moment ─▶ date × separator × time × fraction × half × zone × year ─▶ text ─▶ find ─▶ moment, or none
//! ```
//!
//! Most of these forms are those of logs, and others are like them but are not known to the reader. What no
//! reader can tell apart is left out: digits behind a comma where commas separate cells.

use arrow::array::{Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray};
use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};
use testkit::random::Random;

use super::format::Format;
use super::forms::{Moment, find};
use super::zones::Zone;
use super::*;

fn clock(place: &str, zone: &str, year: Option<i32>) -> Clock {
    let documents = Documents::Lines;
    let mut clock = Clock::new(&Timestamps::new(place, &documents, zone, year).unwrap());
    clock.latest = "2024-03-02T00:00:00".parse().unwrap();
    clock
}

fn for_line(clock: &mut Clock, line: &str) -> Option<String> {
    for_lines(clock, &[line]).remove(0)
}

fn for_lines(clock: &mut Clock, lines: &[&str]) -> Vec<Option<String>> {
    let times: Vec<LineTime> = lines.iter().map(|line| clock.for_line(line.as_bytes())).collect();
    let shown = |micros: Option<i64>| {
        let time = DateTime::from_timestamp_micros(micros?).unwrap();
        Some(time.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
    };
    clock.settled(&times).into_iter().map(shown).collect()
}

#[test]
fn zones_are_offsets_and_names() {
    let shown = |zone: &str, line: &str| for_line(&mut clock("auto", zone, None), line);
    assert_eq!(shown("UTC", "2024-05-06 07:08:09").unwrap(), "2024-05-06T07:08:09");
    assert_eq!(shown("+02:00", "2024-05-06 07:08:09").unwrap(), "2024-05-06T05:08:09");
    assert_eq!(shown("Europe/Berlin", "2024-01-06 07:08:09").unwrap(), "2024-01-06T06:08:09");
    assert_eq!(shown("Europe/Berlin", "2024-05-06T07:08:09Z").unwrap(), "2024-05-06T07:08:09");
    // The first of two hours, and an hour that does not occur.
    assert_eq!(shown("Europe/Berlin", "2024-10-27 02:30:00").unwrap(), "2024-10-27T00:30:00");
    assert_eq!(shown("Europe/Berlin", "2024-03-31 02:30:00").unwrap(), "2024-03-31T01:30:00");
}

#[test]
fn an_expression_finds_a_time_anywhere() {
    let new = |place: &str| Timestamps::new(place, &Documents::Lines, "UTC", None);
    let shown = |how: &Timestamps, line: &str| for_line(&mut Clock::new(how), line);
    let time = Some("2024-05-06T07:08:09".to_owned());
    for place in ["re:at=(?<ts>[^ ]+)", "re:at=([^ ]+)", "re:[0-9]{4}-[^ ]+", "re:(x)?at=(?<ts>[^ ]+)"] {
        assert_eq!(shown(&new(place).unwrap(), "up at=2024-05-06T07:08:09 x"), time, "{place}");
        assert_eq!(shown(&new(place).unwrap(), "up at=never"), None, "{place}");
    }
    let german = new("re:am (.+) Uhr").unwrap().with_format("%d.%m.%Y %H:%M:%S").unwrap();
    assert_eq!(shown(&german, "wach am 06.05.2024 07:08:09 Uhr"), time);
    assert_eq!(shown(&german, "wach am 2024-05-06 07:08:09 Uhr"), None);
    let field = new("jsonl:t").unwrap().with_format("%d/%m/%y %H.%M.%S").unwrap();
    assert_eq!(shown(&field, "{\"t\":\"06/05/24 07.08.09\"}"), time);
    for (place, format, expected) in [
        ("re:(", "%Y", "--timestamp re:("),
        ("auto", "%Y", "it goes with re:REGEX"),
        ("re:x", "%Q", "expected specifiers of strftime"),
        ("re:x", "plain", "expected specifiers of strftime"),
    ] {
        let error = new(place).and_then(|how| how.with_format(format)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A number at the end may be parts of a second, unless other lines of the input have none there.
#[test]
fn numbers_behind_stamps_are_text_among_texts() {
    let seconds = "2024-05-06 07:08:09";
    for place in ["auto", "%Y-%m-%d %H:%M:%S"] {
        let mut auto = clock(place, "UTC", None);
        let mut shown = |behind: &str| {
            let time = for_line(&mut auto, &format!("{seconds}{behind}"));
            time.map(|time| time == "2024-05-06T07:08:09")
        };
        for behind in [" 123", " 123456", " 123456789", " 123\r", " 123 ", "\t123"] {
            assert_eq!(shown(behind), None, "{behind:?}");
        }
        assert_eq!(shown(" 123 INFO"), Some(true));
        // Of lines without text nothing is known.
        assert_eq!((shown(""), shown(" 200")), (Some(true), None));
        for behind in [" 98", " 200", " 123456", " 123456789", " 123\r", " up", " 1234"] {
            assert_eq!(shown(behind), Some(true), "{behind:?}");
        }
        // Another input may come from another program.
        auto.enter(SystemTime::UNIX_EPOCH, &Rc::default());
        assert_eq!(for_line(&mut auto, &format!("{seconds} 123")), None);
        for (line, form) in [
            ("2024-05-06 07:08:09.000 200", "%Y-%m-%d %H:%M:%S"),
            ("2024-05-06 07:08:09,000 200", "%Y-%m-%d %H:%M:%S"),
            ("2024-05-06 07:08:09.5 200", "%Y-%m-%d %H:%M:%S%.f"),
            ("2024-05-06 07:08:09Z 200", "%Y-%m-%d %H:%M:%S%#z"),
            ("2024-05-06 07:08 200", "%Y-%m-%d %H:%M"),
        ] {
            let mut auto = clock(if place == "auto" { place } else { form }, "UTC", None);
            assert!(for_line(&mut auto, line).is_some(), "{place} {line}");
        }
    }
}

/// A number behind a time without a year may be the year, unless other lines have text there.
#[test]
fn numbers_behind_yearless_stamps_are_text_among_texts() {
    for place in ["auto", "%b %d %H:%M:%S"] {
        let mut auto = clock(place, "UTC", None);
        let mut year = |line: &str| for_line(&mut auto, line).map(|time| time[..4].to_owned());
        let of = |year: &str| Some(year.to_owned());
        // Numbers that are no years are text.
        for first in ["Feb 06 07:08:01 2045 daemon started", "Feb 06 07:08:01 2023 router1 mgd[1]: up"] {
            assert_eq!(year(first), None, "{place} {first}");
        }
        for line in [
            "Feb 06 07:08:00 1523 daemon started",
            "Feb 06 07:08:01 2045 daemon started",
            "Feb 06 07:08:02 1999 daemon started",
            "Feb 06 07:08:03 3100 daemon started",
            "Feb 06 07:08:04 2048 bytes read",
            "Feb 06 07:08:04 1999: up",
            "Feb 06 07:08:04, 1999 up",
            "Feb 06 07:08:04.5 1999 up \u{fc}",
        ] {
            assert_eq!(year(line), of("2024"), "{place} {line}");
        }
        // These are years nevertheless.
        for line in ["Feb 06 07:08:00 2021", "Feb 06 07:08:00 2021] x", "Feb 06 07:08:00 2021 GMT"] {
            assert_eq!(year(line), of("2021"), "{place} {line}");
        }
        auto.enter(SystemTime::UNIX_EPOCH, &Rc::default());
        assert_eq!(for_line(&mut auto, "Feb 06 07:08:02 1999 daemon started"), None);
    }
    let mut auto = clock("auto", "UTC", None);
    for line in [
        "Tue Feb 06 07:08:00 2018 x",
        "Tue Feb  6 07:08:00 EST 2018 x",
        "[Tue Feb 06 07:08:00 2018] x",
        "Tue 06 Feb 07:08:00 2018 x",
        "Feb 06 2018 07:08:00 2021 x",
    ] {
        assert_eq!(for_line(&mut auto, line).unwrap()[..4], *"2018", "{line}");
    }
    // Before an invalid byte.
    let mut format = clock("%b %d %H:%M:%S", "UTC", None);
    let times = [b"Feb 06 07:08:00 x".as_slice(), b"Feb 06 07:08:00 1999 x\xff\xff"].map(|line| format.for_line(line));
    assert!(matches!(times[1], LineTime::Yearless(..)));
}

#[test]
fn years_come_from_the_input_or_the_option() {
    let mut auto = clock("auto", "UTC", None);
    assert_eq!(for_line(&mut auto, "Mar  1 00:00:00 h").unwrap(), "2024-03-01T00:00:00");
    assert_eq!(for_line(&mut auto, "Dec 31 23:00:00 h").unwrap(), "2023-12-31T23:00:00");
    assert_eq!(for_line(&mut auto, "Feb 29 00:00:00 h").unwrap(), "2024-02-29T00:00:00");
    auto.latest = "2024-02-02T00:00:00".parse().unwrap();
    assert_eq!(for_line(&mut auto, "Feb 29 00:00:00 h").unwrap(), "2020-02-29T00:00:00");
    let mut clock_2001 = clock("auto", "UTC", Some(2001));
    assert_eq!(for_line(&mut clock_2001, "Dec 31 23:00:00 h").unwrap(), "2001-12-31T23:00:00");
    assert_eq!(for_line(&mut clock_2001, "Feb 29 00:00:00 h"), None);
    assert_eq!(clock_2001.warning().unwrap(), "1 of 2 documents have no timestamp; their ts is NULL");
}

#[test]
fn years_go_back_where_lines_do() {
    let mut auto = clock("auto", "UTC", None);
    let mut years = |lines: &[&str]| -> Vec<String> {
        let lines: Vec<String> = lines.iter().map(|day| format!("{day} 07:08:09 host up")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let times = for_lines(&mut auto, &lines).into_iter();
        times.map(|time| time.map_or("none".to_owned(), |time| time[..4].to_owned())).collect()
    };
    let three = ["Nov 30", "Dec 31", "Jan  1", "Jun  5", "Feb  2"];
    assert_eq!(years(&three), ["2022", "2022", "2023", "2023", "2024"]);
    // Lines that are a little out of order, and months that were joined in another order.
    assert_eq!(years(&["Dec 31", "Jan  1", "Dec 31", "Jan  2"]), ["2023", "2024", "2023", "2024"]);
    assert_eq!(years(&["Feb  7", "Feb 14", "Jan 24", "Jan 31"]), ["2024"; 4]);
    // A line with a year, or without a time, tells nothing of others.
    assert_eq!(years(&["Dec 31", "2001-01-01", "x", "Jan  1"]), ["2023", "2001", "none", "2024"]);
    assert_eq!(years(&["Feb 29", "Jun  1", "Dec  1", "Feb  1"]), ["2020", "2023", "2023", "2024"]);
    let mut stated = clock("auto", "UTC", Some(2001));
    let lines = ["Dec 31 07:08:09 x", "Jan  1 07:08:09 x"];
    assert!(
        for_lines(&mut stated, &lines).iter().all(|time| time.as_ref().is_some_and(|time| time.starts_with("2001")))
    );
}

/// Lines of two digits for each part of a date are in one order, which they tell.
#[test]
fn short_dates_are_in_one_order() {
    let mut auto = clock("auto", "UTC", None);
    let mut times = |dates: &[&str], behind: &str| -> Vec<String> {
        auto.enter("2024-06-01T12:00:00Z".parse::<DateTime<Utc>>().unwrap().into(), &Rc::default());
        let lines: Vec<String> = dates.iter().map(|date| format!("{date}{behind}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let times = for_lines(&mut auto, &lines).into_iter();
        times.map(|time| time.map_or("none".to_owned(), |time| time[..10].to_owned())).collect()
    };
    let behind = " 07:08:09 INFO up";
    let days = ["2024-05-30", "2024-05-31", "2024-06-01"];
    assert_eq!(times(&["30/05/24", "31/05/24", "01/06/24"], behind), days);
    assert_eq!(times(&["05/30/24", "05/31/24", "06/01/24"], behind), days);
    assert_eq!(times(&["24/05/30", "24/05/31", "24/06/01"], behind), days);
    assert_eq!(times(&["300524", "310524", "010624"], " 070809 148 INFO up"), days);
    assert_eq!(times(&["INFO: 30/05/24", "INFO: 31/05/24", "x"], behind), ["2024-05-30", "2024-05-31", "none"]);
    assert_eq!(times(&["17/06/09"], behind), ["2017-06-09"]);
    assert_eq!(times(&["99/05/06"], behind), ["1999-05-06"]);
    assert_eq!(times(&["05/04/24"], behind), ["none"]);
    assert_eq!(times(&["081109", "081109"], " 203518 148 INFO dfs up"), ["2008-11-09", "2008-11-09"]);
}

/// Lines beyond the number that is held are in the order of those before.
#[test]
fn the_order_of_short_dates_stays_up_to_the_next_input() {
    let mut auto = clock("auto", "UTC", None);
    let first = for_lines(&mut auto, &["12/02/24 07:08:09 INFO x", "13/02/24 07:08:09 INFO x"]);
    assert_eq!(first[0].as_deref(), Some("2024-02-12T07:08:09"));
    assert_eq!(for_line(&mut auto, "03/02/24 07:08:09 INFO x").as_deref(), Some("2024-02-03T07:08:09"));
    auto.enter("2025-06-01T12:00:00Z".parse::<DateTime<Utc>>().unwrap().into(), &Rc::default());
    assert_eq!(for_line(&mut auto, "13/02/03 07:08:09 INFO x").as_deref(), Some("2013-02-03T07:08:09"));
}

#[test]
fn forms_of_lines_are_explained() {
    let how = Timestamps::new("auto", &Documents::Lines, "UTC", None).unwrap();
    let mut clock = Clock::explaining(&how);
    for line in ["2024-05-06 07:08:09 up", "  at x", "2024-05-06 07:08:10\u{7} up", "1714979289 x"] {
        clock.for_line(line.as_bytes());
    }
    let table = clock.explanation().unwrap();
    let columns: Vec<String> = table.iter().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        columns,
        [
            "form lines share example",
            "year first 2 50.0 % 2024-05-06 07:08:09 up -> 2024-05-06T07:08:09Z",
            "epoch 1 25.0 % 1714979289 x -> 2024-05-06T07:08:09Z",
            "no time 1 25.0 % at x",
        ]
    );
}

#[test]
fn formats_are_those_of_strftime() {
    for (format, line, expected) in [
        ("%d.%m.%Y %H:%M", "06.05.2024 07:08 x", "2024-05-06T07:08:00"),
        ("%d.%m.%Y", "06.05.2024 report", "2024-05-06T00:00:00"),
        ("%b %d %H:%M:%S", "Dec 31 23:00:00 x", "2023-12-31T23:00:00"),
        ("%Y-%m-%dT%H:%M:%S%z", "2024-05-06T07:08:09+0200 x", "2024-05-06T05:08:09"),
        ("%s%.f", "1714979289.5 x", "2024-05-06T07:08:09.500"),
        ("%Y-%m-%d %H:%M:%S,%f", "2024-05-06 07:08:09,123 x", "2024-05-06T07:08:09.123"),
        ("%H:%M:%S.%f %d.%m.%Y", "07:08:09.5 06.05.2024", "2024-05-06T07:08:09.500"),
        ("%Y-%m-%d %H:%M:%S %Z", "2024-05-06 07:08:09 EST x", "2024-05-06T12:08:09"),
        ("%y%m%d %H%M%S", "081109 203518 x", "2008-11-09T20:35:18"),
        // What stands behind a form is a part of the stamp.
        ("%Y-%m-%d %H:%M:%S", "2024-05-06 07:08:09.5 +0200 x", "2024-05-06T05:08:09.500"),
        ("%Y-%m-%d %H:%M:%S", "2024-05-06 07:08:09,200,x", "2024-05-06T07:08:09"),
        ("%d.%m.%Y %I:%M", "06.05.2024 07:08 PM x", "2024-05-06T19:08:00"),
        ("%b %d %Y %I:%M:%S %p", "May 06 2024 01:08:09 PM CST> x", "2024-05-06T13:08:09"),
        ("%Y-%m-%d %H", "2024-05-06 07 x", "2024-05-06T07:00:00"),
        ("%b %d %H:%M:%S", "May 06 07:08:09 2021", "2021-05-06T07:08:09"),
        ("%b %d %H:%M:%S", "May 06 07:08:09 2021 UTC x", "2021-05-06T07:08:09"),
        ("%a %b %d %H:%M:%S", "Thu May 06 07:08:09 2021 x", "2021-05-06T07:08:09"),
    ] {
        let shown = for_line(&mut clock(format, "UTC", None), line);
        assert_eq!(shown.as_deref(), Some(expected), "{format}");
        for other in ["", "x", "06.", "\u{fc}"] {
            assert_eq!(for_line(&mut clock(format, "UTC", None), other), None, "{format} {other}");
        }
    }
    let known = |time: LineTime| matches!(time, LineTime::Known(None));
    assert!(known(clock("%Y", "UTC", None).for_line(b"2024\xff")));
    for (format, line) in [
        ("%d.%m.%Y", "06.05.2024 07:08 x"),
        ("%d.%m.%Y %H:%M", "06.05.2024 07:08:09"),
        ("%d.%m.%Y %I:%M", "06.05.2024 07:08 x"),
        ("%Y-%m-%d %H:%M:%S", "2024-05-06 07:08:09 +99:00"),
        ("%a %b %d %H:%M:%S %Y", "Tue May 06 07:08:09 2024"),
        ("%b %d %H:%M:%S", "May 06 07:08:09 2021 x"),
    ] {
        assert_eq!(for_line(&mut clock(format, "UTC", None), line), None, "{format} {line}");
    }
    let short = |line: &str| for_line(&mut clock("%d.%m.%y %H:%M", "UTC", None), line);
    assert_eq!(short("06.05.69 07:08 x").unwrap(), "1969-05-06T07:08:00");
    assert_eq!(short("06.05.24 07:08\u{202f}PM x").unwrap(), "2024-05-06T19:08:00");
    assert_eq!(short("06.05.24 07:08 GMT +0200").unwrap(), "2024-05-06T05:08:00");
    assert_eq!(short("06.05.24 07:08 est"), None);
    assert!(known(clock("%s", "UTC", None).for_line(b"1714979289123")));
    // Such a name of a zone means several.
    let line = b"2024-05-06 07:08 IST";
    assert!(known(clock("%Y-%m-%d %H:%M %Z", "UTC", None).for_line(line)));
}

#[test]
fn fields_of_json_lines_are_texts_or_numbers() {
    let mut clock = clock("jsonl:at", "UTC", None);
    let expected = "2024-05-06T07:08:09";
    for value in [
        "1714979289",
        "1714979289000",
        "1714979289000000",
        "1714979289000000000",
        "1714979289.0",
        "\"2024-05-06T07:08:09Z\"",
        "\"1714979289\"",
        "20240506070809",
        "\"20240506070809000\"",
        "20240506070809.0",
        "\"20240506070809.000\"",
    ] {
        let line = format!("{{\"x\": 1, \"at\": {value}}}");
        assert_eq!(for_line(&mut clock, &line).as_deref(), Some(expected), "{value}");
    }
    for (value, micros) in [("1714979289123.75", 1_714_979_289_123_750), ("202405060708", 1_714_979_280_000_000)] {
        let line = format!("{{\"at\": {value}}}");
        let time = clock.for_line(line.as_bytes());
        assert!(matches!(time, LineTime::Known(Some(found)) if found == micros), "{value}");
    }
    for line in ["{\"at\": null}", "{\"at\": []}", "{}", "[]", "no JSON", "{\"at\": \"soon\"}"] {
        assert_eq!(for_line(&mut clock, line), None, "{line}");
    }
}

#[test]
fn columns_of_every_type_become_times() {
    let documents = Documents::Csv("text".to_owned());
    let how = Timestamps::new("at", &documents, "+01:00", None).unwrap();
    assert_eq!(how.column(), Some("at"));
    let mut clock = Clock::new(&how);
    let mut micros = |column: ArrayRef| -> Vec<Option<i64>> {
        let times = clock.for_column(&column).unwrap();
        assert_eq!(times.data_type(), &data_type());
        times.as_primitive::<TimestampMicrosecondType>().iter().collect()
    };
    let hour = 3_600_000_000;
    let texts = vec![Some("1970-01-01T01:00:00"), Some("1970-01-01T00:00:01Z"), Some("x"), None];
    let texts: ArrayRef = Arc::new(StringArray::from(texts));
    assert_eq!(micros(texts), [Some(0), Some(1_000_000), None, None]);
    assert_eq!(micros(Arc::new(Int64Array::from(vec![3]))), [Some(3_000_000)]);
    assert_eq!(micros(Arc::new(Float64Array::from(vec![0.5, f64::NAN]))), [Some(500_000), None]);
    // A day in digits, of numbers with a decimal.
    let day = 1_714_950_000_000_000;
    assert_eq!(micros(Arc::new(Float64Array::from(vec![20_240_506.0, 20_240_532.0]))), [Some(day), None]);
    let prices = Decimal128Array::from(vec![202_405_060, 202_405_320, 17_149_792_895]);
    let prices = prices.with_precision_and_scale(18, 1).unwrap();
    assert_eq!(micros(Arc::new(prices)), [Some(day), None, Some(1_714_979_289_500_000)]);
    assert_eq!(micros(Arc::new(Date32Array::from(vec![1]))), [Some(23 * hour)]);
    let local: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![hour]));
    assert_eq!(micros(local), [Some(0)]);
    let max: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN]));
    assert_eq!(micros(max), [None, None]);
    let instant = TimestampMicrosecondArray::from(vec![hour]).with_timezone("+05:00");
    assert_eq!(micros(Arc::new(instant)), [Some(hour)]);
    assert_eq!(clock.num_missing, 7);
}

#[test]
fn places_that_do_not_fit_are_refused_by_the_option() {
    let refused = |place, documents, zone| Timestamps::new(place, &documents, zone, None).unwrap_err().to_string();
    let lines = "--timestamp soon with --documents lines: expected auto, dmesg, jsonl:FIELD, re:REGEX, or a \
                 format such as '%d.%m.%Y %H:%M:%S'";
    assert_eq!(refused("soon", Documents::Lines, "UTC"), lines);
    let format = "--timestamp %Q! with --documents lines: expected specifiers of strftime, such as \
                  '%d.%m.%Y %H:%M:%S'";
    assert_eq!(refused("%Q!", Documents::Lines, "UTC"), format);
    assert!(refused("auto", Documents::Files, "UTC").starts_with("--timestamp auto with"));
    assert!(refused("auto", Documents::Lines, "Berlin").starts_with("--timezone Berlin: "));
}

const NUM_TEXTS: usize = 60_000;

/// Forms of dates, and true for those with a year.
const DATES: [(&str, bool); 28] = [
    ("%Y-%m-%d", true),
    ("%Y-%m-%d", true),
    ("%Y/%m/%d", true),
    ("%Y/%-m/%-d", true),
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
    ("%Y-%j", true),
    ("%G-W%V-%u", true),
    ("%d.%m.%Y", true),
    // These are read where the calendar tells the order.
    ("%m/%d/%Y", true),
    ("%-m-%-d-%Y", true),
    // These are not read, as their parts may mean others.
    ("%d %b %y", true),
    ("%y%m%d", true),
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
    let mut zone = None;
    let mut is_known = true;
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

/// Returns the time that `moment` states alone, if it has a date of three numbers.
fn alone(moment: Moment) -> Option<Moment> {
    let Moment::Short(short) = moment else { return Some(moment) };
    let changed = "2199-01-01T00:00:00".parse().unwrap();
    let orders = Orders::from_date((short, changed), changed);
    orders.shown(&short).map(Moment::Shown)
}

/// Returns what `moment` says: year, rest of the time, and minutes of the zone.
fn said(moment: Moment, year: i32) -> (Option<i32>, NaiveDateTime, Option<i32>) {
    let Moment::Shown(shown) = moment else { panic!("{moment:?}") };
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
        let Some(moment) = find(written.text.as_bytes()).and_then(alone) else { continue };
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
