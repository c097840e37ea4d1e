//! Tests that files with GSST columns give their rows however a statement names them, that damage in
//! them is found, and that the planner takes facts about them from the files.
//!
//! The oracle is the rows that were written.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_tadoc::register_all;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use tempfile::TempDir;
use url::Url;

const FIRST_VERSION: &[u8] = include_bytes!("../../src/gsst/parquet/golden/first_version_12_bits.parquet");

fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2).with_information_schema(true);
    let ctx = SessionContext::new_with_config(config).enable_url_table();
    register_all(&ctx).unwrap();
    ctx
}

async fn rows(ctx: &SessionContext, sql: &str) -> Result<String, String> {
    let text = |error: datafusion::error::DataFusionError| error.to_string();
    let rows = ctx.sql(sql).await.map_err(text)?.collect().await.map_err(text)?;
    Ok(pretty_format_batches(&rows).unwrap().to_string())
}

async fn answer(ctx: &SessionContext, sql: &str) -> String {
    rows(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

/// Returns the cells of an answer of one row.
async fn cells(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let answer = answer(ctx, sql).await;
    let line = answer.lines().nth(3).unwrap_or_else(|| panic!("{sql}\n{answer}"));
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Writes 300 rows of `level`, `line` and `n` to `target`.
async fn write(ctx: &SessionContext, target: &Path, format: &str) {
    let copy = format!(
        "COPY (SELECT n, CASE WHEN n % 3 = 0 THEN 'ERROR' WHEN n % 7 = 0 THEN NULL ELSE 'INFO' END \
         AS level, 'line ' || n AS line FROM (SELECT unnest(range(0, 300)) AS n) ORDER BY n) \
         TO '{}' STORED AS {format}",
        target.display()
    );
    answer(ctx, &copy).await;
}

fn folder() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    (dir, path)
}

const COUNTS: &str = "count(*), count(level), sum(n), min(line), max(level)";

#[tokio::test]
async fn every_name_of_a_file_gives_its_rows() {
    let (dir, path) = folder();
    let ctx = session();
    write(&ctx, &dir.path().join("g/x.parquet"), "GSST").await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{path}/g/x.parquet'")).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE typed (level VARCHAR, n INT) STORED AS PARQUET LOCATION '{path}/g/'"))
        .await;
    let names = [
        format!("'{path}/g/x.parquet'"),
        format!("'{path}/g/'"),
        format!("'{path}/g/*.parquet'"),
        "p".to_owned(),
        "typed".to_owned(),
    ];
    for name in names {
        let errors = format!("SELECT count(*) FROM {name} WHERE level = 'ERROR'");
        assert_eq!(cells(&ctx, &errors).await, ["100"], "{name}");
        let sql = format!("SELECT count(level), sum(n) FROM {name} WHERE level LIKE 'I%' AND n > 9");
        assert_eq!(cells(&ctx, &sql).await[0], "167", "{name}");
        let nulls = format!("SELECT count(*) FROM {name} WHERE level IS NULL");
        assert_eq!(cells(&ctx, &nulls).await, ["28"], "{name}");
        let plan = answer(&ctx, &format!("EXPLAIN SELECT level FROM {name}")).await;
        assert!(plan.contains("file_type=gsst"), "{plan}");
    }
    let columns = answer(&ctx, "SELECT column_name FROM information_schema.columns").await;
    assert!(columns.contains("| level") && !columns.contains("codes"), "{columns}");
}

#[tokio::test]
async fn plain_files_and_files_of_both_versions_are_one_table() {
    let (dir, path) = folder();
    let ctx = session();
    for (file, format) in [("t/a.parquet", "GSST"), ("t/b.parquet", "PARQUET")] {
        write(&ctx, &dir.path().join(file), format).await;
    }
    let more = format!(
        "COPY (SELECT 1000 AS n, 'WARN' AS level, 5 AS \"level (tadoc GSST codes)\") \
         TO '{path}/t/c.parquet' STORED AS PARQUET"
    );
    answer(&ctx, &more).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}/t/'")).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE s STORED AS GSST LOCATION '{path}/t/'")).await;
    for table in ["t".to_owned(), "s".to_owned(), format!("'{path}/t/'")] {
        let got = cells(&ctx, &format!("SELECT {COUNTS} FROM {table}")).await;
        assert_eq!(got, ["601", "545", "90700", "line 0", "WARN"], "{table}");
        let odd = "\"level (tadoc GSST codes)\"";
        let got = cells(&ctx, &format!("SELECT count({odd}), count(*) FROM {table}")).await;
        assert_eq!(got, ["1", "601"], "{table}");
        let got = format!("SELECT count(*) FROM {table} WHERE {odd} IS NULL");
        assert_eq!(cells(&ctx, &got).await, ["600"], "{table}");
    }
    // Files of the first version have the column's own name in the file.
    fs::create_dir(dir.path().join("v")).unwrap();
    fs::write(dir.path().join("v/old.parquet"), FIRST_VERSION).unwrap();
    let copy = format!(
        "COPY (SELECT arrow_cast(one, 'Utf8') AS one, number, list, two FROM '{path}/v/old.parquet') \
         TO '{path}/v/new.parquet' STORED AS GSST"
    );
    answer(&ctx, &copy).await;
    for table in [format!("'{path}/v/'"), format!("'{path}/v/old.parquet'")] {
        let sql = format!(
            "SELECT count(*) / count(DISTINCT number), count(DISTINCT two), \
             count(*) FILTER (WHERE one = 'ERROR') / 12 FROM {table}"
        );
        let num_files = if table.contains("old") { "1" } else { "2" };
        assert_eq!(cells(&ctx, &sql).await, [num_files, "40", num_files]);
    }
}

/// The columns of a file that begins with few different values are Parquet's, unless they are named.
#[tokio::test]
async fn columns_that_repeat_are_as_short_as_those_of_parquet() {
    let (dir, path) = folder();
    let ctx = session();
    let levels = "CASE WHEN n % 997 = 0 THEN NULL ELSE 'level ' || (n * n / 7 % 15) END AS level";
    let rows = format!("SELECT n, {levels} FROM (SELECT unnest(range(0, 60000)) AS n) ORDER BY n");
    let lines = format!("SELECT *, 'line ' || (n * 7919 % 60000) AS line FROM ({rows})");
    for (file, rows, format) in [
        ("plain", &rows, "PARQUET OPTIONS (compression 'zstd(1)')"),
        ("repeated", &rows, "GSST"),
        ("named", &rows, "GSST OPTIONS (gsst_columns 'level')"),
        ("both", &lines, "GSST"),
    ] {
        answer(&ctx, &format!("COPY ({rows}) TO '{path}/{file}.parquet' STORED AS {format}")).await;
    }
    let len_bytes = |file: &str| fs::metadata(dir.path().join(file)).unwrap().len();
    assert!(len_bytes("repeated.parquet") * 100 <= len_bytes("plain.parquet") * 102);
    assert!(len_bytes("named.parquet") > len_bytes("plain.parquet"));
    let count = "count(*), count(level), count(DISTINCT level), sum(n) FILTER (WHERE level LIKE '%1_')";
    let expected = cells(&ctx, &format!("SELECT {count} FROM '{path}/plain.parquet'")).await;
    for (file, is_gsst) in [("repeated", false), ("named", true), ("both", true)] {
        let location = format!("'{path}/{file}.parquet'");
        answer(&ctx, &format!("CREATE EXTERNAL TABLE {file} STORED AS GSST LOCATION {location}")).await;
        for table in [file, location.as_str()] {
            assert_eq!(cells(&ctx, &format!("SELECT {count} FROM {table}")).await, expected, "{table}");
        }
        let columns = ParquetReadOptions::default();
        let other = SessionContext::new().read_parquet(format!("{path}/{file}.parquet"), columns).await.unwrap();
        let names: Vec<&str> = other.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names.contains(&"level"), file != "named", "{names:?}");
        assert_eq!(names.iter().any(|name| name.ends_with("(tadoc GSST codes)")), is_gsst, "{names:?}");
    }
    // A thousand hosts in any order repeat, values that come in runs of eight do not.
    for (file, value, is_gsst) in [("hosts", "n * n * 7919 / 13 % 1000", false), ("runs", "n / 8", true)] {
        let rows = format!("SELECT 'host ' || ({value}) AS host FROM (SELECT unnest(range(0, 60000)) AS n)");
        let plain = format!("'{path}/{file}.plain.parquet' STORED AS PARQUET OPTIONS (compression 'zstd(1)')");
        answer(&ctx, &format!("COPY ({rows}) TO {plain}")).await;
        answer(&ctx, &format!("COPY ({rows}) TO '{path}/{file}.parquet' STORED AS GSST")).await;
        let is_as_short =
            len_bytes(&format!("{file}.parquet")) * 100 <= len_bytes(&format!("{file}.plain.parquet")) * 102;
        assert_eq!(is_as_short, !is_gsst, "{file}");
    }
    // Values that come later may be any.
    let rest = "SELECT 'x ' || n AS level, n FROM (SELECT unnest(range(0, 60000)) AS n)";
    let all = format!("SELECT 'same' AS level, n FROM (SELECT unnest(range(0, 70000)) AS n) UNION ALL {rest}");
    answer(&ctx, &format!("COPY ({all} ORDER BY level, n) TO '{path}/later.parquet' STORED AS GSST")).await;
    let got = cells(&ctx, &format!("SELECT count(*), count(DISTINCT level), sum(n) FROM '{path}/later.parquet'")).await;
    assert_eq!(got, ["130000", "60001", "4249935000"]);
}

