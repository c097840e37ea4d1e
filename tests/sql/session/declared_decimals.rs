//! Columns of CSV and JSON files that a table declares as decimals, against a model that moves digits one by one, and
//! columns of whole numbers, dates and times.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::config::Dialect;
use datafusion::prelude::{SessionConfig, SessionContext};
use testkit::random::Random;

use super::{batches, session_with, table};

const TYPES: [(usize, usize); 4] = [(9, 4), (20, 0), (38, 2), (76, 10)];

/// Returns the number in `text` as a decimal is shown; `None` if the type has no room for it.
fn model(text: &str, precision: usize, scale: usize) -> Option<String> {
    let is_negative = text.starts_with('-');
    let text = text.trim_start_matches(['-', '+']);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut whole = whole.chars().collect::<VecDeque<_>>();
    let mut fraction = fraction.chars().collect::<VecDeque<_>>();
    let exponent: i64 = exponent.parse().unwrap();
    for _ in 0..exponent.abs() {
        if exponent > 0 {
            whole.push_back(fraction.pop_front().unwrap_or('0'));
        } else {
            fraction.push_front(whole.pop_back().unwrap_or('0'));
        }
    }
    while whole.front() == Some(&'0') {
        whole.pop_front();
    }
    fraction.resize(scale, '0');
    if !whole.is_empty() && whole.len() + scale > precision {
        return None;
    }
    let is_zero = whole.is_empty() && fraction.iter().all(|digit| *digit == '0');
    let mut shown = if is_negative && !is_zero { "-".to_owned() } else { String::new() };
    if whole.is_empty() {
        whole.push_back('0');
    }
    shown.extend(&whole);
    if scale > 0 {
        shown.push('.');
        shown.extend(&fraction);
    }
    Some(shown)
}

/// Returns a number as JSON writes one, often with many more digits than a decimal has.
fn number(random: &mut Random) -> String {
    let digits = |random: &mut Random, num_digits: usize| {
        (0..num_digits).map(|_| char::from(b'0' + u8::try_from(random.below(10)).unwrap())).collect::<String>()
    };
    let sign = if random.one_in(3) { "-" } else { "" };
    let most = if random.one_in(2) { 12 } else { 80 };
    let num_digits = 1 + random.below(most);
    let few = format!("{}{}", 1 + random.below(9), digits(random, num_digits - 1));
    let num_zeros = random.below(400);
    let zeros = "0".repeat(num_zeros);
    let shift = i64::try_from(num_zeros).unwrap() - 8 + i64::try_from(random.below(16)).unwrap();
    let most = if random.one_in(8) { 70_000 } else { 300 };
    let e = *random.pick(&["e", "E"]);
    match random.below(8) {
        0 => format!("{sign}{few}"),
        1 => format!("{sign}{few}.{zeros}{few}"),
        2 => format!("{sign}{few}{zeros}{e}-{}", shift.max(0)),
        3 => format!("{sign}0.{zeros}{few}{e}+{}", shift.max(0)),
        4 => format!("{sign}{few}.{}{e}{}", digits(random, 1 + num_zeros), random.below(9)),
        5 => {
            let whole = digits(random, 1 + num_zeros);
            format!(
                "{sign}1{whole}.{}{e}-{}",
                digits(random, 1 + num_zeros),
                whole.len() - random.below(9).min(whole.len())
            )
        }
        6 => format!("{sign}0.{zeros}{e}{}", random.below(most)),
        _ => format!("{sign}{few}{e}{}{}", random.pick(&["", "-"]), random.below(most)),
    }
}

fn write_rows(file: &Path, is_csv: bool, random: &mut Random, numbers: &[String]) {
    let mut rows = if is_csv { "id,x\n".to_owned() } else { String::new() };
    for (id, number) in numbers.iter().enumerate() {
        let is_quoted = random.one_in(2);
        let quote = if is_quoted { "\"" } else { "" };
        if is_csv {
            writeln!(rows, "{id},{quote}{number}{quote}").unwrap();
        } else {
            writeln!(rows, "{{\"id\": {id}, \"x\": {quote}{number}{quote}}}").unwrap();
        }
    }
    fs::write(file, rows).unwrap();
}

