//! Tests that tables `STORED AS GSST` give the answers of the same rows `STORED AS PARQUET`.
//!
//! The oracle is DataFusion on plain Parquet files of the same rows. Both get every query, over
//! random rows and random filters, with one and several files, cut files, partition columns, object
//! stores, and little memory.

use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::file::reader::FileReader;
use datafusion::parquet::file::serialized_reader::SerializedFileReader;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use futures::StreamExt;
use object_store::memory::InMemory;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tempfile::TempDir;
use url::Url;

/// A row: a number, a category, a text with nulls, a short text.
type Row = (i64, u8, Option<String>, String);

fn session(partitions: usize) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(97);
    // Files of any length are cut, so that their parts are tested.
    config.options_mut().optimizer.repartition_file_min_size = 0;
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

async fn answer(ctx: &SessionContext, sql: &str) -> String {
    let rows = async { ctx.sql(sql).await?.collect().await };
    let rows = rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    pretty_format_batches(&rows).unwrap().to_string()
}

fn batch_of(rows: &[Row]) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let halves = Float64Array::from_iter(rows.iter().map(|row| (row.0 % 7 != 0).then_some(row.0 as f64 / 2.0)));
    let kinds = StringArray::from_iter_values(rows.iter().map(|row| format!("kind {}", row.1 % 3)));
    let texts: StringArray = rows.iter().map(|row| row.2.clone()).collect();
    let words = StringArray::from_iter_values(rows.iter().map(|row| row.3.clone()));
    RecordBatch::try_from_iter_with_nullable([
        ("number", Arc::new(numbers) as _, false),
        ("half", Arc::new(halves) as _, true),
        ("text", Arc::new(texts) as _, true),
        ("word", Arc::new(words) as _, false),
        ("kind", Arc::new(kinds) as _, false),
    ])
    .unwrap()
}

fn register_rows(ctx: &SessionContext, rows: &[Row]) {
    let batch = batch_of(rows);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    ctx.register_table("source", Arc::new(table)).unwrap();
}

/// Writes the rows in both formats and makes the tables `plain` and `gsst`.
async fn write_both(ctx: &SessionContext, dir: &TempDir, num_files: usize, partitioned: &str) {
    for (format, options) in [
        ("parquet", "OPTIONS (max_row_group_size '40')"),
        ("gsst", "OPTIONS (gsst_row_group_rows '40', gsst_columns 'text, word')"),
    ] {
        let folder = dir.path().join(format).display().to_string();
        for part in 0..num_files {
            let target = match partitioned {
                "" => format!("{folder}/{part}.parquet"),
                _ => format!("{folder}/"),
            };
            let copy = format!(
                "COPY (SELECT * FROM source WHERE number % {num_files} = {part} ORDER BY number) \
                 TO '{target}' STORED AS {format} {partitioned} {options}"
            );
            answer(ctx, &copy).await;
        }
        let name = if format == "gsst" { "gsst" } else { "plain" };
        let create = format!("CREATE EXTERNAL TABLE {name} STORED AS {format} {partitioned} LOCATION '{folder}/'");
        answer(ctx, &create).await;
    }
}

async fn check_alike(ctx: &SessionContext, query: &str) {
    let ask = |table: &str| query.replace("TABLE", table);
    let plain = answer(ctx, &ask("plain")).await;
    let gsst = answer(ctx, &ask("gsst")).await;
    assert_eq!(gsst, plain, "{query}");
}