/// Tables that DataFusion builds without the session's formats do not find the column.
#[tokio::test]
async fn a_reader_that_does_not_know_codes_fails() {
    let (dir, _) = folder();
    let file = dir.path().join("x.parquet");
    write(&session(), &file, "GSST").await;
    let other = SessionContext::new();
    let options = ParquetReadOptions::default();
    other.register_parquet("t", file.to_str().unwrap(), options).await.unwrap();
    let error = rows(&other, "SELECT count(*) FROM t WHERE level = 'ERROR'").await.unwrap_err();
    assert!(error.contains("No field named level"), "{error}");
    assert!(error.contains("level (tadoc GSST codes)"), "{error}");
    assert_eq!(cells(&other, "SELECT count(*), sum(n) FROM t").await, ["300", "44850"]);
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_an_error_or_changes_nothing() {
    let (dir, path) = folder();
    let ctx = session();
    let file = dir.path().join("x.parquet");
    write(&ctx, &file, "GSST").await;
    let sql = |name: &str| {
        format!(
            "SELECT count(*), count(level), sum(n), min(n), max(line), min(level) FROM '{path}/{name}' AS t \
             WHERE n < 290 AND level <> 'x'"
        )
    };
    let expected = answer(&ctx, &sql("x.parquet")).await;
    let bytes = fs::read(&file).unwrap();
    let mut num_errors = 0;
    let step = bytes.len() / 120;
    for at in (3..bytes.len()).step_by(step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        // A name of its own, so that no cache knows the file.
        let name = format!("damaged_{at}.parquet");
        fs::write(dir.path().join(&name), damaged).unwrap();
        match rows(&ctx, &sql(&name)).await {
            Ok(answer) => assert_eq!(answer, expected, "byte {at}"),
            Err(error) => {
                num_errors += 1;
                assert!(error.contains("damaged_"), "byte {at}: {error}");
            }
        }
    }
    assert!(num_errors > 60, "{num_errors}");
}

/// The width and the ratio are those of the files, whatever the session would write.
#[tokio::test]
async fn plans_do_not_depend_on_the_settings_for_writing() {
    let (dir, path) = folder();
    let ctx = session();
    let mut reasons = Vec::new();
    for bits in ["8", "12"] {
        let target = dir.path().join(format!("{bits}.parquet"));
        let format = format!("GSST OPTIONS (gsst_code_bits '{bits}', gsst_row_group_rows '100')");
        write(&ctx, &target, &format).await;
        let mut plans = Vec::new();
        for (setting, rows) in [("8", "10"), ("12", "1000000")] {
            for set in [format!("gsst_code_bits = '{setting}'"), format!("gsst_row_group_rows = {rows}")] {
                answer(&ctx, &format!("SET tadoc.{set}")).await;
            }
            let sql = format!("EXPLAIN SELECT line FROM '{path}/{bits}.parquet'");
            plans.push(answer(&ctx, &sql).await);
        }
        assert_eq!(plans[0], plans[1]);
        reasons.push(plans[0].split("device=").nth(1).unwrap().to_owned());
    }
    assert_ne!(reasons[0], reasons[1]);
}

/// Without a calibration, the rate of a store is that which the session has seen.
#[tokio::test]
async fn a_slow_store_is_named_once_it_was_read() {
    let ctx = session();
    let wait = ThrottleConfig { wait_get_per_call: Duration::from_millis(40), ..Default::default() };
    let store = Arc::new(ThrottledStore::new(InMemory::new(), wait));
    ctx.register_object_store(&Url::parse("mem://slow/").unwrap(), store);
    let copy = "COPY (SELECT 'line ' || (n * 7919) || ' of ' || n AS line \
                FROM (SELECT unnest(range(0, 30000)) AS n)) TO 'mem://slow/x.parquet' \
                STORED AS GSST OPTIONS (gsst_code_bits '12')";
    answer(&ctx, copy).await;
    let create = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://slow/x.parquet'";
    answer(&ctx, create).await;
    let model = "SELECT count(*) FROM ingestion_model(1.0) \
                 WHERE codec = 'GSST-12 (this machine, mem://slow/)' AND binding_stage = 'storage'";
    let before = answer(&ctx, "EXPLAIN SELECT line FROM t").await;
    assert!(!before.contains("bound by storage"), "{before}");
    assert_eq!(cells(&ctx, model).await, ["0"]);
    assert_eq!(cells(&ctx, "SELECT count(*) FROM t WHERE line LIKE '%7'").await, ["3000"]);
    let after = answer(&ctx, "EXPLAIN SELECT line FROM t").await;
    assert!(after.contains("(bound by storage)"), "{after}");
    assert_eq!(cells(&ctx, model).await, ["1"]);
    // Another session has seen nothing.
    assert_eq!(cells(&session(), model).await, ["0"]);
}