async fn create(ctx: &SessionContext, columns: &str, format: &str, file: &Path) {
    ctx.sql("DROP TABLE IF EXISTS t").await.unwrap();
    let sql = format!("CREATE EXTERNAL TABLE t ({columns}) STORED AS {format} LOCATION '{}'", file.display());
    ctx.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A session that reads so many parts of a file at once.
fn session(num_parts: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(num_parts).with_batch_size(100);
    session_with(config.with_repartition_file_min_size(1))
}

/// Returns the values of the first column as texts.
async fn texts(ctx: &SessionContext, sql: &str) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    for batch in batches(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")) {
        let column = cast(batch.column(0), &DataType::Utf8).unwrap();
        texts.extend(column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
    }
    texts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_decimals_are_exact_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(4);
    let mut random = Random(42);
    for (precision, scale) in TYPES {
        let numbers = (0..800).map(|_| number(&mut random)).collect::<Vec<_>>();
        let expected = numbers.iter().map(|number| model(number, precision, scale)).collect::<Vec<_>>();
        let pairs = || numbers.iter().zip(&expected);
        let fitting = pairs().filter(|(_, expected)| expected.is_some()).map(|(number, _)| number.clone());
        let fitting = fitting.collect::<Vec<_>>();
        let large = pairs().filter(|(_, expected)| expected.is_none()).map(|(number, _)| number.clone());
        let large = large.collect::<Vec<_>>();
        assert!(fitting.len() > 50 && large.len() > 50, "{} and {}", fitting.len(), large.len());
        let expected = expected.iter().flatten().cloned().map(Some).collect::<Vec<_>>();
        for format in ["CSV", "JSON"] {
            let columns = format!("id BIGINT, x DECIMAL({precision}, {scale})");
            let file = dir.path().join(format!("{precision}.{}", format.to_lowercase()));
            write_rows(&file, format == "CSV", &mut random, &fitting);
            create(&ctx, &columns, format, &file).await;
            let got = texts(&ctx, "SELECT x FROM t ORDER BY id").await;
            for ((got, expected), number) in got.iter().zip(&expected).zip(&fitting) {
                assert_eq!(got, expected, "{format} DECIMAL({precision}, {scale}): {number}");
            }
            assert_eq!(got.len(), expected.len());
            for (idx, number) in large.iter().take(15).enumerate() {
                let file = dir.path().join(format!("{precision}-{idx}-large.{}", format.to_lowercase()));
                write_rows(&file, format == "CSV", &mut random, std::slice::from_ref(number));
                create(&ctx, &columns, format, &file).await;
                let error = batches(&ctx, "SELECT x FROM t").await.unwrap_err().to_string();
                let is_named = error.contains("-large.") && error.contains("column x is declared as DECIMAL(");
                assert!(is_named && error.contains("is too large; declare it as VARCHAR"), "{number}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn usual_cells_are_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    let csv = dir.path().join("t.csv");
    let cells = "1e5 1.10 \"2.5\" .5 5. +3 -0 1.999 -1.999 1E-1 12345.678";
    let cells = format!("x,y\n{},\n,a\n\"\",b\n", cells.replace(' ', ",\n"));
    fs::write(&csv, cells).unwrap();
    create(&ctx, "x DECIMAL(9, 2), y TEXT", "CSV", &csv).await;
    let shown = |numbers: &[&str]| numbers.iter().map(|text| Some((*text).to_owned())).collect::<Vec<_>>();
    let numbers = ["100000.00", "1.10", "2.50", "0.50", "5.00", "3.00", "0.00", "1.99", "-1.99", "0.10", "12345.67"];
    let mut expected = shown(&numbers);
    expected.extend([None, None]);
    assert_eq!(texts(&ctx, "SELECT x FROM t").await, expected);
    // Conditions, sums, and columns that are not read.
    let sums = "SELECT count(*) AS n, sum(x) AS x, max(x) AS large FROM t WHERE x > 2.4 AND x < 100";
    let sums = table(&ctx, sums).await;
    assert!(sums.contains("| 3 | 10.50 | 5.00  |"), "{sums}");
    assert_eq!(texts(&ctx, "SELECT y AS x FROM t WHERE y = 'b'").await, shown(&["b"]));
    assert_eq!(texts(&ctx, "SELECT count(*) AS x FROM t").await, shown(&["13"]));

    for cell in ["x", ".", "-", "-.", "1e", "e5", "1e5-3", "1.2.3", " 1", "0x10", "1,", "NaN", "1_0"] {
        fs::write(&csv, format!("x,y\n\"{cell}\",\n")).unwrap();
        let error = batches(&ctx, "SELECT x FROM t").await.unwrap_err().to_string();
        assert!(error.contains("is no number"), "{cell}: {error}");
        assert_eq!(texts(&ctx, "SELECT count(*) AS x FROM t").await, shown(&["1"]), "{cell}");
    }
}

#[tokio::test]
async fn json_has_decimals_in_lines_arrays_and_types() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    let long = format!("1{}e-300", "0".repeat(300));
    let row =
        format!(r#"{{"x": {long}, "s": {{"d": "{long}", "t": "a],[\"b"}}, "l": [1.10, null, "{long}"], "n": 5}}"#);
    let rows = [row.as_str(), r#"{"x": null, "l": [], "n": 6}"#, r#"{"n": 7}"#];
    let lines = rows.join("\n");
    let array = format!(" [\n{}\n]\n", rows.join(" ,\n"));
    let columns = "x DECIMAL(38, 2), s STRUCT<d DECIMAL(60, 1), t TEXT>, l DECIMAL(9, 1)[], n BIGINT";
    let select = "SELECT x, s['d'] AS d, s['t'] AS t, l, n FROM t ORDER BY n";
    let mut shown = Vec::new();
    for text in [&lines, &array] {
        let file = dir.path().join("t.json");
        fs::write(&file, text).unwrap();
        ctx.sql("DROP TABLE IF EXISTS t").await.unwrap();
        let sql = format!(
            "CREATE EXTERNAL TABLE t ({columns}) STORED AS JSON LOCATION '{}' \
             OPTIONS ('format.newline_delimited' '{}')",
            file.display(),
            text.starts_with('{')
        );
        ctx.sql("SET datafusion.optimizer.repartition_file_scans = false").await.unwrap();
        ctx.sql(&sql).await.unwrap();
        shown.push(table(&ctx, select).await);
    }
    assert_eq!(shown[0], shown[1]);
    assert!(shown[0].contains(r#"| 1.00 | 1.0 | a],["b | [1.1, , 1.0] | 5 |"#), "{}", shown[0]);
    assert_eq!(shown[0].lines().count(), 7, "{}", shown[0]);

    let file = dir.path().join("t.json");
    fs::write(&file, array.trim_end().trim_end_matches(']')).unwrap();
    let error = batches(&ctx, select).await.unwrap_err().to_string();
    assert!(error.contains("the array of JSON ends without `]`"), "{error}");
    for value in ["true", "{}", "\"x\"", "[1]"] {
        fs::write(&file, format!(r#"[{{"x": {value}}}]"#)).unwrap();
        batches(&ctx, select).await.unwrap_err();
    }
}

/// Creates a table whose columns are those of the first rows of `file`.
async fn create_as_found(ctx: &SessionContext, format: &str, file: &Path) {
    ctx.sql("DROP TABLE IF EXISTS t").await.unwrap();
    let sql = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{}'", file.display());
    ctx.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[tokio::test]
async fn rows_behind_the_first_ones_lose_no_fraction_and_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(2);
    for (name, format, first, last, fault) in [
        ("n.json", "JSON", r#"{"x": 1}"#, r#"{"x": 1.5}"#, "`1.5` is no whole number"),
        ("l.json", "JSON", r#"{"x": [1]}"#, r#"{"x": [2, 1e-1]}"#, "`1e-1` is no whole number"),
        ("s.json", "JSON", r#"{"x": {"y": 1}}"#, r#"{"x": {"y": -0.5}}"#, "`-0.5` is no whole number"),
        ("u.json", "JSON", r#"{"x": 1}"#, r#"{"x": 9223372036854775808}"#, "is too large"),
        ("d.csv", "CSV", "2024-01-01", "2024-01-01T05:00:00", "has a time of the day"),
        ("t.csv", "CSV", "2024-01-01T05:00:00", "2024-01-01 05:00:00.25", "has smaller parts of a second"),
        ("m.csv", "CSV", "2024-01-01T05:00:00.5", "2024-01-01T05:00:00.1234", "has smaller parts of a second"),
    ] {
        let file = dir.path().join(name);
        let head = if format == "CSV" { "x\n" } else { "" };
        let rows = format!("{head}{}", format!("{first}\n").repeat(1100));
        fs::write(&file, &rows).unwrap();
        create_as_found(&ctx, format, &file).await;
        assert_eq!(texts(&ctx, "SELECT count(*) AS x FROM t WHERE x IS NOT NULL").await, [Some("1100".to_owned())]);
        fs::write(&file, format!("{rows}{last}\n")).unwrap();
        create_as_found(&ctx, format, &file).await;
        let error = batches(&ctx, "SELECT x FROM t").await.unwrap_err().to_string();
        let is_named = error.contains(name) && error.contains("column x is read as");
        assert!(is_named && error.contains(fault) && error.contains("CREATE EXTERNAL TABLE"), "{error}");
    }
}

#[tokio::test]
async fn whole_numbers_and_times_are_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    let json = dir.path().join("t.json");
    let numbers = "7 -0 7.0 7e2 70e-1 \"7\" 9223372036854775807 -9223372036854775808 null";
    let rows = numbers.split(' ').map(|number| format!("{{\"x\": {number}}}\n")).collect::<String>();
    fs::write(&json, rows).unwrap();
    create(&ctx, "x BIGINT", "JSON", &json).await;
    let shown = |values: &[&str]| {
        let value = |value: &&str| Some((*value).to_owned()).filter(|value| value != "null");
        values.iter().map(value).collect::<Vec<_>>()
    };
    let expected = ["7", "0", "7", "700", "7", "7", "9223372036854775807", "-9223372036854775808", "null"];
    assert_eq!(texts(&ctx, "SELECT x FROM t").await, shown(&expected));
    for (kind, number, fault) in [
        ("TINYINT", "128", "too large"),
        ("BIGINT UNSIGNED", "-1", "too large"),
        ("BIGINT", "\"a\"", "no number"),
        ("BIGINT", "true", "no number"),
    ] {
        fs::write(&json, format!("{{\"x\": {number}}}")).unwrap();
        create(&ctx, &format!("x {kind}"), "JSON", &json).await;
        let error = batches(&ctx, "SELECT x FROM t").await.unwrap_err().to_string();
        assert!(error.contains(fault), "{number}: {error}");
    }
    fs::write(&json, "{\"x\": 18446744073709551615}").unwrap();
    create(&ctx, "x BIGINT UNSIGNED", "JSON", &json).await;
    assert_eq!(texts(&ctx, "SELECT x FROM t").await, shown(&["18446744073709551615"]));

    fs::write(&json, "{\"x\": \"a\"}\n{\"x\": 1.10}\n{\"x\": true}\n{\"x\": null}").unwrap();
    create(&ctx, "x TEXT", "JSON", &json).await;
    assert_eq!(texts(&ctx, "SELECT x FROM t").await, shown(&["a", "1.10", "true", "null"]));

    let csv = dir.path().join("t.csv");
    fs::write(&csv, "d,t\n2024-02-29,2024-02-29T07:08:09\n,\n0001-01-01,1969-12-31 23:59:59\n").unwrap();
    create_as_found(&ctx, "CSV", &csv).await;
    assert_eq!(texts(&ctx, "SELECT d FROM t").await, shown(&["2024-02-29", "null", "0001-01-01"]));
    assert_eq!(texts(&ctx, "SELECT t FROM t").await, shown(&["2024-02-29T07:08:09", "null", "1969-12-31T23:59:59"]));
    assert_eq!(texts(&ctx, "SELECT d FROM t WHERE d > DATE '2000-01-01'").await, shown(&["2024-02-29"]));
}

#[tokio::test]
async fn a_declared_order_stays() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    let file = dir.path().join("t.csv");
    fs::write(&file, "x,y\n9,a\n10,b\n100,c\n").unwrap();
    let sql = format!(
        "CREATE EXTERNAL TABLE t (x DECIMAL(9, 2), y TEXT) STORED AS CSV WITH ORDER (x) LOCATION '{}'",
        file.display()
    );
    ctx.sql(&sql).await.unwrap();
    let plan = table(&ctx, "EXPLAIN SELECT x FROM t ORDER BY x").await;
    assert!(!plan.contains("SortExec") && plan.contains("declared_value"), "{plan}");
    assert!(plan.contains("output_ordering=[x@0 ASC NULLS LAST]"), "{plan}");
    assert_eq!(texts(&ctx, "SELECT x FROM t ORDER BY x").await.len(), 3);
}

#[tokio::test]
async fn an_unbounded_table_has_no_decimals() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    let sql = format!(
        "CREATE UNBOUNDED EXTERNAL TABLE t (x DECIMAL(9, 2)) STORED AS CSV LOCATION '{}'",
        dir.path().join("fifo.csv").display()
    );
    let statement = ctx.state().sql_to_statement(&sql, &Dialect::Generic).unwrap();
    let error = datafusion_tadoc::check_clauses(&ctx.state(), &statement).unwrap_err().to_string();
    assert!(error.contains("DECIMAL in an unbounded table"), "{error}");
}
