//! Tests of timestamps of lines and rows, and of records of several lines.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::harness::{Folder, gzip, new_folder};

const APP: &str = "started\n\
    2024-05-06T07:08:09Z ERROR it failed\n  at main.rs:12\n  at lib.rs:7\n\
    2024-05-06T07:08:10.5+02:00 INFO it works\n";

/// Ingests `name` as lines with timestamps, and returns times and texts.
fn times(folder: &Folder, name: &str, options: &[&str]) -> Vec<String> {
    let command = ["ingest", name, "-o", "c.tadoc", "--force", "--documents", "lines"];
    folder.ok(&[command.as_slice(), options].concat());
    folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id")
}

#[test]
fn lines_have_the_times_they_begin_with() {
    let folder = new_folder();
    folder.write("app.log", APP);
    let rows = times(&folder, "app.log", &["--timestamp", "auto"]);
    let expected = [
        ",started",
        "2024-05-06T07:08:09Z,2024-05-06T07:08:09Z ERROR it failed",
        ",  at main.rs:12",
        ",  at lib.rs:7",
        "2024-05-06T05:08:10.500Z,2024-05-06T07:08:10.5+02:00 INFO it works",
    ];
    assert_eq!(rows, expected);
    let command = ["ingest", "app.log", "-o", "d.tadoc", "--documents", "lines"];
    let ran = folder.run(&[command.as_slice(), &["--timestamp", "auto"]].concat());
    let warning = "warning: 3 of 5 documents have no timestamp; their ts is NULL";
    assert_eq!(ran.stderr.lines().next(), Some(warning));
    let types = folder.table_rows("d.tadoc", "SELECT arrow_typeof(ts) AS t FROM d LIMIT 1");
    assert_eq!(types, ["\"Timestamp(µs, \"\"UTC\"\")\""]);
}

#[test]
fn records_take_the_lines_behind_them() {
    let folder = new_folder();
    folder.write("app.log.gz", gzip(APP.as_bytes()));
    let options = ["--timestamp", "auto", "--record-start", "^[0-9]{4}-", "--quiet"];
    let command = ["ingest", "app.log.gz", "-o", "c.tadoc", "--documents", "lines"];
    folder.ok(&[command.as_slice(), &options].concat());
    let sql = "SELECT doc_id, bytes, date_part('second', ts) AS second FROM d ORDER BY doc_id";
    assert_eq!(folder.table_rows("c.tadoc", sql), ["0,7,", "1,66,9", "2,41,10"]);
    let text = folder.ok(&["cat", "c.tadoc", "--doc-id", "1"]);
    assert_eq!(text, "2024-05-06T07:08:09Z ERROR it failed\n  at main.rs:12\n  at lib.rs:7");
    // Without timestamps, too.
    let options = ["--record-start", "failed|works", "--force"];
    folder.ok(&[command.as_slice(), &options].concat());
    assert_eq!(folder.rows("SELECT count(*) AS n FROM documents('c.tadoc')"), ["3"]);
    let ran = folder.run(&["ingest", "app.log.gz", "-o", "d.tadoc", "--record-start", "x"]);
    assert_eq!(ran.stderr, "error: --record-start goes with --documents lines\n");
    assert_eq!(ran.status, 2);
}

#[test]
fn years_and_zones_are_added() {
    let folder = new_folder();
    folder.write("syslog", "Dec 31 23:59:00 h sshd: a\nJan  1 00:01:00 h sshd: b\n");
    // 2 January 2023.
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_672_617_600);
    let file = File::options().append(true).open(folder.join("syslog")).unwrap();
    file.set_modified(changed).unwrap();
    let hours = |options: &[&str]| {
        let rows = times(&folder, "syslog", &[&["--timestamp", "auto"], options].concat());
        let ts = rows.iter().map(|row| row.split(',').next().unwrap().to_owned());
        ts.collect::<Vec<String>>()
    };
    assert_eq!(hours(&[]), ["2022-12-31T23:59:00Z", "2023-01-01T00:01:00Z"]);
    let berlin = ["--timezone", "Europe/Berlin"];
    assert_eq!(hours(&berlin), ["2022-12-31T22:59:00Z", "2022-12-31T23:01:00Z"]);
    assert_eq!(hours(&["--year", "2019"]), ["2019-12-31T23:59:00Z", "2019-01-01T00:01:00Z"]);
    folder.write("eu.log", "31.12.2021 23:00 x\n");
    let eu = ["--timestamp", "%d.%m.%Y %H:%M", "--timezone=-01:00"];
    assert_eq!(times(&folder, "eu.log", &eu), ["2022-01-01T00:00:00Z,31.12.2021 23:00 x"]);
    folder.write("kernel.log", "[   12.345678] usb 1-1: new device\n");
    let rows = times(&folder, "kernel.log", &["--timestamp", "dmesg"]);
    assert_eq!(rows, ["1970-01-01T00:00:12.345678Z,[   12.345678] usb 1-1: new device"]);
}