const QUERIES: [&str; 12] = [
    "SELECT * FROM TABLE WHERE FILTER ORDER BY number",
    "SELECT count(*) FROM TABLE WHERE FILTER",
    "SELECT number FROM TABLE WHERE FILTER ORDER BY number",
    "SELECT text FROM TABLE WHERE FILTER ORDER BY text, number",
    "SELECT upper(text) AS a, half + 1 AS b FROM TABLE WHERE FILTER ORDER BY number",
    "SELECT text, word, text AS again FROM TABLE WHERE FILTER ORDER BY number",
    "SELECT min(text) AS a, max(text) AS b, count(text) AS c, min(number) AS d FROM TABLE WHERE FILTER",
    "SELECT kind, count(*), max(word) AS a FROM TABLE WHERE FILTER GROUP BY kind ORDER BY kind",
    "SELECT count(*) FROM (SELECT 1 FROM TABLE WHERE FILTER LIMIT 7)",
    "SELECT a.number FROM TABLE a JOIN (SELECT number AS n, word AS w FROM TABLE WHERE FILTER) \
     ON a.word = w AND n < 9 ORDER BY 1",
    "SELECT text FROM TABLE WHERE FILTER ORDER BY number DESC LIMIT 3",
    "SELECT number FROM TABLE WHERE number IN (SELECT max(number) FROM TABLE WHERE FILTER)",
];

fn filters() -> impl Strategy<Value = String> {
    let text = "[abc%_\\\\ü]{0,4}";
    let on_text = (text, prop_oneof![Just("text"), Just("word")]).prop_flat_map(|(value, column)| {
        let value = value.replace('\'', "''");
        prop::sample::select(vec![
            format!("{column} = '{value}'"),
            format!("{column} <> '{value}'"),
            format!("'{value}' = {column}"),
            format!("{column} < '{value}'"),
            format!("{column} BETWEEN 'a' AND '{value}'"),
            format!("{column} IN ('{value}', 'a', 'bc', 'x', 'y')"),
            format!("{column} NOT IN ('{value}', 'a')"),
            format!("{column} IN ('{value}', NULL)"),
            format!("({column} = '{value}' OR {column} = 'ab')"),
            format!("({column} = '{value}' OR number < 20)"),
            format!("{column} LIKE '{value}%'"),
            format!("{column} LIKE '%{value}%'"),
            format!("{column} NOT LIKE '%{value}%'"),
            format!("{column} ILIKE '%{value}%'"),
            format!("NOT ({column} LIKE 'a%{value}')"),
            format!("starts_with({column}, '{value}')"),
            format!("ends_with({column}, '{value}')"),
            format!("contains({column}, '{value}')"),
            format!("length({column}) > 2"),
            format!("{column} IS NULL"),
            format!("{column} IS NOT NULL"),
            format!("({column} LIKE '%a%') IS TRUE"),
            format!("({column} LIKE '%{value}%') IS NOT FALSE"),
        ])
    });
    let one = prop_oneof![
        4 => on_text,
        1 => (0i64..200).prop_map(|limit| format!("number < {limit}")),
        1 => Just("half > 20 OR half IS NULL".to_owned()),
        1 => Just("kind = 'kind 1'".to_owned()),
        1 => Just("text = word".to_owned()),
        1 => Just("random() < 2".to_owned()),
    ];
    prop::collection::vec(one, 1..4).prop_map(|parts| format!("({})", parts.join(") AND (")))
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop_oneof![
        1 => Just(None),
        1 => Just(Some(String::new())),
        5 => "[abc]{0,5}".prop_map(Some),
        1 => "[ab%_\\\\ü ]{0,40}".prop_map(Some),
    ];
    let row = (any::<u8>(), text, "[abc]{0,3}");
    // Each of up to three files has a row: `COPY` refuses a query without rows.
    prop::collection::vec(row, 3..160).prop_map(|rows| {
        let numbered = rows.into_iter().enumerate();
        numbered.map(|(number, (kind, text, word))| (number as i64, kind, text, word)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_parquet(
        rows in rows(),
        filters in prop::collection::vec((filters(), 0..QUERIES.len()), 12),
        num_files in 1usize..4,
        is_partitioned: bool,
        target_partitions in 1usize..4,
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let ctx = session(target_partitions);
            register_rows(&ctx, &rows);
            let partitioned = if is_partitioned { "PARTITIONED BY (kind)" } else { "" };
            write_both(&ctx, &dir, num_files, partitioned).await;
            for (filter, query_idx) in filters {
                let query = QUERIES[query_idx];
                check_alike(&ctx, &query.replace("FILTER", &filter)).await;
            }
        });
    }
}

#[cfg(feature = "cuda")]
#[test]
fn answers_of_a_device_are_the_same() {
    if testkit::device::open_device().is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for case in 0..12 {
        let rows = rows().new_tree(&mut runner).unwrap().current();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let ctx = session(1 + case % 3);
            register_rows(&ctx, &rows);
            write_both(&ctx, &dir, 1 + case % 2, "").await;
            answer(&ctx, "SET tadoc.device = 'gpu'").await;
            for query in QUERIES {
                let filter = filters().new_tree(&mut runner).unwrap().current();
                check_alike(&ctx, &query.replace("FILTER", &filter)).await;
                check_alike(&ctx, &query.replace("FILTER", "true")).await;
            }
        });
    }
}

