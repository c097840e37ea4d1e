//! A session, a folder of corpora, and the devices.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect_partitioned, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tempfile::TempDir;
use testkit::device::open_device;
use tokio::sync::MutexGuard;

use super::corpora::{DEVICES, sum_of, write_corpus};

/// Memory of a session in bytes.
const MEMORY_BYTES: usize = 1 << 40;

/// A session and a folder of corpora. It holds the lock on the devices for a test that needs them.
pub struct Scene {
    context: SessionContext,
    pub dir: TempDir,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// Work of a device for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    pub upload_bytes: usize,
    pub rows: usize,
    pub fallbacks: usize,
}

pub const NOTHING: Done = Done { upload_bytes: 0, rows: 0, fallbacks: 0 };

impl Done {
    /// Returns the work of the same query if all needed data is on the device.
    pub fn resident(self) -> Self {
        Self { upload_bytes: 0, ..self }
    }
}

fn session() -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(MEMORY_BYTES, 1.0).build_arc();
    let builder = SessionStateBuilder::new().with_config(SessionConfig::new());
    let builder = builder.with_runtime_env(runtime.unwrap()).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

impl Scene {
    /// Makes a scene with the devices, or returns `None` without a device.
    pub async fn new() -> Option<Self> {
        open_device()?;
        let alone = DEVICES.lock().await;
        Some(Self { _alone: Some(alone), ..Self::anywhere() })
    }

    /// Makes a scene for tests that need no device.
    pub fn anywhere() -> Self {
        Self { context: session(), dir: tempfile::tempdir().unwrap(), _alone: None }
    }

    /// Takes all memory of the session that is left.
    pub fn take_memory(&self) -> MemoryReservation {
        let pool = &self.context.runtime_env().memory_pool;
        let taken = MemoryConsumer::new("somebody else").register(pool);
        taken.try_grow(MEMORY_BYTES - pool.reserved()).unwrap();
        taken
    }

    /// Writes a corpus with blocks of this size and returns its location.
    pub fn corpus(&self, name: &str, block_bytes: usize, documents: &[Vec<u8>]) -> String {
        write_corpus(self.dir.path(), name, block_bytes, documents)
    }

    pub async fn run(&self, sql: &str) -> Vec<RecordBatch> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Returns the plan of `sql`, its rows, and the work of the device.
    pub async fn rows(&self, device: &str, sql: &str) -> (String, String, Done) {
        let rows = self.try_rows(device, sql).await;
        rows.unwrap_or_else(|error| panic!("{device}: {sql}\n{error}"))
    }

    /// Returns the values of [`Scene::rows`], or the error of the query.
    pub async fn try_rows(&self, device: &str, sql: &str) -> Result<(String, String, Done)> {
        let plan = self.plan(device, sql).await;
        let (rows, done) = self.collect(&plan).await?;
        Ok((shown(&plan), rows, done))
    }

    /// Returns the plan of `sql`.
    pub async fn plan(&self, device: &str, sql: &str) -> Arc<dyn ExecutionPlan> {
        self.run(&format!("SET tadoc.device = '{device}'")).await;
        self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
    }

    /// Returns the rows of `plan`, which has not run before, one partition after the other, and the work of the
    /// device.
    pub async fn collect(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<(String, Done)> {
        let rows = collect_partitioned(Arc::clone(plan), self.context.task_ctx()).await?.concat();
        let of = |name| sum_of(plan, name);
        let done = Done {
            upload_bytes: of("device_upload_bytes"),
            rows: of("device_rows"),
            fallbacks: of("device_fallbacks"),
        };
        Ok((pretty_format_batches(&rows).unwrap().to_string(), done))
    }

    /// Checks that a device gives the rows of the CPU, and returns its work.
    pub async fn check(&self, sql: &str) -> Done {
        let (_, expected, none) = self.rows("cpu", sql).await;
        assert_eq!(none, NOTHING, "{sql}");
        let (plan, got, done) = self.rows("gpu", sql).await;
        assert!(plan.contains("device=gpu"), "{plan}");
        assert!(got == expected, "{sql}\n{got}\n{expected}");
        done
    }

    /// Checks `queries` in the same way, over a corpus that has rows for each.
    pub async fn check_all(&self, queries: &[&str], location: &str) {
        for query in queries {
            let done = self.check(&query.replace("{}", location)).await;
            assert!(done.fallbacks == 0 && done.rows > 0, "{query} of {location}: {done:?}");
        }
    }
}

/// Returns `plan` as EXPLAIN shows it.
pub fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}
