//! Corpora of many segments, sessions, and workers of this process on loopback.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc::{Spreading, TadocSessionStateBuilderExt};
use datafusion_tadoc_distributed::{
    Credentials, WorkerAccess, WorkerUrls, as_worker, serve_worker, with_workers, worker_of,
};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A folder with a corpus of many segments, a living corpus and files.
pub struct Scene {
    pub dir: TempDir,
}

impl Scene {
    pub async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let texts = sources();
        write_corpus(&dir.path().join("many.tadoc"), SEGMENT_BYTES, &texts);
        fs::create_dir(dir.path().join("notes")).unwrap();
        fs::write(dir.path().join("notes/one.md"), "one line\nand another\n").unwrap();
        fs::write(dir.path().join("notes/two.md"), "two\n").unwrap();
        let scene = Self { dir };
        scene.write_living().await;
        scene
    }

    async fn write_living(&self) {
        let ctx = session(1);
        let folder = self.dir.path().join("living").display().to_string();
        for statement in [
            format!("CREATE EXTERNAL TABLE living STORED AS TADOC LOCATION '{folder}' OPTIONS ('tadoc.create' 'true')"),
            "INSERT INTO living (path, text) VALUES ('a', 'red and green'), ('b', 'green, and blue')".into(),
            "INSERT INTO living (path, text) VALUES ('c', 'the red scan of the file')".into(),
            "DELETE FROM living WHERE path = 'a'".into(),
        ] {
            rows(&ctx, &statement).await.unwrap();
        }
    }

    /// Writes a file of GSST columns in small row groups, makes it the table `columns` of `ctx`, and
    /// returns its path.
    pub async fn columns(&self, ctx: &SessionContext) -> String {
        let file = self.dir.path().join("columns.parquet").display().to_string();
        for statement in [
            format!(
                "COPY (SELECT t.doc_id, path, path || ' of ' || word AS text FROM tokens(@) t JOIN \
                 documents(@) d ON t.doc_id = d.doc_id ORDER BY t.doc_id, word_index) \
                 TO '{file}' STORED AS GSST OPTIONS (gsst_row_group_rows '1000', gsst_columns 'path, text')"
            ),
            format!("CREATE EXTERNAL TABLE columns STORED AS GSST LOCATION '{file}'"),
        ] {
            rows(ctx, &self.call(&statement)).await.unwrap();
        }
        file
    }

    /// Returns `call` with the paths of this scene.
    pub fn call(&self, call: &str) -> String {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        call.replace('@', &format!("'{}'", path("many.tadoc")))
            .replace('#', &format!("'{}'", path("living")))
            .replace('~', &self.dir.path().display().to_string())
    }
}

/// Bytes of text of a segment.
const SEGMENT_BYTES: usize = 20_000;

/// Returns names and texts of some sources of this package. Each fits into a segment: the memory for runs of segments
/// is limited in tests, and a document in two segments needs room for both.
fn sources() -> Vec<(String, Vec<u8>)> {
    let root = testkit::root().join("src/datafusion/planning");
    let files = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<std::path::PathBuf> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let text = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read(&path).unwrap())
    };
    let fits = |(_, text): &(String, Vec<u8>)| text.len() < SEGMENT_BYTES;
    files.into_iter().map(text).filter(fits).collect()
}

/// Writes a corpus with a segment for each `block_bytes` of text.
pub fn write_corpus(path: &Path, block_bytes: usize, texts: &[(String, Vec<u8>)]) {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (name, text) in texts {
        builder.push_document(name, text).unwrap();
    }
    fs::write(path, builder.finish(None).unwrap().0).unwrap();
}

fn builder(partitions: usize) -> SessionStateBuilder {
    let config = SessionConfig::new().with_target_partitions(partitions);
    SessionStateBuilder::new().with_config(config).with_default_features().with_tadoc()
}

/// Returns a session of one machine.
pub fn session(partitions: usize) -> SessionContext {
    SessionContext::new_with_state(builder(partitions).build())
}

/// Returns a session in which plans of other machines run.
pub fn arrival() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(3);
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(as_worker(builder).build())
}

/// Returns a session of one machine that cuts scans into runs as one of several does.
pub fn spreading_session(num_workers: usize) -> SessionContext {
    let mut builder = builder(2);
    let config = builder.config().get_or_insert_default();
    config.set_extension(Arc::new(Spreading { num_workers }));
    always_divided(SessionContext::new_with_state(builder.build()))
}

fn always_divided(ctx: SessionContext) -> SessionContext {
    ctx.state_ref().write().config_mut().options_mut().set("tadoc.divide", "always").unwrap();
    ctx
}

/// Workers of this process on loopback.
pub struct Cluster {
    pub urls: WorkerUrls,
    tasks: Vec<JoinHandle<()>>,
}

impl Cluster {
    pub async fn start(num_workers: usize) -> Self {
        Self::start_in(num_workers, &Arc::default()).await
    }

    /// Starts workers whose tasks run in `runtime`.
    pub async fn start_in(num_workers: usize, runtime: &Arc<RuntimeEnv>) -> Self {
        let mut urls = Vec::new();
        let mut tasks = Vec::new();
        for _ in 0..num_workers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()));
            let worker = worker_of(Arc::clone(runtime), Credentials::default(), WorkerAccess::Write);
            let serve = serve_worker(worker, listener, std::future::pending());
            tasks.push(tokio::spawn(async move { serve.await.unwrap() }));
        }
        Self { urls: urls.join(",").parse().unwrap(), tasks }
    }

    /// Returns a session that uses the workers for all that can be divided. One process would be faster.
    pub fn session(&self, partitions: usize) -> SessionContext {
        always_divided(self.choosing_session(partitions))
    }

    /// Returns a session that uses the workers where they are faster.
    pub fn choosing_session(&self, partitions: usize) -> SessionContext {
        let state = with_workers(builder(partitions), self.urls.clone()).build();
        SessionContext::new_with_state(state)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the rows of a statement.
pub async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    Ok(lines(&pretty_format_batches(&batches)?.to_string()))
}

/// Returns the rows of a plan.
pub async fn rows_of(plan: Arc<dyn ExecutionPlan>, ctx: &SessionContext) -> Result<Vec<String>> {
    let batches = collect(plan, ctx.task_ctx()).await?;
    Ok(lines(&pretty_format_batches(&batches)?.to_string()))
}

fn lines(table: &str) -> Vec<String> {
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    // Without rows only the borders are printed.
    lines.retain(|line| !line.starts_with('+'));
    lines
}

/// Returns `rows` in an order of their own.
pub fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}
