//! A table of many row groups in a session that wants a device, in a process of its own.

use std::error::Error;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use datafusion_tadoc::throughput::Calibration;
use datafusion_tadoc::throughput::calibration::{DeviceCalibration, StorageRate, StorageSource};
use tadoc_cuda::GpuError;
use tempfile::TempDir;
use testkit::command::{is_alone, next_turn, run_apart};
use testkit::device::open_device;

use super::log;

const NUM_FILES: usize = 4;
const ROW_GROUPS_OF_A_FILE: usize = 5;
pub const NUM_ROW_GROUPS: usize = NUM_FILES * ROW_GROUPS_OF_A_FILE;
const ROWS_OF_A_GROUP: usize = 4000;
const NUM_ROWS: usize = NUM_ROW_GROUPS * ROWS_OF_A_GROUP;

/// Runs `case`, the body of the test `name`, in a process of its own, with additional variables and
/// with a calibration by which a device costs nothing, so that `auto` wants it.
pub fn alone(name: &str, variables: &[(&str, &str)], case: impl Future<Output = ()>) {
    alone_if(|| true, name, variables, case);
}

/// Runs `case` as [`alone`] does if there is a device.
pub fn alone_on_device(name: &str, variables: &[(&str, &str)], case: impl Future<Output = ()>) {
    alone_if(|| open_device().is_some(), name, variables, case);
}

/// Runs `case` as [`alone`] does if `can_run` returns true.
fn alone_if(can_run: impl FnOnce() -> bool, name: &str, variables: &[(&str, &str)], case: impl Future<Output = ()>) {
    if is_alone(name) {
        return tokio::runtime::Runtime::new().unwrap().block_on(heard(case));
    }
    let _turn = next_turn();
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let calibration = dir.path().join("calibration");
    free_device().save_to(&calibration).unwrap();
    run_apart(name, |command| {
        command.env("TADOC_CALIBRATION", &calibration).envs(variables.iter().copied());
    });
}

/// Runs `case` and keeps all messages of the library.
async fn heard(case: impl Future<Output = ()>) {
    log::listen();
    case.await;
}

/// Returns a calibration with a device whose link and opening take no time.
fn free_device() -> Calibration {
    let device = DeviceCalibration {
        name: "NVIDIA H200".to_owned(),
        h2d_pinned_gb_per_s: Some(1e6),
        d2h_pinned_gb_per_s: Some(1e6),
        startup_s: Some(1e-9),
    };
    let storage = StorageRate { gb_per_s: 1e6, source: StorageSource::Storage };
    Calibration { storage, device: Some(device), ..Calibration::default() }
}

/// Returns the typed error of the device inside `error`.
pub fn gpu_error(error: &DataFusionError) -> Option<&GpuError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The table `t` of [`NUM_ROW_GROUPS`] row groups, and a session on it.
pub struct Scene {
    pub context: SessionContext,
    pool: Arc<dyn MemoryPool>,
    dir: TempDir,
}

fn text_of(number: usize) -> String {
    format!("line {number:05} of a text that goes on and on, and repeats")
}

impl Scene {
    /// Makes the table and a session with this number of partitions and this memory in bytes.
    pub async fn new(num_partitions: usize, memory_bytes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display();
        let writer = session(num_partitions, usize::MAX).0;
        for file in 0..NUM_FILES {
            let rows = NUM_ROWS / NUM_FILES;
            let first = file * rows;
            let end = (file + 1) * rows;
            let text = "'line ' || lpad(value::VARCHAR, 5, '0') || \
                        ' of a text that goes on and on, and repeats'";
            let copy = format!(
                "COPY (SELECT value AS number, {text} AS text FROM range({first}, {end})) \
                 TO '{folder}/{file}.parquet' STORED AS GSST \
                 OPTIONS (gsst_row_group_rows '{ROWS_OF_A_GROUP}')"
            );
            writer.sql(&copy).await.unwrap().collect().await.unwrap();
        }
        let (context, pool) = session(num_partitions, memory_bytes);
        let scene = Self { context, pool, dir };
        let folder = scene.dir.path().display();
        let create = format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/'");
        scene.answer(&create).await;
        scene
    }

    /// Writes a corpus of some of the texts and returns its location.
    pub async fn corpus(&self) -> String {
        let path = self.dir.path().join("corpus.tadoc").display().to_string();
        let copy = "COPY (SELECT number::VARCHAR AS path, text FROM t WHERE number < 3000) TO";
        self.rows(&format!("{copy} '{path}' STORED AS TADOC")).await;
        path
    }

    pub async fn answer(&self, sql: &str) -> String {
        pretty_format_batches(&self.rows(sql).await).unwrap().to_string()
    }

    pub async fn rows(&self, sql: &str) -> Vec<RecordBatch> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    pub async fn error(&self, sql: &str) -> DataFusionError {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_err()
    }

    pub async fn plan(&self, sql: &str) -> Arc<dyn ExecutionPlan> {
        self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
    }

    /// Returns the numbers of row groups that `plan` decoded on a device and that a device failed
    /// to decode.
    pub fn counted(&self, plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
        let metrics = plan.metrics().unwrap();
        let sum = |name| metrics.sum_by_name(name).map_or(0, |sum| sum.as_usize());
        (sum("device_row_groups"), sum("device_fallbacks"))
    }

    /// Asks for all rows, checks them, and returns the counts of [`Scene::counted`].
    pub async fn scan(&self, sql: &str) -> (usize, usize) {
        let plan = self.plan(sql).await;
        let rows = collect(Arc::clone(&plan), self.context.task_ctx()).await;
        self.assert_all_rows(&rows.unwrap());
        self.counted(&plan)
    }

    /// Checks that the batches have numbers and texts of all rows, in any order.
    pub fn assert_all_rows(&self, batches: &[RecordBatch]) {
        let mut rows = Vec::new();
        for batch in batches {
            let numbers = batch.column(0).as_primitive::<Int64Type>().values().iter().copied();
            let texts = batch.column(1).as_string_view().iter().flatten().map(str::to_owned);
            rows.extend(numbers.zip(texts));
        }
        rows.sort_unstable();
        let expected = (0..NUM_ROWS).map(|number| (number as i64, text_of(number)));
        assert!(rows.into_iter().eq(expected));
    }

    pub fn text_len_bytes(&self) -> usize {
        (0..NUM_ROWS).map(|number| text_of(number).len()).sum()
    }

    /// Returns the bytes that the session's memory pool counts.
    pub fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}

fn session(num_partitions: usize, memory_bytes: usize) -> (SessionContext, Arc<dyn MemoryPool>) {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(memory_bytes, 1.0);
    let runtime = runtime.build_arc().unwrap();
    let pool = Arc::clone(&runtime.memory_pool);
    let mut config = SessionConfig::new().with_target_partitions(num_partitions);
    config.options_mut().optimizer.repartition_file_scans = false;
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime);
    let state = builder.with_default_features().with_tadoc().build();
    (SessionContext::new_with_state(state), pool)
}
