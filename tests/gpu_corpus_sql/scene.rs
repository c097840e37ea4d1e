//! A session, a folder of corpora, and the devices.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::corpus::{CorpusBuilder, IngestOptions};
use datafusion_tadoc::sql::TadocSessionStateBuilderExt;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use super::device::{Random, open_device};

/// Memory of a session.
const MEMORY_BYTES: usize = 1 << 40;

static DEVICES: Mutex<()> = Mutex::const_new(());

/// A session, a folder of corpora, and the devices for one test alone where it needs them.
pub struct Scene {
    context: SessionContext,
    pub dir: TempDir,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// What a device did for a query.
#[derive(Debug, PartialEq, Eq)]
pub struct Done {
    pub upload_bytes: usize,
    pub rows: usize,
    pub fallbacks: usize,
}

fn write_corpus(path: &Path, block_bytes: usize, documents: &[Vec<u8>]) {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in documents.iter().enumerate() {
        builder.push_document(&doc.to_string(), text).unwrap();
    }
    fs::write(path, builder.finish(None).unwrap().0).unwrap();
}

/// Random texts of up to so many bytes and a few words that recur.
pub fn documents(seed: u64, num_docs: usize, max_len: usize) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    let mut text = |doc: usize| {
        let len = random.below(max_len);
        let mut text = random.words(len);
        text.extend_from_slice(format!(" Only {} here", doc % 90).as_bytes());
        text
    };
    (0..num_docs).map(&mut text).collect()
}

fn session() -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(MEMORY_BYTES, 1.0).build_arc();
    let builder = SessionStateBuilder::new().with_config(SessionConfig::new());
    let builder = builder.with_runtime_env(runtime.unwrap()).with_default_features();
    SessionContext::new_with_state(builder.with_tadoc().build())
}

impl Scene {
    /// `None` where there is no device.
    pub async fn new() -> Option<Self> {
        open_device()?;
        let alone = DEVICES.lock().await;
        Some(Self { _alone: Some(alone), ..Self::anywhere() })
    }

    /// For what needs no device.
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

    /// Writes a corpus of blocks of so many bytes; where it is.
    pub fn corpus(&self, name: &str, block_bytes: usize, documents: &[Vec<u8>]) -> String {
        let path = self.dir.path().join(format!("{name}.tadoc"));
        write_corpus(&path, block_bytes, documents);
        path.display().to_string()
    }

    pub async fn run(&self, sql: &str) -> Vec<RecordBatch> {
        let rows = async { self.context.sql(sql).await?.collect().await };
        rows.await.unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// Where `sql` is planned to run, its rows, and what the device did.
    pub async fn rows(&self, device: &str, sql: &str) -> (String, String, Done) {
        let rows = self.try_rows(device, sql).await;
        rows.unwrap_or_else(|error| panic!("{device}: {sql}\n{error}"))
    }

    /// The same, or why there are none.
    pub async fn try_rows(&self, device: &str, sql: &str) -> Result<(String, String, Done)> {
        self.run(&format!("SET tadoc.device = '{device}'")).await;
        let plan = self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let rows = collect(Arc::clone(&plan), self.context.task_ctx()).await?;
        let of = |name| sum_of(&plan, name);
        let done = Done {
            upload_bytes: of("device_upload_bytes"),
            rows: of("device_rows"),
            fallbacks: of("device_fallbacks"),
        };
        Ok((shown, pretty_format_batches(&rows).unwrap().to_string(), done))
    }

    /// Grammars that a device built for `copy`, and those that it left to the cores.
    pub async fn grammars(&self, copy: &str) -> (usize, usize) {
        let plan = self.context.sql(copy).await.unwrap().create_physical_plan().await.unwrap();
        collect(Arc::clone(&plan), self.context.task_ctx()).await.unwrap();
        (sum_of(&plan, "device_grammars"), sum_of(&plan, "device_fallbacks"))
    }

    /// That a device gives the rows of the CPU; what it did.
    pub async fn check(&self, sql: &str) -> Done {
        let (_, expected, none) = self.rows("cpu", sql).await;
        assert_eq!(none, Done { upload_bytes: 0, rows: 0, fallbacks: 0 }, "{sql}");
        let (plan, got, done) = self.rows("gpu", sql).await;
        assert!(plan.contains("device=gpu"), "{plan}");
        assert!(got == expected, "{sql}\n{got}\n{expected}");
        done
    }

    /// The same for `queries` over a corpus that has rows for each.
    pub async fn check_all(&self, queries: &[&str], location: &str) {
        for query in queries {
            let done = self.check(&query.replace("{}", location)).await;
            assert!(done.fallbacks == 0 && done.rows > 0, "{query} of {location}: {done:?}");
        }
    }
}

/// A metric of all nodes of `plan`.
fn sum_of(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name));
    let below: usize = plan.children().into_iter().map(|child| sum_of(child, name)).sum();
    own.map_or(0, |sum| sum.as_usize()) + below
}
