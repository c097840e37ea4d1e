//! `COPY` and `INSERT` to files of DataFusion's own formats: a statement that fails leaves the files as they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use url::Url;

use super::wait_until;
use crate::fixtures;

const FORMATS: [&str; 4] = ["csv", "json", "parquet", "arrow"];

async fn run(ctx: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    ctx.sql(sql).await?.collect().await
}

/// Returns the bytes of all files below `folder`, by path. Folders have none.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
            files.insert(path, Vec::new());
        } else {
            let bytes = fs::read(&path).unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

/// Rows `1` to `num_rows` with a text. The query fails at its last row if `fails`.
fn rows(num_rows: u64, fails: bool) -> String {
    let divisor = if fails { format!("{num_rows} - value") } else { "1".to_owned() };
    format!(
        "(SELECT value AS n, value % 3 AS part, md5(CAST(value AS TEXT)) AS text, 1 / ({divisor}) AS one \
         FROM generate_series(1, {num_rows}))"
    )
}

#[tokio::test]
async fn a_copy_that_fails_leaves_the_files_as_they_were() {
    let ctx = fixtures::session();
    // A batch for each row group and part, and files beyond the buffer of the writers.
    run(&ctx, "SET datafusion.execution.batch_size = 1000").await.unwrap();
    run(&ctx, "SET datafusion.execution.objectstore_writer_buffer_size = 20000").await.unwrap();
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let options = format!("STORED AS {format}");
        let parts = format!("{options} PARTITIONED BY (part)");
        for num_rows in [3000, 40_000] {
            let targets = [
                (format!("'{at}/whole.{format}'"), options.as_str()),
                (format!("'{at}/folder/'"), options.as_str()),
                (format!("'{at}/parts/'"), parts.as_str()),
            ];
            for (target, options) in &targets {
                let failing = format!("COPY {} TO {target} {options}", rows(num_rows, true));
                let before = files_below(dir.path());
                let error = run(&ctx, &failing).await.unwrap_err().to_string();
                assert!(error.contains("Divide by zero"), "{failing}: {error}");
                assert_eq!(files_below(dir.path()), before, "{failing}");

                run(&ctx, &format!("COPY {} TO {target} {options}", rows(100, false))).await.unwrap();
                let before = files_below(dir.path());
                assert!(!before.is_empty());
                run(&ctx, &failing).await.unwrap_err();
                assert_eq!(files_below(dir.path()), before, "{failing}");
            }
        }
    }
}

#[tokio::test]
async fn a_refused_copy_removes_the_folders_that_it_created() {
    let ctx = fixtures::session();
    let documents = |num_rows: u64, fails| {
        format!("(SELECT CAST(n AS TEXT) AS path, text, part, one FROM {})", rows(num_rows, fails))
    };
    let none = format!("(SELECT * FROM {} WHERE n < 0)", rows(9, false));
    let no_documents = format!("(SELECT path, text FROM {} WHERE path = '')", documents(9, false));
    let failing = rows(30_000, true);
    for (source, options) in [
        (failing.clone(), "STORED AS CSV"),
        (failing.clone(), "STORED AS JSON"),
        (failing.clone(), "STORED AS PARQUET PARTITIONED BY (part)"),
        (failing.clone(), "STORED AS ARROW PARTITIONED BY (part)"),
        (failing.clone(), "STORED AS GSST PARTITIONED BY (part)"),
        (failing, "STORED AS GSST"),
        (none, "STORED AS GSST"),
        (documents(30_000, true), "STORED AS TADOC"),
        (no_documents, "STORED AS TADOC"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let ending = options.split(' ').nth(2).unwrap().to_lowercase();
        let targets = [format!("old/new/deep/x.{ending}"), "old/new/deep/".to_owned(), format!("old/x.{ending}")];
        for target in targets {
            let is_whole = options.contains("PARTITIONED") == target.ends_with('/');
            let is_file = options.ends_with("TADOC") && target.ends_with('/');
            if !is_whole || is_file {
                continue;
            }
            fs::create_dir_all(dir.path().join("old/empty")).unwrap();
            let before = files_below(dir.path());
            let copy = format!("COPY {source} TO '{}/{target}' {options}", dir.path().display());
            run(&ctx, &copy).await.unwrap_err();
            assert_eq!(files_below(dir.path()), before, "{copy}");
        }
    }
}

#[tokio::test]
async fn a_copy_that_succeeds_writes_all_rows() {
    let ctx = fixtures::session();
    run(&ctx, "SET datafusion.execution.objectstore_writer_buffer_size = 20000").await.unwrap();
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        for (name, options) in [("parts/", " PARTITIONED BY (part)"), ("x", "")] {
            let target = match options {
                "" => format!("{at}/{name}.{format}"),
                _ => format!("{at}/{name}"),
            };
            let copy = format!("COPY {} TO '{target}' STORED AS {format}{options}", rows(50_000, false));
            run(&ctx, &copy).await.unwrap();
            let table = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{target}'");
            run(&ctx, &table).await.unwrap();
            let count = run(&ctx, "SELECT count(*), sum(n) FROM t").await.unwrap();
            let shown = datafusion::arrow::util::pretty::pretty_format_batches(&count).unwrap();
            assert!(shown.to_string().contains("| 50000    | 1250025000 |"), "{copy}\n{shown}");
            run(&ctx, "DROP TABLE t").await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_insert_that_fails_adds_no_file() {
    let ctx = fixtures::session();
    for format in ["csv", "json", "parquet"] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let table = format!(
            "CREATE EXTERNAL TABLE t (n BIGINT, part BIGINT, text TEXT, one BIGINT) \
             STORED AS {format} LOCATION '{at}/'"
        );
        run(&ctx, &table).await.unwrap();
        run(&ctx, &format!("INSERT INTO t {}", rows(100, false))).await.unwrap();
        let before = files_below(dir.path());
        assert_eq!(before.len(), 1, "{format}");
        run(&ctx, &format!("INSERT INTO t {}", rows(30_000, true))).await.unwrap_err();
        assert_eq!(files_below(dir.path()), before, "{format}");
        run(&ctx, "DROP TABLE t").await.unwrap();
    }
}

#[tokio::test]
async fn a_store_keeps_its_objects_when_a_copy_fails() {
    let ctx = fixtures::session();
    let store = Arc::new(InMemory::new());
    let url = Url::parse("mem://bucket").unwrap();
    ctx.register_object_store(&url, Arc::clone(&store) as _);
    for format in FORMATS {
        let copy = |source: String| format!("COPY {source} TO 'mem://bucket/x.{format}' STORED AS {format}");
        run(&ctx, &copy(rows(100, false))).await.unwrap();
        let before: Vec<_> = store.list(None).try_collect().await.unwrap();
        run(&ctx, &copy(rows(30_000, true))).await.unwrap_err();
        let after: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(after, before, "{format}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_cancelled_leaves_the_file_as_it_was() {
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let ctx = fixtures::session();
        let at = dir.path().display();
        let target = format!("TO '{at}/x.{format}' STORED AS {format}");
        run(&ctx, &format!("COPY {} {target}", rows(100, false))).await.unwrap();
        let before = files_below(dir.path());
        let copy = format!("COPY {} {target}", rows(1_000_000_000, false));
        let task = tokio::spawn(async move { run(&ctx, &copy).await });
        let num_files = || fs::read_dir(dir.path()).unwrap().count();
        wait_until("an upload has begun", || num_files() > 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        wait_until("the upload is gone", || num_files() == 1).await;
        assert_eq!(files_below(dir.path()), before, "{format}");
    }
}