/// Returns a tar archive with one member, which was last changed `seconds` after 1970.
fn tar(name: &str, text: &str, seconds: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mtime(seconds);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    archive.into_inner().unwrap()
}

#[test]
fn members_have_the_years_of_their_own() {
    // 10 January 2019 and 2 March 2021.
    let january = 1_547_078_400;
    let march = 1_614_643_200;
    let line = "Mar  1 10:00:00 host app: x\n";
    let folder = new_folder();
    let years = |name: &str| {
        let rows = times(&folder, name, &["--timestamp", "auto"]);
        rows.iter().map(|row| row[..4].to_owned()).collect::<Vec<String>>()
    };
    folder.write("a.tar", tar("messages", line, march));
    assert_eq!(years("a.tar"), ["2021"]);
    // A member that states no time has that of the archive around it.
    let inner = tar("messages", line, 0);
    let mut header = tar::Header::new_gnu();
    header.set_size(inner.len() as u64);
    header.set_mtime(january);
    let mut outer = tar::Builder::new(Vec::new());
    outer.append_data(&mut header, "inner.tar", inner.as_slice()).unwrap();
    folder.write("b.tar", outer.into_inner().unwrap());
    assert_eq!(years("b.tar"), ["2018"]);

    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let changed = zip::DateTime::from_date_and_time(2019, 1, 10, 0, 0, 0).unwrap();
    let options = zip::write::SimpleFileOptions::default().last_modified_time(changed);
    zip.start_file("messages", options).unwrap();
    std::io::Write::write_all(&mut zip, line.as_bytes()).unwrap();
    folder.write("c.zip", zip.finish().unwrap().into_inner());
    assert_eq!(years("c.zip"), ["2018"]);

    // Members of gzip, each with its own time.
    let packed = |seconds: u64| {
        let mtime = u32::try_from(seconds).unwrap();
        let lines = line.repeat(30);
        let mut writer = flate2::GzBuilder::new().mtime(mtime).write(Vec::new(), Default::default());
        std::io::Write::write_all(&mut writer, lines.as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    folder.write("d.gz", [packed(january), packed(march)].concat());
    let expected = [vec!["2018"; 30], vec!["2021"; 30]].concat();
    assert_eq!(years("d.gz"), expected);
}

#[test]
fn years_go_back_at_each_new_year_of_a_file() {
    let folder = new_folder();
    // More lines than a batch has, over two new years.
    let days = ["Oct 31", "Dec 31", "Jan  1", "Jun  5", "Dec  1", "Feb  1"];
    let lines = days.iter().flat_map(|day| (0..3000).map(move |number| format!("{day} 07:08:09 h app: {number}\n")));
    folder.write("messages", lines.collect::<String>());
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_337_600);
    File::options().write(true).open(folder.join("messages")).unwrap().set_modified(changed).unwrap();
    times(&folder, "messages", &["--timestamp", "auto"]);
    let sql = "SELECT date_part('year', ts) AS y, count(*), min(ts) FROM d GROUP BY y ORDER BY y";
    let years = folder.table_rows("c.tadoc", sql);
    let expected =
        ["2022,6000,2022-10-31T07:08:09Z", "2023,9000,2023-01-01T07:08:09Z", "2024,3000,2024-02-01T07:08:09Z"];
    assert_eq!(years, expected);
}

#[test]
fn forms_are_explained_and_nothing_is_written() {
    let folder = new_folder();
    folder.write("app.log", APP);
    let shown = folder.ok(&["ingest", "app.log", "--explain-timestamps"]);
    let rows: Vec<String> = shown.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows.len(), 3, "{shown}");
    assert_eq!(rows[1], "year first 2 40.0 % 2024-05-06T07:08:09Z ERROR it failed -> 2024-05-06T07:08:09Z");
    assert_eq!(rows[2], "no time 3 60.0 % started");
    assert_eq!(folder.names(), ["app.log"]);
    let refused = folder.run(&["ingest", "app.log", "--explain-timestamps", "--documents", "csv:a"]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert_eq!(folder.run(&["ingest", "app.log", "--explain-timestamps", "-o", "c.tadoc"]).status, 2);
    assert_eq!(folder.run(&["ingest", "app.log"]).status, 2);
}

#[test]
fn a_stamp_that_is_not_understood_is_no_time() {
    let folder = new_folder();
    let lines = "2024-05-06\t07:08:09\tFRA2\n2024-05-06 07:08:09 PM up\nMon May 6 09:08:09 2024 +0200\n\
                 2024-05-06 about 07:08 up\n2024-05-06 07:08:09 CST up\n";
    folder.write("a.log", lines);
    let rows = times(&folder, "a.log", &["--timestamp", "auto"]);
    let found: Vec<&str> = rows.iter().map(|row| row.split(',').next().unwrap()).collect();
    let expected = ["2024-05-06T07:08:09Z", "2024-05-06T19:08:09Z", "2024-05-06T07:08:09Z", "", ""];
    assert_eq!(found, expected);
}

/// Returns the times of the lines of `name`, NULL as an empty text.
fn starts(folder: &Folder, name: &str, options: &[&str]) -> Vec<String> {
    let rows = times(folder, name, &[&["--timestamp", "auto"], options].concat());
    rows.iter().map(|row| row.split(',').next().unwrap().to_owned()).collect()
}

/// Structured logs of zap, pino, Docker, MongoDB, log4j and journald, kept as the lines that they are.
#[test]
fn lines_of_json_have_the_times_of_their_fields() {
    let folder = new_folder();
    let long = "x".repeat(9000);
    let lines = [
        r#"{"level":"info","ts":1714979289.5,"msg":"started"}"#.to_owned(),
        r#"{"level":30,"time":1714979289500,"pid":1,"msg":"up"}"#.to_owned(),
        r#"{"log":"2001-01-01 00:00:00 x\n","stream":"stdout","time":"2024-05-06T07:08:09.5Z"}"#.to_owned(),
        r#"{"t":{"$date":"2024-05-06T09:08:09.500+02:00"},"s":"I","c":"NETWORK"}"#.to_owned(),
        r#"{"instant":{"epochSecond":1714979289,"nanoOfSecond":500000000},"level":"INFO"}"#.to_owned(),
        r#"{"MESSAGE":"x","__REALTIME_TIMESTAMP":"1714979289500000"}"#.to_owned(),
        // The field stands far behind.
        format!(r#"{{"msg":"{long}","@timestamp":"2024-05-06T07:08:09.5Z"}}"#),
        r#"{"loss":NaN,"timestamp":"2024-05-06T07:08:09.5Z"}"#.to_owned(),
        // A duration, and no time.
        r#"{"time":0.25,"msg":"query"}"#.to_owned(),
        r#"{"msg":"2024-05-06T07:08:09Z"}"#.to_owned(),
    ];
    folder.write("app.log", lines.join("\n"));
    let time = "2024-05-06T07:08:09.500Z";
    assert_eq!(starts(&folder, "app.log", &[]), [[time; 8].as_slice(), &["", ""]].concat());
    let explained = folder.ok(&["ingest", "app.log", "--explain-timestamps"]);
    assert!(explained.contains("field of JSON"), "{explained}");
    // The lines stay as they are.
    let length = folder.table_rows("c.tadoc", "SELECT length(text) FROM d ORDER BY doc_id OFFSET 6 LIMIT 1");
    assert_eq!(length, [lines[6].len().to_string()]);
}

/// Rows with columns have the time in the column that `auto` finds.
#[test]
fn rows_have_the_times_of_a_column_with_a_name_of_times() {
    let folder = new_folder();
    let times = |name: &str, documents: &str, more: &[&str]| {
        let command = ["ingest", name, "--documents", documents, "--timestamp", "auto", "--force", "-o", "c.tadoc"];
        folder.ok(&[command.as_slice(), more].concat());
        folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id")
    };
    let time = "2024-05-06T07:08:09Z";
    folder.write("a.jsonl", format!("{{\"msg\":\"a\",\"Time\":\"{time}\",\"date\":1}}\n{{\"msg\":\"b\"}}\n"));
    for more in [&[][..], &["--no-columns"]] {
        assert_eq!(times("a.jsonl", "jsonl:msg", more), [format!("{time},a"), ",b".to_owned()]);
    }
    folder.write("b.jsonl", format!("{{\"msg\":\"a\",\"t\":{{\"$date\":\"{time}\"}}}}\n"));
    assert_eq!(times("b.jsonl", "jsonl:msg", &[]), [format!("{time},a")]);
    folder.write("c.csv", "text,timestamp,ts\na,2001-01-01,1714979289\nb,2001-01-01,12\n");
    assert_eq!(times("c.csv", "csv:text", &[]), [format!("{time},a"), ",b".to_owned()]);
    let fails = |name: &str, documents: &str, place: &str, message: &str| {
        let command = ["ingest", name, "--documents", documents, "--timestamp", place, "--force", "-o", "d.tadoc"];
        folder.fails(&command, message);
    };
    folder.write("d.csv", "text,when\na,2024-05-06\n");
    fails(
        "d.csv",
        "csv:text",
        "auto",
        "d.csv: --timestamp auto: no column has a name of times, such as timestamp, time or ts; name one of the columns \
         `text`, `when`",
    );
    folder.write("e.jsonl", "{\"msg\":\"a\",\"at\":{\"s\":1}}\n");
    fails(
        "e.jsonl",
        "jsonl:msg",
        "at",
        "e.jsonl: --timestamp at: it holds objects; name the field of them that has the time, such as --timestamp \
         at.FIELD",
    );
}

/// Logs of European and American programs, whose order of day and month lines tell, or nobody.
#[test]
fn dates_with_the_year_last_are_read_in_the_order_of_their_lines() {
    let folder = new_folder();
    let times = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|date| format!("{date} up\n")).collect();
        folder.write("a.log", lines.concat());
        starts(&folder, "a.log", &[])
    };
    let may = "2024-05-06T07:08:09Z";
    let june = "2024-06-05T07:08:09Z";
    assert_eq!(times(&["06.05.2024 07:08:09", "13.05.2024 07:08:09"]), [may, "2024-05-13T07:08:09Z"]);
    assert_eq!(times(&["05/06/2024 07:08:09", "13/06/2024 07:08:09"]), [june, "2024-06-13T07:08:09Z"]);
    assert_eq!(times(&["05/06/2024 07:08:09", "05/13/2024 07:08:09"]), [may, "2024-05-13T07:08:09Z"]);
    assert_eq!(times(&["05/06/2024 7:08:09 AM"]), [may]);
    assert_eq!(times(&["05/06/2024 7:08:09 am", "13/06/2024 7:08:09 am"]), [june, "2024-06-13T07:08:09Z"]);
    assert_eq!(times(&["05/06/2024 07:08:09", "06/07/2024 07:08:09"]), ["", ""]);
    assert_eq!(times(&["05/13/2024 07:08:09", "13/06/2024 07:08:09"]), ["", ""]);

    folder.write("a.csv", "text,day\na,05/06/2024\nb,05/13/2024 07:08\nc,\n");
    let ingest = ["ingest", "a.csv", "--documents", "csv:text", "--timestamp", "day", "-o", "c.tadoc", "--force"];
    folder.ok(&ingest);
    let found = folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id");
    assert_eq!(found, ["2024-05-06T00:00:00Z,a", "2024-05-13T07:08:00Z,b", ",c"]);
    folder.write("a.csv", "text,day\na,05/06/2024\nb,06.05.2024\n");
    folder.ok(&ingest);
    let found = folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id");
    assert_eq!(found, [",a", "2024-05-06T00:00:00Z,b"]);
}

