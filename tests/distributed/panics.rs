//! A panic of an operator ends the statement with an error, whatever the plan is: on workers and in one process. A scan
//! panics behind its first rows, or before them, because its store does.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::contain_panics_of;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::fixtures::{Cluster, rows, session, sorted};

const PLACE: &str = "panics://store";
const REASON: &str = "on purpose";
/// Files whose scans panic: before their first row, and behind half of their bytes.
const EARLY: &str = "bad/early.csv";
const LATE: &str = "bad/late.csv";

/// A store that panics in reading one file.
#[derive(Debug)]
struct Panics {
    files: Arc<InMemory>,
    panics_in: &'static str,
}

impl fmt::Display for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panics in {}", self.panics_in)
    }
}

fn panics() -> object_store::Result<bytes::Bytes> {
    panic!("{REASON}")
}

#[async_trait]
impl ObjectStore for Panics {
    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let found = self.files.get_opts(path, options).await?;
        if path.as_ref() != self.panics_in {
            return Ok(found);
        }
        if self.panics_in == EARLY {
            panics()?;
        }
        let GetResult { payload: _, meta, range, attributes } = found;
        let half = range.start..range.start + (range.end - range.start) / 2;
        let begin = self.files.get_range(path, half).await?;
        let rows = stream::iter([begin]).map(Ok).chain(stream::once(async { panics() }));
        Ok(GetResult { payload: GetResultPayload::Stream(rows.boxed()), meta, range, attributes })
    }

    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        self.files.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.files.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

/// Writes the files of the tables. They have several batches each, so that rows come before a panic.
async fn written() -> Arc<InMemory> {
    let files = Arc::new(InMemory::new());
    for name in ["good/one.csv", "good/two.csv", "more/one.csv", EARLY, LATE] {
        let lines: String = (0..2_000).map(|n| format!("{n},text {} of {name}\n", n % 7)).collect();
        let payload = PutPayload::from(format!("n,x\n{lines}"));
        files.put(&Path::from(name), payload).await.unwrap();
    }
    files
}

fn register(runtime: &RuntimeEnv, files: &Arc<InMemory>, panics_in: &'static str) {
    let store = Panics { files: Arc::clone(files), panics_in };
    runtime.register_object_store(&PLACE.parse().unwrap(), Arc::new(store));
}

/// Makes the tables, whose batches are small.
async fn with_tables(ctx: &SessionContext) {
    rows(ctx, "SET datafusion.execution.batch_size = '200'").await.unwrap();
    let tables = ["good", "more", "bad"].map(|name| {
        format!(
            "CREATE EXTERNAL TABLE {name} (n BIGINT, x VARCHAR) STORED AS CSV LOCATION '{PLACE}/{name}/' \
             OPTIONS ('format.has_header' 'true')"
        )
    });
    for statement in tables {
        rows(ctx, &statement).await.unwrap();
    }
}

/// Statements, each with an operator of its plan on workers.
const STATEMENTS: [(&str, &str); 13] = [
    ("SELECT n, x FROM bad", "NetworkCoalesceExec"),
    ("SELECT n, x FROM good UNION ALL SELECT n, x FROM bad", "DistributedUnionExec"),
    ("SELECT n, x FROM bad UNION ALL SELECT n, x FROM good", "DistributedUnionExec"),
    ("SELECT n, x FROM good UNION ALL SELECT n, x FROM bad UNION ALL SELECT n, x FROM more", "DistributedUnionExec"),
    ("SELECT x FROM good UNION SELECT x FROM bad", "DistributedUnionExec"),
    (
        "SELECT n FROM good UNION ALL (SELECT n FROM more UNION ALL SELECT n FROM bad LIMIT 70000)",
        "DistributedUnionExec",
    ),
    ("SELECT x, count(*) FROM (SELECT x FROM good UNION ALL SELECT x FROM bad) GROUP BY x", "DistributedUnionExec"),
    (
        "SELECT x, sum(c) FROM (SELECT x, count(*) AS c FROM good GROUP BY x UNION ALL \
         SELECT x, count(*) AS c FROM bad GROUP BY x) GROUP BY x",
        "Union",
    ),
    ("SELECT n, x FROM good UNION ALL SELECT n, x FROM bad ORDER BY n, x", "SortPreservingMergeExec"),
    ("SELECT n, x FROM (SELECT * FROM good UNION ALL SELECT * FROM bad) WHERE n % 3 = 1", "DistributedUnionExec"),
    ("SELECT g.n, b.x FROM good g JOIN bad b ON g.n = b.n UNION ALL SELECT n, x FROM more", "DistributedUnionExec"),
    ("SELECT g.n, b.x FROM bad b JOIN good g ON g.n = b.n", "JoinExec"),
    ("SELECT count(*), min(x) FROM bad", "AggregateExec"),
];

/// Returns the rows of a statement, or its error. A panic of this process is one.
async fn ended(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    contain_panics_of("the statement", rows(ctx, sql)).await?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_on_a_worker_is_an_error_for_each_shape_of_plan() {
    let files = written().await;
    for panics_in in ["no file", EARLY, LATE] {
        for (num_workers, num_partitions) in [(2, 1), (2, 2), (2, 5), (3, 2)] {
            let runtime = Arc::default();
            register(&runtime, &files, panics_in);
            let cluster = Cluster::start_in(num_workers, &runtime).await;
            let alone = session(num_partitions);
            let together = cluster.session(num_partitions);
            for ctx in [&alone, &together] {
                register(&ctx.runtime_env(), &files, "no file");
                with_tables(ctx).await;
            }
            for setting in [
                "SET distributed.file_scan_config_bytes_per_partition = '1'",
                "SET datafusion.optimizer.repartition_file_min_size = '0'",
            ] {
                rows(&together, setting).await.unwrap();
            }
            for (sql, operator) in STATEMENTS {
                let place = format!("{num_workers} workers, {num_partitions} partitions: {sql}");
                let plan = rows(&together, &format!("EXPLAIN {sql}")).await.unwrap().join("\n");
                if !plan.contains("Stage 1") {
                    // A scan of one partition stays here.
                    assert_eq!(num_partitions, 1, "{place}\n{plan}");
                    continue;
                }
                assert!(plan.contains(operator), "{place}\n{plan}");
                let got = ended(&together, sql).await;
                if panics_in == "no file" {
                    let expected = rows(&alone, sql).await.unwrap();
                    assert!(sorted(got.unwrap()) == sorted(expected), "other rows: {place}");
                    let measured = rows(&together, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
                    assert!(measured.contains("output_rows"), "{place}\n{measured}");
                } else {
                    let error = got.expect_err(&place).to_string();
                    assert!(error.contains(REASON), "{place}\n{error}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_in_one_process_is_an_error_for_each_shape_of_plan() {
    let files = written().await;
    for panics_in in [EARLY, LATE] {
        for num_partitions in [1, 3] {
            let ctx = session(num_partitions);
            register(&ctx.runtime_env(), &files, panics_in);
            with_tables(&ctx).await;
            rows(&ctx, "SET datafusion.optimizer.repartition_file_min_size = '0'").await.unwrap();
            for (sql, _) in STATEMENTS {
                let error = ended(&ctx, sql).await.expect_err(sql).to_string();
                assert!(error.contains(REASON), "{num_partitions} partitions: {sql}\n{error}");
            }
        }
    }
}