#[cfg(feature = "cuda")]
#[tokio::test]
async fn a_device_decodes_and_says_so() {
    if testkit::device::open_device().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(2);
    register_rows(&ctx, &many_rows(20_000));
    let file = dir.path().join("x.parquet").display().to_string();
    answer(&ctx, &format!("COPY source TO '{file}' STORED AS GSST")).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'")).await;
    answer(&ctx, "SET tadoc.device = 'gpu'").await;
    let plan = answer(&ctx, "EXPLAIN ANALYZE SELECT text, word FROM t").await;
    for part in ["device=gpu: tadoc.device = gpu", "device_row_groups=1", "device_fallbacks=0"] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    // The device finds the rows of a filter and returns only those.
    let query = "SELECT number, text FROM t WHERE text LIKE '%123%' AND number > 2000 AND word <> 'w30'";
    let plan = answer(&ctx, &format!("EXPLAIN ANALYZE {query}")).await;
    for part in ["device_row_groups=1", "device_fallbacks=0", "device_rows_matched=20"] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    answer(&ctx, "CREATE TABLE m AS SELECT * FROM source").await;
    let expected = answer(&ctx, &query.replace("FROM t", "FROM m")).await;
    assert_eq!(answer(&ctx, query).await, expected);
    // A pattern with too many states goes to the CPU.
    let query = "SELECT text FROM t WHERE text LIKE '%2____________t%' ORDER BY text";
    let plan = answer(&ctx, &format!("EXPLAIN ANALYZE {query}")).await;
    assert!(plan.contains("device_fallbacks=1"), "{plan}");
    assert_eq!(answer(&ctx, query).await, answer(&ctx, &query.replace("FROM t", "FROM m")).await);
    // The device also finds damage.
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.windows(4).position(|four| four == b"GSST").unwrap() + 90;
    bytes[middle] ^= 1;
    let damaged = dir.path().join("damaged.parquet").display().to_string();
    std::fs::write(&damaged, bytes).unwrap();
    answer(&ctx, &format!("CREATE EXTERNAL TABLE d STORED AS GSST LOCATION '{damaged}'")).await;
    for query in ["SELECT text, word FROM d", "SELECT count(*) FROM d WHERE text LIKE '%12%'"] {
        let error = ctx.sql(query).await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().contains("damaged.parquet"), "{error}");
    }
}

#[tokio::test]
async fn a_device_that_is_not_there_is_named() {
    #[cfg(feature = "cuda")]
    if tadoc_cuda::num_devices().is_ok() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    register_rows(&ctx, &many_rows(9));
    write_both(&ctx, &dir, 1, "").await;
    let plan = answer(&ctx, "EXPLAIN SELECT text FROM gsst").await;
    assert!(plan.contains("device=cpu: "), "{plan}");
    answer(&ctx, "SET tadoc.device = 'gpu'").await;
    let error = ctx.sql("SELECT text FROM gsst").await.unwrap().collect().await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("tadoc.device = gpu: ") && text.contains("'auto'"), "{text}");
}

/// Returns rows for several row groups, whose values differ.
fn many_rows(num_rows: i64) -> Vec<Row> {
    (0..num_rows)
        .map(|i| (i, (i % 3) as u8, Some(format!("line {i:05} of a text that repeats")), format!("w{}", i / 40)))
        .collect()
}

