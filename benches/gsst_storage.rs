//! Benchmark of scans of GSST columns behind storage of a given rate: the throughput that the model predicts
//! beside the throughput that the scan measures, as figure 6.3 of Vonk, "GSST" (TU Delft, 2024) draws it.
//!
//! ```text
//! COPY ─▶ files in TADOC_FOLDER ─▶ slow://storage/ ─▶ scan ─▶ GB/s of text
//!                                  every read waits until the storage has passed its bytes
//! ```
//!
//! Command: `TADOC_COLUMN=l_comment.txt TADOC_FOLDER=/dev/shm cargo bench --bench gsst_storage`, with a row in
//! each line. The column is repeated until it has 1 GiB. `TADOC_RATES=0.5,2,20` names the rates in GB/s of stored
//! bytes, and `TADOC_FORMS=gsst8,gsst12` some of the four forms. All reads together have the rate, and reads that wait
//! are not counted as work of the cores. A line has the shortest of three runs in one session, after a first one in
//! which the session observes the rate of the store. The files are in the page cache. Without a device the lines of the
//! device are left out and a line says so, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use url::Url;

const TEXT_BYTES: usize = 1 << 30;
const BATCH_ROWS: usize = 8192;
const NUM_RUNS: usize = 3;
const RATES_GB_PER_S: &str = "0.5,1,2,5,10,20";
const FORMS: [(&str, &str); 4] = [
    ("gsst8", "STORED AS GSST OPTIONS (gsst_columns 'text', gsst_code_bits '8', gsst_row_group_rows '262144')"),
    ("gsst12", "STORED AS GSST OPTIONS (gsst_columns 'text', gsst_code_bits '12', gsst_row_group_rows '262144')"),
    ("zstd", "STORED AS PARQUET OPTIONS (compression 'zstd(3)', max_row_group_size '262144')"),
    ("plain", "STORED AS PARQUET OPTIONS (compression 'uncompressed', max_row_group_size '262144')"),
];
const STATEMENTS: [(&str, &str); 2] =
    [("all rows", "SELECT text FROM t"), ("LIKE", "SELECT count(*) FROM t WHERE text LIKE '%special packages wake%'")];

/// Storage of a rate: a folder of which each read waits for its turn.
#[derive(Debug)]
struct SlowStorage {
    files: LocalFileSystem,
    gb_per_s: f64,
    /// Time at which the storage has passed all bytes that were asked for.
    free_at: Mutex<Instant>,
}

impl SlowStorage {
    fn new(folder: &str, gb_per_s: f64) -> Self {
        let files = LocalFileSystem::new_with_prefix(folder).unwrap();
        Self { files, gb_per_s, free_at: Mutex::new(Instant::now()) }
    }

    /// Returns the time at which the storage has passed `len_bytes` more.
    fn turn(&self, len_bytes: u64) -> Instant {
        let seconds = len_bytes as f64 / (self.gb_per_s * 1e9);
        let mut free_at = self.free_at.lock().unwrap();
        *free_at = (*free_at).max(Instant::now()) + std::time::Duration::from_secs_f64(seconds);
        *free_at
    }
}

impl fmt::Display for SlowStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "storage of {} GB/s", self.gb_per_s)
    }
}

#[async_trait]
impl ObjectStore for SlowStorage {
    async fn get_opts(&self, at: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let len_bytes = match &options.range {
            Some(GetRange::Bounded(range)) => range.end - range.start,
            Some(GetRange::Suffix(len_bytes)) => *len_bytes,
            _ => 0,
        };
        let turn = self.turn(len_bytes);
        let read = self.files.get_opts(at, options).await;
        tokio::time::sleep_until(turn.into()).await;
        read
    }

    async fn put_opts(&self, at: &Path, bytes: PutPayload, o: PutOptions) -> object_store::Result<PutResult> {
        self.files.put_opts(at, bytes, o).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(at, options).await
    }