#[test]
fn days_of_iso_8601_are_read() {
    let folder = new_folder();
    let lines = "2024-127T07:08:09Z x\n2024-W19-1T07:08:09Z x\n2024-05-06T24:00:00Z x\n2024-05-06 07:08:09 -07 x\n\
                 2024-127 items\n2024-05-06 24:00:01 x\n2024-05-06 07:08:09 -10 x\n";
    folder.write("a.log", lines);
    let may = "2024-05-06T07:08:09Z";
    let expected = [may, may, "2024-05-07T00:00:00Z", "2024-05-06T14:08:09Z", "", "", ""];
    assert_eq!(starts(&folder, "a.log", &[]), expected);
}

#[test]
fn a_field_has_nothing_behind_its_time() {
    let folder = new_folder();
    let rows = "text,v\na,May  6 07:08:09 est 2019\nb,2024-05-06 to 2024-05-09\nc,1714979289 seconds\n\
                d,2024-05-06 07:08:09 GMT +0200\n";
    folder.write("a.csv", rows);
    let ingest = ["ingest", "a.csv", "--documents", "csv:text", "--timestamp", "v", "-o", "c.tadoc"];
    folder.ok(&ingest);
    let found = folder.table_rows("c.tadoc", "SELECT ts, text FROM d ORDER BY doc_id");
    assert_eq!(found, [",a", ",b", ",c", "2024-05-06T05:08:09Z,d"]);
}