#[tokio::test]
async fn row_groups_that_cannot_match_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    register_rows(&ctx, &many_rows(400));
    write_both(&ctx, &dir, 1, "").await;
    for (filter, pruned) in [
        ("text = 'line 00123 of a text that repeats'", 9),
        ("word > 'w8'", 9),
        ("number >= 360", 9),
        ("text < 'line 00040' AND number > 40", 10),
        ("text LIKE 'line 003%'", 7),
    ] {
        check_alike(&ctx, &format!("SELECT number, text FROM TABLE WHERE {filter}")).await;
        let sql = format!("EXPLAIN ANALYZE SELECT number, text FROM gsst WHERE {filter}");
        let plan = answer(&ctx, &sql).await;
        assert!(plan.contains(&format!("row_groups_pruned={pruned}")), "{filter}\n{plan}");
        assert!(!plan.contains("FilterExec"), "{plan}");
    }
}

#[tokio::test]
async fn statistics_answer_what_needs_no_scan() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(2);
    register_rows(&ctx, &many_rows(90));
    write_both(&ctx, &dir, 2, "").await;
    let sql = "SELECT count(*), min(text) AS a, max(word) AS b, count(text) AS c FROM gsst";
    let plan = answer(&ctx, &format!("EXPLAIN {sql}")).await;
    assert!(plan.contains("PlaceholderRowExec"), "{plan}");
    check_alike(&ctx, &sql.replace("gsst", "TABLE")).await;
}

#[tokio::test]
async fn files_live_in_any_object_store_and_grow_by_insert() {
    let ctx = session(2);
    let url = Url::parse("memory://bucket").unwrap();
    ctx.register_object_store(&url, Arc::new(InMemory::new()));
    register_rows(&ctx, &many_rows(100));
    let target = "memory://bucket/some/folder/";
    answer(&ctx, &format!("COPY (SELECT number, text FROM source) TO '{target}' STORED AS GSST")).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{target}'")).await;
    let sum = "SELECT count(*), min(text), max(text) FROM t WHERE text LIKE '%repeats'";
    assert!(answer(&ctx, sum).await.contains("| 100      | line 00000 "));
    answer(&ctx, "INSERT INTO t VALUES (7, 'added and repeats'), (8, NULL)").await;
    assert!(answer(&ctx, sum).await.contains("| 101      | added and repeats "));
    let error = ctx.sql("INSERT OVERWRITE t VALUES (7, 'x')").await.unwrap();
    assert!(error.collect().await.unwrap_err().to_string().contains("INSERT INTO adds files"));
}

#[tokio::test]
async fn files_of_other_columns_and_other_formats_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(2);
    let folder = dir.path().display().to_string();
    for (file, query, format) in [
        ("a", "SELECT 1 AS n, 'one' AS text", "gsst"),
        ("b", "SELECT 2 AS n, 'two' AS text", "parquet"),
        ("c", "SELECT 'three' AS text, true AS extra", "gsst"),
        ("d", "SELECT 4 AS n, NULL::VARCHAR AS text", "gsst"),
    ] {
        answer(&ctx, &format!("COPY ({query}) TO '{folder}/{file}.parquet' STORED AS {format}")).await;
    }
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/'")).await;
    let rows = answer(&ctx, "SELECT n, text, extra FROM t WHERE text <> 'x' ORDER BY text").await;
    let cells: Vec<Vec<&str>> = rows
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("text"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(cells, [["1", "one", ""], ["", "three", "true"], ["2", "two", ""]], "{rows}");
    let nulls = answer(&ctx, "SELECT count(*) FROM t WHERE text IS NULL AND n = 4").await;
    assert!(nulls.contains("| 1 "), "{nulls}");
}

#[tokio::test]
async fn little_memory_is_an_error_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let writer = session(1);
    register_rows(&writer, &many_rows(40_000));
    let file = dir.path().join("x.parquet").display().to_string();
    answer(&writer, &format!("COPY source TO '{file}' STORED AS GSST")).await;
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(1 << 10, 1.0).build_arc().unwrap();
    let pool = Arc::clone(&runtime.memory_pool);
    let builder = SessionStateBuilder::new().with_runtime_env(runtime).with_default_features();
    let ctx = SessionContext::new_with_state(builder.with_tadoc().build());
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'")).await;
    let error = ctx.sql("SELECT text FROM t").await.unwrap().collect().await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    assert_eq!(pool.reserved(), 0);
}

