//! Columns of JSON files that no table declares: whole numbers are exact or refused, against a model that compares
//! digits, and a field that first comes behind the rows that tell the columns is an error where all of them are read.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};
use testkit::random::Random;

use super::{batches, session_with, table};

fn session() -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(2).with_batch_size(100))
}

async fn create(ctx: &SessionContext, file: &Path, columns: &str, options: &str) {
    batches(ctx, "DROP TABLE IF EXISTS t").await.unwrap();
    let sql = format!("CREATE EXTERNAL TABLE t {columns} STORED AS JSON LOCATION '{}' {options}", file.display());
    batches(ctx, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn refused(ctx: &SessionContext, sql: &str) -> String {
    batches(ctx, sql).await.unwrap_err().to_string()
}

#[tokio::test]
async fn whole_numbers_beyond_64_bits_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session();
    for (values, kind) in [
        (&["18446744073709551615", "1", "null"][..], "UInt64"),
        (&["18446744073709551616", "-9223372036854775809", "0"], "Decimal128(38, 0)"),
        (&["-18446744073709551616"], "Decimal128(38, 0)"),
        (&["99999999999999999999999999999999999999", "5"], "Decimal128(38, 0)"),
        (&["9223372036854775807", "-9223372036854775808"], "Int64"),
        (&["1.5", "3", "1e300"], "Float64"),
    ] {
        // Behind other rows, too.
        for num_before in [0, 999] {
            let lines = std::iter::repeat_n(&"7", num_before).chain(values);
            let lines: Vec<String> = lines
                .map(|value| {
                    format!("{{\"x\": {value}, \"l\": [{value}, null], \"s\": {{\"y\": {value}, \"z\": \"a\"}}}}")
                })
                .collect();
            let array = format!("[{}]", lines.join(","));
            for (name, text, options) in [
                ("t.json", lines.join("\n"), ""),
                ("t.json", format!("\u{feff}{}\n", lines.join("\n")), ""),
                ("a.json", array, "OPTIONS ('format.newline_delimited' 'false')"),
            ] {
                let file = dir.path().join(name);
                fs::write(&file, text).unwrap();
                create(&ctx, &file, "", options).await;
                ctx.sql("SET datafusion.optimizer.repartition_file_scans = false").await.unwrap();
                let kinds =
                    "SELECT DISTINCT arrow_typeof(x) AS x, arrow_typeof(l) AS l, arrow_typeof(s['y']) AS y FROM t";
                let kinds = table(&ctx, kinds).await;
                if num_before == 0 || kind != "UInt64" {
                    let of_list = format!("List({kind})");
                    assert!(kinds.contains(&format!("| {kind} | {of_list} | {kind} |")), "{values:?}: {kinds}");
                }
                let shown = table(&ctx, "SELECT x::text AS x, l[1]::text AS l, s['y']::text AS y FROM t").await;
                for value in values.iter().filter(|value| !value.contains(['e', '.', 'n']) && kind != "Float64") {
                    let has_all = shown.lines().any(|line| line.matches(value).count() == 3);
                    assert!(has_all, "{value} as {kind}: {shown}");
                }
            }
        }
    }
}

/// Returns true if a float has the digits of a whole number: it is that number, or is written with these digits.
fn is_kept(number: &str) -> bool {
    let float: f64 = number.parse().unwrap();
    let is_same = number.parse::<i128>().is_ok_and(|whole| float.abs() < 1e38 && float as i128 == whole);
    let (digits, shown) = (number.trim_start_matches('-'), format!("{:e}", float.abs()));
    let (mantissa, exponent) = shown.split_once('e').unwrap();
    let written = mantissa.replace('.', "");
    let len = exponent.parse::<usize>().unwrap() + 1;
    is_same || len == digits.len() && digits.trim_end_matches('0') == written.trim_end_matches('0')
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_numbers_among_floats_are_kept_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session();
    let mut random = Random(11);
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for _ in 0..600 {
        let num_digits = 1 + random.below(24);
        let mut number = (1 + random.below(9)).to_string();
        (1..num_digits).for_each(|_| write!(number, "{}", random.below(10)).unwrap());
        if random.one_in(3) {
            number = format!("{}", number.parse::<f64>().unwrap());
        }
        if random.one_in(2) {
            number.insert(0, '-');
        }
        if is_kept(&number) { kept.push(number) } else { others.push(number) }
    }
    assert!(kept.len() > 100 && others.len() > 100, "{} and {}", kept.len(), others.len());
    let file = dir.path().join("t.json");
    let mut rows = "{\"id\": 0, \"x\": 0.5}\n".to_owned();
    for (idx, number) in kept.iter().enumerate() {
        writeln!(rows, "{{\"id\": {}, \"x\": {number}}}", idx + 1).unwrap();
    }
    fs::write(&file, &rows).unwrap();
    create(&ctx, &file, "", "").await;
    let shown = table(&ctx, "SELECT x::text AS x FROM t ORDER BY id").await;
    let got = shown.lines().filter(|line| line.starts_with('|')).skip(2);
    let got: Vec<f64> = got.map(|line| line.trim_matches(['|', ' ']).parse().unwrap()).collect();
    let expected: Vec<f64> = kept.iter().map(|number| number.parse().unwrap()).collect();
    assert_eq!(got, expected);
    for number in others.iter().take(40) {
        fs::write(&file, format!("{{\"x\": 0.5}}\n{{\"x\": {number}}}\n")).unwrap();
        create(&ctx, &file, "", "").await;
        let error = refused(&ctx, "SELECT sum(x) FROM t").await;
        let parts = ["t.json", "column x is read as Float64", number, "DECIMAL(38, 9)", "DOUBLE"];
        assert!(parts.iter().all(|part| error.contains(part)), "{number}: {error}");
        create(&ctx, &file, "(x DECIMAL(38, 9))", "").await;
        assert!(table(&ctx, "SELECT x FROM t").await.contains(&format!("{number}.0")), "{number}");
        // A table that asks for floats has floats.
        create(&ctx, &file, "(x DOUBLE)", "").await;
        batches(&ctx, "SELECT x FROM t").await.unwrap();
    }
    for (row, fault) in [("1e400", "is too large"), ("[1]", ""), ("\"a\"", "is no number"), ("true", "is no number")] {
        fs::write(&file, format!("{}{{\"x\": {row}}}\n", "{\"x\": 0.5}\n".repeat(1000))).unwrap();
        create(&ctx, &file, "", "").await;
        let error = refused(&ctx, "SELECT x FROM t").await;
        assert!(error.contains(fault), "{row}: {error}");
    }
}

#[tokio::test]
async fn floats_are_read_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session();
    let file = dir.path().join("t.json");
    let values = "0.5 -0.0 7 -3e2 1E-3 \"2.5\" null 9007199254740992 1152921504606847000 1152921504606846976";
    let rows = values.split(' ').map(|value| format!("{{\"x\": {value}}}\n")).collect::<String>();
    fs::write(&file, format!("{}{rows}", "{\"x\": 0.25}\n".repeat(1000))).unwrap();
    create(&ctx, &file, "", "").await;
    let shown = table(&ctx, "SELECT x FROM t WHERE x IS DISTINCT FROM 0.25").await;
    let got = shown.lines().filter(|line| line.starts_with('|')).skip(1);
    let got: Vec<&str> = got.map(|line| line.trim_matches(['|', ' '])).collect();
    let large = "1.152921504606847e18";
    assert_eq!(got, ["0.5", "-0.0", "7.0", "-300.0", "0.001", "2.5", "", "9007199254740992.0", large, large]);
}