#[test]
fn rows_have_the_times_of_a_column() {
    let folder = new_folder();
    let line = |n: u32| format!("{{\"at\":\"2024-05-06 07:08:{n:02}\",\"msg\":\"m {n}\"}}\n");
    folder.write("a.jsonl", (0..3).map(line).collect::<String>());
    let sql = "SELECT ts, at, text FROM d ORDER BY doc_id LIMIT 1";
    for place in ["at", "jsonl:at"] {
        let options = ["--documents", "jsonl:msg", "--timestamp", place, "--force"];
        folder.ok(&[["ingest", "a.jsonl", "-o", "c.tadoc"].as_slice(), &options].concat());
        let row = "2024-05-06T07:08:00Z,2024-05-06 07:08:00,m 0";
        assert_eq!(folder.table_rows("c.tadoc", sql), [row]);
    }
    let rows = times(&folder, "a.jsonl", &["--timestamp", "jsonl:at"]);
    assert!(rows[0].starts_with("2024-05-06T07:08:00Z,\"{\"\"at"), "{}", rows[0]);

    folder.write("a.csv", "ts,text,n\n1714979289.5,one,1\n,two,2\n");
    let csv = ["ingest", "a.csv", "--documents", "csv:text", "-o"];
    folder.ok(&[csv.as_slice(), &["d.tadoc", "--timestamp", "ts"]].concat());
    let sql = "SELECT ts, n FROM d ORDER BY n";
    assert_eq!(folder.table_rows("d.tadoc", sql), ["2024-05-06T07:08:09.500Z,1", ",2"]);
    folder.ok(&[csv.as_slice(), &["e.tadoc", "--timestamp", "ts", "--no-columns"]].concat());
    assert_eq!(folder.table_rows("e.tadoc", "SELECT count(ts) AS n FROM d"), ["1"]);
    folder.fails(
        &[csv.as_slice(), &["f.tadoc", "--timestamp", "n"]].concat(),
        "a.csv: --timestamp n: the rows have a column `ts` of their own; pass --timestamp ts to read \
         that one, or --no-columns",
    );
    folder.fails(
        &[csv.as_slice(), &["f.tadoc", "--timestamp", "at"]].concat(),
        "a.csv: --timestamp at: there is no such column; the columns are `ts`, `text`, `n`",
    );
}