    fn delete_stream(
        &self,
        at: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.files.delete_stream(at)
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

#[tokio::main]
async fn main() -> Result<()> {
    let folder = variable("TADOC_FOLDER", "/tmp");
    let folder = tempfile::tempdir_in(folder)?;
    let folder = folder.path().to_str().unwrap();
    let text_bytes = write_files(folder).await?;
    let has_device = has_device(folder).await?;
    println!("form, statement, place: storage GB/s | text GB/s | predicted | measured, of predicted");
    for rate in variable("TADOC_RATES", RATES_GB_PER_S).split(',') {
        let gb_per_s: f64 = rate.parse().unwrap();
        for (form, _) in forms() {
            let places: &[&str] =
                if form.starts_with("gsst") && has_device { &["cpu", "gpu", "auto"] } else { &["cpu"] };
            for place in places {
                measure(folder, gb_per_s, form, place, text_bytes).await?;
            }
        }
    }
    Ok(())
}

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Returns a table of the column, repeated until it has [`TEXT_BYTES`], in a partition for each core, and the bytes
/// of its text.
fn column() -> Result<(MemTable, usize)> {
    let text = match std::env::var_os("TADOC_COLUMN") {
        Some(path) => std::fs::read_to_string(path)?,
        None => "carefully final deposits sleep\nregular ideas haggle above the\n".repeat(100_000),
    };
    let rows: Vec<&str> = text.trim_end().split('\n').collect();
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8View, false)]));
    let batch = |rows: &[&str]| {
        let column = StringViewArray::from_iter_values(rows);
        Ok(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)])?)
    };
    let batches: Vec<RecordBatch> = rows.chunks(BATCH_ROWS).map(batch).collect::<Result<_>>()?;
    let row_bytes: usize = rows.iter().map(|row| row.len()).sum();
    let num_copies = TEXT_BYTES.div_ceil(row_bytes);
    let num_cores = std::thread::available_parallelism()?.get();
    let mut partitions = vec![Vec::new(); num_cores];
    for (at, batch) in batches.iter().cycle().take(num_copies * batches.len()).enumerate() {
        partitions[at % num_cores].push(batch.clone());
    }
    Ok((MemTable::try_new(schema, partitions)?, num_copies * row_bytes))
}

/// Writes the column in each form to `folder` and returns the bytes of its text.
async fn write_files(folder: &str) -> Result<usize> {
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;
    let (table, text_bytes) = column()?;
    ctx.register_table("c", Arc::new(table))?;
    for (form, options) in forms() {
        let copy = format!("COPY c TO '{folder}/{form}.parquet' {options}");
        ctx.sql(&copy).await?.collect().await?;
        let len_bytes = std::fs::metadata(format!("{folder}/{form}.parquet"))?.len();
        println!("{form}: text / file {:.2}", text_bytes as f64 / len_bytes as f64);
    }
    Ok(text_bytes)
}

/// Returns the forms that TADOC_FORMS names, or all.
fn forms() -> Vec<(&'static str, &'static str)> {
    let named = variable("TADOC_FORMS", "gsst8,gsst12,zstd,plain");
    FORMS.into_iter().filter(|(form, _)| named.split(',').any(|named| named == *form)).collect()
}

/// Returns true if a device decodes. Without one it prints a line, or fails if a device is required.
async fn has_device(folder: &str) -> Result<bool> {
    let ctx = SessionContext::new();
    datafusion_tadoc::register_all(&ctx)?;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/gsst8.parquet'");
    ctx.sql(&create).await?.collect().await?;
    ctx.sql("SET tadoc.device = 'gpu'").await?.collect().await?;
    if let Err(error) = drained(&ctx, "SELECT text FROM t LIMIT 1").await {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "{error}");
        println!("skipped on the device: {error}");
        return Ok(false);
    }
    Ok(true)
}

/// Prints a line for each statement about `form`.
async fn measure(folder: &str, gb_per_s: f64, form: &str, place: &str, text_bytes: usize) -> Result<()> {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    datafusion_tadoc::register_all(&ctx)?;
    let url = Url::parse("slow://storage").unwrap();
    ctx.register_object_store(&url, Arc::new(SlowStorage::new(folder, gb_per_s)));
    let stored_as = if form.starts_with("gsst") { "GSST" } else { "PARQUET" };
    let create = format!("CREATE EXTERNAL TABLE t STORED AS {stored_as} LOCATION 'slow://storage/{form}.parquet'");
    ctx.sql(&create).await?.collect().await?;
    ctx.sql(&format!("SET tadoc.device = '{place}'")).await?.collect().await?;
    for (name, statement) in STATEMENTS {
        let mut shortest = f64::INFINITY;
        let mut predicted = None;
        for run in 0..=NUM_RUNS {
            let started = Instant::now();
            let plan = drained(&ctx, statement).await?;
            if run > 0 {
                shortest = shortest.min(started.elapsed().as_secs_f64());
                predicted = gauge(&plan, "predicted_mb_per_s");
            }
        }
        let measured = text_bytes as f64 / shortest / 1e9;
        let shown = predicted.map_or("-, -".to_owned(), |mb_per_s| {
            let predicted = mb_per_s as f64 / 1000.0;
            format!("{predicted:.2}, {:.2}", measured / predicted)
        });
        println!("{form}, {name}, {place}: {gb_per_s} | {measured:.2} | {shown}");
    }
    Ok(())
}

/// Runs a statement and drops its rows. Returns the plan, which has the metrics.
async fn drained(ctx: &SessionContext, statement: &str) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = ctx.sql(statement).await?.create_physical_plan().await?;
    let mut rows = execute_stream(Arc::clone(&plan), ctx.task_ctx())?;
    while let Some(batch) = rows.next().await {
        batch?;
    }
    Ok(plan)
}

/// Returns the value of a metric of the scan.
fn gauge(plan: &Arc<dyn ExecutionPlan>, name: &str) -> Option<usize> {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map(|value| value.as_usize());
    own.or_else(|| plan.children().iter().find_map(|child| gauge(child, name)))
}