/// Returns a session of `memory_bytes` in which batches of the same `rows` repeat `num_batches`
/// times.
fn session_of(memory_bytes: usize, rows: &[Row], num_batches: usize) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(memory_bytes, 1.0).build_arc();
    let builder = SessionStateBuilder::new().with_runtime_env(runtime.unwrap());
    let state = builder.with_default_features().with_tadoc().build();
    let ctx = SessionContext::new_with_state(state);
    let batch = batch_of(rows);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch; num_batches]]).unwrap();
    ctx.register_table("source", Arc::new(table)).unwrap();
    ctx
}

#[tokio::test]
async fn a_writer_without_memory_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session_of(1 << 20, &many_rows(500), 40);
    let file = dir.path().join("x.parquet").display().to_string();
    let copy = format!("COPY source TO '{file}' STORED AS GSST");
    let error = ctx.sql(&copy).await.unwrap().collect().await.unwrap_err();
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    assert!(error.to_string().contains("GsstSink"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(ctx.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn row_groups_are_short_where_memory_is() {
    let dir = tempfile::tempdir().unwrap();
    let num_batches = 30;
    let rows = many_rows(20_000);
    let mut sizes = Vec::new();
    for memory_bytes in [33 << 20, 1 << 30] {
        let ctx = session_of(memory_bytes, &rows, num_batches);
        let file = dir.path().join(format!("{memory_bytes}.parquet")).display().to_string();
        answer(&ctx, &format!("COPY source TO '{file}' STORED AS GSST")).await;
        let metadata = SerializedFileReader::try_from(file.as_str()).unwrap();
        sizes.push(metadata.metadata().num_row_groups());
        let create = format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'");
        let plenty = session(1);
        answer(&plenty, &create).await;
        let sql = "SELECT count(*) AS n, count(text) AS t, sum(length(text)) AS b, sum(number) AS s FROM";
        let expected = answer(&ctx, &format!("{sql} source")).await;
        let got = answer(&plenty, &format!("{sql} t")).await;
        assert_eq!(got, expected);
    }
    assert!(sizes[0] > 1 && sizes[1] == 1, "{sizes:?}");
}

#[tokio::test]
async fn a_query_that_fails_writes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    register_rows(&ctx, &many_rows(500));
    let file = dir.path().join("x.parquet").display().to_string();
    let copy = format!("COPY (SELECT text, 1 / (number - 400) AS n FROM source) TO '{file}' STORED AS GSST");
    let error = ctx.sql(&copy).await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("Divide by zero"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_reader_that_leaves_stops_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    register_rows(&ctx, &many_rows(20_000));
    let file = dir.path().join("x.parquet").display().to_string();
    let copy = format!("COPY source TO '{file}' STORED AS GSST OPTIONS (gsst_row_group_rows '500')");
    answer(&ctx, &copy).await;
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{file}'")).await;
    let plan = ctx.sql("SELECT text FROM t").await.unwrap().create_physical_plan().await.unwrap();
    let mut stream = plan.execute(0, ctx.task_ctx()).unwrap();
    assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let read = plan.metrics().unwrap().sum_by_name("row_groups_read").unwrap().as_usize();
    assert!(read < 10, "{read} of 40");
}

#[tokio::test]
async fn a_damaged_file_names_itself() {
    let dir = tempfile::tempdir().unwrap();
    let ctx = session(1);
    register_rows(&ctx, &many_rows(500));
    let file = dir.path().join("x.parquet");
    let name = file.display().to_string();
    answer(&ctx, &format!("COPY source TO '{name}' STORED AS GSST")).await;
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.windows(4).position(|four| four == b"GSST").unwrap_or(bytes.len() / 3) + 90;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    answer(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{name}'")).await;
    let error = ctx.sql("SELECT text, word FROM t").await.unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("x.parquet"), "{error}");
}