#[test]
fn conditions_on_times_skip_segments() {
    let folder = new_folder();
    let line = |n: usize| {
        let hour = n / 60 % 24;
        let minute = n % 60;
        format!("2024-05-06 {hour:02}:{minute:02}:00 request {n} {}\n", "word ".repeat(200))
    };
    folder.write("a.log", (0..1000).map(line).collect::<String>());
    times(&folder, "a.log", &["--timestamp", "auto", "--block-size", "128KiB"]);
    let condition = "ts >= '2024-05-06T10:00:00Z' AND ts < '2024-05-06T10:05:00Z'";
    let sql = format!("SELECT split_part(text, ' ', 4) AS n FROM d WHERE {condition} ORDER BY n");
    assert_eq!(folder.table_rows("c.tadoc", &sql), ["600", "601", "602", "603", "604"]);
    let table = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'c.tadoc'";
    let explain = format!("EXPLAIN ANALYZE {sql}");
    let plan = folder.ok(&["sql", "--quiet", "-c", table, "-c", &explain]);
    let (_, skipped) = plan.split_once("segments_skipped=").unwrap_or_else(|| panic!("{plan}"));
    let digits: String = skipped.chars().take_while(char::is_ascii_digit).collect();
    assert!(digits.parse::<u32>().unwrap() >= 6, "{plan}");
}