#[tokio::test]
async fn a_field_behind_the_first_rows_is_an_error_of_all_columns() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session();
    let first = "{\"a\": 1, \"s\": {\"y\": 2}}";
    for (late, field) in [
        ("{\"a\": 2, \"b\": 3}", "column 'b'"),
        ("{\"b\": null}", "column 'b'"),
        ("{\"s\": {\"z\": 4}}", "field 's': column 'z'"),
    ] {
        let lines = format!("{}{late}\n", format!("{first}\n").repeat(1500));
        let array = format!("[{late}]").replace('[', &format!("[{}", format!("{first},").repeat(1500)));
        for (text, options) in [(lines, ""), (array, "'format.newline_delimited' 'false', ")] {
            let file = dir.path().join("t.json");
            fs::write(&file, &text).unwrap();
            ctx.sql("SET datafusion.optimizer.repartition_file_scans = false").await.unwrap();
            create(&ctx, &file, "", &format!("OPTIONS ({options}'format.compression' 'uncompressed')")).await;
            for sql in ["SELECT * FROM t", "SELECT * FROM t WHERE a = 2", "SELECT s, a FROM t ORDER BY a LIMIT 3"] {
                let error = refused(&ctx, sql).await;
                let parts = ["t.json", field, "first 1000 rows", "format.schema_infer_max_rec"];
                assert!(parts.iter().all(|part| error.contains(part)), "{sql}: {error}");
            }
            for (sql, num_rows) in [
                ("SELECT a FROM t", 1501),
                ("SELECT s['y'], a FROM t", 1501),
                ("SELECT * FROM t LIMIT 1200", 1200),
                ("SELECT 1 FROM t", 1501),
            ] {
                let rows = batches(&ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
                assert_eq!(rows.iter().map(|rows| rows.num_rows()).sum::<usize>(), num_rows, "{sql}");
            }
            let options = format!("OPTIONS ({options}'format.schema_infer_max_rec' '2000')");
            create(&ctx, &file, "", &options).await;
            let rows = table(&ctx, "SELECT * FROM t").await;
            assert!(rows.contains(&field[field.len() - 2..field.len() - 1]), "{rows}");
            // A table has the columns that it declares.
            create(&ctx, &file, "(a BIGINT)", &options).await;
            batches(&ctx, "SELECT * FROM t").await.unwrap();
        }
    }
}
